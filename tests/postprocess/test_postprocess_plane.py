"""Blocks of a plane: every cell once, children together, the mean rectangle's variance, whole."""

from itertools import combinations, product

import numpy as np
import pytest

from dpmodels.postprocess.plane import best_side, block_sizes, plane, rectangle_counts

SHAPES = (((4, 4), 2), ((9, 9), 3), ((10, 7), 3), ((5, 2), 2), ((3, 8), 9), ((2, 16), 4))


@pytest.mark.parametrize(("shape", "side"), SHAPES)
def test_the_nodes_of_every_level_are_blocks_that_divide_the_plane(shape, side):
    """Counts of a node are those of one rectangle of cells, children within their parent."""
    blocks, sizes = plane(shape, side), block_sizes(shape, side)
    assert sorted(blocks.place.ravel()) == list(range(np.prod(shape)))
    assert blocks.place.ravel()[blocks.order].tolist() == list(range(np.prod(shape)))
    assert blocks.hierarchy.sizes == tuple(np.prod(size) for size in sizes)
    parts = np.eye(np.prod(shape))[:, blocks.order]
    for level, size in zip(blocks.hierarchy.sums(parts), sizes, strict=True):
        sums_of_level = level.T.reshape(-1, *shape)
        assert (sums_of_level.sum(axis=0) == 1).all()
        for node in sums_of_level:
            rows, columns = node.any(axis=1), node.any(axis=0)
            assert node.sum() == rows.sum() * columns.sum(), "a node is not a rectangle"
            assert np.ptp(np.flatnonzero(rows)) + 1 == rows.sum()
            assert np.ptp(np.flatnonzero(columns)) + 1 == columns.sum()
        assert len(sums_of_level) == np.prod(size)
    for starts, below in zip(blocks.hierarchy.starts, blocks.hierarchy.sizes[1:], strict=True):
        assert np.diff(starts, append=below).max() <= side**2


def rectangles(shape):
    """The weights of the cells, row by row, in every rectangle."""
    for (first, last), (left, right) in product(
        *(list(combinations(range(side + 1), 2)) for side in shape)
    ):
        inside = np.zeros(shape)
        inside[first:last, left:right] = 1.0
        yield inside.ravel()


@pytest.mark.parametrize(
    ("shape", "side", "close"),
    [((8, 8), 2, 1e-9), ((9, 9), 3, 1e-9), ((8, 2), 2, 1e-9), ((6, 6), 6, 1e-9), ((10, 7), 3, 0.1)],
)
def test_the_variance_of_the_mean_rectangle_is_that_of_all_of_them(shape, side, close):
    blocks = plane(shape, side)
    weights = np.array(list(rectangles(shape)))[:, blocks.order]
    variances = [(blocks.hierarchy.noise_weights(weight) ** 2).sum() for weight in weights]
    assert rectangle_counts(shape, side) == pytest.approx(np.mean(variances), rel=close)


@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize("shape", [(16, 16), (60, 60), (256, 256), (2048, 2048), (100, 7)])
def test_no_other_side_is_much_better(shape, squared):
    def mean(side):
        levels = len(block_sizes(shape, side))
        return rectangle_counts(shape, side) * levels ** (2 if squared else 1)

    sides = {*range(2, 70), max(shape)}
    assert mean(best_side(shape, squared=squared)) <= 1.05 * min(map(mean, sides))


def test_large_planes_take_a_moment():
    blocks = plane((700, 500), 8)
    assert blocks.hierarchy.sizes[-1] == 350_000
