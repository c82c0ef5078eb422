"""Levels by code, label and order, lists, missingness and dates in expressions."""

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design.columns import converted
from dpmodels.errors import FormulaError
from dpmodels.formula import design
from dpmodels.formula.expression import as_category, compile_factor

BOOK = dp.codebook(
    x=(0, 10),
    k=dp.Integer(0, 9, missing=[9]),
    region=["north", "east", "south"],
    educ=dp.Categorical({1: "low", 2: "mid", 3: "high"}, ordered=True),
    kids=dp.Categorical({1: "0", 2: "1", 3: "2 or more"}),
    old=dp.Boolean(),
    day=dp.Date("2001-01-01", "2020-12-31"),
)
ROWS = {
    "x": [0.0, 5.0, None, 12.0],
    "k": [1, 9, 2, 3],
    "region": ["north", "east", None, "west"],
    "educ": [1, 2, 3, None],
    "kids": [1, 2, 3, 3],
    "old": [True, "false", None, 1],
    "day": ["2001-01-01", "2010-06-15", None, "2030-01-01"],
}
COLUMNS = converted(BOOK, {name: np.array(cells, object) for name, cells in ROWS.items()})
NAN = float("nan")


def truth(code):
    return compile_factor(code, BOOK).evaluate(COLUMNS)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("educ >= 2", [0, 1, 1, NAN]),
        ("educ >= 'mid'", [0, 1, 1, NAN]),
        ("'mid' < educ", [0, 0, 1, NAN]),
        ("educ < 3", [1, 1, 0, NAN]),
        ("educ == 'low'", [1, 0, 0, NAN]),
        ("kids == 2", [0, 1, 0, 0]),
        ("kids == '2 or more'", [0, 0, 1, 1]),
        ("region in ['north', 'south']", [1, 0, NAN, NAN]),
        ("region not in ['north']", [0, 1, NAN, NAN]),
        ("region in 'east'", [0, 1, NAN, NAN]),
        ("educ in c(1, 'high')", [1, 0, 1, NAN]),
        ("x in [0, 10]", [1, 0, NAN, 1]),
        ("k in (1, 3)", [1, NAN, 0, 1]),
        ("is_missing(x)", [0, 0, 1, 0]),
        ("is_missing(k)", [0, 1, 0, 0]),
        ("is_missing(region)", [0, 0, 1, 1]),
        ("is_missing(x > 3)", [0, 0, 1, 0]),
        ("is_missing(log(x + 1))", [0, 0, 1, 0]),
        ("~is_missing(day)", [1, 1, 0, 1]),
        ("old & (x > -1)", [1, 0, NAN, 1]),
        ("~old", [0, 1, NAN, 0]),
        ("day >= '2010-06-15'", [0, 1, NAN, 1]),
        ("'2010-06-15' > day", [1, 0, NAN, 0]),
        ("day in ['2001-01-01', '2020-12-31']", [1, 0, NAN, 1]),
        # As in R: what decides alone does so where the other is missing.
        ("is_missing(x) | (x > 7)", [0, 0, 1, 1]),
        ("(x > 7) & (k == 2)", [0, 0, NAN, 0]),
        ("(x < 7) | (k == 1)", [1, 1, NAN, 0]),
        ("(x < 7) & (k == 1)", [1, NAN, 0, 0]),
    ],
)
def test_conditions(code, expected):
    np.testing.assert_array_equal(truth(code), np.array(expected, float))


