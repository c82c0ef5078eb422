"""Squares of persons' sums: exact, held after the sum, moved by a person as by one row."""

from functools import partial

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design.private import unbound_design
from dpmodels.design.rows import requested_of
from dpmodels.formula import design as formula_design
from dpmodels.noise.lattice import Lattice
from dpmodels.privacy import Adjacency
from dpmodels.statistics import passes as counted
from dpmodels.statistics.passes import person_squares

NAMES = ["a", "b"]
BOOK = dp.codebook.uniform(NAMES, (-1, 1))
LATTICE, FINER = Lattice(20, 2), Lattice(16, 2)
TURN = np.array([[3.0, 1.0], [-0.5, 2.0]])
RNG = np.random.default_rng(4)


def squares(rows, whose, unit="mean", relation="replace", finer=FINER, vectors=None):
    """Of vectors four times as long as a row, at the longest."""
    neighbours = Adjacency(relation, unit, "id")
    design = unbound_design(formula_design("~ a + b", BOOK))
    bound_design = design.among(partial(requested_of, neighbours=neighbours, subset=None))
    columns = dict(zip([*NAMES, "id"], [*np.reshape(rows, (-1, 2)).T, whose], strict=True))

    def turned(block):
        return TURN @ block[1:] / LATTICE.steps

    places = neighbours.places
    return person_squares(bound_design.bind(columns), LATTICE, vectors or turned, finer, places)


def some(count, size=0.1, seed=4):
    return np.random.default_rng(seed).uniform(-size, size, (count, 2))


@pytest.mark.parametrize("unit", ["mean", 5])
def test_a_person_adds_the_square_of_the_sum_of_its_rows(unit):
    rows, whose = some(600), np.repeat(np.arange(200), 3)
    exact, places = squares(rows, whose, unit)
    scores = rows / np.sqrt(2) @ TURN.T
    sums = scores.reshape(200, 3, 2).sum(axis=1)
    expected = sums / (3 if unit == "mean" else 5)
    result = exact.astype(float) / FINER.steps**2
    assert result == pytest.approx(expected.T @ expected, rel=1e-3, abs=1e-4)
    assert places == 200 * (60 if unit == "mean" else 5)
    assert all(isinstance(value, int) for value in exact.ravel())


def test_the_same_integers_in_any_order_and_beside_any_others():
    rows, whose = some(20_000, 1.0), RNG.integers(0, 5_000, 20_000)
    total, _ = squares(rows, whose, 60)
    order = RNG.permutation(len(rows))
    assert (squares(rows[order], whose[order], 60)[0] == total).all()
    assert (squares(rows, [f"p{value}" for value in whose], 60)[0] == total).all()
    half = whose < 2_500
    parts = [squares(rows[value], whose[value], 60)[0] for value in (half, ~half)]
    assert (sum(parts) == total).all()


@pytest.mark.parametrize("unit", ["mean", 1, 4, 1000])
@pytest.mark.parametrize("size", [0.3, 1e9])
def test_a_person_is_never_longer_than_the_radius(unit, size):
    rows = size * np.array([[1.0, 1.0], [1.0, -1.0], [0.0, 1.0], [-1.0, -1.0]])
    for count in (1, 2, 7, 90):
        exact, _ = squares(rows.repeat(count, axis=0), np.zeros(4 * count), unit)
        assert np.trace(exact) <= 4**FINER.bits


def furthest(unit, relation):
    """How far persons are apart whose rows all change, by the length of one row's square."""
    alternatives, whose = some(30, 0.2), np.repeat(np.arange(10), 3)
    corners = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 0.2], [0.1, -0.1]])
    tables = [np.zeros((0, 2))]
    tables += [np.repeat(corner[None], count, axis=0) for corner in corners for count in (1, 3, 8)]
    tables += [corners, corners[:2]]
    results = []
    for rows in tables:
        ids = np.concatenate([whose, np.full(len(rows), 10)])
        exact, _ = squares(np.vstack([alternatives, rows]), ids, unit, relation)
        results.append(exact.astype(float))
    pairs = [(a, b) for a in results for b in (results if relation == "replace" else results[:1])]
    return max(np.sqrt(((a - b) ** 2).sum()) for a, b in pairs) / FINER.radius**2


@pytest.mark.parametrize("unit", ["mean", 3, 8])
@pytest.mark.parametrize(("relation", "bound"), [("replace", np.sqrt(2)), ("add-remove", 1.0)])
def test_persons_are_as_far_apart_as_two_rows(unit, relation, bound):
    result = furthest(unit, relation)
    assert result <= bound * (1 + 1e-12)
    assert result > 0.9 * bound


def test_rows_held_before_the_sum_and_not_after_it_show(monkeypatch):
    """The planted fault: each row is held, and what its person's add up to is not."""

    def held(rows):
        rows /= np.maximum(np.linalg.norm(rows, axis=0), 1)
        return original(rows * 8)

    def unheld(rows, lattice):
        rows[:] = np.rint(rows * lattice.steps)

    original = counted._to_integers
    monkeypatch.setattr(counted, "_to_integers", held)
    assert furthest(8, "replace") <= np.sqrt(2)
    monkeypatch.setattr(counted, "on_lattice", unheld)
    assert furthest(8, "replace") > 10


def test_rows_of_nobody_and_incomplete_rows_add_nothing():
    rows, whose = some(60), np.repeat(np.arange(20.0), 3)
    longer = np.vstack([rows, some(9, 1.0), np.full((3, 2), np.nan)])
    ids = np.concatenate([whose, np.full(9, np.nan), [0.0, 1.0, 90.0]])
    assert (squares(longer, ids, 4)[0] == squares(rows, whose, 4)[0]).all()
    assert not squares(np.zeros((0, 2)), [], 4)[0].any()


def test_what_is_no_number_or_without_end_is_held_too():
    ends = np.array([np.nan, np.inf, -np.inf, 1e308])

    def wild(block):
        return np.vstack([ends, ends[::-1]])[:, : block.shape[1]]

    exact, _ = squares(some(4), [0, 0, 1, 2], 4, relation="add-remove", vectors=wild)
    assert 0 < np.trace(exact) <= 3 * 4**FINER.bits


def test_many_places_do_not_overflow():
    """As many rows as a person may have at the most, as long as they can be, in one direction."""
    count = 2**16
    exact, _ = squares(
        np.ones((count, 2)), np.zeros(count), count, vectors=lambda block: block[1:] * 1e9
    )
    assert 0.99 * 4**FINER.bits < np.trace(exact) <= 4**FINER.bits
