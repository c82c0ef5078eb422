"""What was asked: one value, made in one place, compared word by word."""

from dataclasses import replace

import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError, FrameError
from dpmodels.privacy import adjacency
from dpmodels.request import Request, difference, requested

BOOK = dp.codebook(a=(0, 1), g=["u", "v"])
ONE = requested("pca", "~ a", BOOK, 1.0, 1e-6, None, "replace", ncomp=2, scale=None)


def test_plain_values_are_read_back():
    assert Request.of(ONE.plain()) == ONE
    assert difference(ONE.plain(), ONE.plain()) == ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"verb": "cov"}, "verb is cov and not pca"),
        ({"formula": "~ g"}, "formula is ~ g and not ~ a"),
        ({"codebook": dp.codebook(a=(0, 2), g=["u", "v"])}, "codebook"),
        ({"options": {"ncomp": 3, "scale": None}}, "options ncomp is 3 and not 2"),
        ({"options": {"scale": None}}, "options ncomp is stated by one of them only"),
        ({"guarantee": dp.ZCDP(1.0)}, "guarantee is"),
        ({"adjacency": adjacency("add-remove")}, "adjacency is add-remove and not replace"),
    ],
)
def test_the_word_that_differs_is_named(change, message):
    assert message in difference(ONE.plain(), replace(ONE, **change).plain())


def test_a_ledger_keeps_a_digest_in_place_of_declarations():
    result = ONE.about("gauss")
    assert (result.verb, result.formula, result.mechanism) == ("dp_pca", "~ a", "gauss")
    assert result.codebook != replace(ONE, codebook=dp.codebook(a=(0, 2))).about("gauss").codebook
    assert len(result.codebook) == 64


def test_no_question_is_made_without_a_guarantee_or_neighbours():
    with pytest.raises(BudgetError):
        requested("pca", "~ a", BOOK, None, 0.0, None, "replace")
    with pytest.raises(ArgumentError):
        requested("pca", "~ a", BOOK, 1.0, 0.0, None, "someone")


@pytest.mark.parametrize("word", ["verb", "formula", "adjacency", "guarantee"])
def test_values_of_another_shape_are_refused(word):
    with pytest.raises(FrameError):
        Request.of({**ONE.plain(), word: 3})
