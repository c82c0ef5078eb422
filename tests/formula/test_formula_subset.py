"""A subset is a truth of the row alone, in the formula's own language."""

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, FormulaError
from dpmodels.formula.sides import subset

BOOK = dp.codebook(age=(0, 100), region=["north", "south"], income=(0, 1e6))
COLUMNS = {"age": np.array([20.0, 30, np.nan, 70]), "region": np.array([0.0, 1, 0, np.nan])}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("age >= 30", [False, True, False, True]),
        ("region == 'north'", [True, False, True, False]),
        ("(age < 65) & (region == 'south')", [False, True, False, False]),
        ("log(age + 1) > 4", [False, False, False, True]),
    ],
)
def test_a_row_of_which_it_is_not_known_is_outside(text, holds):
    condition = subset(text, BOOK)
    assert condition.holds(COLUMNS).tolist() == holds
    assert condition.text == text


def test_only_its_variables_are_read():
    assert list(subset("age > 3", BOOK).codebook) == ["age"]
    assert subset(None, BOOK) is None


@pytest.mark.parametrize(
    "text", ["age", "region", "age + 1", "wage > 3", "age > age.mean()", "1 > 0"]
)
def test_what_is_no_condition_is_refused_by_name(text):
    with pytest.raises(FormulaError, match="subset="):
        subset(text, BOOK)


def test_an_equals_sign_alone_is_told_of_two():
    with pytest.raises(FormulaError, match="write a == b"):
        subset("age = 3", BOOK)
    with pytest.raises(FormulaError, match="write >= or <="):
        subset("age => 3", BOOK)


@pytest.mark.parametrize("text", ["", "  ", 3, ["age > 3"], lambda frame: frame])
def test_what_is_no_text_is_refused(text):
    with pytest.raises(ArgumentError, match="subset="):
        subset(text, BOOK)


def test_a_subset_of_a_verb_is_paid_for_and_shown_with_noise():
    rows = {"age": [20.0] * 300 + [40.0] * 700, "region": ["north"] * 1000}
    with dp.simulation(seed=1):
        fit = dp.dp_mean("~ age", rows, codebook=BOOK, eps=1.0, subset="age > 30")
    count = fit.tidy()["count"].item()
    assert count != 700
    assert count == pytest.approx(700, abs=40)
    assert float(fit.params.iloc[0]) == pytest.approx(40, abs=5)


def test_a_subset_that_is_never_true_is_an_honest_table():
    rows = {"age": [20.0] * 1000}
    with dp.simulation(seed=1):
        fit = dp.dp_mean("~ age", rows, codebook=BOOK, eps=1.0, subset="age > 100")
    assert np.isnan(fit.params.iloc[0])


@pytest.mark.parametrize("text", ["d > 2010", "2010 <= d", "d == 0"])
def test_a_date_is_compared_with_a_date(text):
    book = dp.codebook(d=dp.Date("2000-01-01", "2020-12-31"))
    with pytest.raises(FormulaError, match=r"year\(d\) >= 2010"):
        subset(text, book)
    assert subset("d > '2010-06-30'", book).holds({"d": np.array([0.0, 15_000.0])}).any()
