"""Answers as they came: whose, with what weight, in which stratum."""

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, CodebookError, FrameError
from dpmodels.surveys.answers import counted_bits, respondents

BOOK = dp.codebook(drug=["no", "yes"], w=(0, 5), region=["n", "s"], age=(0, 100), loss=(-1, 1))
DRUG = BOOK.select(["drug"])
ROWS = {
    "drug": ["no", "yes", "maybe", None],
    "w": [1.0, 9.0, 0.0, np.nan],
    "region": ["n", "s", "w", None],
}


def test_weights_and_strata_come_with_the_answers():
    who = respondents(ROWS, DRUG, BOOK, "w", {"region": {"s": 30, "n": 10}})
    (chunk,) = who.chunks()
    np.testing.assert_array_equal(chunk.weights, [1.0, 5.0, np.nan, np.nan])
    assert chunk.strata.tolist() == [0, 1, -1, -1]
    assert who.strata == ("n", "s")
    assert who.shares == (0.25, 0.75)


def test_without_them_all_weigh_one_in_one_stratum():
    who = respondents(ROWS, DRUG, BOOK, None, None)
    (chunk,) = who.chunks()
    assert chunk.weights.tolist() == [1.0] * 4
    assert chunk.strata.tolist() == [0] * 4
    assert set(chunk.columns) == {"drug"}


@pytest.mark.parametrize(
    ("weights", "strata", "kind", "message"),
    [
        ("region", None, CodebookError, "weights='region'"),
        ("income", None, CodebookError, "weights='income'"),
        ("loss", None, CodebookError, "0 or more"),
        (None, "age", CodebookError, "strata='age'"),
        (None, "town", CodebookError, "strata='town'"),
        (None, {"town": {"a": 1}}, CodebookError, "strata='town'"),
        (None, 3, ArgumentError, "strata=3"),
        (None, {"region": {"n": 1}}, ArgumentError, "share of each level"),
        (None, {"region": {"n": 1, "s": 0}}, ArgumentError, "above 0"),
        (None, {"region": {"n": 1, "s": "2"}}, ArgumentError, "above 0"),
        (None, {"region": {"n": 1, "s": 1}, "age": {}}, ArgumentError, "expected a variable"),
    ],
)
def test_what_is_no_weight_or_stratum_is_refused(weights, strata, kind, message):
    with pytest.raises(kind, match=message):
        respondents(ROWS, DRUG, BOOK, weights, strata)


def test_a_column_that_is_not_there_is_told_before_an_answer_is_read():
    who = respondents({"drug": ["no"]}, DRUG, BOOK, "w", None)
    with pytest.raises(FrameError, match="'w'"):
        next(who.chunks())


def test_answers_are_counted_with_weights_and_their_squares_over_all_chunks():
    rows = pd.DataFrame(
        {
            "drug": ["no", "yes", "yes", "maybe", "no"],
            "w": [1.0, 2.0, 9.0, 3.0, np.nan],
            "region": ["n", "s", "s", "n", "n"],
        }
    )
    chunks = [rows[:2], rows[2:]]
    who = respondents(chunks, DRUG, BOOK, "w", {"region": {"n": 1, "s": 1}})
    counted = counted_bits(who, ["drug"])
    np.testing.assert_array_equal(counted.values, [[1, 0], [0, 2]])
    np.testing.assert_array_equal(counted.weights, [[1, 0], [0, 7]])
    np.testing.assert_array_equal(counted.squares, [[1, 0], [0, 29]])
    assert (counted.complete, counted.incomplete) == (3, 2)
    without = counted_bits(respondents(chunks, DRUG, BOOK, None, None), ["drug"])
    np.testing.assert_array_equal(without.values, [[2, 2]])
    np.testing.assert_array_equal(without.squares, without.values)
