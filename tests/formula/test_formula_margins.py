"""The margins of a formula: a term each, and what none can be made of."""

import pytest

import dpmodels as dp
from dpmodels.errors import FormulaError, UnknownVariable
from dpmodels.formula.tally import margins

BOOK = dp.codebook(
    a=["u", "v"], b=["x", "y", "z"], c=[0, 1], age=(0, 100), day=dp.Date("2001-01-01", "2020-12-31")
)
WIDE = dp.codebook({f"v{i}": list(range(99)) for i in range(30)})


@pytest.mark.parametrize(
    ("formula", "terms"),
    [
        ("~ a*b + b:c", ["a", "b", "a:b", "b:c"]),
        ("~ (a + b + c)**2", ["a", "b", "c", "a:b", "a:c", "b:c"]),
        ("~ c:a + a:c", ["a:c"]),
        ("~ a:a", ["a"]),
        ("~ a*b - a:b", ["a", "b"]),
        ("~ cut(age, [0, 30, 60]):(age > 50)", ["cut(age, [0, 30, 60]):age > 50"]),
    ],
)
def test_a_term_is_a_margin(formula, terms):
    layout = margins(formula, BOOK)
    named = [{layout.factors[i].code for i in term} for term in layout.terms]
    assert named == [set(term.split(":")) for term in terms]
    assert layout.sizes == tuple(len(factor.levels) + 1 for factor in layout.factors)


def test_a_dot_stands_for_the_whole_codebook():
    assert len(margins("~ .**2", WIDE.select(list(WIDE)[:12])).terms) == 12 + 66


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("a ~ b", "left side"),
        ("~ 1", "names no variable"),
        ("~ .**2", "cut it at public"),
        ("~ a:age", "cut it at public breaks"),
        ("~ a:day", "cut it at public days"),
        ("~ a:log(age + 1)", "cut"),
    ],
)
def test_what_is_no_margin_is_refused_with_what_to_write(formula, words):
    with pytest.raises(FormulaError, match=words):
        margins(formula, BOOK)


def test_margins_of_too_many_cells_are_refused():
    with pytest.raises(FormulaError, match="10,000,000,000 cells"):
        margins("~ v1 + v1:v2:v3:v4:v5", WIDE)
    with pytest.raises(FormulaError, match="435 margins of 4,350,000 cells"):
        margins("~ .**2 - .", WIDE)
    with pytest.raises(UnknownVariable):
        margins("~ a:nowhere", BOOK)
