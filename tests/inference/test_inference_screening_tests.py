"""Tests of no association: the law of their tails, and how often p-values are small."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import dpmodels as dp
from dpmodels.inference.screening_tests import (
    NOISE_NODES,
    _noise_tail,
    _tail,
    adjusted,
    bounds,
    correlations,
    mirrored_p_values,
    noisy_p_values,
    p_values,
)
from dpmodels.mechanisms import SCREENING
from dpmodels.mechanisms.screening import ScreenMoments
from dpmodels.mechanisms.screening_plan import ScreenFacts
from dpmodels.noise import source
from dpmodels.noise.sums import upper_tail
from dpmodels.privacy import ZCDP, PureDP, adjacency
from dpmodels.statistics import Statistic
from dpmodels.statistics.associations import box_lattice, reach


def exact_sums(x, y):
    """The sums of rows within -1 and 1, the columns x of shape (rows, columns)."""
    limit = reach(box_lattice(x.shape[1] + 1))
    z = np.column_stack([np.ones(len(y)), np.rint(x * limit), np.rint(y * limit)]).astype(int)
    return np.array([z.sum(axis=0), (z * z).sum(axis=0), z.T @ z[:, -1]]).astype(object)


def released(x, y, guarantee, mechanism="moments", alternative="two-sided", most=3):
    facts = ScreenFacts(x.shape[1], min(most, x.shape[1]), alternative, adjacency("replace"))
    strategy = SCREENING[mechanism]()
    statistic = Statistic("associations", exact_sums(x, y), len(y))
    return strategy.release(statistic, strategy.plan(facts, guarantee), source())


@pytest.fixture(scope="module")
def release():
    rng = np.random.default_rng(1)
    y = np.sign(rng.normal(size=4_000))
    x = np.clip(np.column_stack([y * 0.3 + rng.normal(size=4_000), rng.normal(size=4_000)]), -1, 1)
    with dp.simulation(seed=1):
        return released(x, y, PureDP(3.0))


@pytest.mark.parametrize("sds", [[3.0, 1.0, 0.0], [3.0, 2.9, 0.5], [1.0, 1.0, 1.0]])
@pytest.mark.parametrize("away", [-4.0, 0.0, 2.0, 9.0])
def test_tails_of_laplace_sums_are_those_of_their_inversion(sds, away):
    values = np.array(sds)
    tail = float(_noise_tail("laplace", values, np.array([away]))[0])
    expected = upper_tail("laplace", values, 1.0, 0.0, abs(away))
    # Equal scales are told apart by making one longer: tails are so much longer.
    beyond = tail if away >= 0 else 1 - tail
    assert expected * (1 - 1e-4) - 1e-6 <= beyond <= expected * 1.06 + 1e-6


def test_rare_jumps_have_the_tail_of_rare_counts(release):
    quiet = replace(release, law="gaussian", product_sd=1e-3, response_sd=1e-6, centre=0.0)
    tail = _tail(quiet, 2 * (11.5 - 4.0), 4 * 4.0, 2.0, 0.0)
    assert tail == pytest.approx(stats.poisson.sf(11, 4.0), rel=1e-6)
    # Many of them are normal.
    tail = _tail(quiet, 3 * math.sqrt(1e9), 1e9, 2.0, 0.0)
    assert tail == pytest.approx(stats.norm.sf(3), rel=0.03)


def test_bounds_hold_the_exact_sums(release):
    bounds_of_release = bounds(release, 1e-6)
    assert bounds_of_release.rows > 4_000
    assert bounds_of_release.variance >= 1.0 - 1e-9
    assert (bounds_of_release.scatter_lower < bounds_of_release.scatter).all()
    narrow = bounds(release, 0.5)
    assert (narrow.scatter < bounds_of_release.scatter).all()


def test_the_response_varies_by_no_more_than_its_noisy_squares_about_the_centre(release):
    """A row moves the square about c by (1 + |c|)² at most, and the noise of each sum with it."""
    quiet = replace(release, centre=-0.5, squares=800.0, total=100.0, count=4_000.0)
    limits = bounds(quiet, 1e-6)
    reach, min_rows = limits.rows - 4_000, 2 * 4_000 - limits.rows
    assert limits.variance == pytest.approx((800 + 100 + 1_000 + reach * 1.5**2) / min_rows)


def test_one_sided_p_values_are_of_their_side(release):
    two, larger, smaller = (
        p_values(release, side, 1e-6) for side in ("two-sided", "larger", "smaller")
    )
    np.testing.assert_allclose(two, 2 * np.minimum(larger, smaller) - 1e-6, rtol=1e-9)
    assert larger[0] < 1e-4 < smaller[0]


def test_correlations_are_those_of_the_rows(release):
    estimates = correlations(release)
    assert estimates.values[0] == pytest.approx(0.33, abs=0.1)
    low, high = estimates.interval(1.0, release.law, 0.95)
    assert (high - low > 2 * estimates.sd(1.0)).all()
    lost = replace(release, scatters=np.zeros(2))
    assert np.isnan(correlations(lost).values).all()


@pytest.mark.parametrize("centre", [0.3, -0.3])
def test_slopes_of_correlations_are_those_of_their_sums(release, centre):
    """By differences; bounds from above for the response's sum and the rows."""
    at = replace(release, centre=centre, product_sd=1.0, scatter_sd=1.0, response_sd=1.0)
    stated = correlations(at).slopes
    for column, name in enumerate(("products", "scatters", "squares", "total", "count")):
        step = 1e-4 * np.abs(getattr(at, name)).max()
        ends = (
            correlations(replace(at, **{name: getattr(at, name) + sign * step})).values
            for sign in (1, -1)
        )
        slope = np.abs(next(ends) - next(ends)) / (2 * step)
        if name in ("total", "count"):
            assert (stated[:, column] >= slope * (1 - 1e-6)).all()
            assert (stated[:, column] > 0).all()
        else:
            np.testing.assert_allclose(stated[:, column], slope, rtol=1e-5)


