"""Counts of margins: those of a plain count, with a level for what is missing."""

from itertools import product

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design.cells import unbound_margins
from dpmodels.errors import PrivacyError
from dpmodels.formula.tally import margins
from dpmodels.statistics.counts import margin_counts

BOOK = dp.codebook(sex=["F", "M"], age=(0, 100), g=[1, 2, 3])
FORMULA = "~ sex:cut(age, [0, 30, 60]) + cut(age, [0, 30, 60]):g + sex"


def test_counts_are_those_of_every_row_with_its_missing_levels():
    rng = np.random.default_rng(0)
    rows = {
        "sex": rng.choice(["F", "M", "?"], 500),
        "age": np.where(rng.random(500) < 0.1, np.nan, rng.uniform(0, 90, 500)),
        "g": rng.choice([1, 2, 3, 9], 500),
    }
    private = unbound_margins(margins(FORMULA, BOOK)).bind(rows)
    exact, n_rows = margin_counts(private).cross()
    sex = [{"F": 0, "M": 1}.get(row, 2) for row in rows["sex"]]
    age = [2 if not row <= 60 else int(row > 30) for row in rows["age"]]
    g = [int(row) - 1 if row < 9 else 3 for row in rows["g"]]
    expected = [
        sum(pair == cell for pair in zip(left, right, strict=True))
        for left, right, shape in ((sex, age, (3, 3)), (age, g, (3, 4)))
        for cell in product(*map(range, shape))
    ]
    assert exact.tolist() == expected
    assert n_rows == 500


def test_rows_of_margins_show_nothing_and_are_not_copied():
    private = unbound_margins(margins(FORMULA, BOOK)).bind({"sex": ["F"], "age": [3], "g": [1]})
    assert "rows not shown" in repr(private)
    with pytest.raises(PrivacyError):
        private.__reduce__()
