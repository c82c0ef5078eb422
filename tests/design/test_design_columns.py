"""Columns as numbers: what a codebook makes of values far outside."""

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.codebook import Codebook
from dpmodels.design import sql
from dpmodels.design.columns import converted, readable_labels
from dpmodels.frames import open_rows
from dpmodels.frames.protocol import Holds, Kind
from dpmodels.variables import Categorical, Numeric


@pytest.mark.parametrize("distant", [1.7e308, -1.7e308, np.inf, -np.inf])
def test_a_value_far_outside_is_held_before_steps_are_counted_and_tells_nothing(distant):
    """A quotient that overflows would be a warning, so for some an error, of one private row."""
    book = Codebook(y=Numeric(-1, 1, step=1e-3))
    with np.errstate(all="raise"):
        result = converted(book, {"y": np.array([0.0, distant, np.nan])})["y"]
    np.testing.assert_array_equal(result, [0.0, np.copysign(1.0, distant), np.nan])


SEX = Categorical({1: "male", 2: "female", 3: "not stated"}, missing=[-9])


@pytest.mark.parametrize(
    "cells",
    [
        [1, 2, -9, 3, None],
        ["1", "2", "-9", "3", None],
        ["male", "female", "-9", "not stated", None],
        ["male", 2.0, "unknown", "3", "Male"],
        pd.Categorical(["male", "female", None, "not stated", None]),
        pd.Categorical([1, 2, -9, 3, None]),
    ],
    ids=["numbers", "texts", "labels", "mixed", "categories of labels", "categories of numbers"],
)
def test_cells_are_levels_or_their_labels(cells):
    chunk = next(iter(open_rows({"sex": cells}).chunks(("sex",), 10)))
    levels = converted(Codebook(sex=SEX), chunk)["sex"]
    np.testing.assert_array_equal(levels, [0, 1, np.nan, 2, np.nan])


def test_a_label_that_names_another_level_is_not_read_as_a_label():
    swapped = Categorical({"a": "b", "b": "a", "c": "third"})
    assert readable_labels(swapped) == {"third": 2}
    numbers = Categorical({1: "2", 2: "1", 3: "three", 4: "True", 5: "inf"})
    assert readable_labels(numbers) == {"three": 2}
    refused = Categorical(["a", "b"], labels=["x", "refused"], missing=["refused"])
    assert readable_labels(refused) == {"x": 0}


def test_a_database_reads_labels_as_rows_do():
    text = Kind(Holds.ANYTHING, "text")
    sexes = Categorical({"F": "female", "M": "male"})
    case = sql._level_code("sex", sexes, text)
    assert "WHEN 'F' THEN 0 WHEN 'M' THEN 1 WHEN 'female' THEN 0 WHEN 'male' THEN 1 END" in case
    quoted = Categorical({"F": "woman's", "M": "man's"})
    assert sql._level_code("sex", quoted, text) is None


def test_tables_of_labels_and_of_codes_give_the_same_fit():
    codes = pd.DataFrame({"sex": [1, 2, 2, 3, 1, -9] * 20, "x": np.linspace(0, 1, 120)})
    labels = codes.assign(sex=codes.sex.map({1: "male", 2: "female", 3: "not stated"}))
    labels["sex"] = labels.sex.astype("category")
    book = dp.codebook(sex=SEX, x=(0, 1))
    fits = []
    for rows in (codes, labels):
        with dp.simulation(seed=11):
            fits.append(dp.dp_mean("x ~ sex", rows, codebook=book, eps=5.0))
    pd.testing.assert_frame_equal(fits[0].tidy(), fits[1].tidy())
