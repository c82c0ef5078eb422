"""One mean by a sum and two counts: its price against every neighbour, its noise, its place."""

import math
from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy import stats

import dpmodels as dp
from dpmodels.errors import ArgumentError
from dpmodels.formula.sides import one_measured, parse_sides
from dpmodels.formula.tally import Tally
from dpmodels.mechanisms import COUNTS, MEANS
from dpmodels.mechanisms.choose import choose_strategy
from dpmodels.mechanisms.choose_counts import auto_counts
from dpmodels.mechanisms.count_noise import one_mean
from dpmodels.mechanisms.protocol import CountFacts
from dpmodels.mechanisms.scalar.paired import Paired
from dpmodels.noise import seeded
from dpmodels.privacy import ZCDP, ApproxDP, PureDP, adjacency, total_eps, total_rho
from dpmodels.statistics import Statistic
from tests.private_rows import private_cells

FACTS = CountFacts(1, 4, True, adjacency("replace"))
BOOK = dp.codebook(y=(-1, 3))
PLACES = (-1.0, -0.999, -0.2, 0.7, 1.0, 1.3, 2.9, 3.0, 50.0, -math.inf, math.nan)


def measured(rows):
    sides = parse_sides("~ y", BOOK)
    number, _ = one_measured(sides, "dp_mean")
    private = private_cells("~ y", {"y": np.array(rows)}, BOOK, (Tally((), number, 2),))
    plan = Paired().plan(FACTS, PureDP(1.0))
    exact = Paired().measure(private, plan).cross()[0]
    return np.array([exact[2] - exact[0], exact[1], exact[3]]), plan


def chosen(mechanism, facts, guarantee):
    return choose_strategy(mechanism, COUNTS | MEANS, partial(auto_counts, facts, guarantee))


def test_no_neighbours_are_farther_apart_than_the_sensitivity():
    rest = [0.1, 2.2, math.nan]
    summed = {str(place): measured([*rest, place])[0] for place in PLACES}
    plan = measured(rest)[1]
    distance = [np.abs(left - right).sum() for left, right in product(summed.values(), repeat=2)]
    assert max(distance) == 2 * plan.units_per_row
    (event,) = plan.events
    assert max(distance) / plan.scale <= 1 / event.multiplier


@pytest.mark.parametrize("guarantee", [PureDP(0.3), ZCDP(0.3), ApproxDP(0.3, 1e-6)], ids=str)
def test_a_plan_costs_what_is_granted(guarantee):
    events = Paired().plan(FACTS, guarantee).events
    if isinstance(guarantee, ZCDP):
        spent, granted = total_rho(events), guarantee.rho
    else:
        spent, granted = total_eps(events, 0.0), guarantee.eps
    assert granted * (1 - 1e-9) <= spent <= granted


def test_the_noise_is_that_of_the_plan_and_all_rows_add_up():
    """False alarms: each below 1e-8 by the chi-square law of 3000 squares' sum, nearly normal."""
    plan = Paired().plan(FACTS, PureDP(0.5))
    exact = np.array([60, 20, 10, 10]) * plan.units_per_row
    entropy, times = seeded(3), 3000
    values = np.array(
        [
            Paired().release(Statistic("counts", exact.astype(object), 100), plan, entropy).values
            for _ in range(times)
        ]
    )
    assert values.sum(axis=1) == pytest.approx(np.full(times, 100.0), abs=1e-8)
    noise = values - exact / plan.units_per_row
    components = np.stack([noise[:, 2] - noise[:, 0], noise[:, 1], noise[:, 3]])
    # A Laplace variable's square has a coefficient of variation of √5.
    room = 6 * math.sqrt(5 / times)
    assert (components**2).mean(axis=1) / plan.noise_sd**2 == pytest.approx(np.ones(3), abs=room)
    assert np.abs(np.corrcoef(components) - np.eye(3)).max() < 6 * math.sqrt(5 / times)
    ranked = stats.kstest(components[0] / (plan.noise_sd / math.sqrt(2)), stats.laplace.cdf)
    assert ranked.pvalue > 1e-8


@pytest.mark.parametrize(
    "facts",
    [
        CountFacts(1, 4, True, adjacency("add-remove")),
        CountFacts(1, 4, False, adjacency("replace")),
        CountFacts(1, 7, True, adjacency("replace")),
        CountFacts(2, 4, True, adjacency("replace")),
    ],
)
def test_it_is_for_one_mean_of_a_public_number_of_rows(facts):
    assert one_mean(FACTS)
    assert not one_mean(facts)
    with pytest.raises(ArgumentError, match="paired"):
        Paired().plan(facts, PureDP(1.0))
    assert chosen("auto", facts, PureDP(1.0)).strategy != Paired()


def test_the_choice_is_by_the_noise_in_the_mean():
    assert chosen("auto", FACTS, PureDP(1.0)).strategy == Paired()
    assert chosen("auto", FACTS, ApproxDP(1.0, 1e-6)).strategy == Paired()
    assert chosen("auto", FACTS, ZCDP(0.5)).strategy.info.name == "gaussian"
    assert chosen("paired", FACTS, ZCDP(0.5)).strategy == Paired()
    assert chosen("geometric", FACTS, PureDP(1.0)).strategy.info.name == "geometric"
    with pytest.raises(ArgumentError, match="not known"):
        chosen("pairs", FACTS, PureDP(1.0))
