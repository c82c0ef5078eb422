"""Rounds that read rows chosen by coins: which rows, how often, and where all are read."""

import math

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.design import private_design
from dpmodels.design.parts import Thinning
from dpmodels.design.rows import requested_of
from dpmodels.mechanisms import Facts, Rounds, Scores
from dpmodels.mechanisms.covariance import rounds
from dpmodels.mechanisms.regression import scores
from dpmodels.models.assumed_rows import DrawnRows, public_part
from dpmodels.noise import secure, seeded
from dpmodels.noise.discrete import NoiseOfSites
from dpmodels.noise.lattice import Lattice
from dpmodels.privacy import ApproxDP, adjacency, protecting
from dpmodels.statistics import Passes, moments
from dpmodels.statistics.passes import WORTH_THINNING
from tests.private_rows import private_regression

BOOK = dp.codebook(x=(-1, 1), y=(-1, 1))
LATTICE = Lattice(12, 2)
WHOLE = 256


class OfTwoSites(NoiseOfSites):
    def answer(self, parts):
        raise AssertionError("no round is answered here")


def table(size, seed=0):
    rng = np.random.default_rng(seed)
    return {"x": rng.uniform(-1, 1, size), "y": rng.uniform(-1, 1, size)}


def passes(data, *, relation="replace", designs=1):
    unbound = private_design("~ .", data, BOOK).among(
        lambda terms: requested_of(terms, adjacency(relation), None)
    )
    return Passes(tuple(unbound.bind(data) for _ in range(designs)), LATTICE)


