"""Cells to numbers and to level codes."""

import datetime as dt
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from dpmodels.frames import to_codes, to_float

NAN = float("nan")


class _Loud:
    """Everything a cell can be asked raises."""

    @property
    def __class__(self):
        raise SystemExit("class")

    def _raise(self, *_):
        raise SystemExit("asked")

    __float__ = __int__ = __index__ = __bool__ = __len__ = __iter__ = __array__ = _raise
    __hash__ = __eq__ = __lt__ = __repr__ = __str__ = __getattr__ = __complex__ = _raise


class _LoudMeta(type):
    def __hash__(cls):
        raise SystemExit("type hashed")

    def __eq__(cls, other):
        raise SystemExit("type compared")


class _OfLoudType(metaclass=_LoudMeta):
    pass


class _LoudText(str):
    __slots__ = ()

    def __hash__(self):
        raise SystemExit("hashed")

    def __eq__(self, other):
        raise SystemExit("compared")


class _LoudFloat(float):
    __slots__ = ()

    def __float__(self):
        raise SystemExit("float")

    __hash__ = __eq__ = __float__


HOSTILE = [
    10**400,
    -(10**400),
    Fraction(10**400, 3),
    Decimal("sNaN"),
    b"\xff\xfe",
    [1, 2],
    [[1], [2, 3]],
    {"a": 1},
    (1.0,),
    np.array([1.5]),
    np.array(["a", "b"]),
    dt.date(2020, 1, 1),
    dt.timedelta(1),
    np.datetime64("2020-01-01"),
    np.timedelta64(3, "s"),
    np.timedelta64(3, "ns"),
    pd.Timestamp("2020-01-01"),
    pd.NaT,
    pd.NA,
    pd.Interval(0, 1),
    None,
    float("nan"),
    1 + 2j,
    np.complex64(2j),
    np.ma.masked,
    object(),
    int,
    _Loud(),
    _OfLoudType(),
    "nan",
    "many",
    "",
    "9" * 5000 + "x",
]


def _column(cells):
    return np.fromiter(cells, object, len(cells))


