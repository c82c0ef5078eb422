"""Normal equations from moments, the law of the noise in them, and the ridge that holds them."""

import math

import numpy as np
import pytest

from dpmodels.postprocess import normal_equations
from dpmodels.postprocess.normal_equations import (
    NormalEquations,
    equations_of_moments,
    least_squares,
)
from dpmodels.released import MomentNoise

pytestmark = pytest.mark.kernels

NOISE = MomentNoise(count=2.0, mean=1.5, diagonal=1.0, off=math.sqrt(0.5))
ROWS = np.random.default_rng(5).uniform(-1, 1, (400, 4)) / 2


def asked(noise=NOISE, rows=ROWS, norm=2.0, shift=None):
    return equations_of_moments(
        float(len(rows)), rows.sum(0), rows.T @ rows, noise, row_norm=norm, shift=shift
    )


def drawn(variance, rng):
    """One symmetric noise matrix."""
    upper = np.triu(rng.normal(size=variance.shape) * np.sqrt(variance))
    return upper + np.triu(upper, 1).T


def test_without_noise_the_solution_is_that_of_least_squares():
    design = np.column_stack([np.ones(400), 2 * ROWS[:, :3]])
    plain = np.linalg.lstsq(design, 2 * ROWS[:, 3], rcond=None)[0]
    assert least_squares(asked()) == pytest.approx(plain, rel=1e-9)


def test_without_a_constant_the_origin_is_that_of_the_columns():
    shift = np.array([0.3, -1.0, 2.0, 0.7])
    design = 2 * ROWS + shift
    plain = np.linalg.lstsq(design[:, :3], design[:, 3], rcond=None)[0]
    assert least_squares(asked(shift=shift), -math.inf) == pytest.approx(plain, rel=1e-9)


def test_moments_in_another_basis_have_the_variances_of_their_independent_noise():
    rng = np.random.default_rng(4)
    moments, variance = drawn(np.ones((4, 4)), rng), rng.uniform(1, 2, (4, 4))
    variance = (variance + variance.T) / 2
    basis = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    summed = np.zeros((4, 4))
    for k in range(4):
        for j in range(k + 1):
            single = np.zeros((4, 4))
            single[k, j] = single[j, k] = 1.0
            summed += variance[k, j] * (basis.T @ single @ basis) ** 2
    turned, variances = normal_equations._turned(moments, variance, basis)
    assert turned == pytest.approx(basis.T @ moments @ basis)
    assert variances == pytest.approx(summed)


@pytest.mark.product
def test_the_laws_of_the_noise_are_those_of_drawn_noise():
    equations, rng = asked(), np.random.default_rng(7)
    g, weights = rng.normal(size=5), rng.normal(size=(5, 5))
    weights += weights.T
    noise = [drawn(equations.variance, rng) for _ in range(20_000)]
    sample = np.mean([value @ np.outer(g, g) @ value for value in noise], axis=0)
    # Entries have relative sds of at most √2/√20000 of the largest: 6 of them, 2e-9 each.
    assert sample == pytest.approx(
        equations.noise_of(np.outer(g, g)), abs=0.06 * np.abs(sample).max()
    )
    forms = np.array([(value * weights).sum() for value in noise])
    assert forms.std() == pytest.approx(equations.form_sd(weights), rel=5 / math.sqrt(2 * 20_000))


def test_the_slope_of_the_noise():
    equations, rng = asked(), np.random.default_rng(1)
    g, u, step = rng.normal(size=5), rng.normal(size=5), 1e-6

    def pushed(at):
        return equations.noise_of(np.outer(at, at)) @ u

    ways = [(pushed(g + step * e) - pushed(g - step * e)) / (2 * step) for e in np.eye(5)]
    assert equations.noise_slope(g, u) == pytest.approx(np.array(ways).T, rel=1e-6, abs=1e-6)


