"""The table of a regression on categories: its cells, and the coded terms of each."""

import itertools

import numpy as np
import pandas as pd
import patsy
import pytest
from folded import each

import dpmodels as dp
from dpmodels.errors import FormulaError
from dpmodels.formula.response import two_sided
from dpmodels.formula.tally import crossed

BOOK = dp.codebook(
    y=["no", "yes"],
    sex=["F", "M"],
    region=["n", "s", "e"],
    child=dp.Integer(2, 5),
    loss=dp.Integer(-3, 0),
    many=dp.Integer(0, 20),
    age=(0, 99),
)
LEVELS = {
    "sex": ["F", "M"],
    "region": ["n", "s", "e"],
    "child": [2, 3, 4, 5],
    "loss": [-3, -2, -1, 0],
}


@each("terms", ["sex + child", "child * sex", "region + loss", "loss:child - 1", "sex * region"])
def test_rows_are_patsys_codes_of_every_combination_of_levels(terms):
    table = crossed(two_sided(f"y ~ {terms}", BOOK))
    codes = [factor.code for factor in table.factors]
    combinations = itertools.product(*(LEVELS[code] for code in codes))
    values = pd.DataFrame(list(combinations), columns=codes)
    for code in {"sex", "region"} & set(codes):
        values[code] = pd.Categorical(values[code], LEVELS[code])
    reference = patsy.dmatrix(terms, values, return_type="dataframe")
    reference = reference.drop(columns="Intercept", errors="ignore")
    assert sorted(table.terms.names) == sorted(reference.columns)
    rows = pd.DataFrame(table.rows, columns=table.terms.names)
    np.testing.assert_allclose(rows[reference.columns], reference, atol=1e-12)
    assert table.cells == 2 * len(values)


def test_terms_without_levels_to_count_are_named():
    assert crossed(two_sided("y ~ sex + age", BOOK)) == "age"
    assert crossed(two_sided("y ~ many", BOOK)) == "many"
    assert crossed(two_sided("age ~ sex", BOOK)) == "age"


def test_too_many_cells_are_refused():
    book = dp.codebook(y=["no", "yes"], **{name: dp.Integer(1, 18) for name in "abc"})
    with pytest.raises(FormulaError, match=r"11,664 combinations of levels"):
        crossed(two_sided("y ~ a + b + c", book)).tally  # noqa: B018
