"""The algebra: R's ``.``, the two sides, names in quotes, limits."""

import ast
import re

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import FormulaError, UnknownVariable
from dpmodels.formula import design
from dpmodels.formula.parse import parsed_formula, quote, syntax

NAMES = ("a", "b", "c", "y")


def predictors(text, names=NAMES):
    return [":".join(term) for term in parsed_formula(text, names).predictors]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("~ .", ["a", "b", "c", "y"]),
        ("~ . - b", ["a", "c", "y"]),
        ("~ . - b - a", ["c", "y"]),
        ("~ . - (a + c)", ["b", "y"]),
        ("~ b + .", ["b", "a", "c", "y"]),
        ("~ . + a:b", ["a", "b", "c", "y", "a:b"]),
        ("~ . - y + log(y)", ["a", "b", "c", "log(y)"]),
        ("y ~ .", ["a", "b", "c"]),
        ("log(y + 1) ~ .", ["a", "b", "c"]),
        ("y + c ~ .", ["a", "b"]),
        ("I(y * c) ~ .", ["a", "b"]),
        ('Q("y") ~ . - Q("a")', ["b", "c"]),
        ("y ~ . - a", ["b", "c"]),
        ("y ~ (.)**2", ["a", "b", "c", "a:b", "a:c", "b:c"]),
        ("y ~ (. - c)**2", ["a", "b", "a:b"]),
        ("y ~ (.)**2 - a:b", ["a", "b", "c", "a:c", "b:c"]),
        ("y ~ (.)**2 - b:a", ["a", "b", "c", "a:c", "b:c"]),
        ("y ~ .:a", ["a", "b:a", "c:a"]),
        ("y ~ . * a", ["a", "b", "c", "b:a", "c:a"]),
        ("y ~ c / .", ["c", "c:a", "c:b"]),
        ("y ~ .**3", ["a", "b", "c", "a:b", "a:c", "b:c", "a:b:c"]),
        (".", ["a", "b", "c", "y"]),
        ("  ~\n .\r\n - b\t", ["a", "c", "y"]),
    ],
)
def test_the_dot_is_all_other_variables(text, expected):
    assert predictors(text) == expected


def test_the_dot_and_the_intercept():
    assert parsed_formula("~ .", NAMES).intercept
    assert not parsed_formula("~ . - 1", NAMES).intercept
    assert not parsed_formula("~ 0 + .", NAMES).intercept
    assert not parsed_formula("~ a + (b - 1)", NAMES).intercept
    assert parsed_formula("~ a + (b - 1) + 1", NAMES).intercept


def test_both_sides_are_kept_apart():
    parsed = parsed_formula("log( y ) ~ a +  b", NAMES)
    assert parsed.response == (("log(y)",),)
    assert parsed.predictors == (("a",), ("b",))
    assert parsed.text == "log( y ) ~ a + b"


def test_names_that_are_no_identifiers_are_quoted():
    names = (
        "wage in $",
        "class",
        "plain",
        'with "quotes"',
        "tab\there",
        "naïve",
        "ﬁ",
        "back\\slash",
    )
    book = dp.codebook.uniform(names, (0, 1))
    public = design("~ .", book)
    assert public.names == (
        'Q("wage in $")',
        'Q("class")',
        "plain",
        'Q("with \\"quotes\\"")',
        'Q("tab\\there")',
        "naïve",
        "ﬁ",
        'Q("back\\\\slash")',
    )
    assert public.variables == names
    assert [design(f"~ {quote(name)}", book).variables for name in names] == [(n,) for n in names]


def test_a_quoted_name_is_the_variable_however_it_is_quoted():
    book = dp.codebook({"a b": (0, 1)}, x=(0, 1))
    assert predictors("~ . - Q('a b')", book) == ["x"]
    assert predictors('~ Q("x") + x', book) == ["x"]
    assert predictors("~ Q('a b'):x - x:Q(\"a b\")", book) == []
    for term in ("log(Q('a b') + 1)", 'log(Q("a b") + 1)'):
        assert design(f"~ {term} + Q('a b')", book).names == (
            'log(Q("a b") + 1)',
            'Q("a b")',
        )


MICRO, MU = "\u00b5", "\u03bc"


def test_names_are_exact():
    """Python's parser takes both for one; a formula asks for what it says."""
    book = dp.codebook({MICRO: (0, 1), MU: (5, 9)}, x=(0, 1))
    for name, lower in ((MICRO, 0.0), (MU, 5.0)):
        for written in (name, f"Q('{name}')", f"I({name})", f"x + ({name})"):
            public = design(f"~ {written}", book)
            assert public.variables[0] == name
            assert public.lower[-1] == lower
        assert predictors(f"~ {name} + Q('{name}')", book) == [name]
    assert design(f"~ {MICRO} + log({MU})", book).variables == (MICRO, MU)
    columns = {MICRO: np.array([0.25]), MU: np.array([7.0]), "x": np.array([0.5])}
    out = np.empty((1, 1))
    design(f"~ I({MU} - x - {MICRO})", book).evaluate(columns, out)
    assert out[0, 0] == 6.25


def test_a_name_in_other_characters_is_told_apart():
    with pytest.raises(UnknownVariable, match=r"'\\u03bc' and not '\\xb5'") as caught:
        design(f"~ {MICRO}", dp.codebook({MU: (0, 1)}))
    assert f"dp.codebook({{'{MICRO}': (lower, upper)}})" in str(caught.value)


def test_functions_are_called_by_their_own_names():
    with pytest.raises(FormulaError, match="not allowed"):
        design("~ \uff4c\uff4f\uff47(x)", dp.codebook(x=(1, 2)))


