"""Wildcards and what is taken off: names of the codebook alone, and nothing that is not there."""

import pytest

import dpmodels as dp
from dpmodels.errors import FormulaError
from dpmodels.formula import design
from dpmodels.formula.response import two_sided
from dpmodels.formula.sides import parse_sides

BOOK = dp.codebook(
    {"inc wage": (0, 1), "a.b": (0, 1)},
    inc_a=(0, 1),
    inc_b=(0, 1),
    age=(0, 100),
    sex=["F", "M"],
)


@pytest.mark.parametrize(
    ("formula", "names"),
    [
        ('~ starts_with("inc_")', ("inc_a", "inc_b")),
        ("~ starts_with('inc') - inc_a", ('Q("inc wage")', "inc_b")),
        ("~ ends_with('_b') * sex", ("sex[T.M]", "inc_b", "inc_b:sex[T.M]")),
        ("~ contains('.')", ('Q("a.b")',)),
        ("~ . - starts_with('inc') - sex", ('Q("a.b")', "age")),
        ("~ starts_with('i'):age", ('Q("inc wage"):age', "inc_a:age", "inc_b:age")),
    ],
)
def test_wildcards_stand_for_names(formula, names):
    assert design(formula, BOOK).names == names


def test_a_wildcard_leaves_out_the_response_as_the_dot_does():
    assert two_sided("inc_a ~ starts_with('inc_')", BOOK).terms.names == ("inc_b",)
    sides = parse_sides("starts_with('inc_') ~ sex", BOOK)
    assert [value.code for value in sides.described] == ["inc_a", "inc_b"]


@pytest.mark.parametrize("text", ["starts_with('x')", "contains('INC')", "ends_with('sex ')"])
def test_a_wildcard_for_nothing_is_refused(text):
    with pytest.raises(FormulaError, match="matches no remaining variable"):
        design(f"~ age + {text}", BOOK)


@pytest.mark.parametrize(
    ("formula", "removed"),
    [
        ("~ age - age.mean()", r"age\.mean\(\)"),
        ("~ age - sex", "'sex'"),
        ("~ age - nobody", "'nobody'"),
        ("~ age + sex - age:sex", "'age:sex'"),
        ("~ age - sex + sex", "'sex'"),
        ("~ age + (sex - age)", "'age'"),
        ("~ . - age - age", "'age'"),
        ("~ age + log(age) - log(age)", r"log\(age\)"),
        ("~ age + age.mean() - age.mean()", r"age\.mean"),
        ("~ age + nobody - nobody", "'nobody'"),
    ],
)
def test_what_is_taken_off_is_there_and_of_the_grammar(formula, removed):
    for way in (design, parse_sides):
        with pytest.raises(FormulaError, match=removed):
            way(formula, BOOK)
    with pytest.raises(FormulaError, match=removed):
        two_sided(f"inc_a {formula}", BOOK)


@pytest.mark.parametrize(
    "formula", ["~ age * sex - age:sex", "~ age - 1", "~ 0 + age - 1", "~ age - 0", "~ . - sex"]
)
def test_what_is_there_is_taken_off(formula):
    assert "age" in design(formula, BOOK).names


def test_percent_in_is_read_outside_texts_alone():
    book = dp.codebook(x=["%in%", "b", "c"], y=(0, 1))
    public = design("~ x %in% c('%in%', \"b\") + (y %in% 1) + I(x == '%in%')", book)
    assert [name.split("[T")[0] for name in public.names] == [
        "x in c('%in%', \"b\")",
        "y in 1",
        "I(x == '%in%')",
    ]
