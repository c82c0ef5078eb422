"""Nodes made by halving hold every cell once, and as evenly as can be."""

import numpy as np
import pytest

from dpmodels.postprocess.pooled_counts import AT_ONCE, Halves


@pytest.mark.parametrize("cells", [1, 2, 3, 5, 8, 37, 64, 100])
def test_every_level_holds_each_cell_once_in_nodes_of_even_width(cells):
    halves = Halves(cells)
    counts = np.arange(cells) + 1
    for level, (sums, widths) in enumerate(zip(halves.sums(counts), halves.widths, strict=True)):
        assert len(sums) == len(widths) == 2**level
        assert widths.sum() == cells
        assert widths.max() - widths.min() <= 1
        ends = np.concatenate([[0], np.cumsum(counts)])
        firsts = halves.firsts[level]
        np.testing.assert_array_equal(sums, ends[firsts + widths] - ends[firsts])
    assert widths.max() == 1


@pytest.mark.parametrize("cells", [1, 2, 9, 100, 4096, 10**6])
def test_counted_levels_reach_from_all_cells_to_each_without_long_steps(cells):
    levels = Halves(cells).counted()
    assert levels[0] == 0
    assert levels[-1] == Halves(cells).lowest
    assert all(1 <= step <= AT_ONCE for step in np.diff(levels))
    counted = Halves(cells).counted(whole_known=True)
    assert counted == (levels[1:] if cells > 1 else levels)