@pytest.mark.parametrize("index", range(len(HOSTILE)))
def test_hostile_cells_are_missing_and_silent(index, capsys):
    cells = _column(["F", HOSTILE[index], 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(to_float(cells), [NAN, NAN, 1.0])
        np.testing.assert_array_equal(to_codes(cells, ("F", 1)), [0, -1, 1])
    assert capsys.readouterr() == ("", "")


def test_subclasses_are_read_as_what_they_are_built_on():
    cells = _column([_LoudText("2.5"), _LoudText("F"), _LoudFloat(1.5)])
    np.testing.assert_array_equal(to_float(cells), [2.5, NAN, 1.5])
    np.testing.assert_array_equal(to_codes(cells, ("F", 1.5)), [-1, 0, 1])


def test_numbers_of_every_type():
    cells = [2, 2.5, True, np.int8(3), np.float32(0.5), np.bool_(False), Decimal("0.1"), 3 + 0j]
    cells += [Fraction(1, 3), "1e3", b"7", np.uint64(2**63), "-inf", np.str_("4"), " 5 "]
    expected = [2, 2.5, 1, 3, 0.5, 0, 0.1, 3, 1 / 3, 1000, 7, 2.0**63, -np.inf, 4, 5]
    np.testing.assert_array_equal(to_float(_column(cells)), expected)


@pytest.mark.parametrize(
    "values",
    [
        np.array([1, 0, 1], dtype=kind)
        for kind in ("?", "i1", "u2", ">i4", "i8", "u8", "f2", "f4", ">f8", "f8", "g", "F", "O")
    ]
    + [np.array(["1", "0", "1.0"]), np.array([b"1", b"0", b"1"])]
    + [np.array(["1", "0", "1"], dtype=np.dtypes.StringDType())],
    ids=lambda values: values.dtype.str,
)
def test_every_kind_of_array_that_holds_numbers(values):
    got = to_float(values)
    assert got.dtype == np.float64
    assert got.dtype.isnative
    np.testing.assert_array_equal(got, [1, 0, 1])
    np.testing.assert_array_equal(to_codes(values, (0, 1)), [1, 0, 1])


@pytest.mark.parametrize("kind", ["M8[D]", "m8[s]", "V4"])
def test_kinds_that_are_neither_numbers_nor_text_are_missing(kind):
    values = np.zeros(3, dtype=kind)
    assert np.isnan(to_float(values)).all()
    code = 2 if kind == "M8[D]" else -1  # Days are levels of their text, and never numbers
    assert (to_codes(values, (0, "0", "1970-01-01")) == code).all()
    assert (to_codes(values, (0, "0")) == -1).all()


def test_float64_is_returned_as_it_is():
    values = np.array([1.0, NAN])
    assert to_float(values) is values


def test_overflow_and_loss_warn_nobody():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wide = np.array([np.finfo(np.longdouble).max, 1.0])
        np.testing.assert_array_equal(to_float(wide), [np.inf, 1.0])
        np.testing.assert_array_equal(to_float(wide.astype(object)), [np.inf, 1.0])
        np.testing.assert_array_equal(to_float(np.array([1 + 1j, 2.0])), [NAN, 2.0])


@pytest.mark.parametrize("cells", [[1.0, 2.0], ["1", "2"], [True, 2]])
def test_masked_cells_are_missing(cells):
    values = np.ma.MaskedArray(np.array(cells), mask=[False, True])
    np.testing.assert_array_equal(to_float(values), [1.0, NAN])
    np.testing.assert_array_equal(to_codes(values, (1, 2)), [0, -1])


# level, cells it takes, cells it does not
LEVELS = [
    (1, [1, 1.0, True, np.int64(1), np.float32(1), "1", "1.0", b"1", Decimal(1)], ["one", 2, "l"]),
    ("1", ["1", 1, 1.0, np.int64(1), b"1", True, "1.0", "01"], ["one", 2, "1,0"]),
    ("F", ["F", b"F", np.str_("F")], ["f", " F", "F ", "False", 0, False]),
    (True, [True, np.True_, "True", 1, 1.0, "TRUE", "true", "1"], [False, 0, "yes", 2]),
    (False, [False, "False", 0, 0.0], [True, None, "", NAN]),
    ("True", ["True", True, "true", 1], ["yes", False]),
    ("01", ["01", 1, "1"], ["O1", 2]),
    (0.5, [0.5, "0.5", ".5", Fraction(1, 2)], ["0,5", 0]),
    (2**53 + 1, [2**53 + 1, float(2**53 + 1), str(2**53 + 1)], [1]),
    ("", [""], [None, " ", NAN]),
]


@pytest.mark.parametrize(("level", "takes", "leaves"), LEVELS)
def test_spellings_of_a_level(level, takes, leaves):
    levels = ("zz", level)
    cells = _column(takes + leaves)
    expected = [1] * len(takes) + [-1] * len(leaves)
    np.testing.assert_array_equal(to_codes(cells, levels), expected)
    for cell, code in zip(takes + leaves, expected, strict=True):
        assert to_codes(_column([cell]), levels).tolist() == [code]
        if isinstance(cell, bool | int | float | str):
            assert to_codes(np.array([cell]), levels).tolist() == [code]


def test_declared_levels_win_over_derived_spellings():
    cells = _column(["1", 1, "1.0", True, "True"])
    assert to_codes(cells, (1, "1", True)).tolist() == [1, 0, 0, 0, 0]
    assert to_codes(cells, ("1.0", "1")).tolist() == [1, 1, 0, 1, 1]
    assert to_codes(cells, ("01", "1", "True")).tolist() == [1, 1, 1, 1, 2]
    assert to_codes(np.array([1.0]), ("01", "1")).tolist() == [1]
    for levels in (("1.0", "1"), ("True", "1"), ("01", "1.0", "1")):
        assert to_codes(np.array([1.0]), levels).tolist() == [levels.index("1")]


def test_levels_that_nothing_matches():
    cells = _column([None, NAN, pd.NaT, dt.date(2020, 1, 1), "None", "nan", 1.0])
    levels = (None, NAN, pd.NaT)
    assert (to_codes(cells, levels) == -1).all()
    assert to_codes(cells, (*levels, dt.date(2020, 1, 1))).tolist() == [-1, -1, -1, 3, -1, -1, -1]
    assert (to_codes(np.array([NAN, 1.0]), levels) == -1).all()
    assert (to_codes(np.array([NAN, 1.0]), ()) == -1).all()


def test_results_have_the_length_of_the_column():
    for values in (np.array([]), np.array([], object), np.array([], "U3"), np.array([], "M8[s]")):
        assert to_float(values).shape == (0,)
        assert to_float(values).dtype == np.float64
        assert to_codes(values, ("a", 1)).shape == (0,)
        assert to_codes(values, ("a", 1)).dtype == np.intp
