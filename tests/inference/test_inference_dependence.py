"""The variance of a state's share on a chain, against that over all series."""

import itertools

import numpy as np
import pytest

from dpmodels.errors import ArgumentError
from dpmodels.inference.independence import LEAST, share_effects
from dpmodels.privacy import markov_chain


@pytest.mark.parametrize(
    "moves", [[[0.7, 0.3], [0.2, 0.8]], [[0.2, 0.7, 0.1], [0.1, 0.2, 0.7], [0.6, 0.2, 0.2]]]
)
def test_effects_are_those_of_all_series(moves):
    steps, k = 6, len(moves)
    chain = markov_chain(list(range(k)), moves)
    stationary = chain.stationary
    every = np.array(list(itertools.product(range(k), repeat=steps)))
    law = stationary[every[:, 0]]
    for now, then in itertools.pairwise(every.T):
        law = law * np.array(moves)[now, then]
    expected = []
    for state in range(k):
        share = (every == state).mean(axis=1)
        spread = law @ (share - stationary[state]) ** 2
        expected.append(spread * steps / (stationary[state] * (1 - stationary[state])))
    assert share_effects(chain, steps) == pytest.approx(expected)


def test_independent_times_stand_for_themselves():
    chain = markov_chain(list("abc"), [[0.2, 0.3, 0.5]] * 3)
    assert share_effects(chain, 50) == pytest.approx([1, 1, 1])


def test_a_class_has_the_effects_of_its_worst_chain():
    clipped = share_effects(markov_chain([0, 1], stay=(0.2, 0.9)), 40)
    values = [share_effects(markov_chain([0, 1], stay=stay), 40) for stay in (0.2, 0.5, 0.7, 0.9)]
    assert clipped == pytest.approx(np.max(values, axis=0))


def test_there_is_no_interval_of_no_variance():
    assert share_effects(markov_chain([0, 1], [[0, 1], [1, 0]]), 40).tolist() == [LEAST, LEAST]
    with pytest.raises(ArgumentError, match="may have several stationary distributions"):
        share_effects(markov_chain([0, 1], [[1, 0], [0, 1]]), 40)
