"""Rows of results side by side: each once, in the order seen, chosen by name, described as text."""

from types import SimpleNamespace as Fit

import numpy as np
import pandas as pd
import pytest
from folded import each
from hypothesis import given
from hypothesis import strategies as st

import dpmodels as dp
from dpmodels.errors import ArgumentError
from dpmodels.results import etable_columns
from dpmodels.results.etable import differences
from dpmodels.results.etable_columns import chosen, factors, merged, worded

PARTS = st.sampled_from(["a", "b", "sex[T.M]", "log(c)", "when[10:30]", 'Q("d:e")'])
TERMS = st.lists(PARTS, min_size=1, max_size=3, unique=True).map(":".join)
COLUMNS = st.lists(st.lists(TERMS | st.just("Intercept"), unique=True, max_size=6), max_size=4)


def kind(term):
    return tuple(sorted(factors(term)))


@pytest.mark.expensive
@given(COLUMNS)
def test_every_term_has_one_row_and_all_its_spellings(columns):
    rows = merged(columns)
    spelt = [name for spellings in rows.values() for name in spellings]
    assert sorted(spelt) == sorted({name for column in columns for name in column})
    assert len({kind(name) for name in rows}) == len(rows)
    assert all(kind(name) == kind(row) for row, spellings in rows.items() for name in spellings)


@pytest.mark.expensive
@given(COLUMNS)
def test_rows_stand_as_first_seen_and_an_intercept_first(columns):
    kinds = list(dict.fromkeys(kind(name) for column in columns for name in column))
    expected = sorted(kinds, key=lambda spelling: spelling != ("Intercept",))
    assert [kind(name) for name in merged(columns)] == expected


@pytest.mark.expensive
@given(COLUMNS, st.data())
def test_keep_orders_and_drop_takes_out(columns, data):
    names = list(merged(columns))
    if len(names) < 2:
        return
    keep = data.draw(st.lists(st.sampled_from(names), min_size=2, unique=True))
    assert chosen(names, keep, ()) == keep
    assert chosen(names, keep, keep[:1]) == keep[1:]
    assert chosen(names, (), keep[:1]) == [name for name in names if name != keep[0]]


def test_a_name_is_itself_and_no_pattern():
    names = ["age", "wage", "sex[T.M]", "age:sex[T.M]"]
    assert chosen(names, ["age"], ()) == ["age"]
    assert chosen(names, ["sex[T.M]"], ()) == ["sex[T.M]"]
    assert chosen(names, ["^age", "sex"], ()) == ["age", "age:sex[T.M]", "sex[T.M]"]
    assert chosen(names, (), ["sex"]) == ["age", "wage"]


@pytest.mark.guarding
@pytest.mark.parametrize(("pattern", "message"), [("educ", "matches no row"), ("(", "regular")])
def test_patterns_that_meet_nothing_are_refused_with_the_rows(pattern, message):
    with pytest.raises(ArgumentError, match=rf"keep=.*{message}.*age, wage"):
        chosen(["age", "wage"], [pattern], ())
    with pytest.raises(ArgumentError, match="leave no row"):
        chosen(["age"], (), ["age"])


def test_colons_in_brackets_and_quotes_part_nothing():
    assert factors('Q("a:b"):when[10:30]') == ('Q("a:b")', "when[10:30]")


def test_words_reach_interactions_levels_and_functions_and_are_put_in_once():
    words = {"age": "wage at age", "wage": "age", "sex": "Sex", "a:b": "both"}
    assert worded("age", words) == "wage at age"
    assert worded("sex[T.M]:log(age)", words) == "Sex: M × log(wage at age)"
    assert worded("a:b", words) == "both"
    assert worded("wages", words) == "wages"
    assert worded("sex[T.M]", {}) == "sex[T.M]"


@each(
    "date, step, level, form, ends",
    [
        (False, None, 0.95, "number", True),
        (False, 1.0, 0.95, "step", True),
        (True, 1.0, 0.95, "date", True),
        (False, None, 0.9, "number", False),
        (False, None, None, "number", False),
    ],
)
def test_quantiles_in_a_column_have_the_form_of_their_variable(date, step, level, form, ends):
    facts = Fit(labels=("u", "v"), factors=("g",), date=date, step=step, measured="x")
    table = {"estimate": [1.0, -20.0], "conf_low": [0.9, -22.0], "conf_high": [1.1, -14.0]}
    fit = Fit(
        _facts=facts, tidy=lambda: pd.DataFrame(table), probs=(0.5,), level=level, request=None
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(etable_columns, "one_column", lambda *words, **named: (words, named))
        (_, kind, measured, part, cells), named = etable_columns._quantiles(fit, 0.95)
    assert (kind, measured, part, named["form"]) == ("quantile", "x", "Quantiles: g", form)
    assert list(cells.index) == ["u, 50%", "v, 50%"]
    assert cells["estimate"].to_list() == table["estimate"]
    assert (np.isfinite(cells[["conf_low", "conf_high"]]) == ends).all(axis=None)
    # A tenth of a quantile, or the quarter of an interval where that is shorter.
    assert cells["spread"].to_list() == pytest.approx([0.1, 2.0] if level is None else [0.05, 2.0])


def column(model, rows, person=None, size=1, **variables):
    """A model of a public number of rows, or of persons of so many rows at most."""
    release = Fit(rows=rows, adjacency=Fit(person=person, design_effect=size))
    return Fit(
        model=model, result=Fit(release=release, call=Fit(codebook=dp.codebook(**variables)))
    )


def test_tables_differ_by_their_public_numbers_of_rows_or_persons():
    columns = [column("(1)", 100), column("(2)", 2500), column("(3)", 100), column("(4)", None)]
    assert differences(columns) == (
        "Different tables, by the public number of rows: (1) and (3) of 100; (2) of 2,500.",
    )
    assert differences(columns[::2]) == ()
    persons = [column("(1)", 100, "id", 5), column("(2)", 40, "id", 5), column("(3)", 90)]
    assert differences(persons) == (
        "Different tables, by the public number of persons: (1) of 20; (2) of 8.",
    )


def test_tables_differ_by_their_declarations():
    first, second, third = (
        column(name, 9, x=bounds, s=levels)
        for name, bounds, levels in (
            ("(1)", (0.5, 1.5), ["a", "b"]),
            ("(2)", (0.5, 2.5), ["a", "b"]),
            ("(3)", ["0", "1"], ["b", "c"]),
        )
    )
    assert differences([first, first]) == ()
    assert differences([first, second]) == (
        "x: declared 0.5 to 1.5 in (1); declared 0.5 to 2.5 in (2).",
    )
    # A number in one and a category in the other is not a difference.
    assert differences([first, third]) == ("s: levels a, b in (1); levels b, c in (3).",)
