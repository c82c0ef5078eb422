import math
from dataclasses import astuple

import numpy as np
import pytest
from scipy import stats

from dpmodels.external_files import amount
from dpmodels.postprocess.ranges import CellNoise, excess_above, found_range, held_in, range_cells
from dpmodels.postprocess.weight_caps import WeightCap, caps_of_scores, weight_edges

ROWS = 20_000
NOISE = CellNoise("laplace", 20.0)
PRICE = 2.0


def counted(rows, ends):
    """Numbers of rows by cell as noise of 20 rows leaves them: the same each time."""
    exact = np.bincount(np.searchsorted(ends[1:-1], rows), minlength=len(ends) - 1)
    return exact + np.random.default_rng(7).laplace(scale=20 / math.sqrt(2), size=len(exact))


def found(rows, lower, upper, power=1):
    ends = range_cells(lower, upper)
    return found_range(ends, counted(rows, ends), NOISE, PRICE, power)


@pytest.mark.parametrize("bounds", [(0, 1), (-4, 796), (5, 5.001), (-10, -1), (0, 1e9), (1e6, 2e6)])
def test_cells_cover_the_range_and_grow_from_the_anchor(bounds):
    lower, upper = bounds
    ends = range_cells(*bounds)
    widths, anchor = np.diff(ends), min(max(0, lower), upper)
    assert (ends[0], ends[-1]) == bounds
    assert anchor in ends
    assert (widths > 0).all()
    assert widths.max() <= (upper - lower) / 8 * (1 + 1e-9)
    assert widths.min() < 1e-6 * (upper - lower)
    assert len(ends) < 110


SHAPES = {
    "normal": stats.norm(),
    "skewed": stats.lognorm(0.8),
    "heavy": stats.t(3),
    "counts": stats.nbinom(0.5, 0.2),
    "twos": stats.bernoulli(0.4),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("times", [1e2, 1e5])
def test_a_range_is_near_the_rows_whatever_the_bounds(shape, times):
    law = SHAPES[shape]
    rows = law.rvs(ROWS, random_state=1)
    low, high = np.quantile(rows, [0.005, 0.995])
    range_found = found(rows, min(low * times, 0.0), high * times)
    assert range_found is not None
    assert range_found.lower <= low + 0.25 * (high - low)
    assert range_found.upper >= high - 0.25 * (high - low)
    assert range_found.upper - range_found.lower < 16 * (high - low)
    assert np.mean((rows < range_found.lower) | (rows > range_found.upper)) <= 0.05


def test_a_scale_tells_the_same_range_in_other_units():
    ends = range_cells(-1.0, 1024.0)
    rows = stats.lognorm(1.0).rvs(ROWS, random_state=2)
    counts = counted(rows, ends)
    range_of_one = found_range(ends, counts, NOISE, PRICE, 1)
    two = found_range(1000 * ends, counts, NOISE, PRICE, 1)
    assert range_of_one is not None
    assert two is not None
    assert math.isclose(two.upper, 1000 * range_of_one.upper, rel_tol=1e-9)


@pytest.mark.parametrize(
    "rows",
    [
        np.zeros(ROWS),  # at the anchor, where no scale is told
        np.zeros(0),  # none at all
        np.full(30, 7.0),  # lost in noise
        np.append(np.zeros(ROWS), np.linspace(0, 1000, 4000)),  # many spread out, none told
        np.linspace(0, 1000, ROWS),  # as wide as declared
    ],
)
def test_what_is_declared_stays_where_no_range_is_told(rows):
    # Told from noise once in some 10**7: the counts are fixed, and 4 sds within.
    ends = range_cells(0.0, 1000.0)
    exact = np.bincount(np.searchsorted(ends[1:-1], rows), minlength=len(ends) - 1)
    steps = np.resize([20.0, -20.0, 0.0, 15.0, -15.0], len(exact))
    assert found_range(ends, exact + steps, NOISE, PRICE, 1) is None


@pytest.mark.parametrize("lower", [0.0, -1000.0])
def test_rows_at_a_bound_far_away_keep_the_declared_range(lower):
    """Fewer than other cells need, as a mean rests on them; one of 200 samples without any has it.

    Rows at a bound that is near are within a range or cost it little.
    """
    ends = range_cells(lower, 1e5)
    exact = np.bincount(np.searchsorted(ends[1:-1], np.linspace(100, 900, ROWS)))
    exact = np.append(exact, np.zeros(len(ends) - 1 - len(exact)))
    at_bound = NOISE.sd / math.sqrt(2) * -math.log(2 * 0.005)
    for place, n_rows, is_found in ((-1, 0.9, True), (-1, 1.1, False), (0, 1.1, True)):
        counts = exact.copy()
        counts[place] += n_rows * at_bound
        assert (found_range(ends, counts, NOISE, PRICE, 1) is not None) == is_found


def test_a_huge_budget_holds_every_row():
    ends = range_cells(0.0, 1e6)
    rows = stats.lognorm(1.0).rvs(1000, random_state=4)
    exact = np.bincount(np.searchsorted(ends[1:-1], rows), minlength=len(ends) - 1)
    range_found = found_range(ends, exact.astype(float), CellNoise("laplace", 1e-27), 1e-12, 1)
    assert range_found is not None
    assert range_found.lower <= rows.min()
    assert range_found.upper >= rows.max()


def test_the_sum_of_cells_exceeds_its_reach_seldom():
    # Of the exact law: the probability is stated to a tenth.
    assert math.isclose(NOISE.reach(1), 20 / math.sqrt(2) * -math.log(2 * 2e-5), rel_tol=0.01)
    normal = CellNoise("gaussian", 20.0).reach(9)
    assert math.isclose(stats.norm.sf(normal / 60), 2e-5, rel_tol=0.1)


def test_a_range_replaces_a_declared_one_that_is_at_least_twice_as_long():
    # Without noise worth the name: rows up to a third or a half of the declared range.
    lengths = []
    for upper in range(200, 1000, 20):
        rows, ends = np.linspace(0, upper, ROWS), range_cells(0.0, 1000.0)
        exact = np.bincount(np.searchsorted(ends[1:-1], rows), minlength=len(ends) - 1)
        range_found = found_range(ends, exact.astype(float), NOISE, PRICE, 1)
        lengths += [] if range_found is None else [range_found.upper - range_found.lower]
    assert max(lengths) <= 500
    assert max(lengths) > 400


def test_estimates_of_what_is_cut_off_can_be_stored():
    """Tails may underflow beyond the rows that noise does not hide."""
    noise, edges = CellNoise("laplace", 1e-6), weight_edges(1, 4, 3)
    counts, end = np.array([134, -29, 0, 0, 0, 0]), float(edges[2])
    excess = excess_above(edges, counts, noise, end)
    of_scores = caps_of_scores(edges, counts, noise, WeightCap(end, *excess[3:]))
    limits = held_in(edges, counts, noise, float(edges[0]), end)
    estimates = (*excess[1:], of_scores.beyond, of_scores.beyond_sd, *astuple(limits)[4:9])
    assert [amount(value) for value in estimates] == list(estimates)
