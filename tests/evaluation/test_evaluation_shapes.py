"""Simulated shapes are shares, of any size, and differ as their names say."""

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError


@pytest.mark.parametrize("cells", [2, 100, 4096, (16, 16), [4, 5, 6]])
def test_shapes_are_shares(cells):
    shapes = dp.shapes.standard(cells)
    assert list(shapes) == ["sparse", "smooth", "spiky", "uniform", "bimodal", "heavy-tailed"]
    for shares in shapes.values():
        assert shares.shape == (cells if isinstance(cells, tuple) else tuple(np.atleast_1d(cells)))
        assert shares.min() >= 0
        assert shares.sum() == pytest.approx(1)


def test_shapes_are_what_they_are_called():
    shapes = dp.shapes.standard(1000)
    assert (shapes["sparse"] > 0).sum() == 20
    assert shapes["spiky"].min() == pytest.approx(0.5 / 1000)
    assert np.ptp(shapes["uniform"]) == 0
    assert np.abs(np.diff(shapes["smooth"])).max() < 0.01 * shapes["smooth"].max()
    slopes = np.sign(np.diff(shapes["bimodal"]))
    assert (np.diff(slopes[slopes != 0]) < 0).sum() == 2
    assert (np.diff(shapes["heavy-tailed"]) < 0).all()
    np.testing.assert_array_equal(shapes["sparse"], dp.shapes.standard(1000)["sparse"])


@pytest.mark.parametrize("cells", [1, 0, 2.5, "8", (), (8, 1), None])
def test_no_shape_of_no_cells(cells):
    with pytest.raises(ArgumentError, match="cells="):
        dp.shapes.standard(cells)
