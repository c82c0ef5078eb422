"""Labels are made once, and what is done to those of one table is done to no other."""

import numpy as np

import dpmodels as dp
from dpmodels.results.call import TableCall

BOOK = dp.codebook(wage=(0, 50), age=(0, 100), sex=["F", "M"], region=["n", "e", "s"])
ROWS = {
    "wage": [20.0, 30.0, 10.0] * 20,
    "age": [40, 50, 60] * 20,
    "sex": ["F", "M", "F"] * 20,
    "region": ["n", "e", "s"] * 20,
}


def test_renamed_groups_are_the_users_own():
    fit = dp.dp_mean("wage ~ sex + region", ROWS, codebook=BOOK, eps=1.0)
    assert fit.params.index.is_(fit.counts.index)
    params = fit.params
    params.index.names = ["a", "b"]
    assert list(fit.params.index.names) == ["sex", "region"]
    alone = dp.dp_mean("wage ~ sex", ROWS, codebook=BOOK, eps=1.0)
    params = alone.params
    params.index.name = "a"
    assert alone.params.index.name == "sex"


def test_equal_levels_of_other_types_are_other_labels():
    tables = [TableCall(("f",), (levels,)) for levels in ((1, 2), (True, 2), (1.0, 2))]
    assert [type(table.index[0]) for table in tables] == [int, bool, float]


def test_a_changed_matrix_is_the_users_own():
    fit = dp.dp_cov("~ wage + age", ROWS, codebook=BOOK, eps=1.0, delta=1e-6)
    matrix, before = fit.cov, fit.cov.to_numpy()
    matrix[:] = 0.0
    matrix.coords["variable"].attrs["unit"] = "of the user"
    matrix["variable"] = ["a", "b"]
    assert (fit.cov.to_numpy() == before).all()
    assert np.array_equal(fit.cov["variable"], ["wage", "age"])
    assert not fit.cov.coords["variable"].attrs
    assert not fit.cov_released.coords["variable"].attrs