def test_the_edge_is_where_the_noise_ends():
    flat = MomentNoise(count=0.0, mean=0.0, diagonal=1.0, off=math.sqrt(0.5))
    rng = np.random.default_rng(2)
    rows = np.zeros((1_000, 61))
    equations = asked(flat, rows, norm=1.0)
    assert equations.edge == pytest.approx(math.sqrt(2 * 61), rel=0.02)
    largest = np.linalg.eigvalsh(drawn(equations.variance, rng)[1:-1, 1:-1])[-1]
    # The largest eigenvalue of 60 columns is within a tenth of the edge, 1e-8 otherwise.
    assert largest == pytest.approx(equations.edge, rel=0.15)


@pytest.mark.parametrize("scale", [10.0, 1e3, 1e6])
def test_estimates_stay_small_where_noise_wins(scale):
    noise = MomentNoise(*(scale * factor for factor in (2.0, 1.5, 1.0, 0.7)))
    rng, clean = np.random.default_rng(3), asked(noise)
    for _ in range(200):
        noisy = drawn(clean.variance, rng) + clean.moments
        equations = equations_of_moments(
            noisy[0, 0], noisy[0, 1:] / 2, noisy[1:, 1:] / 4, noise, row_norm=2.0, shift=None
        )
        # Slopes are X'y over an edge or more; six sds of X'y against it, 1e-6 over all.
        assert np.abs(least_squares(equations)[1:]).max() < 60
        assert np.isfinite(least_squares(equations, -math.inf)).all()


def test_a_constant_column_and_no_rows_are_solved():
    constant = ROWS.copy()
    constant[:, 1] = 0.25
    silent = MomentNoise(1e-3, 1e-3, 1e-3, 1e-3)
    for rows in (constant, np.zeros((0, 4)), np.zeros((2, 4))):
        result = asked(silent, rows)
        assert np.isfinite(least_squares(result)).all()
        assert result.strength < 1 or len(rows)


def test_strength_tells_identified_designs_from_others():
    assert asked(MomentNoise(0.1, 0.1, 0.01, 0.01)).strength > 100
    assert asked(MomentNoise(50, 50, 50, 50)).strength < 1
    alone = asked(NOISE, ROWS[:, 3:])
    assert alone.strength == pytest.approx(400 / 4)


@pytest.mark.parametrize("norm", [1.0, 1e-6, 1e6])
def test_no_moment_is_known_beyond_the_rounding_of_all(norm):
    silent = asked(MomentNoise(0.0, 0.0, 0.0, 0.0), norm=norm)
    usual = asked(norm=norm)
    unit = np.array([1.0, *[norm] * 4])
    assert np.sqrt(silent.variance) == pytest.approx(2.0**-44 * 400 * np.outer(unit, unit))
    assert 0 < silent.edge < 1e-9 * usual.edge
    assert np.isfinite(silent.strength)
    assert usual.variance[0, 0] == 4.0


def test_the_squares_left_have_no_bias_and_their_stated_noise():
    """Against the noisy sum at the exact estimate, whose mean is that without noise.

    Of 400 noisy tables the mean difference has a standard error of .02: false alarms below 1e-6.
    """
    rng, size, sd = np.random.default_rng(5), 11, 1.0
    rows = np.column_stack([np.ones(400), rng.uniform(-0.5, 0.5, (400, size - 1))])
    rows[:, -1] += 0.4 * rows[:, 1:-1] @ np.resize([1, -1], size - 2)
    exact, columns = rows.T @ rows, np.eye(size)
    theta, (residual_squares,) = np.linalg.lstsq(rows[:, :-1], rows[:, -1], rcond=None)[:2]
    still = np.append(-theta, 1.0)
    results = []
    for _ in range(400):
        noise = np.triu(rng.normal(size=(size, size))) * sd
        noisy, variance = exact + noise + np.triu(noise, 1).T, np.full((size, size), sd**2)
        law = NormalEquations(noisy, variance, columns[:, :-1], columns[:, -1], True)
        g = law.residual(least_squares(law))
        results.append(
            [*law.squares_left(least_squares(law)), g @ noisy @ g, still @ noisy @ still]
        )
    value, stated, plain, unmoved = np.transpose(results)
    assert abs((value - unmoved).mean()) < 0.15
    assert (plain - unmoved).mean() < -0.5
    assert 0.8 < ((value - residual_squares) / stated).std() < 1.2
