"""Years, months and days of the week: those of the calendar, with ranges that are reached."""

import datetime as dt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpmodels as dp
from dpmodels.errors import FormulaError
from dpmodels.formula.expression import compile_factor
from dpmodels.formula.functions import MONTHS, WEEKDAYS

DAYS = st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31))
SPANS = st.lists(DAYS, min_size=2, max_size=2, unique=True).map(sorted)
SHORT = st.tuples(DAYS, st.integers(1, 500)).filter(
    lambda pair: (dt.date.max - pair[0]).days > pair[1]
)


def parts(code, first, last, days):
    value = compile_factor(code, dp.codebook(d=dp.Date(first, last)))
    ordinals = [(day - dt.date(1970, 1, 1)).days for day in days]
    return value, value.evaluate({"d": np.array([*ordinals, np.nan])})


@given(SPANS, st.data())
def test_years_are_those_of_the_calendar(span, data):
    days = [*span, *data.draw(st.lists(st.dates(*span), max_size=5))]
    value, years = parts("year(d)", *span, days)
    assert years[:-1].tolist() == [day.year for day in days]
    assert np.isnan(years[-1])
    assert (value.lower, value.upper, value.step) == (span[0].year, span[1].year, 1.0)


@given(SHORT)
def test_months_and_weekdays_have_the_levels_that_some_day_has(pair):
    first, length = pair
    days = [first + dt.timedelta(days=j) for j in range(length + 1)]
    for code, names, of in (
        ("month(d)", MONTHS, lambda day: day.month),
        ("weekday(d)", WEEKDAYS, dt.date.isoweekday),
    ):
        reached = sorted(set(map(of, days)))
        if len(reached) < 2:
            with pytest.raises(FormulaError, match=f"is {names[reached[0] - 1]} on each day"):
                parts(code, first, days[-1], days)
            continue
        value, places = parts(code, first, days[-1], days)
        assert value.written == tuple(reached)
        assert [value.levels[int(place)] for place in places[:-1]] == [
            names[of(day) - 1] for day in days
        ]
        assert np.isnan(places[-1])


def test_parts_are_compared_by_number_name_and_order():
    book = dp.codebook(d=dp.Date("2020-01-01", "2020-12-31"))
    spring = {"d": np.array([18262.0 + 31 * j for j in range(12)])}
    for code in ("month(d) >= 3", "month(d) >= 'Mar'", "month(d) not in ['Jan', 2]"):
        assert compile_factor(code, book).evaluate(spring).sum() == 10
    weekend = compile_factor("weekday(d) > 'Fri'", book)
    # A Saturday and a Monday.
    assert weekend.evaluate({"d": np.array([18265.0, 18267.0])}).tolist() == [1.0, 0.0]
    assert compile_factor("year(clip(d, '2020-01-01', '2020-06-01'))", book).upper == 2020


@pytest.mark.parametrize("code", ["year(x)", "month(x)", "weekday(d + 1)", "year(d, d)"])
def test_only_dates_have_parts(code):
    book = dp.codebook(d=dp.Date("2020-01-01", "2020-12-31"), x=(0, 1))
    with pytest.raises(FormulaError, match=r"is not a date; declare|exactly one argument"):
        compile_factor(code, book)
