"""Bounds of public rows: widened, and said to be from there wherever they go."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, CodebookError, FrameError

ROWS = pd.DataFrame(
    {
        "visits": [0, 4, 20, 7],
        "whole": [1.0, np.nan, 3.0, np.inf],
        "height": [150.5, 170.0, 190.5, np.nan],
        "change": [-1.5, 0.5, 2.5, 0.0],
        "dummy": [0, 1, 1, 0],
        "sex": ["F", "M", None, "F"],
        "educ": pd.Categorical(["low", "high", "low", "low"], ["low", "high"]),
        "ever": [True, False, True, True],
        "day": pd.to_datetime(["2001-01-01", "2001-01-11", None, "2001-01-05"]),
        "same": [3, 3, 3, 3],
    }
)


@pytest.mark.parametrize("table", [ROWS, pl.from_pandas(ROWS)])
def test_ranges_are_widened_and_levels_listed(table):
    draft = dp.codebook.from_public(table)
    descriptions = {name: values.describe(name) for name, values in draft.items()}
    assert descriptions == {
        "visits": "0 to 22",
        "whole": "0 to 4",
        "height": "146.5 to 194.5",
        "change": "-1.9 to 2.9",
        "dummy": "0 to 1",
        "sex": "F | M",
        "educ": "low | high",
        "ever": "False | True",
        "day": "2000-12-31 to 2001-01-12",
        "same": "?",
    }


def test_where_they_come_from_is_printed_everywhere(tmp_path):
    draft = dp.codebook.from_public(ROWS, widen=0.5).select(["visits", "sex"])
    book = draft.codebook()
    book.save(tmp_path / "cb.json")
    for book_shown in (draft, book, dp.codebook.load(tmp_path / "cb.json")):
        assert repr(book_shown).count("from a public sample") >= 2
    assert "4 rows, ranges widened by 50%" in repr(draft)


def test_it_fills_in_what_a_dictionary_does_not_know():
    fields = [{"name": "visits", "title": "visits to a doctor"}, {"name": "sex"}]
    draft = dp.codebook.draft({"fields": fields})
    joined = draft | dp.codebook.from_public(ROWS[list(draft.unknown)])
    assert joined["visits"].label == "visits to a doctor; from a public sample"
    assert joined.complete(visits=(0, 50))["visits"].label == "visits to a doctor"
    assert joined.complete(sex=["F", "M", "X"])["sex"].label == ""


def test_what_is_no_public_table_is_refused():
    with pytest.raises(FrameError, match="of type str"):
        dp.codebook.from_public("rows.csv")
    with pytest.raises(ArgumentError, match="widen=-1"):
        dp.codebook.from_public(ROWS, widen=-1)
    with pytest.raises(CodebookError, match="rename it"):
        dp.codebook.from_public(pd.DataFrame([[1]]))
