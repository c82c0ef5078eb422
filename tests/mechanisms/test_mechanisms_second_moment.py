"""How far a row moves the scatter and what is bought of it: brute force against the bounds."""

import math

import numpy as np
import pytest
from subspace_rows import ADD_REMOVE, RELATIONS, REPLACE, ball, facts, nothing, statistic

from dpmodels.errors import ArgumentError
from dpmodels.mechanisms.second_moment import (
    axes_sensitivity,
    checked_purchase,
    scatter_norm,
    scatter_of_rows,
    scatter_range,
    wanted,
)
from dpmodels.noise.lattice import Lattice

LATTICE = Lattice(20, 2)


def of(rows, times=None):
    """The scatter about the mean."""
    return scatter_of_rows(statistic(rows, times=times), LATTICE, centred=True).matrix


def plane_pairs(rng, pairs):
    """Pairs of rows and a mean of the others, most of them on the circle, in the plane."""
    for _ in range(pairs):
        yield ball(rng, 4, 2)[1::2], ball(rng, 2, 2)[1:]


def extremes(difference):
    values = np.linalg.eigvalsh(difference)
    return values[-1], values[0]


def test_the_scatter_is_the_one_of_numpy():
    rows = ball(np.random.default_rng(1), 50, 3)
    away = rows - rows.mean(0)
    lattice = Lattice(20, 3)
    about, origin = (
        scatter_of_rows(statistic(rows), lattice, centred=how) for how in (True, False)
    )
    np.testing.assert_allclose(about.matrix, away.T @ away, atol=2e-4)
    np.testing.assert_allclose(origin.matrix, rows.T @ rows, atol=2e-4)
    assert (about.complete, about.rows) == (50, 50)


def test_the_scatter_about_the_mean_cancels_exactly():
    distant = np.array([[0.7, 0.1]])
    assert (of(distant, times=[10**12]) == 0).all()
    assert (of(np.vstack([distant, distant]), times=[3, 5]) == 0).all()
    assert (scatter_of_rows(nothing(2), LATTICE, centred=True).matrix == 0).all()
    two = of([[0.5, 0.0], [-0.5, 0.0]], times=[10**12, 10**12])
    np.testing.assert_array_equal(two, [[0.5e12, 0.0], [0.0, 0.0]])


@pytest.mark.product
def test_a_replaced_row_is_within_the_bounds_about_the_mean():
    rng = np.random.default_rng(2)
    widest, longest = 0.0, 0.0
    for (x, y), pairs_of_rest in plane_pairs(rng, 3_000):
        n_rows = int(10 ** rng.uniform(0, 6))
        low = of(np.vstack([pairs_of_rest, x]), times=[n_rows, 1])
        difference = low - of(np.vstack([pairs_of_rest, y]), times=[n_rows, 1])
        top, bottom = extremes(difference)
        widest = max(widest, top - bottom)
        longest = max(longest, np.linalg.norm(difference))
    assert widest <= scatter_range(facts(2, centred=True)) == 3 * math.sqrt(3)
    assert longest <= scatter_norm(facts(2, centred=True)) == 4
    # Far beyond the 4 that one energy alone would give.
    assert widest > 5.0
    assert longest > 3.8


def test_the_worst_rows_reach_the_bounds_about_the_mean():
    half, side = 0.5, math.sqrt(0.75)
    rows = np.array([[-1.0, 0.0], [half, side], [half, -side], [1.0, 0.0]])
    base = [10**6, 0, 0, 0]
    first, second, third, fourth = (
        of(rows, np.add(base, step)) for step in np.eye(4, dtype=int)[[1, 2, 3, 0]]
    )
    top, bottom = extremes(first - second)
    assert 3 * math.sqrt(3) * (1 - 1e-5) < top - bottom <= 3 * math.sqrt(3)
    assert 4 * (1 - 1e-5) < np.linalg.norm(third - fourth) <= 4
    alone = extremes(third - of(rows[:1], base[:1]))
    assert 4 * (1 - 1e-5) < alone[0] - alone[1] <= scatter_range(facts(2, 0, ADD_REMOVE, True)) == 4


def test_an_added_row_only_adds():
    rng = np.random.default_rng(3)
    for (x, _), alternatives in plane_pairs(rng, 500):
        n_rows = int(10 ** rng.uniform(0, 6))
        top, bottom = extremes(
            of(np.vstack([alternatives, x]), [n_rows, 1]) - of(alternatives, [n_rows])
        )
        assert -1e-9 * n_rows <= bottom
        assert top - min(bottom, 0) <= 4 * (1 + 1e-9)


