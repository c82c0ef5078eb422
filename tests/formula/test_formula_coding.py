"""The coded design: public facts, missing rows, limits, and whatever text it is given."""

import dataclasses
import math

import numpy as np
import pytest
from examples import examples
from hostile import BOOK as WIDE
from hypothesis import given, settings
from hypothesis import strategies as st

import dpmodels as dp
from dpmodels.design import row_coder
from dpmodels.errors import CodebookError, FormulaError, UnknownVariable
from dpmodels.formula import design

BOOK = dp.codebook(
    age=(0, 100),
    income=(0, 250_000),
    sex=["F", "M"],
    mood=[-2, -1, 0, 1, 2],
    region=["north", "east", "south"],
)


def coded(formula, **cells):
    return row_coder(design(formula, BOOK))(cells)


def test_a_design_holds_public_facts():
    public = design("~  log(income + 1)\n + sex*age", BOOK)
    assert public.formula == "~ log(income + 1) + sex*age"
    assert public.names == ("sex[T.M]", "log(income + 1)", "age", "sex[T.M]:age")
    assert public.variables == ("age", "income", "sex")
    assert public.codebook == BOOK.select(["age", "income", "sex"])
    assert public.lower.tolist() == [0, 0, 0, 0]
    assert public.upper.tolist() == [1, math.log(250_001), 100, 100]
    with pytest.raises(dataclasses.FrozenInstanceError):
        public.formula = "~ age"


def test_rows_are_coded_by_name_and_not_by_place():
    rows = {"region": ["south"], "extra": [3], "sex": ["M"], "age": [40]}
    assert coded("~ age + sex + region", **rows)[:, 0].tolist() == [1, 0, 1, 40]


def test_an_unlisted_level_or_a_missing_cell_empties_the_row():
    rows = coded(
        "~ age + sex * region",
        age=[40, 40, 40, None, math.nan, "forty", 40],
        sex=["F", "m", None, "F", "F", "F", "M"],
        region=["north", "north", "north", "north", "north", "north", "west"],
    )
    assert np.isnan(rows).all(axis=0).tolist() == [False, *[True] * 6]
    assert np.isfinite(rows[:, 0]).all()


def test_a_variable_outside_the_formula_may_be_missing():
    assert coded("~ age", age=[40.0], sex=[None]).tolist() == [[40]]


def test_no_rows_and_many_rows():
    assert coded("~ age + region", age=[], region=[]).shape == (3, 0)
    large = coded("~ age", age=np.arange(200_000) % 100)
    assert np.array_equal(large[0], np.arange(200_000) % 100)


def test_values_outside_the_breaks_are_missing():
    rows = coded("~ 0 + cut(age, [18, 30, 65])", age=[17.9, 18, 30, 30.1, 65, 66])
    expected = [[math.nan, 1, 1, 0, 0, math.nan], [math.nan, 0, 0, 1, 1, math.nan]]
    assert np.array_equal(rows, expected, equal_nan=True)


def test_close_breaks_have_names_of_their_own():
    public = design("~ 0 + cut(age, [0, 1.0000001, 1.0000002, 1.0000003])", BOOK)
    assert len(set(public.names)) == 3
    assert public.names[1].endswith("[(1.0000001, 1.0000002]]")


def test_levels_may_be_negative_numbers():
    assert design("~ C(mood, Treatment(-1))", BOOK).names[0] == "C(mood, Treatment(-1))[T.-2]"
    assert coded("~ I(mood == -1)", mood=[-1, 0, "-1"]).tolist() == [[1, 0, 1]]


def test_constants_may_be_computed():
    short, long = design("~ clip(income, 0, 10 ** 5 / 2)", BOOK), design("~ age", BOOK)
    assert short.upper[0] == 50_000
    assert design("~ I(age / 10 ** 2)", BOOK).upper[0] == 1
    assert long.upper[0] == 100


def test_unknown_variables_are_named_with_a_near_match():
    with pytest.raises(
        UnknownVariable, match=r"'incom' is not in the codebook \(did you mean 'inc"
    ):
        design("~ log(incom + 1)", BOOK)
    with pytest.raises(UnknownVariable) as caught:
        design("~ weight", BOOK)
    assert isinstance(caught.value, CodebookError)
    assert isinstance(caught.value, FormulaError)
    assert "codebook. Declare it with" in str(caught.value)
    assert "dp.codebook(weight=(lower, upper))" in str(caught.value)