@pytest.mark.product
@pytest.mark.parametrize("guarantee", [PureDP(3.0), ZCDP(0.5)])
def test_intervals_of_correlations_hold_the_noise_of_their_denominators(guarantee):
    """Of a narrow column with a rare response, whose variances have noise that is seen in them."""
    rng, runs, covered = np.random.default_rng(7), 500, 0
    y = np.where(rng.random(4_000) < 0.1, 1.0, -1.0)
    x = np.clip(0.25 * y + 0.1 * rng.normal(size=4_000), -1, 1)
    exact = np.corrcoef(x, y)[0, 1]
    statistic = Statistic("associations", exact_sums(x[:, None], y), len(y))
    plan = ScreenMoments().plan(ScreenFacts(1, 1, "two-sided", adjacency("replace")), guarantee)
    with dp.simulation(seed=7):
        for _ in range(runs):
            release = ScreenMoments().release(statistic, plan, source())
            low, high = correlations(release).interval(1.0, release.law, 0.95)
            covered += low[0] <= exact <= high[0]
    # A false alarm in a million where exactly 95 % are covered.
    assert covered >= stats.binom.ppf(1e-6, runs, 0.95)


@pytest.mark.parametrize(
    ("columns", "cases", "eps"),
    [(0.5, 0.5, 20.0), (0.02, 0.05, 200.0), (0.5, 0.05, 1.0), (0.02, 0.02, 2_000.0)],
)
def test_p_values_of_no_association_are_small_no_more_often_than_they_say(columns, cases, eps):
    rng, p_values_found = np.random.default_rng(5), []
    with dp.simulation(seed=5):
        for _ in range(5):
            x = 2.0 * (rng.random((800, 200)) < columns) - 1
            y = 2.0 * (rng.random(800) < cases) - 1
            p_values_found.append(p_values(released(x, y, PureDP(eps)), "two-sided", 1e-6))
    p = np.concatenate(p_values_found)
    for level in (0.1, 0.01, 0.001):
        # Columns of one table share an error of the mean: 5e-8 each if they did not, and three
        # times the level besides.
        limit = stats.binom.isf(5e-8, len(p), level)
        assert (p <= level).sum() <= limit


NARROW = {
    "normal": lambda rng, shape: 0.1 * rng.normal(size=shape),
    "off-centre": lambda rng, shape: -0.8 + 0.1 * rng.normal(size=shape),
    "zero-inflated": lambda rng, shape: rng.exponential(0.3, shape) * (rng.random(shape) < 0.1) - 1,
    "heavy": lambda rng, shape: 0.02 * rng.standard_t(2, shape),
}


