"""Rows parted by coins: the sides make up the whole, and persons stay together."""

import copy
import math

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design.parts import Coins
from dpmodels.design.rows import requested_of
from dpmodels.errors import PrivacyError
from dpmodels.noise import secure, seeded
from dpmodels.noise.lattice import Lattice
from dpmodels.privacy import adjacency, protecting
from dpmodels.statistics import moments
from tests.private_rows import private_regression

BOOK = dp.codebook(x=(-1, 1), y=(0, 1))
LATTICE = Lattice(12, 2)


def rows(size, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "x": rng.uniform(-1, 1, size),
        "y": rng.integers(0, 2, size),
        "who": rng.integers(0, size // 4, size),
    }


def sums(design):
    return moments(design, LATTICE).cross()


def persons(data):
    neighbours = protecting(adjacency("replace"), 8, "who")
    unbound = private_regression("y ~ x", data, BOOK).among(
        lambda terms: requested_of(terms, neighbours, None)
    )
    return unbound.bind(data)


@pytest.mark.parametrize("whose", [False, True])
def test_the_sides_add_up_to_the_whole_and_are_read_alike_again(whose):
    data = rows(3000)
    design = persons(data) if whose else private_regression("y ~ x", data, BOOK)
    fitted, second_side = design.sides(192, secure())
    (first, count), (two, second) = sums(fitted), sums(second_side)
    counts, every = sums(design)
    assert count == second == every
    assert (first + two == counts).all()
    assert (sums(fitted)[0] == first).all()
    assert first[0, 0] > two[0, 0] > 0


def test_rows_of_a_person_stand_on_one_side():
    size = 4000
    who = np.arange(size) // 4
    for number in range(20):
        # One person's rows alone are complete: its four are here or there.
        data = {"x": np.where(who == number, 0.5, np.nan), "y": np.zeros(size), "who": who}
        fitted, _ = persons(data).sides(128, secure())
        complete = int(sums(fitted)[0][0, 0]) / LATTICE.radius**2
        assert complete in (0, 4)


def test_a_coin_falls_with_its_chance_by_itself_and_stays():
    coins, size = Coins(192, secure()), 2**16
    first = coins.of(np.arange(size))
    # 6 standard deviations: false alarms 2e-9 each.
    assert abs(first.mean() - 0.75) < 6 * math.sqrt(0.75 * 0.25 / size)
    assert abs((first[1:] & first[:-1]).mean() - 0.75**2) < 6 * math.sqrt(0.25 / size)
    assert (coins.of(np.arange(size // 2)) == first[: size // 2]).all()


def test_a_coin_depends_on_its_place_and_not_on_the_blocks():
    coins, second = Coins(100, seeded(1)), Coins(100, seeded(1))
    parts = [second.of(np.arange(at, at + 50)) for at in range(0, 5000, 50)]
    assert (coins.of(np.arange(5000))[:50] == parts[0]).all()
    assert (np.concatenate(parts) == second.of(np.arange(5000))).all()


def test_a_coin_that_falls_on_one_side_only_is_none():
    assert Coins(256, seeded(1)).of(np.arange(999)).all()
    assert not Coins(0, seeded(1)).of(np.arange(999)).any()


def test_nothing_of_the_coins_is_shown_or_copied():
    coins = Coins(128, seeded(1))
    coins.of(np.arange(64))
    assert repr(coins) == "<Coins, not shown>"
    with pytest.raises(PrivacyError):
        copy.copy(coins)
