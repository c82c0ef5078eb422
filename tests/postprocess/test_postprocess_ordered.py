"""Counts of cells in an order: least squares and the law of sums, against dense algebra."""

from types import SimpleNamespace

import numpy as np
import pytest
from ordered_cases import matrix, released

from dpmodels.postprocess.hierarchy import line
from dpmodels.postprocess.ordered import ordered, within
from dpmodels.postprocess.protocol import CellRanges

SHAPES = ((1, 2), (1, 7), (2, 10), (3, 13), (1, 41))
CASES = [
    (sums, shape, rows)
    for sums in ("flat", "tree", "wavelet", "factorisation")
    for shape in SHAPES
    for rows in (None, 0)
]


@pytest.mark.parametrize(("sums", "shape", "rows"), CASES)
def test_the_noise_of_sums_is_that_of_the_linear_map_that_makes_the_counts(sums, shape, rows):
    release = released(sums, shape, rows)
    counts, (groups, cells) = ordered(release, shape), shape
    linear = matrix(release, shape)
    rng = np.random.default_rng(0)
    weights, alternatives = rng.normal(size=(5, cells)), rng.normal(size=5)
    variances = counts.spread(weights, alternatives)
    for group in range(groups):
        columns = np.repeat(alternatives[:, None], groups * cells, axis=1)
        columns[:, group * cells : (group + 1) * cells] = weights
        noise = columns @ linear[:-1]
        assert variances.squares == pytest.approx((noise**2).sum(axis=1))
        if sums != "factorisation":
            assert variances.fourths == pytest.approx((noise**4).sum(axis=1))
    before, at, after = rng.normal(size=(3, cells))
    place = np.arange(cells)
    columns = np.where(place < place[:, None], before[:, None], after[:, None])
    columns[place, place] = at
    beside = rng.normal(size=cells)
    along, expected = counts.along(before, at, after, beside), counts.spread(columns, beside)
    assert along.squares == pytest.approx(expected.squares)
    assert along.fourths == pytest.approx(expected.fourths)
    starts, stops = np.array([(i, j) for i in range(cells) for j in range(i, cells + 1)]).T
    inside, outside, beside = rng.normal(size=(3, len(starts)))
    is_between = (place >= starts[:, None]) & (place < stops[:, None])
    expected = counts.spread(np.where(is_between, inside[:, None], outside[:, None]), beside)
    variances = within(counts, CellRanges(starts, stops, inside, outside, beside))
    assert variances.squares == pytest.approx(expected.squares)
    assert variances.fourths == pytest.approx(expected.fourths)
    assert counts.along(1.0, 1.0, 0.0).squares == pytest.approx(
        counts.spread(np.tri(cells)).squares
    )


@pytest.mark.parametrize("rows", [None, 0])
@pytest.mark.parametrize("sums", ["flat", "tree", "wavelet", "factorisation"])
def test_a_sum_of_no_cell_has_no_noise_whatever_is_rounded(sums, rows):
    for cells in range(2, 32):
        none = np.zeros(cells)
        along_cells = ordered(released(sums, (1, cells), rows), (1, cells)).along(
            none, none, none - 1
        )
        assert along_cells.squares.min() >= 0
        assert along_cells.squares[-1] == pytest.approx(0, abs=1e-10)


@pytest.mark.parametrize(("shape", "rows"), [case[1:] for case in CASES if case[0] == "tree"])
def test_counts_of_a_tree_are_least_squares(shape, rows):
    release = released("tree", shape, rows)
    groups, cells = shape
    hierarchy = line(cells, release.fanout)
    nodes = np.concatenate(hierarchy.sums(np.eye(cells)), axis=1).T
    design = np.kron(np.eye(groups), nodes)
    design = np.block(
        [
            [design, np.zeros((len(design), 1))],
            [np.zeros((1, groups * cells)), np.ones((1, 1))],
        ]
    )
    inverse = np.linalg.inv(design.T @ design)
    expected = inverse @ design.T
    if rows is not None:
        ones = np.ones((1, len(inverse)))
        expected -= inverse @ ones.T @ ones @ expected / (ones @ inverse @ ones.T)
    assert matrix(release, shape) == pytest.approx(expected)


@pytest.mark.parametrize("at_once", [1, 20])
@pytest.mark.parametrize("sums", ["flat", "wavelet", "factorisation"])
def test_ranges_are_the_same_in_blocks_of_any_size(sums, at_once, monkeypatch):
    # One range is evaluated at a time where there are more cells than fit at once.
    monkeypatch.setattr("dpmodels.postprocess.ordered.AT_ONCE", at_once)
    counts = ordered(released(sums, (2, 10), None), (2, 10))
    starts, stops = np.array([(i, j) for i in range(10) for j in range(i + 1, 11)]).T
    inside, outside, alternatives = np.random.default_rng(1).normal(size=(3, len(starts)))
    ranges = CellRanges(starts, stops, inside, outside, alternatives)
    expected = counts.within(ranges)
    without_ranges = SimpleNamespace(cells=counts.cells, spread=counts.spread)
    blocked = within(without_ranges, ranges)
    np.testing.assert_allclose(blocked.squares, expected.squares)
    np.testing.assert_allclose(blocked.fourths, expected.fourths)
