"""How many places the rows of a person take, and that it follows from them alone."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmodels.errors import FrameError
from dpmodels.frames import persons
from dpmodels.frames.persons import SECRET_BYTES, Persons, shuffled

SECRET = bytes(range(SECRET_BYTES))


def read(persons, ids, counted=None, block=5, method="taken"):
    """Places of all rows, read in blocks."""
    places = []
    counted = np.ones(len(ids), bool) if counted is None else counted
    for at in range(0, len(ids), block):
        part = slice(at, at + block)
        result = getattr(persons, method)(ids[part], counted[part])
        n_taken = np.zeros(len(ids[part]), int)
        if result is not None:
            n_taken[result.rows] = result.places
        places.append(n_taken)
    return np.concatenate([np.zeros(0, int), *places])


def taken(ids, places=3, even=False, counted=None, block=5, secret=SECRET):
    persons = Persons(places, secret, even=even)
    read(persons, ids, counted, block, "count")
    persons.again()
    result = read(persons, ids, counted, block)
    persons.require_same()
    return result


def objects(cells):
    return np.fromiter(cells, object, len(cells))


IDS = st.lists(st.sampled_from(["a", "b", "c", "7", 7, None, 1.5]), max_size=40)


@pytest.mark.product
@settings(max_examples=40)
@given(IDS, st.sampled_from([1, 3, 60]), st.booleans(), st.integers(1, 9), st.integers(0, 5))
def test_what_rows_take_follows_from_their_person_alone(ids, places, even, block, seed):
    rng = np.random.default_rng(seed)
    ids, counted = objects(ids), rng.random(len(ids)) < 0.8
    taken_rows = taken(ids, places, even, counted, block)
    assert (taken_rows == taken(ids, places, even, counted, 1000)).all()
    for person in ({"a"}, {"7", 7}, {None}):
        is_other = np.array([cell not in person for cell in ids], bool)
        alone = taken(ids[is_other], places, even, counted[is_other], block)
        assert (taken_rows[is_other] == alone).all()
        added = np.concatenate([ids, objects(list(person) * 3)])
        taken_with_more = taken(
            added, places, even, np.append(counted, [True] * 3 * len(person)), block
        )
        assert (taken_with_more[: len(ids)][is_other] == taken_rows[is_other]).all()
    assert not taken_rows[~counted].any()
    assert not taken_rows[[cell is None for cell in ids]].any()


@pytest.mark.expensive
@given(IDS, st.sampled_from([1, 3, 60]), st.booleans(), st.booleans())
def test_places_are_all_taken_and_no_more(ids, places, even, keep):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(persons, "_MOST_ROWS", 10**9 if keep else 0)
        result = taken(objects(ids), places, even)
    for person in ("a", "b", 1.5):
        taken_of_person = result[[cell == person for cell in ids]]
        assert taken_of_person.sum() == (
            places * bool(len(taken_of_person)) if even else min(len(taken_of_person), places)
        )
        assert np.ptp(taken_of_person) <= 1 if len(taken_of_person) else True


def test_kept_or_drawn_anew_it_is_the_same(monkeypatch):
    ids = objects([*"abcabcaabbcc" * 4])
    taken_rows = taken(ids)
    monkeypatch.setattr(persons, "_MOST_ROWS", 20)
    assert (taken(ids) == taken_rows).all()


@pytest.mark.parametrize("even", [True, False])
def test_no_file_that_changes_gives_a_person_more(even, monkeypatch):
    monkeypatch.setattr(persons, "_MOST_ROWS", 0)
    result = Persons(3, SECRET, even=even)
    first, second = objects([*"aabbbbc"]), objects([*"cccccccaaabbbbbbbbd"])
    read(result, first, method="count")
    result.again()
    actual = read(result, second)
    for person in "abcd":
        assert actual[[cell == person for cell in second]].sum() <= 3
    with pytest.raises(FrameError, match=r"changed between two readings.*Nothing was released"):
        result.require_same()


def test_of_kept_rows_that_change_nothing_is_released():
    persons = Persons(3, SECRET, even=False)
    read(persons, objects([*"aabb"]), method="count")
    for second in (["a", "a", "b", "c"], ["a", "a", "b"], [*"aabbb"], ["a", "a", None, "b"]):
        persons.again()
        read(persons, objects(second))
        with pytest.raises(FrameError, match="changed between two readings"):
            persons.require_same()
    persons.again()
    assert read(persons, objects([*"aabb"])).sum() == 4
    persons.require_same()


@pytest.mark.parametrize(
    "ids", [objects([*"abca", 7, None, "b"]), np.array([1.0, 2.0, np.nan] * 3)]
)
def test_how_rows_are_divided_into_blocks_changes_nothing(ids):
    persons = Persons(1, SECRET, even=False)
    read(persons, ids, method="count", block=3)
    for block in (2, 100, 1):
        persons.again()
        assert (read(persons, ids, block=block) == taken(ids, 1)).all()
        persons.require_same()


def test_rows_that_take_no_place_are_left_out_and_the_others_come_by_their_places():
    ids = objects([*"aabbbbbbbbcaa", None])
    persons = Persons(60, SECRET, even=True)
    read(persons, ids, method="count")
    persons.again()
    result = persons.taken(ids, np.ones(len(ids), bool))
    assert result.places.tolist() == sorted(result.places.tolist())
    assert sorted(result.rows.tolist()) == list(range(13))
    assert result.places.sum() == 3 * 60


def test_rows_that_are_read_once_are_capped():
    persons = Persons(2, SECRET, even=False)
    ids = objects([*"abaacbbaacab"])
    result = read(persons, ids, method="first", block=4)
    assert result.tolist() == [1, 1, 1, 0, 1, 1, 0, 0, 0, 1, 0, 0]
    assert persons.number == 3


def test_one_person_and_all_different():
    assert taken(np.zeros(500), 4).sum() == 4
    assert taken(np.arange(500), 4).sum() == 500
    assert (taken(np.arange(500), 60, True) == 60).all()
    assert taken(np.zeros(500), 60, True).sum() == 60


def test_another_secret_draws_other_rows():
    orders = {tuple(taken(np.zeros(30), secret=bytes([seed]) * SECRET_BYTES)) for seed in range(9)}
    assert len(orders) >= 8


@pytest.mark.parametrize("total", [1, 2, 3, 5, 8, 12, 33, 1000])
def test_a_shuffle_is_a_permutation(total):
    seed = np.uint64(0x9E3779B97F4A7C15) * np.arange(1, 9, dtype=np.uint64)
    places = np.tile(np.arange(total), 8)
    order = shuffled(places, np.full(8 * total, total), np.repeat(seed, total)).reshape(8, total)
    assert (np.sort(order, axis=1) == np.arange(total)).all()


@pytest.mark.parametrize("total", [3, 5, 8, 12])
def test_rows_are_drawn_with_the_same_chance_and_not_with_their_neighbours(total):
    """Chances to 5.2 standard errors, 24 and 66 pairs at most: false alarms below 1e-6 in all.

    Pairs have to be within a quarter of what simple random samples give, which a window of rows
    next to each other, of which half the pairs or more are never drawn together, is far from.
    """
    runs = 20_000
    seeds = np.random.default_rng(7).integers(0, 2**64, runs, dtype=np.uint64)
    rank = [shuffled(np.full(runs, at), np.full(runs, total), seeds) for at in range(total)]
    in_two = np.array(rank) < 2
    chance = 2 / total
    room = 5.2 * math.sqrt(chance * (1 - chance) / runs)
    assert np.abs(in_two.mean(axis=1) - chance).max() < room
    pair = 2 / (total * (total - 1))
    room = 5.2 * math.sqrt(pair / runs) + pair / 4
    for first, second in combinations(range(total), 2):
        assert abs((in_two[first] & in_two[second]).mean() - pair) < room
