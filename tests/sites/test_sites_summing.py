import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmodels.sites.packing import coalition
from dpmodels.sites.summing import add, from_words, negative, to_words


@st.composite
def vectors(draw):
    words = draw(st.integers(1, 3))
    size, sites = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    half = 2 ** (64 * words - 1)
    numbers = st.integers(-half, half - 1)
    return words, draw(
        st.lists(st.lists(numbers, min_size=size, max_size=size), min_size=sites, max_size=sites)
    )


@settings(max_examples=60, deadline=None)
@given(vectors())
def test_sums_are_those_of_integers_modulo_the_modulus(case):
    words, lists = case
    total = to_words(np.array(lists[0], dtype=object), words)
    for value in lists[1:]:
        add(total, to_words(np.array(value, dtype=object), words))
    modulus = 2 ** (64 * words)
    expected = [sum(column) % modulus for column in zip(*lists, strict=True)]
    assert [number % modulus for number in from_words(total).tolist()] == expected


@settings(max_examples=60, deadline=None)
@given(vectors())
def test_a_vector_and_its_negative_cancel_and_come_back(case):
    words, lists = case
    integers = np.array(lists[0], dtype=object)
    reduced = to_words(integers, words)
    assert from_words(reduced).tolist() == lists[0]
    total = negative(reduced)
    add(total, reduced)
    assert not total.any()


@pytest.mark.parametrize(
    ("colluders", "who"),
    [
        (0, "the aggregator, but not against sites"),
        (1, "the aggregator with one of the sites"),
        (3, "the aggregator with up to 3 of the sites"),
    ],
)
def test_who_may_combine_what_they_know_is_named(colluders, who):
    assert coalition(colluders).startswith(who)
