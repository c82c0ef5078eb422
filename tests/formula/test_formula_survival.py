"""Times until an event: where each row is counted, and what intervals cover."""

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, FormulaError
from dpmodels.formula.survival import one_value, parse_survival
from dpmodels.formula.values import Real

BOOK = dp.codebook(
    days=dp.Integer(0, 9), years=(1, 5), dead=dp.Integer(0, 1), how=["a", "b"], arm=["x", "y"]
)


def cells(formula, breaks, **columns):
    tally, _ = parse_survival(formula, BOOK).tally(breaks)
    return tally.place(
        {name: np.array(column, float) for name, column in columns.items()}
    ).cells.tolist()


def test_a_row_is_in_the_interval_it_ends_in_and_by_how_it_ended():
    days, dead = [0, 4, 5, 8, 8, np.nan, 3], [1, 0, 1, 1, 0, 1, np.nan]
    # Two intervals and one more a line: of censored rows, then of events.
    assert cells("Surv(days, dead) ~ 1", [4], days=days, dead=dead) == [3, 0, 4, 4, 1, -1, -1]


@pytest.mark.parametrize(
    ("step", "expected"), [(1.0, [1.0, 0.0, 1.0]), (0.0, [0.0, 0.0, 0.0])], ids=["days", "years"]
)
def test_an_interval_of_one_whole_number_has_one_value(step, expected):
    time = Real("t", 0.0, 4.0, lambda columns: columns["t"], step=step)
    assert one_value(time, np.array([0.5, 1.5, 3.5, 4.5])).tolist() == expected


def test_what_is_above_the_range_was_followed_to_its_end_without_the_event():
    cell_values = cells(
        "Surv(years, how) ~ 1", [2, 3], years=[0.5, 5, 5, 7, np.inf], how=[1, 1, 0, 1, 0]
    )
    assert cell_values == [4, 6, 3, 3, 3]


def test_the_last_whole_number_stands_for_all_above():
    assert cells("Surv(days, dead) ~ 1", [4], days=[9, 9, 10], dead=[1, 0, 1]) == [2, 2, 2]


def test_a_number_from_0_to_1_is_an_event_where_it_is_one_of_both():
    assert cells("Surv(days, dead) ~ 1", [4], days=[2, 2, 2], dead=[1, 0.5, 0]) == [3, -1, 0]


@pytest.mark.parametrize(
    ("breaks", "ends"),
    [
        ([3, 6], (-0.5, 3.5, 6.5, 8.5)),
        ([0, 4, 8, 9], (-0.5, 4.5, 8.5)),
        ([5], (-0.5, 5.5, 8.5)),
    ],
)
def test_intervals_cover_the_declared_range(breaks, ends):
    response = parse_survival("Surv(days, dead) ~ arm", BOOK)
    tally, counts = response.tally(breaks)
    assert counts == ends
    assert tally.shape == (2, 2, len(ends))
    inner = tuple(min(end, response.grid.upper) for end in ends[1:])
    assert response.breaks(inner).tolist() == list(ends)


def test_other_verbs_say_where_such_times_belong():
    for verb, formula in [(dp.dp_lm, "Surv(days, dead) ~ arm"), (dp.dp_mean, "~ Surv(days, dead)")]:
        with pytest.raises(FormulaError, match="left side of dp_survfit"):
            verb(formula, {}, codebook=BOOK, eps=1.0)
    with pytest.raises(FormulaError, match="a category of 3 levels; write which"):
        parse_survival("Surv(days, how) ~ 1", BOOK | {"how": dp.Categorical(["a", "b", "c"])})
    with pytest.raises(ArgumentError, match="increasing"):
        parse_survival("Surv(days, dead) ~ 1", BOOK).tally([6, 3])
