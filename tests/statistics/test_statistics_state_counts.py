"""Counts of states: one state a person and time, whatever rows there are."""

import itertools

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.mechanisms.chains import QuiltCounts
from dpmodels.models.table import requested_states, states_spec
from dpmodels.statistics.counts import state_counts

BOOK = dp.codebook(activity=["rest", "walk"], minute=dp.Integer(1, 3))
BUDGET = dp.Pufferfish(1.0, dp.markov_chain(["rest", "walk"], stay=0.7))


def exact(rows, book=BOOK):
    way = states_spec(requested_states("~ activity", book, BUDGET, "minute", person="id"))
    (statistic,) = (state_counts(way.private.bind(rows)),)
    numbers, places = statistic.cross()
    assert sum(numbers.tolist()) == places
    return numbers.tolist()


def table(*rows):
    return pd.DataFrame(rows, columns=["id", "minute", "activity"])


def test_each_person_has_one_state_at_a_time():
    rows = table((1, 1, "rest"), (1, 2, "walk"), (2, 1, "walk"))
    assert exact(rows) == [1, 2, 3]


def test_the_first_complete_row_of_both_counts_and_no_other():
    rows = table((1, 1, None), (1, 1, "walk"), (1, 1, "rest"), (1, 2, "rest"))
    # Of persons with more rows than times as many are drawn; here there are more.
    assert sum(exact(rows)) == 3
    rows = table((1, 1, "walk"), (1, 1, "rest"), (1, 1, "rest"))
    assert exact(rows) == [0, 1, 2]
    rows = table((1, 1, None), (1, 1, "walk"), (1, 1, "rest"))
    assert exact(rows) == [0, 1, 2]


def test_times_outside_the_declared_ones_and_rows_of_nobody_count_nothing():
    rows = table((1, 0, "walk"), (1, 4, "walk"), (1, 99, "walk"), (None, 2, "rest"))
    assert exact(rows) == [0, 0, 3]
    # A row of the last time itself is not driven out by one after it.
    rows = table((1, 7, "walk"), (1, 3, "rest"))
    assert exact(rows) == [1, 0, 2]


def test_days_are_times_too():
    book = dp.codebook(activity=["rest", "walk"], minute=dp.Date("2024-01-01", "2024-01-03"))
    rows = table((1, "2024-01-01", "rest"), (1, "2024-01-04", "walk"), (1, "2024-01-03", "walk"))
    assert exact(rows, book) == [1, 1, 1]


@pytest.mark.product
def test_one_state_moves_the_counts_by_two_whatever_else_the_rows_are():
    """All tables of two persons with a row more at one time, all changes of one row's state."""
    cells = [(1, 1), (1, 2), (1, 2), (2, 3)]
    for states in itertools.product(["rest", "walk"], repeat=4):
        rows = [(*cell, state) for cell, state in zip(cells, states, strict=True)]
        values = np.array(exact(table(*rows)))
        for at in range(4):
            turned = [*rows]
            turned[at] = (*cells[at], "walk" if states[at] == "rest" else "rest")
            sizes = np.abs(np.array(exact(table(*turned))) - values)
            assert sizes.sum() <= 2
            assert sizes[-1] == 0


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_chunks_make_no_difference(size, tmp_path):
    rng = np.random.default_rng(2)
    rows = table(
        *zip(
            rng.integers(0, 40, 300).tolist(),
            rng.integers(0, 5, 300).tolist(),
            rng.choice(["rest", "walk", "other"], 300).tolist(),
            strict=True,
        )
    ).drop_duplicates(["id", "minute"])
    inside = rows[rows["minute"].between(1, 3) & rows["activity"].isin(["rest", "walk"])]
    expected = [(inside["activity"] == state).sum() for state in ("rest", "walk")]
    path = tmp_path / "rows.parquet"
    rows.to_parquet(path, row_group_size=size)
    assert exact(path)[:2] == expected


def test_the_mechanism_measures_these():
    way = states_spec(requested_states("~ activity", BOOK, BUDGET, "minute", person="id"))
    plan = QuiltCounts().plan(way.facts, way.request.guarantee)
    private = way.private.bind(table((1, 1, "rest"), (1, 2, "walk")))
    assert QuiltCounts().measure(private, plan).cross()[0].tolist() == [1, 1, 1]
    assert "rest" not in repr(private)


def test_a_time_that_was_read_in_an_earlier_chunk_is_taken():
    first = table((1, 1, "rest"), (2, 2, None))
    second = table((1, 1, "walk"), (2, 2, "walk"), (3, 1, "rest"))
    assert exact([first, second]) == [2, 1, 6]
    assert exact(iter([first, second])) == [2, 1, 6]
