"""Entries: one type each, whatever a dictionary says beside it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpmodels as dp
from dpmodels.dictionaries.entry import Entry, entry_of, joined, plain_of, settled
from dpmodels.errors import CodebookError


@pytest.mark.parametrize(
    "variable",
    [
        dp.Numeric(0, 10, "size", "m", 0.5, [99]),
        dp.Integer(-5, 5, "visits", missing=[-9]),
        dp.Date("2001-01-01", "2020-12-31", "enrolment", ["1900-01-01"]),
        dp.Boolean("ever", missing=["dk"]),
        dp.Categorical({1: "low", 2: "high"}, "educ", missing=[9], ordered=True),
    ],
)
def test_every_declared_variable_goes_there_and_back(variable):
    entry = Entry.of(variable)
    assert entry.is_complete
    assert entry.variable("x") == variable
    assert entry_of("x", plain_of("x", entry)) == entry
    assert joined("x", entry, Entry()) == joined("x", Entry(), entry) == settled("x", entry)


def test_labelled_values_outside_a_range_stand_for_missing_ones():
    entry = settled("age", Entry("", 0, 110, levels=(-9, 0, 97), labels=("refused", "baby", "97+")))
    assert entry.variable("age") == dp.Numeric(0, 110, missing=[-9])


def test_a_label_for_each_whole_number_of_a_range_makes_levels():
    entry = settled("q", Entry("numeric", 1, 3, levels=(1, 2, 3), labels=("a", "b", "c")))
    assert entry.variable("q") == dp.Categorical({1: "a", 2: "b", 3: "c"})


def test_a_category_with_a_range_alone_has_its_whole_numbers_as_levels():
    entry = settled("q", Entry("categorical", 1, 4, ordered=True))
    assert entry.variable("q") == dp.Categorical([1, 2, 3, 4], ordered=True)
    assert not settled("q", Entry("categorical", 0, 10**9)).is_complete


def test_a_category_whose_levels_are_outside_its_range_is_refused():
    with pytest.raises(CodebookError, match=r"'q' has two entries.*levels \[1, 2, 9\]"):
        settled("q", Entry("categorical", 1, 3, levels=(1, 2, 9)))


def test_one_labelled_value_is_no_category():
    assert settled("x", Entry("numeric", levels=(97,), labels=("97+",))) == Entry("numeric")


def test_missing_codes_are_no_levels_and_labels_tell_levels_apart():
    entry = settled("x", Entry(levels=(1, 2, 3, 8), labels=("yes", "no", "no", ""), missing=(8,)))
    assert entry.variable("x") == dp.Categorical({1: "yes", 2: "2", 3: "3"}, missing=[8])


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        (Entry("numeric"), Entry("integer", 0, 9), "integer"),
        (Entry("numeric"), Entry("categorical", levels=(1, 2)), "categorical"),
        (Entry("numeric"), Entry("boolean"), "boolean"),
        (Entry(""), Entry("date"), "date"),
        (Entry("boolean"), Entry("categorical", levels=(0, 1)), "categorical"),
    ],
)
def test_of_two_types_that_fit_the_narrower_holds(first, second, kind):
    assert joined("x", first, second).kind == joined("x", second, first).kind == kind


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Entry("numeric"), Entry("categorical")),
        (Entry("numeric"), Entry("categorical", levels=("a", "b"))),
        (Entry("date"), Entry("numeric")),
        (Entry("numeric", 0), Entry("numeric", 1)),
        (Entry("integer", 0, 9), Entry("integer", 0, 10)),
        (Entry(levels=(1, 2), labels=("a", "b")), Entry(levels=(1, 2), labels=("b", "a"))),
        (Entry("numeric", missing=(-9,)), Entry("numeric", missing=(-8,))),
    ],
)
def test_entries_that_disagree_are_refused_both_ways(first, second):
    for pair in ((first, second), (second, first)):
        with pytest.raises(CodebookError, match="variable 'x' has two entries that disagree"):
            joined("x", *pair)


ENDS = st.none() | st.integers(-50, 50)


@settings(max_examples=40)
@given(
    st.sampled_from(["", "numeric", "integer", "categorical", "boolean"]),
    ENDS,
    ENDS,
    st.lists(st.integers(-20, 20) | st.sampled_from("abc"), max_size=5, unique=True),
    st.lists(st.sampled_from([-9, 9, "x"]), max_size=2, unique=True),
)
def test_an_entry_is_refused_or_keeps_what_it_is_when_it_is_settled_again(
    kind, lower, upper, levels, missing
):
    try:
        entry = settled(
            "x", Entry(kind, lower, upper, levels=tuple(levels), missing=tuple(missing))
        )
    except CodebookError:
        assert kind == "categorical" or lower == upper or levels
        return
    assert settled("x", entry) == entry
    assert entry.kind or not entry.levels


def test_of_many_levels_the_first_are_described():
    large = Entry.of(dp.Categorical([f"town {k}" for k in range(400)]))
    assert large.describe("town").startswith("town 0 | town 1 | ")
    assert large.describe("town").endswith("... (400 levels)")
    assert len(large.describe("town")) < 100
