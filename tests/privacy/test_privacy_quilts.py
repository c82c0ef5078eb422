"""Quilts: the definition by brute force, every quilt of short series, and published scales."""

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from chain_cases import counts_of, far_enough, largest_loss, law_of, released_law, series_of, starts

from dpmodels.privacy import MarkovChain, markov_chain
from dpmodels.privacy.chain import lazy
from dpmodels.privacy.quilts import (
    _Search,
    matrix_powers,
    quilt_scale,
    row_log_ratios,
    trivial_quilt,
)

SKEWED = ((0.7, 0.3), (0.4, 0.6))
THREE = ((0.5, 0.3, 0.2), (0.2, 0.6, 0.2), (0.25, 0.25, 0.5))
# Scales of the specification, of 1,000 times, for eps of .2, 1 and 5.
PUBLISHED = {
    0.5: (5.0, 1.0, 0.2),
    0.6: (29.8, 3.57, 0.239),
    0.8: (106, 13.1, 0.449),
    0.9: (251, 31.7, 1.52),
    0.95: (539, 68.8, 3.77),
}


def laws_of(chain):
    """A grid of the laws of a class: matrices and laws of the first state."""
    k = len(chain.states)
    matrices = [np.array(chain.transition)] if chain.transition else []
    if chain.stay:
        matrices = [lazy(k, stay) for stay in np.linspace(*chain.stay, 5)]
    first = starts(k) if chain.initial == "any" else [chain.stationary]
    return list(itertools.product(matrices, first))


@pytest.mark.parametrize(("stay", "expected"), PUBLISHED.items())
def test_scales_are_the_published_ones_to_three_digits(stay, expected):
    chain = markov_chain([0, 1], stay=stay, initial="stationary")
    scales = [quilt_scale(chain, 1_000, eps).scale for eps in (0.2, 1.0, 5.0)]
    assert all(
        f"{scale:.3g}" == f"{expected_scale:.3g}"
        for scale, expected_scale in zip(scales, expected, strict=True)
    )


@pytest.mark.parametrize("initial", ["any", "stationary"])
def test_independent_states_ask_for_the_noise_of_differential_privacy(initial):
    chain = markov_chain(list("abc"), [[0.2, 0.3, 0.5]] * 3, initial=initial)
    for eps in (0.1, 1.0, 7.0):
        assert quilt_scale(chain, 500, eps).scale == pytest.approx(1 / eps, rel=1e-9)


