"""Rows that come in groups give the integers that single rows give."""

from contextlib import contextmanager

import numpy as np
import pytest
from grouped_rows import GroupedTable
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal
from verb_entry import BOOK, people
from verbs import forms

import dpmodels as dp
from dpmodels.design import rows as design_rows
from dpmodels.design import sql
from dpmodels.design.cells import unbound_cells, unbound_margins
from dpmodels.design.columns import as_often
from dpmodels.design.sql import grouping
from dpmodels.digest import release_digest
from dpmodels.formula.tally import margins
from dpmodels.noise import source
from dpmodels.statistics.counts import margin_counts

STORED = {name: form for name, form in forms("stored").items() if form.verb.name != "dp_survey"}
# Sums of losses in floating point: their mechanism allows for the rounding of any order.
ROUNDED = {"glm", "glm-tuned", "svm"}


@contextmanager
def any_group(monkeypatch):
    """Let all tables that know groups be read by them, whatever their columns."""
    with monkeypatch.context() as patch:
        opened = design_rows.open_rows
        patch.setattr(
            design_rows,
            "open_rows",
            lambda data: data if isinstance(data, GroupedTable) else opened(data),
        )
        patch.setattr(sql, "MOST_GROUPS", np.inf)
        yield


def released(form, rows):
    with dp.simulation(seed=11):
        return form.ask(rows, codebook=BOOK)


@pytest.mark.expensive
@pytest.mark.parametrize("form", STORED.values(), ids=list(STORED))
def test_groups_give_the_release_of_their_rows(form, monkeypatch):
    rows = people(400)
    rows["wage"] = np.round(rows["wage"])
    rows["wage"][::7] = np.nan
    with any_group(monkeypatch):
        table = GroupedTable(rows)
        fit, expected = released(form, table), released(form, rows)
    if form.verb.short + form.verb.suffix in ROUNDED:
        assert_frame_equal(fit.tidy(), expected.tidy(), rtol=1e-9)
    else:
        assert release_digest(fit.release) == release_digest(expected.release)
    # Rows of one person, of a sampling unit, or with places by weight are read one by one.
    design = form.options.get("design")
    by_unit = design is not None and (design.psu or form.verb.short in ("lm", "glm"))
    assert bool(table.passes["groups"]) is not ("person" in form.options or bool(by_unit))


@given(st.lists(st.integers(0, 2**40), max_size=8))
def test_digits_add_up_to_the_counts(counts):
    rows, times = as_often(np.array(counts, dtype=np.int64))
    assert np.bincount(rows, times, len(counts)).astype(int).tolist() == counts
    assert (np.diff(times) >= 0).all()
    assert {bin(t).count("1") for t in times.tolist()} <= {1}


FEW = {"g": ["u", "v"], "k": dp.Integer(0, 9), "d": ("2001-01-01", "2001-12-31")}


@pytest.mark.parametrize(
    ("declared", "is_grouped"),
    [
        (FEW, True),
        ({**FEW, "x": (0, 9)}, False),  # Any number
        ({"x": dp.Numeric(0, 9, step=0.5)}, True),
        ({"x": dp.Integer(0, 2**20)}, False),
        ({"a": dp.Integer(0, 2000), "b": dp.Integer(0, 2000)}, False),
    ],
)
def test_grouping_follows_from_declarations(declared, is_grouped):
    book = dp.codebook(declared)
    for rows in ({name: [] for name in declared}, {name: range(99) for name in declared}):
        assert (grouping(GroupedTable(rows), book, ()) is not None) is is_grouped
    cells = unbound_cells("~ x", book, ()).bind({name: [] for name in declared})
    assert cells.rows.grouped is None


def test_rows_that_coins_split_and_persons_are_read_one_by_one(monkeypatch):
    rows = {"k": [1, 2, 2], "id": ["a", "b", "b"]}
    with any_group(monkeypatch):
        table = GroupedTable(rows)
        unbound = unbound_cells("~ k", dp.codebook(k=FEW["k"]), ())
        assert unbound.bind(table).rows.grouped is not None
        first, _ = unbound.bind(table).sides(128, source())
        assert first.rows.grouped is None
        dp.dp_table("~ k", table, codebook=dp.codebook(k=[1, 2]), eps=1.0, person="id")
    assert not table.passes["groups"]


def test_few_groups_are_read_once(monkeypatch):
    rows = {"k": np.arange(90) % 7, "g": ["u", "v", "w"] * 30}
    book = dp.codebook(k=FEW["k"], g=["u", "v", "w"])
    with any_group(monkeypatch):
        tables = GroupedTable(rows), GroupedTable(rows, parts=1)
        for table, passes in zip(tables, (3, 1), strict=True):
            private = unbound_margins(margins("~ g", book)).bind(table)
            answers = [margin_counts(private).cross()[0] for _ in range(3)]
            assert {tuple(answer) for answer in answers} == {(30, 30, 30, 0)}
            assert table.passes["groups"] == passes
