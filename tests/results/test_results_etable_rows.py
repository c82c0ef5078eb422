"""Rows of results side by side: each once, in the order seen, chosen by name, described as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmodels.errors import ArgumentError
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
