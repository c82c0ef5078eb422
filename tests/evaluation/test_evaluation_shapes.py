"""Simulated shapes are shares, of any size, and differ as their names say."""

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError


@pytest.mark.parametrize("cells", [2, 100, 4096, (16, 16), [4, 5, 6]])
def test_shapes_are_shares(cells):
    made = dp.shapes.standard(cells)
    assert list(made) == ["sparse", "smooth", "spiky", "uniform", "bimodal", "heavy-tailed"]
    for shares in made.values():
        assert shares.shape == (cells if isinstance(cells, tuple) else tuple(np.atleast_1d(cells)))
        assert shares.min() >= 0
        assert shares.sum() == pytest.approx(1)


def test_shapes_are_what_they_are_called():
    made = dp.shapes.standard(1000)
    assert (made["sparse"] > 0).sum() == 20
    assert made["spiky"].min() == pytest.approx(0.5 / 1000)
    assert np.ptp(made["uniform"]) == 0
    assert np.abs(np.diff(made["smooth"])).max() < 0.01 * made["smooth"].max()
    slopes = np.sign(np.diff(made["bimodal"]))
    assert (np.diff(slopes[slopes != 0]) < 0).sum() == 2
    assert (np.diff(made["heavy-tailed"]) < 0).all()
    np.testing.assert_array_equal(made["sparse"], dp.shapes.standard(1000)["sparse"])


@pytest.mark.parametrize("cells", [1, 0, 2.5, "8", (), (8, 1), None])
def test_no_shape_of_no_cells(cells):
    with pytest.raises(ArgumentError, match="cells="):
        dp.shapes.standard(cells)
