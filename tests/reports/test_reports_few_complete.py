"""Few complete rows are pointed out by released numbers, with what counts as missing."""

import numpy as np
import pandas as pd
import pytest
from test_reports_groups import ROWS, released

import dpmodels as dp
from dpmodels.privacy import Adjacency
from dpmodels.reports.header import few_complete

NOTE = "Fewer than half of the rows are complete"
BOOK = dp.codebook(x=(0, 9_000), y=(0, 10), g=["a", "b"])


def rows(n_written):
    """2,000 rows, of which some have a number with a separator."""
    at = np.arange(2_000)
    x = pd.Series(1_000 + at % 7_000, dtype=object)
    x[:n_written] = [f"{cell:,}" for cell in x[:n_written]]
    return pd.DataFrame({"x": x, "y": at % 11, "g": np.where(at % 2, "a", "b")})


@pytest.mark.parametrize(
    ("verb", "formula"),
    [
        (dp.dp_mean, "x ~ g"),
        (dp.dp_quantile, "x ~ g"),
        (dp.dp_lm, "y ~ x"),
        (dp.dp_pca, "~ x + y"),
        (dp.dp_cov, "~ x + y"),
        (dp.dp_summary, "~ y + x + g"),
    ],
)
def test_numbers_with_separators_are_pointed_out(verb, formula):
    def note(n_written, **kwargs):
        with dp.simulation(seed=1):
            fit = verb(formula, rows(n_written), codebook=BOOK, eps=9, delta=1e-6, **kwargs)
        return NOTE in fit.summary().as_text().replace("\n ", "")

    assert note(1_600)
    assert not note(200)
    # Rows outside a subset are left out on purpose
    assert not note(1_600, subset="g == 'a'")


def test_the_note_follows_from_released_numbers_alone():
    (note,) = few_complete(released(100), 20.0, 2.0, " in x")
    assert note.startswith(f"{NOTE} in x: numbers with separators")
    assert few_complete(released(100), 49.0, 2.0) == ()
    assert few_complete(released(None, adjacency=ROWS), 20.0, 2.0) == ()
    assert few_complete(released(100), np.nan, 2.0) == ()
    assert few_complete(released(100, subset="x > 1"), 20.0, 2.0) == ()


def test_unused_places_of_persons_are_not_incomplete_rows():
    """Of 20 persons with at most 5 rows each, at least 20 rows are known."""
    persons = Adjacency("replace", 5, "id")
    assert few_complete(released(100, adjacency=persons), 20.0, 2.0) == ()
    assert few_complete(released(100, adjacency=persons), 2.0, 1.0)