@pytest.mark.parametrize(
    ("code", "expected", "ends"),
    [
        ("ifelse(is_missing(x), 3, x)", [0, 5, 3, 10], (0, 10)),
        ("ifelse(old, 1, x)", [1, 5, NAN, 1], (0, 10)),
        ("pmin(x, k, 4)", [0, NAN, NAN, 3], (0, 4)),
        ("pmax(x, -k)", [0, NAN, NAN, 10], (0, 10)),
        ("day - '2001-01-01'", [0, 3452, NAN, 7304], (0, 7304)),
        ("'2001-01-02' - day", [1, -3451, NAN, -7303], (-7303, 1)),
        ("day - day", [0, 0, NAN, 0], (-7304, 7304)),
        ("clip(day, '2001-01-01', '2001-01-02')", [11323, 11324, NAN, 11324], (11323, 11324)),
    ],
)
def test_numbers(code, expected, ends):
    value = compile_factor(code, BOOK)
    np.testing.assert_array_equal(value.evaluate(COLUMNS), np.array(expected, float))
    assert (value.lower, value.upper) == ends


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("kids == '1'", "'1' may be a level of kids or the label of another"),
        ("kids in ['0', '2']", "'2' is not one of the declared levels"),
        ("educ > 4", r"4 is not one of the declared levels \[1, 2, 3\]"),
        ("educ > 'x'", "not one of the declared levels"),
        ("region < 'east'", "no declared order"),
        ("x in region", "a list written in the formula"),
        ("region in ['west']", "'west' is not one of"),
        ("x in ['a']", "a list of numbers"),
        ("day > 'soon'", "is not a day; write it as '2001-12-31'"),
        ("day in ['soon']", "is not a day"),
        ("day + '2001-01-01'", "not a number"),
        ("x > '2001-01-01'", "not a number"),
        ("x & old", "'x' in the formula is not a comparison"),
        ("cut(day, ['2001-01-01', '2002-01-01'])", "breaks"),
    ],
)
def test_what_is_refused_says_why(code, message):
    with pytest.raises(FormulaError, match=message):
        compile_factor(code, BOOK)


def test_columns_are_named_by_labels():
    coded = design("~ educ + C(kids, Treatment(2)) + old", BOOK)
    assert coded.names == (
        "educ[T.mid]",
        "educ[T.high]",
        "C(kids, Treatment(2))[T.0]",
        "C(kids, Treatment(2))[T.2 or more]",
        "old[T.True]",
    )


def test_a_row_with_x_missing_is_complete_in_whether_it_is_missing():
    public = design("~ is_missing(x) + region in ['north', 'east']", BOOK)
    out = np.empty((2, 4))
    public.evaluate(COLUMNS, out)
    np.testing.assert_array_equal(out[0], [0, 0, 1, 0])
    assert public.names[0] == "is_missing(x)[T.True]"


def test_dates_are_cut_and_named_as_such():
    value = compile_factor("cut(day, ['2001-01-01', '2010-01-01', '2020-12-31'])", BOOK)
    assert value.levels == ("[2001-01-01, 2010-01-01]", "(2010-01-01, 2020-12-31]")
    np.testing.assert_array_equal(value.evaluate(COLUMNS), [0, 1, NAN, 1])


def test_whole_numbers_are_levels_where_rows_are_grouped_by_them():
    book = BOOK | {"zip": dp.Integer(0, 99_999), "half": dp.Numeric(0.5, 3.5, step=1)}
    for code in ("k", "year(day)"):
        number = compile_factor(code, BOOK)
        category = as_category(number, code)
        assert category.levels == tuple(range(int(number.lower), int(number.upper) + 1))
        values = number.evaluate(COLUMNS)
        levels = [
            category.levels[int(place)] for place in category.evaluate(COLUMNS)[~np.isnan(values)]
        ]
        assert levels == values[~np.isnan(values)].tolist()
    assert design("~ C(k)", BOOK).names == tuple(f"C(k)[T.{j}]" for j in range(1, 10))
    assert design("~ k", BOOK).names == ("k",)
    for code in ("x", "zip", "half", "k + 1"):
        with pytest.raises(FormulaError, match="is a number; declare it as a list of levels"):
            as_category(compile_factor(code, book), code)
    with pytest.raises(FormulaError, match=r"day is a date; take C\(year\(day\)\), month"):
        as_category(compile_factor("day", BOOK), "day")
