"""Rows that stand several times are counted as a table of as many."""

import numpy as np
import pandas as pd
import pytest
from verbs import forms

import dpmodels as dp
from dpmodels.models.assumed_rows import assumed_rows
from dpmodels.planning.noise_curve import BLOCK, Standing, World
from dpmodels.privacy import adjacency

BOOK = dp.codebook(age=(0, 8), wage=(0, 8), sex=["a", "b"], week=dp.Integer(1, 4))
ROWS = pd.DataFrame(
    {
        "age": np.linspace(0, 8, 60),
        "wage": np.linspace(0, 8, 60) ** 2 % 8,
        "sex": ["a", "b", "a"] * 20,
        "week": [1.0, 2.0, 3.0, 4.0] * 15,
    }
)
TIMES = 5
CASES = forms("standing")


def numbers(fit):
    return fit.tidy().select_dtypes("number").to_numpy()


@pytest.mark.expensive
@pytest.mark.parametrize("name", CASES)
def test_what_is_released_is_that_of_the_table_written_out(name):
    standing = Standing(("",), (ROWS,), times=TIMES)
    written = pd.concat([ROWS] * TIMES, ignore_index=True)
    results = []
    for data in (standing, written):
        with dp.simulation(seed=7):
            results.append(numbers(CASES[name].ask(data, codebook=BOOK, delta=1e-6)))
    # Sums of losses are rounded, all others are exact.
    assert results[0] == pytest.approx(results[1], rel=1e-9, abs=1e-12, nan_ok=True)


def test_rows_of_which_some_do_not_count_stand_as_often():
    standing = Standing(("",), (ROWS.assign(age=ROWS["age"].where(ROWS["week"] < 4)),), times=1_000)
    with dp.simulation(seed=1):
        fit = dp.dp_table("~ sex", standing, codebook=BOOK, eps=1e6, subset="age > 2")
    n_rows = int(((ROWS["age"] > 2) & (ROWS["week"] < 4)).sum())
    assert (fit.nobs, fit.ncomplete) == (60_000, 1_000 * n_rows)


def test_a_world_has_about_the_rows_that_are_asked_for():
    for rows in (1, 999, BLOCK, BLOCK + 1, 10**6):
        world = World(assumed_rows(BOOK), BOOK, adjacency("replace"), rows, None)
        (frame,), times = world.terms().parties.data, world.terms().parties.times
        assert rows <= times * len(frame) < rows * (1 + 1e-3) + times
        assert len(frame) <= BLOCK
    few = World(assumed_rows(BOOK, ROWS), BOOK, adjacency("replace"), 150, None).terms().parties
    assert (few.times, len(few.data[0])) == (3, 50)
