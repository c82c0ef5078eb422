"""Two-sided formulas: what a response may be, and what stands beside it."""

import pytest

import dpmodels as dp
from dpmodels.errors import CodebookError, FormulaError, UnknownVariable
from dpmodels.formula.response import two_levels, two_sided

BOOK = dp.codebook(y=(0, 10), x=(0, 1), g=["a", "b", "c"], s=["F", "M"], w=(0, 2))


def test_both_sides_have_their_own_columns():
    sides = two_sided("y ~ x + C(g)", BOOK)
    assert sides.response.names == ("y",)
    assert sides.terms.names == ("C(g)[T.b]", "C(g)[T.c]", "x")
    assert sides.intercept
    assert sides.joint.names == (*sides.terms.names, "y")
    assert sides.joint.variables == ("x", "g", "y")
    assert sides.joint.upper.tolist() == [1, 1, 1, 10]


def test_a_category_of_two_levels_is_the_indicator_of_the_second():
    sides = two_sided("s ~ x", BOOK)
    assert sides.response.names == ("s[T.M]",)
    assert (sides.response.lower, sides.response.upper) == (0, 1)


def test_a_comparison_is_a_response():
    assert two_sided("g == 'a' ~ x", BOOK).response.names == ("g == 'a'[T.True]",)


def test_a_category_of_many_levels_is_pointed_to_the_family_of_its_kind():
    ordered = BOOK | dp.codebook(g=dp.Categorical(["a", "b", "c"], ordered=True))
    for book, family in ((BOOK, "multinomial"), (ordered, "ordinal")):
        with pytest.raises(FormulaError, match=f'or write dp_glm with family="{family}"'):
            two_sided("g ~ x", book)


def test_the_dot_leaves_out_the_response_and_what_is_apart():
    assert two_sided("y ~ .", BOOK).terms.variables == ("x", "g", "s", "w")
    assert two_sided("y ~ .", BOOK, excluded=["w"]).terms.variables == ("x", "g", "s")
    assert two_sided("y ~ x + w", BOOK, excluded=["w"]).terms.names == ("x", "w")


@pytest.mark.parametrize(("formula", "columns"), [("y ~ 0 + g", 3), ("y ~ x - 1", 1)])
def test_without_a_constant(formula, columns):
    sides = two_sided(formula, BOOK)
    assert not sides.intercept
    assert len(sides.terms.names) == columns


def test_a_constant_alone_is_a_model():
    sides = two_sided("y ~ 1", BOOK)
    assert sides.terms.names == ()
    assert sides.intercept
    assert sides.joint.names == ("y",)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("~ x", "has no response"),
        ("y ~ 0", "nothing on its right-hand side"),
        ("y + x ~ g", "is not one variable"),
        ("x:y ~ g", "is not one variable"),
        ("y ~ y + x", "is the response and a term"),
        ("g ~ x", "category of 3 levels"),
        ("C(s, Sum) ~ x", "has a contrast"),
        ("poly(x, 2) ~ y", "has several columns"),
    ],
)
def test_what_is_no_regression_is_refused(formula, message):
    with pytest.raises(FormulaError, match=message):
        two_sided(formula, BOOK)


def test_the_response_has_to_be_declared():
    with pytest.raises(UnknownVariable, match="'z' is not in the codebook"):
        two_sided("z ~ x", BOOK)
    with pytest.raises(CodebookError, match="codebook= is NoneType"):
        two_sided("y ~ x", None)


def test_an_offset_is_taken_off_the_response():
    sides = two_sided("y ~ x + offset(w) + g", BOOK)
    assert sides.response.names == ("y - w",)
    assert (sides.response.lower, sides.response.upper) == (-2, 10)
    assert sides.terms.names == ("g[T.b]", "g[T.c]", "x")
    assert sides.offset == "offset(w)"
    twice = two_sided("log(y + 1) ~ offset(x - w) + offset(2 * w)", BOOK)
    assert twice.response.names == ("log(y + 1) - (x - w) - 2 * w",)
    assert two_sided("y ~ x", BOOK).offset == ""


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("y ~ offset(g)", "'g' is a category"),
        ("y ~ offset(poly(x, 2))", "several columns"),
        ("y ~ x:offset(w)", "a term of its own"),
        ("y ~ offset(w):x", "a term of its own"),
        ("y ~ offset(nobody)", "'nobody'"),
        ("y ~ log(offset(w))", "stands by itself"),
        ("y ~ offset(w, x)", "stands by itself"),
        ("s ~ offset(w)", "needs dp_lm and a numeric response, and 's' is not a number"),
        ("y ~ x - offset(w)", "subtracts 'offset"),
    ],
)
def test_offsets_that_are_none_are_refused(formula, message):
    with pytest.raises(FormulaError, match=message):
        two_sided(formula, BOOK)


def test_a_number_from_0_to_1_has_two_levels_where_it_is_the_response():
    book = dp.codebook(
        {"a b": (0, 1)}, y=dp.Numeric(0, 1, "died", missing=[9]), k=dp.Integer(0, 1), p=(0, 2)
    )
    levels = dp.Categorical([0, 1], "died", missing=[9], ordered=True)
    assert two_levels(two_sided("y ~ k", book)).joint.codebook == dp.codebook(k=book["k"], y=levels)
    for name, code in (("a b", 'Q("a b")'), ("k", "k")):
        sides = two_levels(two_sided(f"{code} ~ y", book))
        assert sides.response.codebook[name].levels == (0, 1)
        assert sides.response.names == (f"{code}[T.1]",)
    for formula in ("p ~ y", "log(y + 1) ~ k", "y > 0.5 ~ k", "y ~ I(2 * y)"):
        sides = two_sided(formula, book)
        assert two_levels(sides) is sides
