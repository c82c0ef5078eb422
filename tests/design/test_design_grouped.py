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
from dpmodels.design import grouped
from dpmodels.design import rows as design_rows
from dpmodels.design.grouped import as_often
from dpmodels.digest import release_digest

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
        patch.setattr(grouped, "MOST_GROUPS", np.inf)
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
    assert bool(table.passes["groups"]) is ("person" not in form.options)


@given(st.lists(st.integers(0, 2**40), max_size=8))
def test_digits_add_up_to_the_counts(counts):
    rows, times = as_often(np.array(counts, dtype=np.int64))
    assert np.bincount(rows, times, len(counts)).astype(int).tolist() == counts
    assert (np.diff(times) >= 0).all()
    assert {bin(t).count("1") for t in times.tolist()} <= {1}
