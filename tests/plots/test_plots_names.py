import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmodels.errors import ArgumentError
from dpmodels.plots.style import positions, short_names, thinned


@settings(database=None, deadline=None)
@given(st.lists(st.text("ab", max_size=40), unique=True, max_size=30))
def test_short_names_are_short_and_distinct(names):
    assert len(set(short_names(names, max_length=16))) == len(names)
    assert max(map(len, short_names(names, max_length=16)), default=0) <= 16


@settings(database=None, deadline=None)
@given(st.integers(1, 2000), st.floats(0, 300))
def test_thinned_ticks_fit_and_start_at_the_first(count, room):
    ticks = thinned(count, room)
    assert ticks[0] == 0
    assert len(ticks) <= max(1, room)


def test_a_long_name_loses_its_middle():
    assert short_names(["C(region, Treatment)[T.south]", "age"], max_length=16) == (
        "C(regio...south]",
        "age",
    )


def test_components_are_given_by_name_or_by_position_from_either_end():
    labels = ["PC1", "PC2", "2"]
    assert positions(labels, ["PC2", 0, -1, "2"]) == [1, 0, 2, 2]
    for other in ("PC3", 3, -4):
        with pytest.raises(ArgumentError, match="is not in the table"):
            positions(labels, [other])
