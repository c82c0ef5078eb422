"""All series of a short chain, one by one: what definitions say, without a formula of ours."""

import itertools
import math

import numpy as np


def series_of(k, steps):
    """All series of states, shape (k**steps, steps)."""
    return np.array(list(itertools.product(range(k), repeat=steps)))


def law_of(all_series, transition, initial):
    """The probability of each series."""
    values = np.asarray(initial)[all_series[:, 0]]
    for now, then in itertools.pairwise(all_series.T):
        values = values * np.asarray(transition)[now, then]
    return values


def starts(k):
    """Laws of a first state, from next to certain to even."""
    edges = np.full((k, k), 1e-6) + np.eye(k)
    return [*(edges / edges.sum(axis=1, keepdims=True)), np.full(k, 1 / k)]


def counts_of(all_series, k):
    """How often each state occurs, shape (series, k)."""
    return (all_series[:, :, None] == np.arange(k)).sum(axis=1)


def far_enough(steps, k):
    """Outcomes that have every ratio of laws: beyond 0 and `steps` a Laplace ratio is constant."""
    side = np.arange(-1, steps + 2)
    return np.array(list(itertools.product(side, repeat=k)))


def discrete_laplace(distance, scale):
    """The probability of an integer at a distance."""
    ratio = math.exp(-1 / scale)
    return (1 - ratio) / (1 + ratio) * ratio ** np.abs(distance)


def released_law(counts, scales, outcomes):
    """The law of the noisy counts given each series, for one release or several of them.

    Shape (series, outcomes), of several releases of all combinations of outcomes.
    """
    values = np.ones((len(counts), 1))
    for scale in scales:
        result = discrete_laplace(outcomes[None] - counts[:, None], scale).prod(axis=2)
        values = (values[:, :, None] * result[:, None, :]).reshape(len(counts), -1)
    return values


def largest_loss(all_series, law, inputs):
    """The largest log ratio of what is released between two states at one time."""
    worst = 0.0
    for states in all_series.T:
        laws = [
            law[states == x] @ inputs[states == x] / law[states == x].sum()
            for x in np.unique(states)
            if law[states == x].sum() > 0
        ]
        for first, second in itertools.permutations(laws, 2):
            worst = max(worst, float(np.log(first / second).max()))
    return worst
