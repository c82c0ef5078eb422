"""Many levels, a bit for each."""

import math
from itertools import product

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError

TOWNS = [f"town{place}" for place in range(30)]
DEVICE = dp.unary_response(TOWNS, eps=1.0)


def law(truth, levels, eps):
    """The probability of each answer by the stated law of bits; a truth of -1 is none."""
    rare = 1 / (math.exp(eps) + 1)
    chances = [0.5 if place == truth else rare for place in range(levels)]
    return {
        bits: math.prod(p if bit else 1 - p for bit, p in zip(bits, chances, strict=True))
        for bits in product((0, 1), repeat=levels)
    }


@pytest.mark.parametrize("eps", [0.2, 1.0, 4.0])
def test_neighbours_are_told_apart_by_eps_and_no_more(eps):
    laws = [law(truth, 3, eps) for truth in (-1, 0, 1, 2)]
    ratios = [one[bits] / other[bits] for one, other in product(laws, repeat=2) for bits in one]
    assert max(ratios) == pytest.approx(math.exp(eps))


def test_bits_have_their_law_and_come_under_the_levels_names():
    # Each of 60 frequencies beyond 6 standard deviations: in all 1e-7.
    rows, rare = 20_000, 1 / (math.e + 1)
    with dp.simulation(seed=6):
        bits = DEVICE.randomize(pd.Series(["town3"] * rows, index=range(5, rows + 5)))
        none = DEVICE.randomize([None] * rows)
    assert list(bits) == TOWNS
    assert bits.index[0] == 5
    sd = math.sqrt(0.25 / rows)
    assert abs(bits.town3.mean() - 0.5) < 6 * sd
    assert (abs(bits.drop(columns="town3").mean() - rare) < 6 * sd).all()
    assert (abs(none.mean() - rare) < 6 * sd).all()


@pytest.mark.expensive
def test_a_survey_of_a_bit_has_the_published_variance():
    # The estimate is beyond 6 standard errors at a rate of 2e-9.
    rows = 20_000
    towns = np.array(TOWNS)[np.minimum(np.random.default_rng(3).geometric(0.3, rows), 29)]
    with dp.simulation(seed=6):
        bits = DEVICE.randomize(towns)
    fit = dp.dp_survey("~ town1", bits, device=DEVICE.questions)
    own = fit.tidy().iloc[1]
    assert abs(own.estimate - (towns == "town1").mean()) < 6 * own.noise_sd
    rare = dp.dp_survey("~ town29", bits, device=DEVICE.questions).tidy().iloc[1]
    published = math.sqrt(4 * math.e / rows) / (math.e - 1)
    assert rare.noise_sd == pytest.approx(published, rel=0.02)
    assert fit.eps == 1.0
    one_of_thirty = (math.e + 28) / (math.e - 1) ** 2
    assert one_of_thirty > 4 * math.e / (math.e - 1) ** 2


@pytest.mark.parametrize(
    ("levels", "eps", "kind"),
    [("Ulm", 1.0, ArgumentError), (TOWNS, 0.0, BudgetError), (TOWNS, 21.0, BudgetError)],
)
def test_a_unary_device_that_is_none_is_refused(levels, eps, kind):
    with pytest.raises(kind):
        dp.unary_response(levels, eps=eps)


def test_a_device_says_what_all_its_bits_cost():
    assert "3 levels, eps = 0.5 for all bits" in repr(dp.unary_response(["a", "b", "c"], eps=0.5))
