"""The quilt mechanism: its scale, its noise, the laws of a plan, and intervals on real chains."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpmodels as dp
from dpmodels.errors import BudgetError
from dpmodels.mechanisms.chains import MOVED, QuiltCounts, SeriesFacts
from dpmodels.mechanisms.counts import Geometric
from dpmodels.mechanisms.protocol import CountFacts
from dpmodels.noise import discrete_laplace_variance, source
from dpmodels.privacy import Adjacency, PufferfishEvent, adjacency
from dpmodels.statistics import Statistic

THREE = ["rest", "walk", "run"]
MOVES = [[0.9, 0.08, 0.02], [0.1, 0.85, 0.05], [0.05, 0.15, 0.8]]


def facts(steps, states=3):
    return SeriesFacts(states, steps, "activity", Adjacency("replace", steps, "id"))


def planned(steps, eps, **words):
    return QuiltCounts().plan(facts(steps), dp.Pufferfish(eps, dp.markov_chain(THREE, **words)))


def walked(persons, steps, moves, rng):
    """Series of a stationary chain, shape (persons, steps)."""
    chain = dp.markov_chain(list(range(len(moves))), moves, initial="stationary")
    ends = np.cumsum(moves, axis=1)
    states = rng.choice(len(moves), persons, p=chain.stationary)
    walks = [states]
    for _ in range(steps - 1):
        states = (rng.random(persons)[:, None] > ends[states]).sum(axis=1)
        walks.append(states)
    return np.array(walks).T


def frame(states):
    persons, steps = states.shape
    return pd.DataFrame(
        {
            "id": np.repeat(np.arange(persons), steps),
            "minute": np.tile(np.arange(steps), persons),
            "activity": np.array(THREE)[states.ravel()],
        }
    )


def test_independent_states_have_the_noise_of_the_geometric_mechanism():
    plan = planned(50, 0.7, transition=[[0.2, 0.5, 0.3]] * 3)
    plain = Geometric().plan(CountFacts(1, 4, False, adjacency("replace")), dp.PureDP(0.7))
    assert plan.scale == pytest.approx(plain.scale, rel=1e-9)
    assert plan.noise_sd == pytest.approx(plain.noise_sd, rel=1e-9)
    assert plan.scale >= MOVED / 0.7


def test_the_plan_is_made_of_public_facts_and_charges_the_budget():
    plan = planned(200, 1.0, transition=MOVES)
    chain = dp.markov_chain(THREE, MOVES)
    assert plan.events == (PufferfishEvent(1.0, chain.digest, "activity"),)
    assert plan.quilt == dp.Pufferfish(1.0, chain).active(200)
    assert plan.scale == pytest.approx(MOVED * plan.quilt.scale, rel=1e-11)
    assert plan.noise_sd == pytest.approx(math.sqrt(discrete_laplace_variance(plan.scale)))
    with pytest.raises(BudgetError, match="beyond what is meaningful"):
        planned(200, 1e-20, transition=MOVES)


def test_the_noise_has_the_planned_law():
    """Discrete Laplace on the integers, in every count and none of them alike."""
    plan, runs = planned(4, 2.0, transition=MOVES), 2_000
    exact = np.array([8, 0, 3, 1], dtype=object)
    with dp.simulation(seed=11):
        releases = [
            QuiltCounts().release(Statistic("state counts", exact, 12), plan, source())
            for _ in range(runs)
        ]
    assert {(release.rows, release.step, release.quilt) for release in releases} == {
        (12, 1.0, plan.quilt)
    }
    values = np.array([release.values for release in releases]) - exact.astype(float)
    assert (values == np.rint(values)).all()
    ratio = math.exp(-1 / plan.scale)
    edges = np.arange(-12, 13, 4)
    chances = np.diff([0, *[_below(edge, ratio) for edge in edges], 1])
    observed = np.histogram(values, [-np.inf, *edges, np.inf])[0]
    # False alarms: one in a million, and 2e-8 for the correlations.
    assert stats.chisquare(observed, chances * values.size).pvalue > 1e-6
    assert np.abs(np.corrcoef(values.T) - np.eye(4)).max() < 6 / math.sqrt(runs)


def _below(edge, ratio):
    """The probability of less than an integer."""
    if edge <= 0:
        return ratio ** (1 - edge) / (1 + ratio)
    return 1 - ratio**edge / (1 + ratio)


def coverage(persons, steps, eps, repeats, seed):
    """Shares of intervals that hold the non-private counts, and the long-run shares."""
    book = dp.codebook(activity=THREE, minute=dp.Integer(0, steps - 1))
    chain = dp.markov_chain(THREE, MOVES)
    rng, covered = np.random.default_rng(seed), []
    with dp.simulation(seed=seed):
        for _ in range(repeats):
            states = walked(persons, steps, MOVES, rng)
            fit = dp.dp_table(
                *("~ activity", frame(states)),
                codebook=book,
                time="minute",
                person="id",
                budget=dp.Pufferfish(eps, chain),
            )
            exact = np.bincount(states.ravel(), minlength=3)
            truths = (exact, chain.stationary)
            for ends, truth in zip((fit.noise_int(), fit.conf_int()), truths, strict=True):
                covered.append((ends["lower"] <= truth) & (truth <= ends["upper"]))
    return np.array(covered).reshape(repeats, 2, 3).mean(axis=(0, 2))


@pytest.mark.slow
@pytest.mark.parametrize(("persons", "steps", "eps"), [(40, 150, 1.0), (5, 600, 2.0)])
def test_printed_intervals_hold_what_they_say(persons, steps, eps, reduced):
    repeats = 150 if reduced else 600
    # States of a table are three intervals; false alarms, with as many independent as tables: each
    # below 1e-6 at five standard deviations, and more than the half width that is asked for.
    slack = 5 * math.sqrt(0.05 * 0.95 / repeats)
    noise, conf = coverage(persons, steps, eps, repeats, seed=5)
    assert abs(noise - 0.95) < max(slack, 0.02)
    assert abs(conf - 0.95) < max(slack, 0.02)
