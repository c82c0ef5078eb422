"""Nodes above cells: the mean range, whole counts from the top down."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpmodels.postprocess.hierarchy import (
    best_fanout,
    levels_of,
    line,
    prefix_variances,
    range_counts,
    whole_cells,
)


@pytest.mark.parametrize("cells", [1, 2, 5, 16, 17, 100])
@pytest.mark.parametrize("fanout", [2, 3, 16])
def test_nodes_hold_all_cells_and_have_so_many_children_at_most(cells, fanout):
    hierarchy = line(cells, fanout)
    assert len(hierarchy.sizes) == levels_of(cells, fanout)
    for starts, size in zip(hierarchy.starts, hierarchy.sizes[1:], strict=True):
        children = np.diff(starts, append=size)
        assert starts[0] == 0
        assert children.min() >= 1
        assert children.max() <= fanout
    assert hierarchy.sizes[0] <= fanout
    assert hierarchy.sums(np.arange(cells))[0].sum() == cells * (cells - 1) / 2


def mean_range(cells, fanout):
    """Mean variance of all ranges, by those of prefixes and of their mean."""
    hierarchy = line(cells, fanout)
    weight, added = prefix_variances(hierarchy)
    prefixes = (weight**2 * hierarchy.whole_variance + added).sum() / (cells + 1)
    steps = (cells - np.arange(cells)) / (cells + 1)
    mean = (hierarchy.noise_weights(steps) ** 2).sum()
    return 2 * (prefixes - mean) * (cells + 1) / cells


@pytest.mark.parametrize("cells", [20, 100, 365, 1024, 4096])
def test_the_mean_range_has_the_predicted_variance(cells):
    for levels in range(1, 6):
        fanout = max(int(np.ceil(round(cells ** (1 / levels), 9))), 2)
        assert range_counts(cells, fanout) == pytest.approx(mean_range(cells, fanout), rel=0.08)
    for squared in (True, False):
        best = best_fanout(cells, squared=squared)
        power = 2 if squared else 1
        noise = [mean_range(cells, b) * levels_of(cells, b) ** power for b in (best, *range(2, 70))]
        assert noise[0] <= 1.2 * min(noise)


def test_the_mean_range_is_that_of_all_ranges():
    hierarchy = line(20, 3)
    ends = [(i, j) for i in range(21) for j in range(i + 1, 21)]
    at = np.arange(20)
    weights = np.array([(at >= i) & (at < j) for i, j in ends], dtype=float)
    variances = [(hierarchy.noise_weights(weight) ** 2).sum() for weight in weights]
    assert np.mean(variances) == pytest.approx(mean_range(20, 3))


SIZES = st.integers(1, 40)


@pytest.mark.expensive
@given(st.data())
def test_whole_counts_are_whole_and_keep_the_sums_of_nodes(data):
    cells, fanout = data.draw(SIZES), data.draw(st.integers(2, 6))
    hierarchy = line(cells, fanout)
    noisy = data.draw(arrays(float, (2, cells), elements=st.floats(-50, 50)))
    totals = np.array(data.draw(st.tuples(st.integers(0, 300), st.integers(0, 300))))
    levels = hierarchy.sums(noisy)
    complete = whole_cells(hierarchy, levels, totals)
    assert complete.dtype == np.int64
    assert (complete >= 0).all()
    assert complete.sum(axis=1).tolist() == totals.tolist()
    # What is whole, not negative and agrees already stays.
    again = whole_cells(
        hierarchy, [level.astype(float) for level in hierarchy.sums(complete)], totals
    )
    assert (again == complete).all()


def test_sums_of_many_whole_counts_stay_near():
    """Cutting 4,096 cells at 0 would add some 0.8 of the noise of each to all others."""
    rng = np.random.default_rng(0)
    noisy = rng.laplace(scale=10, size=(1, 4096))
    noisy[0, :2048] += 100
    totals = np.rint(noisy.sum(axis=1)).astype(np.int64)
    hierarchy = line(4096, 4)
    complete = whole_cells(hierarchy, hierarchy.sums(noisy), totals)
    first = complete[0, :2048].sum() - noisy[0, :2048].sum()
    assert abs(first) < 10 * np.sqrt(2 * 4096)