def faces(size, seed):
    return seeded(seed).words(size // 8 + 1).view(np.uint8)[:size]


def thin(design, heads, entropy):
    return design.of(design.rows.thinned(heads, entropy))


def sums(private):
    return moments(private, LATTICE).cross()


def test_integers_are_those_of_the_rows_whose_coins_say_so():
    data, heads = table(3001), 40
    thinned, size = sums(thin(private_design("~ .", data, BOOK), heads, seeded(3)))
    is_chosen = faces(3001, 3) < heads
    chosen = {name: column[is_chosen] for name, column in data.items()}
    exact, n_rows = sums(private_design("~ .", chosen, BOOK))
    assert size == n_rows == is_chosen.sum()
    assert (thinned == exact).all()


def test_with_the_same_coins_neighbours_differ_in_the_replaced_row_or_not_at_all():
    data, heads, squared = table(12), 100, LATTICE.radius**2
    exact, _ = sums(thin(private_design("~ .", data, BOOK), heads, seeded(5)))
    is_chosen = faces(12, 5) < heads
    assert 0 < is_chosen.sum() < 12
    for at in range(12):
        for corner in ((1.0, -1.0), (np.nan, 0.0)):
            neighbour = {name: column.copy() for name, column in data.items()}
            neighbour["x"][at], neighbour["y"][at] = corner
            moved, _ = sums(thin(private_design("~ .", neighbour, BOOK), heads, seeded(5)))
            distance = np.linalg.norm((moved - exact).astype(float))
            # A row (2**bits, x) has a square of norm at most 2 · 4**bits.
            assert distance <= 2 * math.sqrt(2) * squared
            assert (distance > 0) == is_chosen[at]


def test_positions_are_chosen_alike():
    runs, size, heads = 4000, 64, 16
    coins, counts = Thinning(heads, secure()), np.zeros(size)
    pairs = 0
    for _ in range(runs):
        chosen = coins.of({"x": np.arange(size)})["x"]
        counts[chosen] += 1
        pairs += np.count_nonzero(np.diff(chosen) == 1)
    p = heads / WHOLE
    # 7 standard deviations, 65 comparisons: false alarms below 2e-10.
    assert (abs(counts - runs * p) < 7 * math.sqrt(runs * p * (1 - p))).all()
    expected = runs * (size - 1) * p**2
    assert abs(pairs - expected) < 7 * math.sqrt(expected * (1 + 4 * p))


def test_rows_that_stay_in_memory_are_not_chosen_again():
    design = thin(private_design("~ .", table(5000), BOOK), 64, secure())
    assert (sums(design)[0] != sums(design)[0]).any()
    design.require_passes()
    assert (sums(design)[0] == sums(design)[0]).all()


def test_few_rows_are_all_read_and_no_coin_is_thrown():
    all_rows = passes(table(1000))
    assert all_rows.thinned(1000 / WORTH_THINNING + 1, None) is all_rows
    thinned = all_rows.thinned(1000 / WORTH_THINNING, secure())
    assert thinned.measured(moments).cross()[1] < 500


@pytest.mark.parametrize("words", [{"relation": "add-remove"}, {"designs": 2}])
def test_private_numbers_of_rows_and_several_tables_are_read_whole(words):
    all_rows = passes(table(1000), **words)
    assert all_rows.thinned(10, secure()) is all_rows


def test_joint_rounds_of_sites_persons_and_sides_are_read_whole():
    all_rows = passes(table(1000))
    assert all_rows.thinned(10, OfTwoSites()) is all_rows
    data = table(1000) | {"who": np.arange(1000) // 2}
    neighbours = protecting(adjacency("replace"), 2, "who")
    unbound = private_design("~ x + y", table(1), BOOK).among(
        lambda terms: requested_of(terms, neighbours, None)
    )
    sides = private_design("~ .", table(1000), BOOK).sides(128, secure())
    for design in (unbound.bind(data), *sides):
        assert not design.rows.can_be_thinned


def test_repeated_rows_of_a_plan_are_repeated_less():
    design = private_design("~ .", table(100), BOOK)
    assert sums(design.of(design.rows.standing(64).thinned(32, secure())))[1] == 100 * 8
    terms = design.rows.terms
    rows = DrawnRows(public_part(pd.DataFrame(table(100)), terms), terms)
    drawn = rows.standing(3).thinned(64, secure())
    assert drawn.nrows == 100 * 3 // 4


@pytest.fixture
def sizes(monkeypatch):
    """The numbers of rows that passes read, where 1,024 are enough to look for them."""
    numbers, measured = [], Passes.measured

    def spy(self, *words):
        statistic = measured(self, *words)
        numbers.append(statistic.cross()[1])
        return statistic

    monkeypatch.setattr(Passes, "measured", spy)
    monkeypatch.setattr(rounds, "FEWEST_ROWS", 1024)
    monkeypatch.setattr(rounds, "LARGE_TABLE", 2**14)
    monkeypatch.setattr(scores, "FEWEST_ROWS", 1024)
    return numbers


def released_by_rounds(mechanism=None, size=2**14, spread=0.1):
    mechanism = mechanism or Rounds()
    plan = mechanism.plan(Facts(2, adjacency("replace"), centred=True), ApproxDP(1e6, 1e-6))
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(0, spread, size), "y": rng.normal(0.3, spread, size)}
    design = private_design("~ .", data, BOOK)
    design.require_passes()
    return mechanism.release(mechanism.measure(design, plan), plan, seeded(1)), design


def test_rounds_of_a_smaller_table_read_all_rows(sizes):
    released_by_rounds(size=2**14 - 1)
    assert sizes == [2**14 - 1] * 7


def test_rounds_read_all_rows_once_after_those_that_read_some(sizes):
    _, design = released_by_rounds()
    assert sizes[5:] == [2**14]
    # Kept in memory, they are the same rows in all five; the coins are seeded.
    assert len(set(sizes[:5])) == 1
    assert abs(sizes[0] - 1024) < 200
    # Read once, all rows do not stay in memory.
    assert design.rows.kept.parts is None


def test_one_reading_releases_what_two_do(sizes, monkeypatch):
    once, _ = released_by_rounds()
    monkeypatch.setattr(rounds, "COARSEST", math.inf)
    twice, _ = released_by_rounds()
    assert sizes[-2:] == [2**14] * 2
    assert once.ball.radius == pytest.approx(twice.ball.radius, rel=2.0**-14)
    assert once.ball.shortened == twice.ball.shortened
    assert once.ball.centre.tolist() == twice.ball.centre.tolist()
    unit = twice.ball.radius**2 / once.ball.radius**2
    assert once.second == pytest.approx(unit * twice.second, rel=1e-4, abs=1e-4 * 2**14)
    assert once.total == pytest.approx(twice.total, rel=1e-4, abs=1e-4 * 2**14)
    assert once.count == pytest.approx(twice.count, rel=1e-6)
    assert once.noise.diagonal == pytest.approx(twice.noise.diagonal, rel=1e-4)


@pytest.mark.parametrize("words", [{"COARSEST": 2.0**21}, {"MOST_APART": -1.0}])
def test_coarse_balls_and_long_rows_are_read_twice(sizes, monkeypatch, words):
    for name, value in words.items():
        monkeypatch.setattr(rounds, name, value)
    released_by_rounds()
    assert sizes[5:] == [2**14] * 2


def test_a_radius_below_those_that_may_be_chosen_is_read_again(sizes, monkeypatch):
    smallest = len(rounds.add_noise.FRACTIONS) - 2
    monkeypatch.setattr(rounds, "_smallest", lambda lengths, plan: smallest)
    release, _ = released_by_rounds()
    assert sizes[5:] == [2**14] * 2
    assert release.ball.radius < 1


def test_bought_tails_read_rows_that_stay_in_memory(sizes):
    _, design = released_by_rounds(Rounds(inference=True))
    assert sizes[5:] == [2**14] * (len(sizes) - 5)
    assert len(sizes) > 7
    assert design.rows.kept.parts is not None


def numbers_read_by_scores(sizes, book, formula="y ~ x", **words):
    size, mechanism = 2**14, Scores()
    plan = mechanism.plan(Facts(2, adjacency("replace"), centred=True), ApproxDP(1e6, 1e-6))
    data = table(size) | {"w": np.ones(size)}
    statistic = mechanism.measure(private_regression(formula, data, book, **words), plan)
    mechanism.release(statistic, plan, seeded(1))
    return sizes


def test_scores_read_all_rows_first_and_in_the_last_two_rounds(sizes):
    first, *some, lengths, final = numbers_read_by_scores(sizes, BOOK)
    assert first == lengths == final == 2**14
    assert len(some) == 5
    assert len(set(some)) == 1
    assert abs(some[0] - 1024) < 200


@pytest.mark.parametrize("weights", [None, "w"])
def test_scores_read_all_rows_in_wide_bounds_and_with_weights(sizes, weights):
    """Of first sums that noise hides, and of rows that weigh."""
    bound = 1.0 if weights else 1e6
    book = dp.codebook(x=(-bound, bound), y=(-1, 1), w=(0, 1))
    book = book if weights else book.select(["x", "y"])
    numbers_read_by_scores(sizes, book, weights=weights)
    assert sizes == [2**14] * 8