def test_a_variable_may_share_its_name_with_a_function_or_a_contrast():
    book = dp.codebook(log=(1, 2), Sum=["a", "b"], C=["a", "b"], I=(0, 1), Q=(0, 1), x=["u", "v"])
    public = design("~ log(log) + Sum + C(C, Sum) + I(I) + Q + C(x, Sum)", book)
    assert public.variables == ("log", "Sum", "C", "I", "Q", "x")
    assert design("~ C(x, Sum)", book).variables == ("x",)


def test_only_the_variables_of_the_formula_are_read():
    book = dp.codebook.uniform(NAMES, (1, 2))
    assert design("~ b + log(y)", book).variables == ("b", "y")
    assert design("~ . - a", book).variables == ("b", "c", "y")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 ~ a", "'1'"),
        (". ~ a", "'.'"),
        ("y - y ~ a", "'y - y'"),
        ("~ 1:a", "crosses the intercept"),
        ("~ (1 + a) / b", "crosses the intercept"),
        ("~ (1 + a)**2", "crosses the intercept"),
        ("~ a**9", "'9'"),
        ("~ a**0", "'0'"),
        ("~ a**-1", "'-1'"),
        ("~ a**b", "'b'"),
        ("~ a**²", "'²'"),
        ("~ a + 2", "bare '2'"),
        ("~ 0:a", "bare '0'"),
        ("y ~ a +", "a variable is missing after '+': write one"),
        ("y ~ a + * b", "a variable is missing before '*': write one"),
    ],
)
def test_what_the_algebra_refuses(text, message):
    with pytest.raises(FormulaError, match=re.escape(message)):
        parsed_formula(text, NAMES)


def test_five_thousand_terms_and_no_more():
    names = [f"v{j}" for j in range(99)]
    assert len(parsed_formula("~ (.)**2", names).predictors) == 4950
    with pytest.raises(FormulaError, match="5,000 terms"):
        parsed_formula("~ (.)**2", [*names, "one", "two"])
    assert len(parsed_formula("~ .", [f"v{j}" for j in range(5000)]).predictors) == 5000
    assert len(parsed_formula("~ .", [f"v{j}" for j in range(5000)]).predictors) == 4999 + 1


def test_interactions_of_eight_factors_and_no_more():
    names = [f"v{j}" for j in range(9)]
    assert predictors("~ " + ":".join(names[:8]), names) == [":".join(names[:8])]
    with pytest.raises(FormulaError, match="interaction of 9 factors"):
        parsed_formula("~ " + ":".join(names), names)


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        ("y ~ . - b", "y ~ a + c"),
        ("~ . - b", "~ a + c + y"),
        ("y ~ a*b - b - a:b - 1", "y ~ a - 1"),
        ("y ~ b - b", "y ~ 1"),
        ("y ~ .**2 - b", "y ~ .**2 - b"),
    ],
)
def test_a_text_names_nothing_that_its_terms_lack(formula, text):
    """So that it reads the same where nothing else is declared, as in a result."""
    parsed = parsed_formula(formula, ["a", "b", "c", "y"])
    assert parsed.text == text
    again = parsed_formula(text, [name for name in "abcy" if name in text or "." in text])
    assert (again.predictors, again.intercept) == (parsed.predictors, parsed.intercept)


def test_names_between_backticks_are_pointed_to_q():
    with pytest.raises(FormulaError, match=r'backticks; write Q\("a name"\) instead'):
        parsed_formula("~ `my age`", ["my age"])


@pytest.mark.parametrize("formula", ["y ~ (a + b)^2", "~ .^2", "~ (a + b)^2"])
def test_the_power_of_r_is_pointed_to_that_of_python(formula):
    with pytest.raises(FormulaError, match=r"\*\*"):
        parsed_formula(formula, ["a", "b"])


@pytest.mark.parametrize(
    ("code", "plain"),
    [
        ("as.factor(a)", "C(a)"),
        ("factor(a)", "C(a)"),
        ("np.log(a + 1)", "log(a + 1)"),
        ("numpy.where(a > 1, np.maximum(a, 2), 0)", "ifelse(a > 1, pmax(a, 2), 0)"),
        ("C(a, Treatment('as.factor(b)'))", "C(a, Treatment('as.factor(b)'))"),
    ],
)
def test_names_of_r_and_numpy_are_those_of_formulas(code, plain):
    assert ast.unparse(syntax(code)) == plain


def test_a_formula_of_nothing_says_what_to_write():
    with pytest.raises(FormulaError, match="nothing stands right of ~; write '~ a"):
        parsed_formula("~", ["a"])


@pytest.mark.parametrize("formula", ["y ~ class", "y ~ a + C(class)", "class ~ a", "y ~ a:from"])
def test_a_column_whose_name_is_a_word_of_python_is_quoted(formula):
    word = "from" if "from" in formula else "class"
    message = rf'; {word} is a word of Python, write Q\("{word}"\) for its column'
    with pytest.raises(FormulaError, match=message):
        parsed_formula(formula, ())
    with pytest.raises(FormulaError, match="not an expression; a name with spaces"):
        parsed_formula("y ~ C(a and)", ())


@pytest.mark.parametrize("formula", ["length of stay ~ x", "Surv(length of stay, y) ~ x"])
def test_a_name_with_spaces_that_is_not_quoted_is_answered_with_its_spelling(formula):
    with pytest.raises(FormulaError, match=r'a name with spaces is written Q\("a name"\)'):
        parsed_formula(formula, ())
