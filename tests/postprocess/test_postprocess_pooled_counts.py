"""Pooled counts: least squares over the pools found, what is found, and what is printed."""

import itertools

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.mechanisms.counts import Runs
from dpmodels.mechanisms.protocol import CountFacts
from dpmodels.noise import source
from dpmodels.postprocess.pooled_counts import PENALTY, FinalRuns, Halves, PooledCounts
from dpmodels.postprocess.units import in_persons
from dpmodels.privacy import ZCDP, PureDP, adjacency
from dpmodels.statistics import Statistic


def released(cells, guarantee, relation="add-remove", incomplete=0):
    exact = np.atleast_2d(np.asarray(cells, dtype=np.int64))
    facts = CountFacts(1, exact.size + 1, False, adjacency(relation), exact.shape)
    plan = Runs().plan(facts, guarantee)
    rows = int(exact.sum()) + incomplete
    statistic = Statistic("counts", np.append(exact.ravel(), incomplete), rows, "")
    return Runs().release(statistic, plan, source())


def dense(release, cells):
    """Return the mean counts of pools by generalised least squares, and its squared errors."""
    width, wide = release.shape[1], Halves(release.shape[1]).widths
    edges = np.flatnonzero(np.abs(np.diff(cells)) > 1e-9 * cells.max()) + 1
    pool = np.zeros((width, len(edges) + 1))
    pool[np.arange(width), np.searchsorted(edges, np.arange(width), side="right")] = 1.0
    levels, sds = (
        np.repeat(array[:-1], release.sizes[:-1]) for array in (release.levels, release.noise_sds)
    )
    starts = release.starts[:-1].astype(int)
    first = [Halves(width).firsts[level] for level in range(len(wide))]
    long = [
        wide[level][(first[level] == start) & (wide[level] > 0)][0]
        for level, start in zip(levels, starts, strict=True)
    ]
    windows = np.array(
        [
            (np.arange(width) >= s) & (np.arange(width) < s + w)
            for s, w in zip(starts, long, strict=True)
        ]
    )
    matrix = (windows @ pool) / sds[:, None]
    scaled = release.values[:-1] / sds
    estimates, *_ = np.linalg.lstsq(matrix, scaled, rcond=None)
    return pool @ estimates, len(edges) + 1


@pytest.mark.parametrize("width", [16, 37])
@pytest.mark.parametrize("guarantee", [PureDP(1.0), ZCDP(0.5)])
def test_counts_are_least_squares_over_the_pools(width, guarantee):
    exact = np.where(np.arange(width) < 0.4 * width, 900, 3000)
    exact[width // 2] += 2000
    with dp.simulation(seed=3):
        release = released(exact, guarantee)
    pooled_counts = PooledCounts(release)
    assert 3 <= pooled_counts.pools < width
    expected, pools = dense(release, pooled_counts.cells[0])
    assert pools == pooled_counts.pools
    np.testing.assert_allclose(pooled_counts.cells[0], expected, rtol=1e-9)


@pytest.mark.parametrize("cells", [1, 2, 7, 64])
def test_even_cells_are_one_pool_and_uneven_ones_are_told_apart(cells):
    even = PooledCounts(released([50] * cells, PureDP(1e4)))
    assert even.pools == 1
    np.testing.assert_allclose(even.cells, 50)
    uneven = PooledCounts(released(50 + np.arange(cells), PureDP(1e4)))
    assert uneven.pools == cells
    np.testing.assert_allclose(uneven.cells[0], 50 + np.arange(cells))


def test_halves_differ_by_more_than_the_penalty():
    # Noise far below a row: only what differs by chance less than the penalty is pooled.
    release = released([[10] * 8, [10] * 4 + [11] * 4], PureDP(1e4))
    assert PENALTY > 0
    assert PooledCounts(release).pools == 3


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("groups", [1, 3])
def test_whole_counts_are_the_counts_with_running_sums_rounded(relation, groups):
    exact = np.tile([0, 0, 3, 0, 90, 0, 1, 0, 0], (groups, 1))
    for _ in range(20):
        counts = PooledCounts(released(exact, PureDP(0.5), relation, incomplete=7))
        total = counts.whole
        assert (total >= 0).all()
        assert (counts.cells >= 0).all()
        # A total is rounded by less than 1 and a running sum by a half.
        distance = np.cumsum(total[:-1].reshape(groups, -1), axis=1) - np.cumsum(
            counts.cells, axis=1
        )
        public = relation == "replace"
        if public:
            rows = exact.sum() + 7
            assert total.sum() == rows
            assert counts.release.rows == rows
            np.testing.assert_allclose(counts._sums.sum(), rows)
        if counts.incomplete >= 0 and (counts._sums >= 0).all():
            assert np.abs(distance).max() < 1.5


def test_counts_of_persons_are_those_of_places_divided():
    with dp.simulation(seed=5):
        release = released([40, 0, 0, 800, 800, 9], PureDP(1.0))
    counts, places = PooledCounts(release), PooledCounts(in_persons(release, 4))
    assert places.pools == counts.pools
    np.testing.assert_allclose(places.cells * 4, counts.cells)
    assert places.incomplete * 4 == counts.incomplete


def test_sums_of_whole_runs_are_those_of_their_counts_and_noise():
    rng = np.random.default_rng(2)
    values, ratios = rng.normal(size=5), rng.uniform(1, 3, 5)
    columns = np.stack([values, ratios**2, ratios**4])
    running = np.concatenate([np.zeros((3, 1)), np.cumsum(columns, axis=1)], axis=1)
    runs = FinalRuns(np.array([0, 2, 3, 8, 9, 16]), running)
    for first, last in itertools.product(range(6), repeat=2):
        sums, spread = runs.between(np.array([first]), np.array([last]))
        expected = columns[:, first:last].sum(axis=1)
        np.testing.assert_allclose([sums[0], spread.squares[0], spread.fourths[0]], expected)
    np.testing.assert_allclose(runs.whole, columns[1:].sum(axis=1))
