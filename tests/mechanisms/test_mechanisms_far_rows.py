"""Few rows far from all others do not cost a regression the coefficients of other terms."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2

import dpmodels as dp
from dpmodels.postprocess.ellipsoid import Cells
from dpmodels.postprocess.score_rounds import (
    LENGTHS,
    LONGEST,
    RESIDUALS,
    FarRows,
    SignedCells,
    chosen_limits,
    first_coordinates,
    within_reach,
)

# Of two terms with a correlation of .6, and a response.
COVARIANCE = np.array([[4.0, 1.2, 0.0], [1.2, 1.0, 0.0], [0.0, 0.0, 1.0]])
TRACED = first_coordinates(np.zeros(3), COVARIANCE)
RADIUS = 2.0


def shortened(variances, noise=0.0):
    return within_reach(TRACED, FarRows([], np.array(variances), noise), RADIUS)


def test_axes_are_shortened_along_numbers_whose_whole_range_has_more_variance():
    nearer_axes, row = shortened([40.0, 1.0]), np.array([5 * 6.0, 5 * 6.0 * 0.3])
    assert np.linalg.norm(TRACED.whitening @ row) == pytest.approx(15.0)
    assert np.linalg.norm(nearer_axes.whitening @ row) == pytest.approx(0.8 * RADIUS)
    # What does not go with the first term has the axis that it had.
    assert np.linalg.norm(nearer_axes.whitening @ [0.0, 0.8]) == pytest.approx(1.0)
    np.testing.assert_allclose(
        nearer_axes.whitening @ COVARIANCE[:2, :2] @ nearer_axes.whitening.T,
        np.diag(nearer_axes.spread**2),
        atol=1e-9,
    )


@pytest.mark.parametrize("variances", [[4.0, 1.0], [-3.0, 0.0], [4.2, 1.01]])
def test_axes_of_rows_that_are_near_stay(variances):
    np.testing.assert_allclose(shortened(variances).spread, 1.0, rtol=1e-9)


def test_an_axis_keeps_a_variance_that_noise_does_not_hide():
    variance = 25 * 0.004
    assert shortened([4000.0, 1.0], 0.004).spread.min() == pytest.approx(np.sqrt(variance))
    np.testing.assert_allclose(shortened([4000.0, 1.0], 1.0).spread, 1.0, rtol=1e-9)


def test_rows_are_kept_no_longer_than_noise_leaves_mean_squares():
    """Half a percent of the rows are 16 root mean squares long."""

    def radius(multiplier, rows=20_000.0):
        terms = np.where(LENGTHS == 1.0, 0.995, np.where(LENGTHS == 16.0, 0.005, 0.0)) * rows
        side = Cells(RESIDUALS, np.full(len(RESIDUALS), rows / 2 / len(RESIDUALS)), 10.0)
        signed = SignedCells(side, side, 1e3)
        limits = chosen_limits(Cells(LENGTHS, terms, 10.0), signed, np.zeros(3), rows, multiplier)
        return limits.radius / 2

    assert radius(0.5) == pytest.approx(16.0)
    for multiplier in (2.0, 4.0, 8.0):
        noise = np.sqrt(8) * multiplier * 4 * radius(multiplier) ** 2 / 20_000
        assert radius(multiplier) < 16
        assert noise <= 0.25
    assert radius(1e4) <= LONGEST


def test_noise_in_a_number_of_long_rows_makes_no_radius_long():
    """Rows so long that their mean square alone would be above that of all."""
    terms = np.select([LENGTHS == 1.0, np.abs(LENGTHS - 11.3) < 0.1], [5000.0, 180.0])
    normal = np.diff(chi2.cdf(RESIDUALS**2, 1), prepend=0.0) * 2500
    signed = SignedCells(Cells(RESIDUALS, normal, 50.0), Cells(RESIDUALS, normal, 50.0), 1e3)
    limits = chosen_limits(Cells(LENGTHS, terms, 50.0), signed, np.zeros(3), 5000.0, 8.0)
    assert limits.radius / 2 <= LONGEST


def test_long_residuals_on_both_sides_ask_for_a_smaller_allowance():
    """Four of seven rows are below the line; those far out are above it, or half of them."""

    def allowance(above, below):
        sides = (
            np.select([RESIDUALS == 1.0, np.abs(RESIDUALS - 4.8) < 0.1], [n_inner, n_outer])
            for n_inner, n_outer in ((8_400.0, above), (11_200.0, below))
        )
        signed = SignedCells(*(Cells(RESIDUALS, counts, 43.0) for counts in sides), 1e3)
        terms = Cells(LENGTHS, np.where(LENGTHS == 1.0, 20_000.0, 0.0), 43.0)
        return chosen_limits(terms, signed, np.zeros(3), 20_000.0, 5.0).skew[0]

    assert allowance(200.0, 200.0) < 0.5 * allowance(400.0, 0.0)


@pytest.mark.product
def test_more_budget_does_not_lose_slopes_beside_a_few_far_rows():
    """Of zeros, a tail, and half a percent of the rows at the bound."""
    rng = np.random.default_rng(3)
    x = np.where(rng.random(20_000) < 0.9, 0.0, 3 * (1 + rng.pareto(1.5, 20_000)))
    x = np.where(rng.random(20_000) < 0.005, 100.0, np.minimum(x, 100.0))
    group = rng.choice(["a", "b", "c"], 20_000, p=[0.5, 0.3, 0.2])
    y = np.clip(0.06 * x + 0.5 * (group == "b") + rng.normal(size=20_000), -8, 25)
    book = dp.codebook(y=(-8, 25), x=(0, 100), group=["a", "b", "c"])
    table = pd.DataFrame({"y": y, "x": x, "group": group})

    def is_identified(eps, seed):
        with dp.simulation(seed=seed):
            fit = dp.dp_lm("y ~ x + group", table, codebook=book, eps=eps, delta=1e-6)
        assert fit.release.info.name == "scores"
        return fit.identified.all()

    # One release in 50 leaves a level out; without the shorter axis half of them did.
    for eps in (1.0, 2.0, 3.0):
        assert sum(is_identified(eps, seed) for seed in range(5)) >= 3


def pareto_rows(rng, bend):
    """Rows with two Pareto terms, and a line that bends or not."""
    a, b = np.minimum((1 - rng.random((2, 5_000))) ** -0.4, 60.0)
    mean = np.log(a) + 0.5 * np.sqrt(b) if bend else 0.3 * a - 0.2 * b
    return pd.DataFrame({"a": a, "b": b, "y": mean + 0.5 * rng.normal(size=5_000)})


def least_squares(fit, table, *, as_released):
    """Least squares of a table, each row with its weight in the release or with equal weights."""
    ball = fit.release.ball
    rows = table[list(fit.call.names)].to_numpy()
    along = np.linalg.solve(ball.axes, ((rows - ball.centre) / fit.call.divisor).T)[:-1]
    length = np.sqrt(1 + (along**2).sum(axis=0)) * np.sqrt(2)
    root = np.minimum(1.0, ball.radius / length) if as_released else np.ones(len(rows))
    design = np.column_stack([np.ones(len(rows)), rows[:, :-1]])
    return np.linalg.lstsq(design * root[:, None], rows[:, -1] * root, rcond=None)[0]


@pytest.mark.product
@pytest.mark.parametrize("bend", [False, True])
def test_noise_intervals_hold_for_rows_with_their_weights_in_the_release(bend):
    """Of 30 intervals that miss with a chance of .1 each more than 14 miss with one below 1e-7."""
    rng, missed = np.random.default_rng(8), {True: np.zeros(3), False: np.zeros(3)}
    book = dp.codebook(a=(1, 60), b=(1, 60), y=(-30, 30))
    for seed in range(30):
        table = pareto_rows(rng, bend)
        with dp.simulation(seed=seed):
            fit = dp.dp_lm("y ~ a + b", table, codebook=book, eps=3.0, delta=1e-6)
        low, high = fit.noise_int().to_numpy().T
        for as_released, count in missed.items():
            estimate = least_squares(fit, table, as_released=as_released)
            count += (estimate < low) | (estimate > high)
    assert (missed[True] <= 14).all()
    if bend:  # Intervals are not about these.
        assert missed[False][1] > 14


def test_the_table_says_which_weights_noise_intervals_are_about():
    table = pareto_rows(np.random.default_rng(8), bend=True)
    book = dp.codebook(a=(1, 60), b=(1, 60), y=(-30, 30))
    printed = {}
    for mechanism in ("scores", "moments"):
        with dp.simulation(seed=1):
            words = {"eps": 3.0, "delta": 1e-6, "mechanism": mechanism}
            fit = dp.dp_lm("y ~ a + b", table, codebook=book, **words)
        printed[mechanism] = " ".join(str(fit.summary(notes="all")).split())
    assert "non-private fit of these rows, downweighted where terms are" in printed["scores"]
    truncated = r"downweighted and residuals truncated \(up to about [\d.]+%\)"
    assert re.search(truncated, printed["scores"])
    assert "truncated" not in printed["moments"]
    assert "with equal weights may lie outside it where the relation bends" in printed["scores"]
    assert "non-private fit of these rows." in printed["moments"]
    assert "equal weights" not in printed["moments"]


def test_axes_are_not_shortened_towards_levels_whose_rows_other_columns_bring_near():
    """Rows of a band of a number are where that is, and not at its mean."""
    number = np.linspace(-1.5, 1.5, 4_000)
    bands = np.column_stack([number > low for low in (-0.5, 0.5)]).astype(float)
    bands[:, 0] -= bands[:, 1]
    terms = np.column_stack([bands, number])
    covariance = np.zeros((4, 4))
    covariance[:3, :3], covariance[3, 3] = np.cov(terms.T), 1.0
    coordinates = first_coordinates(np.append(terms.mean(axis=0), 0.0), covariance)
    levels = [(slice(0, 2), np.array([[0, 0], [1, 0], [0, 1.0]]))]
    nearer = within_reach(coordinates, FarRows(levels, np.zeros(3), 0.0), 2.5)
    np.testing.assert_allclose(nearer.spread, 1.0, rtol=1e-9)
    rows = (terms - nearer.centre) @ nearer.whitening.T
    assert np.linalg.norm(rows, axis=1).max() < 3.0
