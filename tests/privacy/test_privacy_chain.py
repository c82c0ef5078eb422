"""Chains as public classes: what is refused, what follows from the matrix, and laws of counts."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from chain_cases import law_of, series_of

import dpmodels as dp
from dpmodels.errors import ArgumentError
from dpmodels.privacy.chain import lazy, period, stationary_law

TWO = [[0.9, 0.1], [0.3, 0.7]]
ROUND = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({}, "give one of them"),
        ({"transition": TWO, "stay": 0.5}, "give one of them"),
        ({"transition": pd.DataFrame(TWO)}, "is of type DataFrame, not a literal matrix"),
        ({"transition": lambda: TWO}, "estimated from the protected rows"),
        ({"transition": {"a": [1, 0]}}, "is of type dict"),
        ({"transition": [[1.0, 0.0]]}, "has 1 rows for 2 states"),
        ({"transition": [[0.9, 0.1], [0.5]]}, "row 2 of transition: expected 2 probabilities"),
        ({"transition": [[0.9, 0.2], [0.5, 0.5]]}, "sum is 1.1\\); divide each row by its sum"),
        ({"transition": [[1.1, -0.1], [0.5, 0.5]]}, "nonnegative"),
        ({"transition": [[float("nan"), 1], [0.5, 0.5]]}, "a number is missing"),
        ({"transition": TWO, "initial": "start"}, "expected 'any', 'stationary' or"),
        (
            {"transition": TWO, "initial": [0.5, 0.6]},
            "initial: expected 2 nonnegative probabilities",
        ),
        ({"stay": (0.9, 0.8)}, "the smallest and the largest"),
        ({"stay": 1.2}, "expected a probability"),
        ({"stay": "often"}, "expected a probability"),
    ],
)
def test_what_is_no_public_chain_is_refused(words, message):
    with pytest.raises(ArgumentError, match=message):
        dp.markov_chain(["rest", "walk"], **words)


@pytest.mark.parametrize("states", ["rest", ["rest"], ["a", "a"], [None, "b"], list(range(33))])
def test_states_are_different_names(states):
    with pytest.raises(ArgumentError, match="expected a list of 2 to 32 different names"):
        dp.markov_chain(states, stay=0.5)


@pytest.mark.parametrize(
    "state", [float("nan"), float("inf"), 2**64, "a\x00", "\x1b[31m"], ids=range(5)
)
def test_what_a_ledger_could_not_be_opened_with_again_is_no_state(state):
    with pytest.raises(ArgumentError, match="states"):
        dp.markov_chain([state, "b"], stay=0.5)


def test_a_ledger_in_a_file_is_opened_again_with_any_chain(tmp_path):
    for number, states in enumerate(([1, True], [0.5, 1.0], [1, "1"], ["<b>", "é"])):
        budget = dp.Pufferfish(1.0, dp.markov_chain(states, stay=0.7))
        place = tmp_path / f"{number}.ledger"
        dp.Ledger.open(place, budget=budget, new=True)
        guarantee = dp.Ledger.open(place).guarantee
        assert guarantee.model.digest == budget.model.digest
        assert list(map(type, guarantee.model.states)) == list(map(type, states))


def test_levels_of_other_types_are_other_states():
    chain = dp.markov_chain([True, 1], TWO)
    assert chain.ordered([1, True]).transition == ((0.7, 0.3), (0.1, 0.9))
    with pytest.raises(ArgumentError, match="model= has the states True, 1"):
        chain.ordered([True, 2])


def test_states_in_another_order_are_the_same_class():
    chain = dp.markov_chain(list("abc"), [[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
    turned = chain.ordered(["c", "a", "b"])
    assert turned != chain
    assert turned.digest == chain.digest
    assert turned.ordered(["a", "b", "c"]) == chain
    assert chain.digest != dp.markov_chain(list("abc"), stay=0.5).digest


def test_what_was_divided_once_stays_as_it_is():
    chain = dp.markov_chain(list("abc"), np.random.default_rng(3).dirichlet(np.ones(3), 3))
    again = dp.markov_chain(chain.states, chain.transition)
    assert again == chain


def test_the_stationary_law_is_kept_to_the_last_digits():
    rng = np.random.default_rng(5)
    for k in (2, 5, 12):
        moves = rng.dirichlet(np.full(k, 0.3), size=k) * 0.9 + 0.1 / k
        law = stationary_law(moves)
        assert law @ moves == pytest.approx(law, rel=1e-13)
    # A state that is left a million times as fast as it is reached.
    rare = stationary_law(np.array([[1 - 1e-12, 1e-12], [1e-3, 1 - 1e-3]]))
    assert rare[1] == pytest.approx(1e-9 / (1 + 1e-9), rel=1e-13)


def test_what_is_reducible_or_periodic_says_so():
    periodic = dp.markov_chain(["a", "b"], [[1, 0], [0.5, 0.5]])
    assert periodic.trouble.startswith("reducible: 'a' and 'b'")
    with pytest.raises(ArgumentError, match="give the distribution of the first state"):
        _ = periodic.stationary
    assert "every 3 steps" in dp.markov_chain(list("abc"), ROUND).trouble
    assert period(np.array(ROUND)) == 3
    assert period(lazy(3, 0.0)) == 1
    assert not dp.markov_chain(["a", "b"], TWO).trouble
    # One end of a class is enough.
    assert dp.markov_chain(["a", "b"], stay=(0.5, 1.0)).trouble
    assert dp.markov_chain(["a", "b"], stay=(0.0, 0.5)).trouble


def test_properties_are_those_of_dense_algebra():
    chain = dp.markov_chain(["a", "b"], TWO)
    assert chain.stationary == pytest.approx([0.75, 0.25])
    assert chain.reversible
    assert chain.eigengap == pytest.approx(1 - 0.6**2)
    turning = [[0.2, 0.7, 0.1], [0.1, 0.2, 0.7], [0.7, 0.1, 0.2]]
    result = dp.markov_chain(list("abc"), turning)
    assert not result.reversible
    values = np.linalg.eigvals(np.array(turning) @ np.array(turning).T)
    assert result.eigengap == pytest.approx(1 - sorted(abs(values))[-2])
    chains = dp.markov_chain(list("abc"), stay=(0.5, 0.9))
    assert chains.eigengap == pytest.approx(1 - 0.85**2)
    assert chains.reversible
    assert dp.markov_chain(list("abc"), ROUND, initial="stationary").eigengap == pytest.approx(0)


def test_laws_of_counts_are_those_of_all_series():
    value, first, steps = [[0.7, 0.2, 0.1], [0.3, 0.3, 0.4], [0.25, 0.5, 0.25]], [0.5, 0.5, 0.0], 5
    chain = dp.markov_chain(list("abc"), value, initial=first)
    all_series = series_of(3, steps)
    law = law_of(all_series, value, first)
    counts = (all_series == 1).sum(axis=1)
    count_laws = chain.count_laws(steps, "b")
    assert (1, "c") not in count_laws
    assert len(count_laws) == 3 * steps - 1
    for (time, state), (values, chances) in count_laws.items():
        those = all_series[:, time - 1] == "abc".index(state)
        expected = np.bincount(counts[those], law[those], steps + 1) / law[those].sum()
        assert list(values) == list(range(steps + 1))
        assert list(map(float, chances)) == pytest.approx(expected.tolist(), abs=1e-14)
        assert sum(chances) == Fraction(1)


@pytest.mark.parametrize(
    ("chain", "words", "message"),
    [
        (dp.markov_chain(["a", "b"], TWO), {}, "initial='stationary'"),
        (dp.markov_chain(["a", "b"], stay=0.5, initial="stationary"), {}, "give transition="),
        (dp.markov_chain(["a", "b"], TWO, initial=[1, 0]), {"state": "c"}, "expected one of 'a'"),
        (dp.markov_chain(["a", "b"], TWO, initial=[1, 0]), {"steps": 101}, "from 1 to 100"),
    ],
)
def test_laws_of_counts_are_of_one_law(chain, words, message):
    with pytest.raises(ArgumentError, match=message):
        chain.count_laws(**{"steps": 5, "state": "a", **words})