@pytest.mark.parametrize(
    ("relation", "width", "norm"), [(REPLACE, 2, math.sqrt(2)), (ADD_REMOVE, 1, 1)]
)
def test_the_bounds_about_the_origin(relation, width, norm):
    rng = np.random.default_rng(4)
    public_facts = facts(3, relation=relation)
    assert (scatter_range(public_facts), scatter_norm(public_facts)) == (width, norm)
    rows = np.vstack([ball(rng, 400, 3), np.eye(3), np.zeros((1, 3))])
    replacements = rows if relation is REPLACE else np.zeros_like(rows)
    pairs = [
        np.outer(rows[i], rows[i]) - np.outer(replacements[j], replacements[j])
        for i, j in [*rng.integers(0, len(rows), (3_000, 2)), (400, 401), (400, 403)]
    ]
    values = np.linalg.eigvalsh(pairs)
    assert (
        width * (1 - 1e-9)
        < (values[:, 2] - np.minimum(values[:, 0], 0)).max()
        <= width * (1 + 1e-9)
    )
    assert norm * (1 - 1e-9) < np.linalg.norm(pairs, axis=(1, 2)).max() <= norm * (1 + 1e-9)


def bought(rng, components, relation, centred, tries=3_000):
    """Differences of count and scatter inside a space, (tries, 1 + entries), and their norms."""
    upper = np.triu_indices(components)
    weights = np.where(upper[0] == upper[1], 1, math.sqrt(2))
    signs = rng.choice([-1.0, 1.0], (tries, 2, components)) / math.sqrt(components)
    pairs = np.concatenate([ball(rng, 2 * tries, components).reshape(tries, 2, components), signs])
    means = ball(rng, len(pairs), components) if centred else np.zeros((len(pairs), components))
    means[: tries // 2] = 0.0
    if centred:
        means[tries:] = -pairs[tries:, 0]
    first, second = (
        np.einsum("ni,nj->nij", away, away) for away in (pairs - means[:, None]).swapaxes(0, 1)
    )
    between = np.column_stack([np.zeros(len(pairs)), (first - second)[:, *upper]])
    alone = np.column_stack([np.ones(len(pairs)), first[:, *upper]])
    moves = np.vstack([between, alone]) if relation is REPLACE else alone
    return np.abs(moves).sum(1), np.linalg.norm(moves * [1, *weights], axis=1)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("relation", RELATIONS, ids=lambda mechanism: mechanism.name)
@pytest.mark.parametrize("components", [1, 2, 5])
def test_what_is_bought_is_within_its_sensitivity(components, relation, centred):
    public_facts = facts(components, relation=relation, centred=centred)
    absolute, euclidean = bought(np.random.default_rng(5), components, relation, centred)
    for moves, norm in ((absolute, 1), (euclidean, 2)):
        declared = axes_sensitivity(public_facts, norm)
        assert 0.85 * declared < moves.max() <= declared * (1 + 1e-12)


def test_the_sensitivities_in_numbers():
    assert axes_sensitivity(facts(9, 3), 2) == pytest.approx(math.sqrt(2))
    assert axes_sensitivity(facts(9, 3, ADD_REMOVE), 2) == pytest.approx(math.sqrt(2))
    assert axes_sensitivity(facts(9, 3, centred=True), 2) == pytest.approx(math.sqrt(17))
    assert axes_sensitivity(facts(9, 3, ADD_REMOVE), 1) == pytest.approx(3)
    assert axes_sensitivity(facts(9, 6), 1) == pytest.approx(math.sqrt(27))
    assert axes_sensitivity(facts(9, 6, centred=True), 1) == pytest.approx(15)
    assert wanted(facts(9)) == 9


@pytest.mark.parametrize(
    ("eigenvals", "share", "word"),
    [
        ("public", 0.2, "eigenvals"),
        (True, 0.2, "eigenvals"),
        (None, 0.0, "share"),
        (None, 1, "share"),
    ]
    + [("private", share, "share") for share in (float("nan"), -0.1, 2, "0.5", True, None)],
)
def test_a_purchase_is_said_in_two_words(eigenvals, share, word):
    with pytest.raises(ArgumentError, match=word):
        checked_purchase(eigenvals, share)
