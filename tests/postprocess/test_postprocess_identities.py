"""Moments held to public identities: exact moments stay, and the noise that is left has its law."""

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design import row_coder
from dpmodels.formula.coding import cells
from dpmodels.formula.response import two_sided
from dpmodels.postprocess.identities import Identities, bind_identities
from dpmodels.postprocess.normal_equations import NormalEquations

pytestmark = pytest.mark.kernels

BOOK = dp.codebook(y=(0, 1), g=list("abcd"), h=["u", "v"], x=(0, 10))


def asked(formula, count=300):
    """Exact moments of scaled rows, the variances of their noise, and what is public of them."""
    rng = np.random.default_rng(2)
    sides = two_sided(formula, BOOK)
    cell_values = cells(sides.joint.blocks)
    size = len(cell_values.factor)
    left, right = np.triu_indices(size)
    functions = np.empty((size, size), dtype=int)
    functions[left, right] = functions[right, left] = cell_values.products(left, right)
    unit = np.concatenate([[1.0], (sides.joint.upper - sides.joint.lower) / 2])
    shift = np.concatenate([[0.0], rng.uniform(0, 1, size - 1)])
    columns = {"g": rng.choice(list("abc"), count), "h": rng.choice(["u", "v"], count)}
    rows = {**columns, "x": rng.uniform(0, 10, count), "y": rng.random(count)}
    coded = np.vstack([np.ones(count), row_coder(sides.joint)(rows)]) / unit[:, None]
    coded[1:] -= shift[1:, None]
    variance = rng.uniform(1, 4, (size, size))
    identities = Identities(functions, cell_values.factor / unit, shift)
    return coded @ coded.T, variance + variance.T, identities


def responses(exact, variance, identities):
    """What is left of the noise of each entry on and above the diagonal, one sd of it."""
    left = []
    for at in zip(*np.triu_indices(len(exact)), strict=True):
        noisy = exact.copy()
        noisy[at] = noisy[at[::-1]] = exact[at] + np.sqrt(variance[at])
        left.append(bind_identities(noisy, variance, identities)[0] - exact)
    return np.array(left)


@pytest.mark.parametrize("formula", ["y ~ g", "y ~ g*h + x", "y ~ g*x"])
def test_exact_moments_stay_and_the_noise_left_has_its_law(formula):
    exact, variance, identities = asked(formula)
    moments, free, noise = bind_identities(exact, variance, identities)
    assert moments == pytest.approx(exact, abs=1e-9 * np.abs(exact).max())
    rng, size = np.random.default_rng(5), len(exact)
    g, u = rng.normal(size=(2, size))
    equations = NormalEquations(moments, free, np.eye(size), g, False, noise)
    # The map is linear: the covariance is the sum over entries, exactly.
    left = responses(exact, variance, identities)
    law = equations.score_noise(g)
    assert law == pytest.approx((left @ g).T @ (left @ g), rel=1e-6, abs=1e-8)
    # It is less than without the identities, and what other sums of it say is the same law.
    before = NormalEquations(exact, variance, np.eye(size), g, False)
    assert np.linalg.eigvalsh(before.score_noise(g) - law)[0] > -1e-9 * np.abs(law).max()
    assert equations.noise_of(np.outer(g, g)) == pytest.approx(law)
    assert equations.shared(*(direction[:, None] for direction in (u, g, g))) == pytest.approx(
        u @ law @ u
    )
    form = np.outer(g, u) + np.outer(u, g)
    forms = np.array([(entry * form).sum() for entry in left])
    assert equations.form_sd(form) == pytest.approx(float(np.linalg.norm(forms)))


def test_the_slope_of_the_noise_that_is_left():
    exact, variance, identities = asked("y ~ g*x")
    moments, free, noise = bind_identities(exact, variance, identities)
    equations = NormalEquations(
        moments, free, np.eye(len(exact)), np.ones(len(exact)), False, noise
    )
    rng, step = np.random.default_rng(1), 1e-6
    g, u = rng.normal(size=(2, len(exact)))
    ways = [
        (equations.score_noise(g + step * e) - equations.score_noise(g - step * e)) @ u / (2 * step)
        for e in np.eye(len(exact))
    ]
    assert equations.noise_slope(g, u) == pytest.approx(np.array(ways).T, rel=1e-5, abs=1e-5)


def test_numbers_alone_are_bound_by_nothing():
    exact, variance, identities = asked("y ~ x")
    moments, free, noise = bind_identities(exact, variance, identities)
    assert noise is None
    assert moments is exact
    assert free is variance
