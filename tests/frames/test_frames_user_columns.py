"""Columns of classes of other code: neither their errors nor their texts depend on a row."""

from collections import UserList, deque

import numpy as np
import pandas as pd
import pytest
from pandas.api.extensions import ExtensionArray, ExtensionDtype

import dpmodels as dp
from dpmodels.errors import FrameError
from dpmodels.frames.columns import base_array
from dpmodels.frames.open import open_rows

BAD = 19.5
VALUES = [float(value) for value in range(12)]
CODEBOOK = dp.codebook(x=(0, 20))


class _Error(Exception):
    pass


def _refuse(values):
    if np.any(np.asarray(values, dtype=float) == BAD):
        raise _Error(f"the cell {BAD} is odd")


class _Array(np.ndarray):
    def astype(self, *options, **named):
        _refuse(self.view(np.ndarray))
        return self.view(np.ndarray).astype(*options, **named)

    def __getitem__(self, key):
        _refuse(self.view(np.ndarray))
        return self.view(np.ndarray)[key]

    def __array_ufunc__(self, ufunc, method, *inputs, **named):
        raise _Error("no arithmetic")

    def __array_function__(self, function, types, inputs, named):
        raise _Error("no functions")


class _Masked(np.ma.MaskedArray):
    def __getitem__(self, key):
        _refuse(np.ma.getdata(self).view(np.ndarray))
        return self.view(np.ma.MaskedArray)[key]


class _List(list):
    def __getitem__(self, key):
        _refuse(list(iter(self)))
        return list.__getitem__(self, key)


class _Tuple(tuple):
    __slots__ = ()

    def __getitem__(self, key):
        _refuse(list(iter(self)))
        return tuple.__getitem__(self, key)


class _Deque(deque):
    def __getitem__(self, key):
        raise _Error("no cells")


class _UserList(UserList):
    def __iter__(self):
        _refuse(self.data)
        return iter(self.data)

    def __getitem__(self, key):
        if self.data[key] == BAD:
            raise _Error(f"the cell {BAD} is odd")
        return self.data[key]


class _Series(pd.Series):
    def to_numpy(self, *options, **named):
        values = pd.Series.to_numpy(pd.Series(self), *options, **named)
        _refuse(values)
        return values


class _Type(ExtensionDtype):
    name = "odd"
    type = float

    @classmethod
    def construct_array_type(cls):
        return _Extension


class _Extension(ExtensionArray):
    dtype = _Type()

    def __init__(self, values):
        self.values = np.asarray(values, dtype=float)

    @classmethod
    def _from_sequence(cls, scalars, *, dtype=None, copy=False):
        return cls(scalars)

    def __getitem__(self, key):
        cells = self.values[key]
        _refuse(cells)
        return _Extension(cells) if isinstance(cells, np.ndarray) else cells

    def __len__(self):
        return len(self.values)

    def copy(self):
        return self

    def __array__(self, dtype=None, copy=None):
        _refuse(self.values)
        return self.values


CLASSES = {
    "array": lambda values: np.array(values).view(_Array),
    "masked": lambda values: np.array(values).view(_Masked),
    "list": _List,
    "tuple": _Tuple,
    "deque": _Deque,
    "user list": _UserList,
    "series": _Series,
    "extension": _Extension,
    "series of an extension": lambda values: pd.Series(_Extension(values)),
}
MISSING_CELL = {"user list", "extension", "series of an extension"}


def _cells(column):
    return [
        float(cell) for chunk in open_rows({"x": column}).chunks(("x",), 5) for cell in chunk["x"]
    ]


@pytest.mark.parametrize("kind", CLASSES)
def test_a_column_of_a_derived_class_has_the_cells_of_its_base(kind):
    assert _cells(CLASSES[kind](VALUES)) == VALUES


@pytest.mark.parametrize("kind", CLASSES)
def test_one_cell_at_which_a_class_fails_changes_that_cell_alone(kind):
    cells = _cells(CLASSES[kind]([*VALUES[:7], BAD, *VALUES[8:]]))
    assert cells[:7] + cells[8:] == VALUES[:7] + VALUES[8:]
    assert np.isnan(cells[7]) if kind in MISSING_CELL else cells[7] == BAD


def test_a_fit_does_not_run_the_code_of_an_array_class():
    column = np.array([*VALUES, BAD]).view(_Array)
    with dp.simulation(seed=3):
        fit = dp.dp_mean("~ x", {"x": column}, codebook=CODEBOOK, eps=1e6)
    assert float(fit.params.iloc[0]) == pytest.approx((sum(VALUES) + BAD) / 13, abs=0.01)


def test_the_error_of_a_conversion_is_not_quoted():
    class Lazy:
        shape = (12,)

        def __array__(self, dtype=None, copy=None):
            raise _Error(f"the cell {BAD} is odd")

    with pytest.raises(FrameError, match="numpy cannot convert") as error:
        _cells(Lazy())
    assert str(BAD) not in str(error.value)
    assert error.value.__cause__ is None
    assert error.value.__context__ is None


def test_the_error_of_a_length_is_not_quoted():
    class Unmeasured(list):
        def __len__(self):
            raise _Error(f"the cell {BAD} is odd")

    with pytest.raises(FrameError, match="not one-dimensional"):
        open_rows({"x": Unmeasured(VALUES)})


def test_masks_stay_where_they_are():
    cells = np.ma.MaskedArray(VALUES, [value == 3 for value in VALUES])
    plain = base_array(cells.view(_Masked))
    assert type(plain) is np.ma.MaskedArray
    assert type(plain.data) is np.ndarray
    assert plain.mask.tolist() == cells.mask.tolist()
    assert base_array(cells) is cells
