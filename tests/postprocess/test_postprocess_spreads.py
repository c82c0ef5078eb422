"""Ranges told by two rounds of noisy counts by cell: rows of every shape, and none."""

import numpy as np
import pytest

from dpmodels.postprocess.ranges import CellNoise, range_cells
from dpmodels.postprocess.spreads import (
    RULED_OUT,
    SELDOM,
    CellCounts,
    Column,
    _as_counted,
    bounds_beside_anchor,
    complete_rows,
    first_cells,
    found_bounds,
    next_cells,
    outside,
)

ROWS = 10_000
SHAPES = {
    "normal": (lambda g: g.normal(50, 10, ROWS), Column(0, 1e4, 0)),
    "both signs": (lambda g: g.normal(0, 1, ROWS), Column(-500, 500, 0)),
    "far from zero": (lambda g: g.normal(170, 10, ROWS), Column(0, 25_000, 0)),
    "below zero": (lambda g: -g.lognormal(0, 1, ROWS), Column(-5000, 0, 0)),
    "log-normal": (lambda g: g.lognormal(0, 1, ROWS), Column(0, 5000, 0)),
    "a million times too wide": (lambda g: g.lognormal(0, 1, ROWS), Column(0, 5e7, 0)),
    "zeros": (lambda g: g.lognormal(7, 1, ROWS) * (g.random(ROWS) < 0.4), Column(0, 5e6, 0)),
    "counts": (lambda g: g.poisson(3, ROWS), Column(0, 1500, 1)),
    "uniform": (lambda g: g.uniform(0, 100, ROWS), Column(0, 1e4, 0)),
}


def counted(values, ends, noise, rng):
    clipped = np.clip(values, ends[0], ends[-1])
    # Cells hold their upper ends.
    at = np.searchsorted(ends[1:-1], clipped)
    return np.bincount(at, minlength=len(ends) - 1) + rng.normal(0, noise.sd, len(ends) - 1)


def rounds_of(values, column, sd, rng):
    noise = CellNoise("gaussian", sd, SELDOM)
    ends = first_cells(column)
    first = CellCounts(ends, counted(values, ends, noise, rng), noise)
    finer = next_cells(first, len(values), column, sd)
    return first, CellCounts(finer, counted(values, finer, noise, rng), noise)


@pytest.mark.product
@pytest.mark.parametrize("name", SHAPES)
def test_nearly_all_rows_are_inside_a_range_that_is_not_much_longer(name):
    # At this noise 2 % of columns may miss; of 8 more than 4 do with probability below 2e-7.
    draw, column = SHAPES[name]
    missed = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        values = draw(rng)
        low, high = found_bounds(rounds_of(values, column, 200.0, rng), ROWS, column)
        inside = np.mean((values >= low) & (values <= high))
        middle = np.ptp(np.quantile(values, [0.01, 0.99]))
        missed += inside < 0.97 or high - low > 3 * middle
        assert column.lower <= low < high <= column.upper
    assert missed <= 4


@pytest.mark.parametrize("name", SHAPES)
def test_with_little_noise_few_rows_are_beyond(name):
    draw, column = SHAPES[name]
    rng = np.random.default_rng(1)
    values = draw(rng)
    rounds = rounds_of(values, column, 1.0, rng)
    low, high = found_bounds(rounds, ROWS, column)
    beyond = (values < low) | (values > high)
    assert beyond.mean() < 0.006
    number, cells = outside(rounds[-1], low, high)
    # Noise of 100 cells has sd 10.
    assert number <= beyond.sum() + 5 * np.sqrt(max(cells, 1))
    if column.step:
        assert low % 1 == high % 1 == 0


@pytest.mark.product
@pytest.mark.parametrize("rows", [0, 300])
def test_noise_alone_tells_of_nothing(rows):
    # Cells that noise alone tells of: 1e-3 in either round; more than 2 of 6, below 1e-6.
    column = Column(-1e3, 1e4, 0)
    n_found = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n_found += (
            found_bounds(rounds_of(np.full(rows, 5.0), column, 200.0, rng), rows, column)
            is not None
        )
    assert n_found <= 2


@pytest.mark.parametrize("share", [0.0, 0.01])
def test_rows_at_zero_alone_have_no_scale(share):
    """A rare dummy is left as declared, and not cut off."""
    column = Column(0, 100, 0)
    rng = np.random.default_rng(3)
    values = (rng.random(ROWS) < share) * 1.0
    assert found_bounds(rounds_of(values, column, 150.0, rng), ROWS, column) is None


