"""Intervals of sums of cells in an order: the law of sums, shares, quantiles, coverage."""

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.inference.proportions import SumNoise, part_interval, quantile_bins, sum_interval
from dpmodels.mechanisms import Tree
from dpmodels.mechanisms.protocol import CountFacts
from dpmodels.noise import source
from dpmodels.noise.sums import half_width, half_widths
from dpmodels.postprocess.ordered import ordered, within
from dpmodels.postprocess.protocol import CellRanges, Spread
from dpmodels.privacy import ZCDP, PureDP, adjacency
from dpmodels.statistics import Statistic

NONE, ONE = np.zeros(()), np.ones(())
CELLS = 64


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99, 0.999])
def test_half_widths_of_many_sums_are_near_those_of_the_inversion(level):
    rng = np.random.default_rng(0)
    sums = [(np.ones(1), 0.0), (np.ones(3), 0.0), (np.ones(1), 2.0), (np.ones(0), 1.0)]
    sums += [(rng.exponential(size=9), 0.5), (np.append(1, rng.uniform(0, 0.3, 20)), 0.0)]
    squares, fourths = (np.array([(square**k).sum() for square, _ in sums]) for k in (2, 4))
    normal = np.array([fourth for _, fourth in sums])
    for law in ("laplace", "gaussian"):
        widths = half_widths(law, squares, fourths, 1.5, normal, level)
        expected = [half_width(law, square, 1.5, fourth, level) for square, fourth in sums]
        assert widths == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(("squares", "steps"), [(0.04, 0.0), (0.06, 0.5), (0.5, 0.5), (1.5, 0.5)])
def test_half_a_step_is_added_unless_the_noise_is_rarely_one(squares, steps):
    """By Chebyshev a step is as likely as its variance in squared steps: .05 at most, or added."""
    spread, noise = Spread(np.array([squares]), np.array([squares**2])), SumNoise("laplace", 1, 1)
    low, high = sum_interval(np.array([50.0]), spread, noise, 0.95)
    width = noise.widths(spread, np.zeros(1), 0.95)
    np.testing.assert_allclose([50 - low, high - 50], [width + steps] * 2)


def releases(guarantee, cells, runs, seed=2):
    """Counts of the same rows, released again and again by a tree."""
    plan = Tree(4).plan(
        CountFacts(1, CELLS + 1, False, adjacency("replace"), (1, CELLS)), guarantee
    )
    statistic = Statistic("counts", np.append(cells, 0).astype(object), int(cells.sum()))
    with dp.simulation(seed=seed):
        releases_of_tree = [Tree(4).release(statistic, plan, source()) for _ in range(runs)]
    return [
        (ordered(release, (1, CELLS)), SumNoise(release.law, release.noise_sd, release.step))
        for release in releases_of_tree
    ]


@pytest.mark.product
@pytest.mark.parametrize("guarantee", [PureDP(0.1), ZCDP(0.005)])
def test_intervals_of_ranges_cover(guarantee):
    """500 independent releases, a range each.

    False alarm: of 500 with probability .95 at most 448 cover with less than 1e-6, and at least
    499 likewise.
    """
    rng = np.random.default_rng(1)
    # Many rows in each cell, since an interval that ends at 0 covers more often.
    cells = 10_000 + rng.integers(0, 50, CELLS)
    covered = 0
    for release, noise in releases(guarantee, cells, 500):
        start, stop = np.sort(rng.choice(CELLS + 1, 2, replace=False))
        spread = within(release, CellRanges(np.array([start]), np.array([stop]), ONE, NONE))
        sums = release.cells[0, start:stop].sum(keepdims=True)
        low, high = sum_interval(sums, spread, noise, 0.95)
        covered += int(low[0] <= cells[start:stop].sum() <= high[0])
    assert 448 < covered < 499


@pytest.mark.product
def test_intervals_of_quantiles_and_shares_cover_those_of_the_rows():
    """False alarm: of 300 with probability .95 at most 262 cover with less than 1e-6."""
    rng = np.random.default_rng(1)
    cells = rng.integers(0, 300, CELLS)
    upto = np.cumsum(cells)
    expected = int(np.searchsorted(upto, 0.3 * upto[-1]))
    quantiles = shares = 0
    for release, noise in releases(PureDP(0.1), cells, 300):

        def of(inside, outside, release=release):
            return release.along(inside, inside, outside)

        running = np.cumsum(release.cells[0])
        first, last = quantile_bins(running, 0.3, of, noise, 0.95, sampling=False)
        quantiles += int(first <= expected <= last)
        low, high = part_interval(running, running[-1], of, noise, 0.95, sampling=False)
        shares += int(low[20] <= upto[20] / upto[-1] <= high[20])
        wide = quantile_bins(running, 0.3, of, noise, 0.95, sampling=True)
        assert wide[0] <= first
        assert wide[1] >= last
    assert min(quantiles, shares) > 262


@pytest.mark.product
def test_intervals_of_the_population_cover_its_shares():
    """New rows for every release; false alarm as for quantiles."""
    rng = np.random.default_rng(3)
    shares = rng.dirichlet(np.ones(CELLS))
    upto = np.cumsum(shares)
    covered = 0
    for run in range(300):
        cells = rng.multinomial(2_000, shares)
        ((release, noise),) = releases(PureDP(1.0), cells, 1, run)

        def of(inside, outside, release=release):
            return release.along(inside, inside, outside)

        running = np.cumsum(release.cells[0])
        low, high = part_interval(running, running[-1], of, noise, 0.95, sampling=True)
        covered += int(low[30] <= upto[30] <= high[30])
    assert covered > 262


def test_where_no_row_is_told_nothing_is_ruled_out():
    noise = SumNoise("laplace", 1.0, 1.0)

    def of(inside, outside):
        return Spread(np.ones(3), np.ones(3))

    low, high = part_interval(np.array([-1.0, 0, -2]), -2.0, of, noise, 0.95, sampling=True)
    assert (low.tolist(), high.tolist()) == ([0, 0, 0], [1, 1, 1])
    assert quantile_bins(np.array([-1.0, 0, -2]), 0.5, of, noise, 0.95, sampling=True) == (0, 2)
