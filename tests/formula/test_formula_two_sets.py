"""Formulas of two sets of columns."""

import pytest

import dpmodels as dp
from dpmodels.errors import CodebookError, FormulaError
from dpmodels.formula.response import two_sets

BOOK = dp.codebook(a=(0, 1), b=(0, 2), c=(0, 3), g=["u", "v", "w"])


def test_each_side_is_coded_by_itself_and_the_left_comes_first():
    sets = two_sets("b + a ~ c + g", BOOK)
    assert sets.left.names == ("b", "a")
    assert sets.joint.names == sets.left.names + sets.right.names
    assert set(sets.joint.codebook) == {"a", "b", "c", "g"}
    assert sets.joint.upper[:2].tolist() == [2, 1]
    assert two_sets("a + b ~ .", BOOK).right.names == ("g[T.v]", "g[T.w]", "c")


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("~ a + b", "expected columns on both sides"),
        ("a ~ 1", "expected columns on both sides"),
        ("a ~ b - 1", "removes the constant"),
        ("a + b ~ b + c", "'b' is on both sides"),
        ("a ~ nope", "nope"),
    ],
)
def test_refusals_say_what_to_write(formula, words):
    with pytest.raises((FormulaError, CodebookError), match=words):
        two_sets(formula, BOOK)
