"""Cells as names of levels: each cell on its own, whatever software made of the others."""

from collections import Counter
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmodels.codebook import Codebook
from dpmodels.errors import CodebookError
from dpmodels.frames import to_codes
from dpmodels.frames.convert import LONGEST, level_names

CELLS = st.one_of(
    st.text(max_size=6),
    st.text("01. -+eaNTrueinf", max_size=5),
    st.integers(-(2**60), 2**60),
    st.floats(),
    st.booleans(),
    st.none(),
    st.binary(max_size=4),
)


def level_counts(values):
    return Counter(name for name in level_names(values) if name is not None)


def objects(cells):
    result = np.empty(len(cells), dtype=object)
    result[:] = cells
    return result


@settings(max_examples=25)
@given(st.lists(CELLS, max_size=8))
def test_each_cell_counts_by_itself(cells):
    together = level_counts(objects(cells))
    alone = sum((level_counts(objects([cell])) for cell in cells), Counter())
    assert together == alone
    assert together.total() <= len(cells)


@settings(max_examples=25)
@given(st.lists(CELLS, min_size=1, max_size=8))
def test_what_is_found_can_be_declared_and_is_found_again(cells):
    """Names print, are levels of a codebook, and match the cells that they were named by."""
    values = objects(cells)
    names = sorted(level_counts(values))
    assert all(name.isprintable() and name.strip() and len(name) <= LONGEST for name in names)
    if len(names) < 2:
        return
    book = Codebook(g=names)
    codes = to_codes(values, book["g"].levels)
    counted = Counter(names[code] for code in codes if code >= 0)
    assert counted == level_counts(values)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([1, 1.0, True, "1", "01", "1.0", Decimal(1), np.int8(1), b"1"], {"1": 9}),
        ([0.5, "0.5", float("inf"), "inf", 2**53, str(2**53), 10**400], {}),
        ([-0.0, 0, "-0"], {"0": 3}),
        (["\u00e9", "e\u0301", "\u00e9".encode()], {"\u00e9": 2, "e\u0301": 1}),
        (["nan", "None", None, float("nan")], {"nan": 1, "None": 1}),
        (["x" * 100, "x" * 101, "tab\t", "\u200b", "\ud800"], {"x" * 100: 1}),
    ],
)
def test_names(cells, expected):
    assert level_counts(objects(cells)) == expected


def test_columns_of_any_type_count_alike():
    expected = {"1": 2, "2": 1}
    masked = np.ma.masked_array([1, 2, 1, 9], mask=[0, 0, 0, 1])
    dates = np.array(["2020-01-01"], "M8[D]")
    for values in (
        np.array([1, 2, 1]),
        np.array([1.0, 2.0, 1.0, np.nan]),
        np.array(["1", "2", "1"]),
        masked,
        pd.Series([1, 2, 1, None]).to_numpy(),
    ):
        assert level_counts(values) == expected
    assert level_counts(dates) == level_counts(objects(["2020-01-01"])) == {"2020-01-01": 1}


def test_no_two_names_are_refused_together():
    names = level_counts(objects(["1", "01", "True", 1.0, "١", "1_0", "10"]))
    try:
        Codebook(g=sorted(names))
    except CodebookError as error:
        pytest.fail(str(error))
    assert names == {"1": 5, "10": 2}