def test_rows_beside_zero_that_are_detected_have_a_scale_of_their_own():
    """A range is guessed only where noise hides each cell beside zero, not all of them together."""
    column, edges, exact = Column(0, 1000, 0), range_cells(0, 1000), CellNoise("gaussian", 1e-9)
    rng = np.random.default_rng(5)
    spread = np.where(rng.random(5000) < 0.8, 0, rng.lognormal(2, 0.5, 5000))
    for sd, far, is_guessed in ((120.0, 0, True), (20.0, 0, False), (60.0, 200, False)):
        values = np.append(spread, np.full(far, 950.0))
        counts = counted(values, edges, exact, rng)
        cells = CellCounts(edges, counts, CellNoise("gaussian", sd))
        bounds = bounds_beside_anchor(cells, float(len(values)), column)
        assert (bounds is not None) == is_guessed
        assert not is_guessed or (bounds[0] == 0 and bounds[1] < 100)


def test_what_is_hardly_too_wide_is_kept():
    column = Column(0, 100, 0)
    rng = np.random.default_rng(3)
    values = rng.uniform(0, 100, ROWS)
    assert found_bounds(rounds_of(values, column, 10.0, rng), ROWS, column) is None


def test_a_bound_that_is_near_is_kept():
    column = Column(0, 5000, 0)
    rng = np.random.default_rng(3)
    low, high = found_bounds(rounds_of(rng.exponential(1, ROWS), column, 20.0, rng), ROWS, column)
    assert low == 0
    assert 5 < high < 50


def test_cells_of_steps_lie_between_them():
    for column in (Column(0, 9, 1), Column(-4, 4, 2), Column(0.5, 1000.5, 1)):
        ends = first_cells(column)
        assert (ends[0], ends[-1]) == column[:2]
        assert np.allclose((ends[1:-1] - column.lower) / column.step % 1, 0.5)


def test_more_rows_are_cut_into_more_cells():
    column = Column(0, 1e4, 0)
    rng = np.random.default_rng(0)
    values = rng.normal(50, 10, ROWS)
    few, n_bounds = (len(rounds_of(values, column, sd, rng)[1].ends) for sd in (200.0, 1.0))
    assert n_bounds > 3 * few


def test_complete_rows_are_those_of_a_public_number():
    counts = np.array([5.0, 7.0, 2.0])
    assert complete_rows(counts, 20.0) == 18
    assert complete_rows(counts, None) == 12


def test_an_end_that_moves_inwards_has_few_rows_beyond():
    """Whatever the rows are: here 3 % of them lie where no count of one cell shows them."""
    # Noise exceeds its reach with probability 1e-3 at most a side: of 20, more than 3 below 3e-7.
    missed = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        values = np.where(
            rng.random(ROWS) < 0.97, rng.uniform(0, 10, ROWS), rng.uniform(10, 90, ROWS)
        )
        ends = np.concatenate([np.linspace(0, 100, 41), [1e4]])
        noise = CellNoise("gaussian", 10.0, SELDOM)
        last = CellCounts(ends, counted(values, ends, noise, rng), noise)
        end = _as_counted(1e4, last, ROWS)
        missed += np.mean(values > end) > RULED_OUT
        assert end < 200
    assert missed <= 3


@pytest.mark.parametrize("ones", [0.015, 0.3, 0.9])
def test_dummies_that_are_told_end_at_one(ones):
    # Noise of the last cells would have to exceed 5 sds.
    column = Column(0, 100, 1)
    rng = np.random.default_rng(3)
    values = (rng.random(ROWS) < ones) * 1.0
    assert found_bounds(rounds_of(values, column, 10.0, rng), ROWS, column) == (0, 1)


def test_what_is_cut_to_the_declared_range_is_rounded_by_its_own_length():
    """Wide falls to the side of a bound say nothing of how many digits the other end has."""
    column = Column(0, 500, 0)
    rng = np.random.default_rng(3)
    values = np.where(rng.random(ROWS) < 0.55, 0.0, rng.choice([3.3, 3.9, 4.6], ROWS))
    low, high = found_bounds(rounds_of(values, column, 15.0, rng), ROWS, column)
    assert low == 0
    assert 4.6 <= high < 3 * 4.6
    assert high % 1