@pytest.mark.parametrize(
    ("formula", "instead"),
    [
        ("~ np.log(age)", "log1p(x)"),
        ("~ np.tan(age)", "sin(x) and cos(x)"),
        ("~ age.mean()", "subtract a public constant"),
        ("~ center(age)", "I(x - 50)"),
        ("~ scale(age)", "scale="),
        ("~ log(age)", "log1p(x)"),
        ("~ C(age)", "cut(age, [0, 10, 20])"),
        ("~ 2 * age", "I(2 * x)"),
        ("~ I(age if age > 3 else 3)", "ifelse(cond, a, b)"),
        ("~ I(1 < age < 5)", "(a > 1) & (a < 5)"),
        ("~ I(sex + 1)", "sex == 'F'"),
        ("~ bs(age, df=4)", "knots=[30, 50]"),
        ("~ I(1 / age)", "(age + 1)"),
        ("~ I(1 / (age - 50))", "(abs(age - 50) + 1)"),
        ("~ I(sex == F)", "a level is written in quotes: 'F'"),
        ("age = sex", "'y ~ x' for a response"),
        ("~ I(age ^ 2)", "x ** 2"),
        ("~ age ** 2", r"age ** 2 is age itself, as in R: write I(age ** 2) for a power, or age"),
        ("~ (age) ** 3", "I(age ** 3)"),
        ("~ ln(age + 1)", "log(x)"),
        ("~ poly(age, 2, raw=True)", "x + I(x ** 2)"),
        ("~ poly(age, 2, raw=TRUE)", "R's TRUE is True here"),
        ("~ cut(age, 3)", "a list of at least 3 public numbers"),
        ("~ relevel(sex, ref='M')", "C(x, Treatment('reference level'))"),
        ("~ age + (1 | sex)", "dp_lm('y ~ x | group')"),
        ("~ lag(age)", "compares rows with each other"),
        ("~ s(age)", "bs(x, knots=[...])"),
    ],
)
def test_a_refusal_says_what_to_write_instead(formula, instead):
    with pytest.raises(FormulaError) as caught:
        design(formula, BOOK)
    assert instead in str(caught.value)


@pytest.mark.parametrize("codebook", [None, {"age": (0, 100)}, "age", ["age"]])
def test_there_is_no_design_without_a_codebook(codebook):
    with pytest.raises(CodebookError, match=r"dp\.codebook\(age"):
        design("~ age", codebook)


@pytest.mark.product
def test_five_thousand_columns_and_no_more():
    book = dp.codebook.uniform([f"v{j}" for j in range(5000)], (0, 1))
    assert len(design("~ .", book).names) == 5000
    with pytest.raises(FormulaError, match="5,001 columns"):
        design("~ .", book | {"v0": ["a", "b", "c"]})


def test_levels_that_would_fill_the_memory_are_refused_first():
    town = dp.codebook(town=[str(j) for j in range(50_000)])
    with pytest.raises(FormulaError, match="'town' has too many"):
        design("~ town", town)


TOKENS = """
x y z s g ~ + - * / : ** ( ) [ ] { } , . 0 1 2 1e5 5. .5 1j 'F' \" b'1' f'{x}' ''' I( log( bs(
poly( C( Q( cut( clip( ifelse( knots= Sum Treatment( == < >= & | ^ % @ := = ; # \\ ` $ ! ? lambda if
else for in not and None ... await yield _ é ² ٣
"""
PIECES = st.sampled_from([*TOKENS.split(), "\n", "\r", "\x0c", "\x00", "\u2028", "\ud800"])


@pytest.mark.product
@settings(max_examples=500)
@given(st.lists(PIECES, max_size=12), st.sampled_from(["", " "]), st.sampled_from(["", "~ "]))
def test_whatever_is_written_is_a_design_or_a_refusal(tokens, space, tilde):
    try:
        public = design(tilde + space.join(tokens), WIDE)
    except FormulaError as refused:
        message = str(refused)
    else:
        message = ""
        assert public.variables
        assert np.isfinite([public.lower, public.upper]).all()
    assert len(message) < 1000


@pytest.mark.expensive
@settings(max_examples=examples(200))
@given(st.text(max_size=30))
def test_whatever_text_is_a_design_or_a_refusal(text):
    try:
        design(f"~ {text}", BOOK)
    except FormulaError as refused:
        message = str(refused)
    else:
        message = ""
    assert len(message) < 1000


@pytest.mark.parametrize("right", ["Intercept", "0 + Intercept + age", "age:Intercept"])
def test_a_variable_with_the_name_of_the_constant_is_refused(right):
    book = dp.codebook(Intercept=(0, 1), age=(0, 100))
    with pytest.raises(FormulaError, match="taken for the constant"):
        design(f"~ {right}", book)
