"""Mappings and structured arrays."""

from collections import deque
from types import MappingProxyType

import numpy as np
import pytest
import xarray as xr

from dpmodels.errors import FrameError
from dpmodels.frames import open_rows, to_float


def _read(data, name="x", rows=2):
    chunks = open_rows(data).chunks((name,), rows)
    return np.concatenate([to_float(chunk[name]) for chunk in chunks])


@pytest.mark.parametrize(
    "column",
    [
        [1, 2.0, "3"],
        (1, 2, 3),
        range(1, 4),
        deque([1, 2, 3]),
        np.array([9, 1, 9, 2, 9, 3])[1::2],
        xr.DataArray([1.0, 2.0, 3.0]),
    ],
    ids=lambda column: type(column).__name__,
)
def test_columns_of_every_sort(column):
    np.testing.assert_array_equal(_read({"x": column}), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(_read(MappingProxyType({"x": column, 5: "no"})), [1.0, 2.0, 3.0])


def test_a_dataset_is_a_mapping():
    data = xr.Dataset({"x": ("row", [1.0, 2.0, 3.0]), "z": ("row", [0.0, 0.0, 0.0])})
    np.testing.assert_array_equal(_read(data), [1.0, 2.0, 3.0])


def test_nested_cells_stay_one_cell_each():
    chunk = next(open_rows({"x": [[1, 2], [3, 4]], "y": [1, 2]}).chunks(("x", "y"), 5))
    assert chunk["x"].shape == (2,)
    assert np.isnan(to_float(chunk["x"])).all()


@pytest.mark.parametrize("column", [np.zeros((2, 2)), np.array(1.0), 5.0, "ab", {1, 2}, {"a": 1}])
def test_columns_that_are_not_one_dimensional(column):
    with pytest.raises(FrameError, match="column 'x' is not one-dimensional"):
        open_rows({"x": column})


def test_unequal_lengths_are_refused_without_telling_them():
    with pytest.raises(FrameError) as caught:
        open_rows({"a": [1.0] * 31, "b": np.zeros(31), "c": [0.0] * 32})
    assert "'a' and 'c' differ in length" in str(caught.value)
    assert "31" not in str(caught.value)
    assert "32" not in str(caught.value)


def test_structured_arrays_give_views():
    data = np.array([(1.0, "F"), (2.0, "M")], dtype=[("x", float), ("sex", "U1")])
    source = open_rows(data)
    chunk = next(source.chunks(("x", "sex"), 10))
    assert np.shares_memory(chunk["x"], data)
    assert chunk["sex"].tolist() == ["F", "M"]
    assert source.nrows == 2
    masked = np.ma.MaskedArray(data, mask=[(True, False), (False, False)])
    np.testing.assert_array_equal(_read(masked), [np.nan, 2.0])


def test_a_mapping_without_columns():
    source = open_rows({})
    assert (source.names, source.nrows) == ((), 0)
    assert list(source.chunks((), 5)) == []