@pytest.mark.parametrize("power", [40, 120, 250, 400])
def test_influences_are_no_less_than_in_sixty_digits(power):
    """Logarithms of what is rare are far from 0, and their rounding is of their size."""
    short = []
    for base in (2.9, 3.1, 3.3, 3.7):
        p, q = base**-power, 7.0 ** -(power // 2)
        chain = markov_chain([0, 1], [[1 - p, p], [1 - q, q]], initial=[0.5, 0.5])
        transition = [[Decimal(entry) for entry in row] for row in chain.transition]
        middle = [(transition[0][x] + transition[1][x]) / 2 for x in (0, 1)]
        with localcontext(prec=60):
            true = max(
                max(transition[x][y] / transition[u][y] for y in (0, 1)).ln()
                + max(transition[z][x] / transition[z][u] for z in (0, 1)).ln()
                + (middle[u] / middle[x]).ln()
                for x, u in ((0, 1), (1, 0))
            )
            influence = _Search(chain, 3, 5000.0).influence(np.array([1]), 1, 1)[0]
            short.append(float(Decimal(float(influence)) - true))
    assert min(short) >= 0
    assert max(short) < 1e-10


def test_long_series_take_no_more_room_than_the_widest_quilts():
    chain = markov_chain([0, 1], stay=0.9)
    long, longer = (_Search(chain, steps, 1.0) for steps in (5_000, 60_000))
    assert long.start.shape == longer.start.shape == (4097, 2)
    assert long.best() == longer.best() == quilt_scale(chain, 60_000, 1.0)


CLASSES = [
    (markov_chain([0, 1], SKEWED), 6),
    (markov_chain([0, 1], SKEWED, initial="stationary"), 6),
    (markov_chain([0, 1], stay=(0.45, 0.65)), 6),
    (markov_chain([0, 1], stay=(0.3, 0.6), initial="stationary"), 5),
    (markov_chain([0, 1, 2], THREE), 4),
    (markov_chain([0, 1, 2], stay=(0.3, 0.4)), 4),
]


@pytest.mark.parametrize(("chain", "steps"), CLASSES)
def test_the_definition_holds_for_all_outputs_secrets_and_laws_of_the_class(chain, steps):
    """Both of noise by quilts that are active and of the trivial one, which is the least here."""
    k = len(chain.states)
    all_series = series_of(k, steps)
    counts, outcomes = counts_of(all_series, k), far_enough(steps, k)
    active = set()
    for eps in (0.5, 1.5, 4.0):
        quilt = quilt_scale(chain, steps, eps)
        active.add(quilt.trivial)
        inputs = released_law(counts, [2 * quilt.scale], outcomes)
        for transition, initial in laws_of(chain):
            law = law_of(all_series, transition, initial)
            assert largest_loss(all_series, law, inputs) <= eps * (1 + 1e-9)
    assert False in active


def test_noise_for_single_states_breaks_the_definition_where_they_depend_on_each_other():
    all_series = series_of(2, 6)
    counts, outcomes = counts_of(all_series, 2), far_enough(6, 2)
    inputs = released_law(counts, [2.0], outcomes)
    law = law_of(all_series, lazy(2, 0.95), [0.5, 0.5])
    assert largest_loss(all_series, law, inputs) > 4.0
    even = law_of(all_series, lazy(2, 0.5), [0.5, 0.5])
    assert largest_loss(all_series, even, inputs) == pytest.approx(1.0)


@pytest.mark.parametrize("eps_values", [(1.0, 3.0), (0.4, 0.4), (2.0, 0.1)])
def test_releases_of_one_series_add_up_whatever_quilts_are_active(eps_values):
    chain, steps = markov_chain([0, 1], stay=(0.5, 0.7)), 4
    scales = [quilt_scale(chain, steps, eps) for eps in eps_values]
    all_series = series_of(2, steps)
    counts, outcomes = counts_of(all_series, 2), far_enough(steps, 2)
    inputs = released_law(counts, [2 * scale.scale for scale in scales], outcomes)
    losses = [largest_loss(all_series, law_of(all_series, *law), inputs) for law in laws_of(chain)]
    assert max(losses) <= sum(eps_values) * (1 + 1e-9)
    assert max(losses) > max(eps_values) * 0.5


def test_the_sum_that_composition_rests_on_holds_for_random_quilts():
    """Scales by any quilts leave one of them enough for the sum of all eps."""
    rng = np.random.default_rng(4)
    for _ in range(300):
        cards, es = rng.integers(1, 40, 5), rng.uniform(0, 2, 5)
        eps = es + rng.exponential(size=5)
        precision = ((eps - es) / cards).sum()
        cheapest = int(np.argmin(cards))
        assert precision <= (eps.sum() - es[cheapest]) / cards[cheapest] + 1e-12


def influence(all_series, law, time, before, after):
    """The definition: the largest log ratio of what the quilt's states are, given two states."""
    places = [time - before] * bool(before) + [time + after] * bool(after)
    codes = all_series[:, places] @ (4 ** np.arange(len(places)))
    worst = 0.0
    for x, y in itertools.permutations(np.unique(all_series[:, time]), 2):
        laws = [
            np.bincount(codes[all_series[:, time] == value], law[all_series[:, time] == value], 16)
            for value in (x, y)
        ]
        first, second = (law / law.sum() for law in laws)
        worst = max(worst, float(np.log(first[first > 0] / second[first > 0]).max()))
    return worst


@pytest.mark.parametrize(("chain", "steps"), CLASSES)
def test_scales_are_the_least_over_all_quilts_by_definition(chain, steps):
    """Influences are counted out over all series, the largest of the class and of all starts."""
    all_series = series_of(len(chain.states), steps)
    laws = [law_of(all_series, *law) for law in laws_of(chain)]
    for eps in (1.0, 4.0):
        needs = []
        for time in range(steps):
            score = steps / eps
            for before, after in itertools.product(range(time + 1), range(steps - time)):
                if not (before or after):
                    continue
                e = max(influence(all_series, law, time, before, after) for law in laws)
                first = time - before + 1 if before else 0
                last = time + after - 1 if after else steps - 1
                if e < eps:
                    score = min(score, (last - first + 1) / (eps - e))
            needs.append(score)
        # The grid of first states comes close to the supremum over all, and never above it.
        scale = quilt_scale(chain, steps, eps).scale
        assert max(needs) * (1 - 1e-4) <= scale <= max(needs) * (1 + 1e-3)


@pytest.mark.parametrize("initial", ["any", "stationary", (0.9, 0.1, 0.0)])
def test_the_search_finds_the_best_of_all_quilts(initial):
    rng = np.random.default_rng(7)
    for _ in range(8):
        steps, eps = int(rng.integers(2, 30)), float(rng.choice([0.3, 1.0, 3.0]))
        rows = rng.dirichlet(np.ones(3) * 2, size=3)
        chain = markov_chain(list("abc"), rows, initial=initial)
        result = quilt_scale(chain, steps, eps)
        assert result.scale == pytest.approx(plain_scale(chain, steps, eps), rel=1e-9)


def plain_scale(chain, steps, eps):
    """The same by loops over times and quilts, from powers of the matrix."""
    (law_of_chain,) = chain.laws
    powers = np.array([np.linalg.matrix_power(law_of_chain, lag) for lag in range(steps)])
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = [np.log(np.nanmax(power[:, None] / power[None], axis=2)) for power in powers]
        back = [np.log(np.nanmax(power.T[:, None] / power.T[None], axis=2)) for power in powers]
        (start,) = (None,) if chain.initial == "any" else chain.starting(chain.laws)
        needs = []
        for time in range(steps):
            odds = back[time].T
            if start is not None:
                log_chances = np.log(start @ powers[time])
                odds = log_chances[None] - log_chances[:, None]
            odds = np.where(np.isfinite(odds), odds, math.inf)
            score = steps / eps
            for before, after in itertools.product(range(time + 1), range(steps - time)):
                if before or after:
                    e = (back[before] + odds if before else 0) + (distance[after] if after else 0)
                    e = e[~np.eye(3, dtype=bool)].max()
                    nearness = (time if not before else before - 1) + 1
                    nearness += steps - 1 - time if not after else after - 1
                    score = min(score, nearness / (eps - e)) if e < eps else score
            needs.append(score)
    return max(needs)


def test_a_class_asks_for_what_its_worst_chain_does():
    clipped = markov_chain([0, 1, 2], stay=(0.1, 0.8))
    worst = quilt_scale(clipped, 60, 1.0).scale
    scales = [
        quilt_scale(markov_chain([0, 1, 2], stay=float(stay)), 60, 1.0).scale
        for stay in np.linspace(0.1, 0.8, 15)
    ]
    assert max(scales) <= worst * (1 + 1e-12)
    assert max(scales) == pytest.approx(worst)


def test_chains_that_do_not_forget_need_the_noise_of_all_times():
    for chain in (
        MarkovChain((0, 1), ((1.0, 0.0), (0.5, 0.5))),
        MarkovChain((0, 1), ((0.0, 1.0), (1.0, 0.0))),
        markov_chain([0, 1], stay=0.999),
    ):
        result = quilt_scale(chain, 30, 1.0)
        assert result == trivial_quilt(30, 1.0)
        assert result.trivial
        assert "none: all 30" in result.describe()


def test_lags_that_underflow_are_not_used():
    """A birth and death chain of slow births: far states are less likely than floats can say."""
    k, small = 30, 1e-14
    matrix = np.diag(np.full(k - 1, small), 1) + np.diag(np.full(k - 1, 0.4), -1)
    matrix += np.diag(1 - matrix.sum(axis=1))
    powers = matrix_powers(matrix, 40)
    assert (powers[40] < 1e-290).any()
    distance = row_log_ratios(powers)
    assert np.isinf(distance[k - 1][0, 1])
    assert not np.isnan(distance).any()


def test_powers_are_those_of_repeated_products():
    matrix = np.array(THREE)
    assert matrix_powers(matrix, 9)[9] == pytest.approx(
        np.linalg.matrix_power(matrix, 9), rel=1e-14
    )
    assert len(matrix_powers(matrix, 1)) == 2
