"""Periods of time: against pandas' calendar, their names, and which rows are in which."""

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, FormulaError, UnknownVariable
from dpmodels.formula.survival import periods

FIRST, LAST = "2023-11-15", "2025-02-10"
BOOK = dp.codebook(
    day=dp.Date(FIRST, LAST),
    n=dp.Integer(3, 12),
    level=dp.Categorical([2, 1, 3], ordered=True),
    group=["u", "v"],
    x=(0, 1),
    long=dp.Date("0001-01-01", "9999-12-31"),
    wide=dp.Integer(0, 10**7),
)
BOOK |= {"day of entry": dp.Date(FIRST, LAST)}
DAYS = pd.date_range(FIRST, LAST)
PANDAS = {"day": "D", "week": "W-SUN", "month": "M", "quarter": "Q", "year": "Y"}


def days(dates):
    return np.asarray(dates, dtype="datetime64[D]").astype(float)


@pytest.mark.parametrize("by", PANDAS)
def test_calendar_periods_are_those_of_pandas(by):
    calendar = periods("day", by, BOOK)
    expected = DAYS.to_period(PANDAS[by])
    place = calendar.factor.evaluate({"day": days(DAYS)})
    np.testing.assert_array_equal(place, pd.factorize(expected)[0])
    assert len(calendar) == len(set(expected))
    assert len(calendar.factor.levels) == len(calendar)
    if by in ("month", "quarter", "year"):
        assert list(calendar.factor.levels) == list(dict.fromkeys(map(str, expected)))
    assert calendar.times[0] == np.datetime64(FIRST)
    assert calendar.start(FIRST) == 0
    assert calendar.stop(LAST) == len(calendar)


def test_numbers_and_levels_are_periods():
    calendar = periods("n", None, BOOK)
    assert (calendar.factor.levels, calendar.start(4), calendar.stop(4)) == (
        tuple(range(3, 13)),
        1,
        2,
    )
    wide = periods("n", np.int64(4), BOOK)
    assert wide.factor.levels == ("3 to 6", "7 to 10", "11 to 12")
    assert wide.times.tolist() == [3, 7, 11]
    assert (wide.start(np.int64(7)), wide.stop(12.0)) == (1, 3)
    level = periods("level", None, BOOK)
    assert (level.factor.levels, level.start(1), level.stop(1)) == ((2, 1, 3), 1, 2)
    assert len(periods("day", 100, BOOK)) == 5
    assert periods("day of entry", "year", BOOK).factor.levels == ("2023", "2024", "2025")


def test_rows_without_a_time_or_outside_are_in_no_period():
    calendar = periods("day", "month", BOOK)
    outside = [days(FIRST) - 1, days(LAST) + 1, np.nan, np.inf, -np.inf]
    assert np.isnan(calendar.factor.evaluate({"day": np.array(outside, dtype=float)})).all()


@pytest.mark.parametrize(
    ("time", "by", "kind", "message"),
    [
        ("hour", None, UnknownVariable, "'hour' is not in the codebook"),
        ("x", None, FormulaError, "has no order"),
        ("group", None, FormulaError, "has no order"),
        (None, None, ArgumentError, "expected a variable with an order in time"),
        ("long", None, ArgumentError, "3,652,059 periods; at most 1,000,000"),
        ("wide", None, ArgumentError, "10,000,001 periods"),
        ("n", 10, ArgumentError, "one period"),
        ("day", 10**9, ArgumentError, "one period"),
        ("day", "hour", ArgumentError, "expected 'day', 'week'"),
        ("n", "week", ArgumentError, "expected a whole number of values"),
        ("n", 0, ArgumentError, "by=0"),
        ("n", True, ArgumentError, "by=True"),
        ("n", 2.0, ArgumentError, "by=2.0"),
        ("level", 1, ArgumentError, "are the periods"),
    ],
)
def test_what_is_no_time_is_refused(time, by, kind, message):
    with pytest.raises(kind, match=message):
        periods(time, by, BOOK)


@pytest.mark.parametrize("interval", [None, "2024-01-02", 5, "x", [FIRST], float("nan")])
def test_intervals_begin_and_end_with_periods(interval):
    calendar = periods("day", "month", BOOK)
    with pytest.raises(ArgumentError, match=f"no period begins.*{FIRST}, 2023-12-01, ..., 2025-02"):
        calendar.start(interval)
    with pytest.raises(ArgumentError, match=r"no period ends.*2023-11-30"):
        calendar.stop(interval)
