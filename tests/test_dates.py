"""Days from every library's dates and from text, and the bounds they are declared with."""

import datetime as dt
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpmodels as dp
from dpmodels.dates import day_of, day_of_text, text_of_day
from dpmodels.errors import CodebookError

ZONE = dt.timezone(dt.timedelta(hours=-5))


@pytest.mark.parametrize(
    "cell",
    [
        "2001-01-02",
        "2001-01-02T23:30:00",
        "2001-01-02 23:30",
        "2001-01-02T23:30:00-05:00",
        dt.date(2001, 1, 2),
        dt.datetime(2001, 1, 2, 23, 59, tzinfo=ZONE),
        np.datetime64("2001-01-02"),
        np.datetime64("2001-01-02T23:59", "ns"),
        pd.Timestamp("2001-01-02 23:59"),
        pd.Timestamp("2001-01-02 23:59", tz="America/New_York"),
    ],
    ids=repr,
)
def test_a_cell_is_the_day_it_falls_on(cell):
    assert day_of(cell) == 11324


@pytest.mark.parametrize(
    "cell",
    [
        *("", "2001", "20010102", "2001-1-2", "2001-02-30", "02/01/2001", "today", "now"),
        *("0000-00-00", None, 11324, 1.0, True, math.nan, pd.NaT, np.datetime64("NaT", "us"), []),
        dt.time(3),
    ],
    ids=repr,
)
def test_all_else_is_missing(cell):
    assert math.isnan(day_of(cell))


def test_no_code_of_a_foreign_class_is_run():
    class Odd(dt.date):
        def toordinal(self):
            raise AssertionError("asked")

        def __eq__(self, other):
            raise AssertionError("asked")

        __hash__ = None

    assert day_of(Odd(1970, 1, 2)) == 1.0


@given(st.dates())
def test_text_and_days_are_the_same(day):
    number = day_of(day)
    assert text_of_day(number) == day.isoformat()
    assert day_of_text(day.isoformat()) == number
    assert number == (day - dt.date(1970, 1, 1)).days


def test_bounds_are_days_of_any_library():
    declared = dp.Date(np.datetime64("2001-01-01"), pd.Timestamp("2020-12-31 12:00"))
    assert declared == dp.Date("2001-01-01", dt.date(2020, 12, 31))
    assert declared.days == (11323.0, 18627.0)
    assert dp.codebook(x=("2001-01-01", "2020-12-31"))["x"] == declared


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (("2001-01-01", "2001-01-01"), "equal or reversed"),
        (("2001-01-02", "2001-01-01"), "equal or reversed"),
        (("2001-01-01", None), "upper bound None"),
        (("2001-01-01", "soon"), "upper bound 'soon'"),
        ((0, "2001-01-01"), "lower bound 0"),
        ((np.datetime64("-5000-01-01"), "2001-01-01"), "years 1 to 9999"),
        (("2001-01-01", pd.NaT), "upper bound NaT"),
    ],
)
def test_bounds_that_are_no_days_are_refused(bounds, message):
    with pytest.raises(CodebookError, match=message):
        dp.Date(*bounds)
