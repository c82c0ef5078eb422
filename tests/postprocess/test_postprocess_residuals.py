"""Tables of their components: exactly, and least squares against dense linear algebra."""

from functools import reduce

import numpy as np
import pytest

from dpmodels.postprocess.residuals import (
    cells,
    centred,
    components,
    crossed,
    fitted_variances,
    largest,
    precisions,
    rebuilt,
    shape,
    split,
    subsets,
    summed,
    unlike,
)

SIZES = (3, 2, 4, 2)
TERMS = ((0,), (0, 1), (1, 2), (0, 1, 3))
# More than a float has bits for.
BEYOND = 2**60


def full_table(seed=0):
    return np.random.default_rng(seed).integers(0, 50, SIZES)


def margin(table, term):
    return summed(table, tuple(range(len(SIZES))), term)


def parts_of(table):
    differences = {}
    for part in components(TERMS):
        residual = centred(margin(table, part))
        differences[part] = residual / cells(part, SIZES)
    return differences


def test_margins_are_made_of_components_and_agree():
    table = full_table()
    parts = parts_of(table)
    for term in {part for measured in TERMS for part in subsets(measured)}:
        table_again = rebuilt(term, parts, SIZES)
        np.testing.assert_allclose(table_again, margin(table, term), atol=1e-9)
    assert components(TERMS)[0] == ()
    assert largest(TERMS) == ((1, 2), (0, 1, 3))


@pytest.mark.parametrize("part", components(TERMS))
def test_a_component_of_integers_is_whole_and_sums_to_nothing(part):
    table = margin(full_table(), part).astype(object)
    residual = centred(table)
    for axis in range(residual.ndim):
        assert np.all(residual.sum(axis=axis) == 0)
        # What is the same along an axis leaves no trace in any bit.
        alike = summed(table, part, tuple(i for i in part if i != part[axis])) * BEYOND
        assert np.all(centred(table + np.expand_dims(alike, axis)) == residual)


def test_a_row_adds_a_vector_of_the_stated_length():
    row = np.zeros(SIZES)
    row[2, 1, 3, 0] = 1
    for part, residual in parts_of(row).items():
        assert (residual**2).sum() == pytest.approx(unlike(part, SIZES))


def test_the_weighing_by_precision_is_generalised_least_squares():
    """Of all counts of three tables with unequal noise, on the full table, by pseudo-inverses."""
    sds = {(0, 1): 2.0, (1, 2): 3.0, (0, 1, 3): 5.0}

    def sums(term):
        factors = (np.eye(n) if i in term else np.ones((1, n)) for i, n in enumerate(SIZES))
        return reduce(np.kron, factors)

    design = np.vstack([sums(term) / sd for term, sd in sds.items()])
    rng = np.random.default_rng(1)
    noisy = {
        term: margin(full_table(), term) + rng.normal(0, sd, shape(term, SIZES))
        for term, sd in sds.items()
    }
    standardised = np.concatenate(
        [residual.ravel() / sds[term] for term, residual in noisy.items()]
    )
    dense, spread = np.linalg.pinv(design) @ standardised, np.linalg.pinv(design.T @ design)
    weights = precisions(sds, SIZES)
    parts = {
        part: centred(sum(w * summed(noisy[term], term, part) for term, w in weight.items()))
        / cells(part, SIZES)
        for part, weight in weights.items()
    }
    variances = fitted_variances(sds, SIZES)
    for term in sds:
        np.testing.assert_allclose(rebuilt(term, parts, SIZES).ravel(), sums(term) @ dense)
        expected = sums(term) @ spread @ sums(term).T
        covariance = np.zeros_like(expected)
        for part in subsets(term):
            factors = [
                np.eye(SIZES[i]) - 1 / SIZES[i]
                if i in part
                else np.full((SIZES[i], SIZES[i]), SIZES[i] ** -2.0)
                for i in term
            ]
            covariance += variances[part] * crossed(factors)
        np.testing.assert_allclose(covariance, expected, atol=1e-9)


def test_components_stand_one_after_another():
    parts = parts_of(full_table())
    values = np.concatenate([part.ravel() for part in parts.values()])
    again = split(values, components(TERMS), SIZES)
    assert all((again[part] == residual).all() for part, residual in parts.items())