@pytest.mark.expensive
@pytest.mark.parametrize("columns", list(NARROW))
@pytest.mark.parametrize("guarantee", [PureDP(20.0), PureDP(3.0), ZCDP(2.0), ZCDP(0.05)])
def test_p_values_of_columns_whose_scatter_has_noise_are_small_no_more_often(columns, guarantee):
    rng, p_values_found = np.random.default_rng(6), []
    with dp.simulation(seed=6):
        for _ in range(8):
            x = np.clip(NARROW[columns](rng, (500, 100)), -1, 1)
            y = rng.choice([-1.0, 1.0], 500)
            p_values_found.append(p_values(released(x, y, guarantee, most=100), "two-sided", 1e-6))
    p = np.concatenate(p_values_found)
    for level in (0.1, 0.01, 0.001):
        assert (p <= level).sum() <= stats.binom.isf(5e-8, len(p), level)


@pytest.mark.parametrize(
    ("law", "moments", "tilted"),
    [("gaussian", (1, 0, 1, 3), math.exp(0.32)), ("laplace", (1, 0, 1, 6), 1 / 0.68)],
)
def test_noise_of_scatters_is_averaged_by_its_law(law, moments, tilted):
    places, weights = NOISE_NODES[law]
    for power, moment in zip((0, 1, 2, 4), moments, strict=True):
        assert weights @ places**power == pytest.approx(moment, abs=1e-9)
    assert weights @ np.exp(0.8 * places) == pytest.approx(tilted, rel=1e-6)


@pytest.mark.product
def test_noise_of_a_scatter_costs_less_than_its_upper_bound(release):
    """A column that does not fill its bounds has nearly the p-value of its known scatter."""
    rng = np.random.default_rng(9)
    y = rng.choice([-1.0, 1.0], 20_000)
    x = np.clip(0.3 * rng.normal(size=(20_000, 1)), -1, 1)
    with dp.simulation(seed=9):
        noisy = released(x, y, PureDP(0.5), most=1)
    for ratio in (3.0, 4.0, 5.0, 20.0):
        at = ratio * math.sqrt(1_800.0 + noisy.product_sd**2)
        noisy = replace(noisy, scatters=np.array([1_800.0]), products=np.array([at]))
        noisy = replace(noisy, scatter_sd=0.155 * 1_800)
        exact = replace(noisy, scatter_sd=1e-9)
        upper = replace(exact, scatters=bounds(noisy, 2.5e-5).scatter)
        noisy_p, exact_p, bound = (
            float(p_values(release_of_case, "two-sided", 2.5e-5)[0])
            for release_of_case in (noisy, exact, upper)
        )
        assert exact_p <= noisy_p <= 1.001 * bound
        assert ratio > 4 or noisy_p / exact_p < math.sqrt(bound / exact_p)


def test_mirrored_p_values_add_up_to_one_exactly(release):
    upper_p = mirrored_p_values(release, "larger", 1e-6)
    turned = mirrored_p_values(replace(release, products=-release.products), "larger", 1e-6)
    assert (upper_p + turned == 1).all()
    assert (1 - (1 - upper_p) == upper_p).all()
    lower_p = mirrored_p_values(release, "smaller", 1e-6)
    assert (lower_p == turned).all()


@pytest.mark.parametrize("q", [0.05, 0.3])
def test_stepping_up_over_raised_p_values_is_by_the_published_cut_offs(q):
    rng = np.random.default_rng(2)
    facts = ScreenFacts(60, 20, "larger", adjacency("replace"), q)
    y = rng.choice([-1.0, 1.0], 5_000)
    x = (
        np.where(rng.uniform(size=(5_000, 60)) < np.repeat([0.55, 0.5], [8, 52]), 1, -1)
        * y[:, None]
    )
    strategy = SCREENING["dp_bh"]()
    statistic = Statistic("associations", exact_sums(x, y), len(y))
    with dp.simulation(seed=2):
        release = strategy.release(statistic, strategy.plan(facts, PureDP(300.0)), source())
    ranks, scale = np.arange(1, 21), release.log_sd / math.sqrt(2)
    cuts = np.log(q * ranks / 60) - 2 * scale * math.log(6 * 20 / q)
    below = np.flatnonzero(np.sort(release.logs) <= cuts)
    expected = below[-1] + 1
    n_found = (adjusted(noisy_p_values(release, q), 60, "bh") <= q).sum()
    assert 0 < n_found == expected < 20
