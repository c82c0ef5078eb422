"""Fixed effects behind ``|``: what they are, and what is refused before a row is read."""

import pytest

import dpmodels as dp
from dpmodels.errors import FormulaError, UnknownVariable
from dpmodels.formula.response import MOST_LEVELS, split_fixed, two_sided

BOOK = dp.codebook(
    y=(0, 9),
    x=(0, 4),
    z=["u", "v"],
    firm=["a", "b", "c"],
    year=dp.Integer(2001, 2003),
    ident=dp.Identifier(),
    town=[str(number) for number in range(MOST_LEVELS + 1)],
)


@pytest.mark.parametrize(
    ("formula", "plain"),
    [
        ("y ~ x + z | firm", "y ~ x + z + firm"),
        ("y ~ x|firm + C(year)", "y ~ x + firm + C(year)"),
        ("y ~ 0 + x | firm", "y ~ x + firm"),
        ("y ~ x + x:firm | firm", "y ~ x + x:firm + firm"),
        ("y ~ I((x > 1) | (x < 3)) | firm", "y ~ I((x > 1) | (x < 3)) + firm"),
        ("y ~ . - town - year - z | firm", "y ~ x + firm"),
    ],
)
def test_they_are_factors_among_the_terms(formula, plain):
    fixed, without = two_sided(formula, BOOK, absorb=True), two_sided(plain, BOOK)
    assert fixed.terms.names == without.terms.names
    assert fixed.intercept
    assert fixed.fixed[0] == "firm"
    again = two_sided(fixed.terms.formula, fixed.joint.codebook, absorb=True)
    assert (again.terms.names, again.fixed) == (fixed.terms.names, fixed.fixed)


def test_a_bar_within_brackets_is_a_condition():
    assert split_fixed("y ~ I((x > 1) | (x < 3))", BOOK) == ("y ~ I((x > 1) | (x < 3))", ())


@pytest.mark.parametrize(
    ("formula", "match"),
    [
        ("y ~ x |", "names no fixed effect"),
        ("y ~ x | 0", "names no fixed effect"),
        ("y ~ x | .", "names no fixed effect"),
        ("y ~ x | x", r"'x' is a number, which has no levels: declare them, x=\["),
        ("y ~ x | x + 1", "is a number"),
        ("y ~ x | log(x + 1)", "is a number.*name a factor"),
        ("y ~ x + firm | firm", "a term and a fixed effect"),
        ("y ~ x * firm | firm", "a term and a fixed effect"),
        ("y ~ x | firm | z", "one '|'"),
        ("y | firm ~ x", "one '|'"),
        ("y ~ x | firm:z", "single factors"),
        ("y ~ x | firm - 1", "single factors"),
        ("y ~ 1 | firm", "no term"),
        ("y ~ | firm", "no term"),
        ("y ~ x | town", f"301 levels; at most {MOST_LEVELS}"),
        ("z ~ x | z", "is the response and a term"),
    ],
)
def test_what_is_no_fixed_effect_is_refused(formula, match):
    with pytest.raises(FormulaError, match=match):
        two_sided(formula, BOOK, absorb=True)


@pytest.mark.parametrize("name", ["region", "ident"])
def test_what_is_not_declared_says_what_to_declare(name):
    with pytest.raises(UnknownVariable, match=rf"declare them in the codebook, .*{name}="):
        two_sided(f"y ~ x | {name}", BOOK, absorb=True)
