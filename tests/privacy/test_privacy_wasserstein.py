"""The calculator: against couplings by linear programming, and never above group privacy."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

import dpmodels as dp
from dpmodels.errors import ArgumentError
from dpmodels.privacy import wasserstein_sensitivity


def by_couplings(first, second):
    """The least w for which mass can be matched within it: a flow for each w that could be."""
    distances = sorted({abs(a - b) for a in first[0] for b in second[0]})
    for distance in distances:
        is_near = np.array([[abs(a - b) <= distance for b in second[0]] for a in first[0]])
        cells = np.argwhere(is_near)
        rows = [(cells[:, 0] == at).astype(float) for at in range(len(first[0]))]
        columns = [(cells[:, 1] == at).astype(float) for at in range(len(second[0]))]
        mass = [*map(float, first[1]), *map(float, second[1])]
        program = linprog(np.zeros(len(cells)), A_eq=np.array([*rows, *columns]), b_eq=mass)
        if program.status == 0:
            return distance
    raise AssertionError


@pytest.mark.product
def test_it_is_the_least_distance_of_any_coupling():
    rng = np.random.default_rng(6)
    for _ in range(25):
        laws = {}
        for secret in ("s", "t"):
            parts = rng.multinomial(12, np.ones(4) / 4)
            chances = [Fraction(int(part), 12) for part in parts]
            laws[secret] = (sorted(rng.choice(20, 4, replace=False).tolist()), chances)
        laws_by_secret = [
            ([v for v, p in zip(*law, strict=True) if p], [p for p in law[1] if p])
            for law in laws.values()
        ]
        assert wasserstein_sensitivity(laws) == by_couplings(*laws_by_secret)


def test_equal_levels_are_told_from_near_ones():
    third = Fraction(1, 3)
    laws = {"s": ([0, 1, 2], [third] * 3), "t": ([1, 2, 3], [third] * 3)}
    assert wasserstein_sensitivity(laws) == 1
    slip = third + Fraction(1, 10**40)
    laws["t"] = ([1, 2, 3], [slip, third, 1 - slip - third])
    assert wasserstein_sensitivity(laws) == 1
    # Where a level of s comes a hair before that of t the far values meet.
    laws["s"] = ([0, 1, 9], [third] * 3)
    assert wasserstein_sensitivity(laws) == 7


@pytest.mark.parametrize("stay", [0.5, 0.8, 0.95])
def test_counts_on_a_chain_never_ask_for_more_than_group_privacy(stay):
    steps = 14
    chain = dp.markov_chain([0, 1], [[stay, 1 - stay], [1 - stay, stay]], initial="stationary")
    laws = chain.count_laws(steps, 1)
    pairs = [((time, 0), (time, 1)) for time in range(1, steps + 1)]
    result = wasserstein_sensitivity(laws, pairs)
    assert 1 <= result <= steps
    assert (result == 1) == (stay == 0.5)


def test_the_mechanism_keeps_its_promise_on_a_short_chain():
    steps, eps = 6, 1.0
    chain = dp.markov_chain([0, 1], [[0.8, 0.2], [0.3, 0.7]], initial="stationary")
    laws = chain.count_laws(steps, 1)
    pairs = [((time, 0), (time, 1)) for time in range(1, steps + 1)]
    scale = wasserstein_sensitivity(laws, pairs) / eps
    points = np.linspace(-3, steps + 3, 60)
    for first, second in itertools.chain(pairs, (pair[::-1] for pair in pairs)):
        joint_laws = []
        for secret in (first, second):
            values, chances = laws[secret]
            noise = np.exp(-np.abs(points[:, None] - np.array(values)) / scale)
            joint_laws.append(noise @ np.array(list(map(float, chances))))
        assert np.log(joint_laws[0] / joint_laws[1]).max() <= eps * (1 + 1e-12)


@pytest.mark.parametrize(
    ("laws", "message"),
    [
        ({}, "expected a dict"),
        ([([0], [1])], "expected a dict"),
        ({"s": ([0, 1], [0.5, 0.6])}, "secret 's' has no valid distribution"),
        ({"s": ([0, 1], [0, 0])}, "leave out secrets of probability 0"),
        ({"s": ([0, 1], [1.5, -0.5])}, "has no valid distribution"),
        ({"s": ([0, 1], [1])}, "values and as many nonnegative probabilities"),
        ({"s": (["a"], [1])}, "has no valid distribution"),
        ({"s": ([float("inf")], [1])}, "has no valid distribution"),
        ({"s": 3}, "has no valid distribution"),
    ],
)
def test_secrets_without_a_law_are_refused(laws, message):
    with pytest.raises(ArgumentError, match=message):
        wasserstein_sensitivity(laws)


def test_what_is_possible_has_a_law_however_rare_it_is():
    rare = 1e-18
    matrix = [[0.5, 0.5], [rare, 1 - rare]]
    chain = dp.markov_chain(["a", "b"], matrix, initial=[1 - rare, rare])
    laws = chain.count_laws(3, "a")
    assert set(laws) == {(time, state) for time in (1, 2, 3) for state in "ab"}
    # Two of three are a, given b at first: b, a, a.
    assert float(laws[1, "b"][1][2]) == 2.0**-54
    assert all(sum(chances) == 1 for _, chances in laws.values())


@pytest.mark.parametrize("pairs", [[], iter([]), 5, "st"])
def test_no_noise_is_enough_for_pairs_that_are_none(pairs):
    with pytest.raises(ArgumentError, match="has no pair: expected secrets"):
        wasserstein_sensitivity({"s": ([0], [1]), "t": ([4], [1])}, pairs)


def test_pairs_are_of_secrets_with_a_law():
    laws = {"s": ([0], [1]), "t": ([4], [1])}
    assert wasserstein_sensitivity(laws, [("s", "s")]) == 0
    for pairs in ([("s", "u")], [("s",)], ["st"], [(["s"], "t")]):
        with pytest.raises(ArgumentError, match="expected two secrets"):
            wasserstein_sensitivity(laws, pairs)
