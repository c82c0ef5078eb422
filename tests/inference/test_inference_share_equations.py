"""Ends of intervals solve the equations that define them, with variances of dense covariances."""

import math

import numpy as np
import pytest
from scipy.stats import norm

import dpmodels as dp
from dpmodels.inference.margins import MarginNoise
from dpmodels.inference.proportions import (
    Noise,
    ratio_interval,
    score_interval,
    share_interval,
    stepped_width,
    within,
)
from dpmodels.results.components import root_sd
from dpmodels.results.estimate_table import product_unit, slope_unit

COUNTS = np.array([120.0, 30.0, 260.0, 7.0, 83.0])
LEVEL = 0.9
WIDTH = norm.isf(0.05)


def balanced(parts, cells, sd):
    """The covariance of the noise of some parts of a table with a public total."""
    projection = np.eye(parts) - 1 / parts if parts else np.eye(cells)
    return sd**2 * projection[:cells, :cells]


def variances(covariance, cell):
    """Those of a cell, of a cell and the total, and of the total."""
    ones = np.ones(len(covariance))
    return covariance[cell, cell], covariance[cell] @ ones, ones @ covariance @ ones


def is_at_the_quantile(p, count, total, noise, width=WIDTH):
    """(y - N p)² is the squared quantile of the sampling variance plus that of the noise."""
    of_cell, shared, of_total = noise
    spread = total * p * (1 - p) + of_cell - 2 * p * shared + p**2 * of_total
    return (count - total * p) ** 2 == pytest.approx(width**2 * spread, rel=1e-6)


@pytest.mark.parametrize("parts", [0, 6, 9])
def test_intervals_of_shares_are_wilsons_with_noise(parts):
    low, high = share_interval(COUNTS, Noise("gaussian", 5.0, parts), LEVEL)
    covariance, total = balanced(parts, 5, 5.0), COUNTS.sum()
    for cell, count in enumerate(COUNTS):
        noise = variances(covariance, cell)
        assert low[cell] < count / total < high[cell]
        assert is_at_the_quantile(high[cell], count, total, noise)
        assert low[cell] == 0 or is_at_the_quantile(low[cell], count, total, noise)


@pytest.mark.parametrize("is_public", [True, False])
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_intervals_of_a_margins_shares_use_its_dense_covariance(is_public, law):
    """Two declared levels of three of the first variable, three of four of the second."""
    sizes, term = (3, 4), (0, 1)
    sds = {(0,): 3.0, (1,): 4.0, (0, 1): 2.5}
    if not is_public and law == "gaussian":
        sds[()] = 6.0
    noise = MarginNoise(law, sizes, sds, is_public)
    root, _ = noise.drawn(term, [np.arange(3), np.arange(4)])
    covariance = root @ root.T
    declared = [np.array([1.0, 1, 0]), np.array([1.0, 1, 1, 0])]
    chosen = np.kron(*declared)
    counts = np.linspace(40, 400, 6)
    low, high = noise.share_interval(term, counts, declared, LEVEL)
    result = covariance[0, 0], covariance[0] @ chosen, chosen @ covariance @ chosen
    if law == "gaussian":
        assert is_at_the_quantile(low[-1], counts[-1], counts.sum(), result)
        assert is_at_the_quantile(high[-1], counts[-1], counts.sum(), result)
    # By any quantile: the two ends are at the same one, and it is near the normal one.
    quantiles = []
    for p in (low[-1], high[-1]):
        spread = counts.sum() * p * (1 - p) + result[0] - 2 * p * result[1] + p**2 * result[2]
        quantiles.append(abs(counts[-1] - counts.sum() * p) / math.sqrt(spread))
    assert quantiles[0] == pytest.approx(quantiles[1], rel=1e-6)
    assert quantiles[0] == pytest.approx(WIDTH, rel=0.03)


def test_an_interval_of_a_score_is_unbounded_where_the_total_is_noise():
    low, high = score_interval(np.array([3.0]), 10.0, (0.0, 0.0, 100.0), np.array([2.0]), 10.0)
    assert (low[0], high[0]) == (0.0, 1.0)


@pytest.mark.parametrize("parts", [0, 6])
def test_ends_of_ratios_are_where_the_score_is_at_its_quantile(parts):
    """Fieller's: (Σ a b - r Σ b)² is the squared quantile of its variance at r."""
    sums = np.array([[40.0, 90.0, 60.0], [80.0, 10.0, 30.0]])
    weights = np.array([[0.0, 0.5, 1.0], [0.0, 0.5, 1.0]])
    sampling = np.array([12.0, 3.0])
    low, high = ratio_interval(sums, weights, Noise("gaussian", 3.0, parts), sampling, LEVEL)
    covariance = balanced(parts, 3, 3.0)
    for group in range(2):
        estimate = weights[group] @ sums[group] / sums[group].sum()
        assert low[group] < estimate < high[group]
        for r in (low[group], high[group]):
            score = weights[group] - r
            spread = score @ covariance @ score + sampling[group]
            assert (score @ sums[group]) ** 2 == pytest.approx(WIDTH**2 * spread, rel=1e-6)


@pytest.mark.parametrize("weight", [1.0, 0.8])
def test_the_width_of_discrete_noise_is_that_of_its_law(weight):
    """Discrete Laplace noise of ratio q has the variance 2q/(1 - q)²."""
    ratio, step, spread_sd = 0.4, 2.0, 0.7
    sd = step * math.sqrt(2 * ratio) / (1 - ratio)
    width = stepped_width(Noise("laplace", sd, 0, step), weight, spread_sd, 0.95)
    steps = np.arange(-60, 61)
    law = (1 - ratio) / (1 + ratio) * ratio ** np.abs(steps)
    ends = [norm.cdf((side * width - weight * step * steps) / spread_sd) for side in (1, -1)]
    assert law @ (ends[0] - ends[1]) == pytest.approx(0.95, abs=1e-4)


def test_counts_are_never_below_zero():
    low, high = within(np.array([-5.0, 1.0, 9.0]), 3.0)
    assert low.tolist() == [0.0, 0.0, 6.0]
    assert high.tolist() == [3.0, 4.0, 12.0]


def test_the_noise_of_a_root_is_that_of_its_square():
    """d√v = dv/(2√v); of a variance near 0 no more than the root of its noise."""
    result = root_sd(np.array([3.0, 0.5, 0.0, 1.0]), np.array([0.6, 4.0, 4.0, 0.0]))
    assert result == pytest.approx([0.1, 2.0, 2.0, 0.0])


def test_units_of_slopes_and_products():
    book = dp.codebook(
        wage=dp.Numeric(0, 80, unit="francs"), age=dp.Numeric(0, 99, unit="years"), g=["a", "b"]
    )
    assert slope_unit(book, "wage", "age") == "francs per year"
    assert slope_unit(book, "wage", "Intercept") == "francs"
    assert slope_unit(book, "wage", "g[T.b]") == "francs"
    assert slope_unit(book, "wage", "age:g[T.b]") == ""
    assert slope_unit(book, "g", "age") == ""
    assert product_unit("years", "years") == "(years)^2"
    assert product_unit("francs", "years") == "(francs) (years)"
    assert product_unit("", "years") == product_unit("years", "") == ""
