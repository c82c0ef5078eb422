"""The exhibit of budgets chosen after answers, against its law.

Noise is drawn in a simulation of a fixed seed; for another one false alarms are 1e-6 at most.
"""

import math
from functools import partial

import numpy as np
import pytest
from exhibits import EXHIBITS, tight_filter

from dpmodels.errors import LedgerError
from dpmodels.noise import simulation
from dpmodels.privacy import GaussianEvent, Ledger, PureEvent, total_eps


@pytest.mark.parametrize("second", [tight_filter.TIGHT, tight_filter.FILTERED])
def test_the_chosen_budgets_cost_what_is_said(second):
    runs = 400_000
    with simulation(seed=5):
        recipe = EXHIBITS["tight_filter"].recipe
        recipe = type(recipe)(partial(tight_filter._answers, second=second))
        result, none = recipe.batch(np.ones(2), runs), recipe.batch(np.ones(1), runs)
    # The event in which the two probabilities differ most is that of the largest losses.
    actual = (result > 0.5).mean() - math.exp(0.5) * (none > 0.5).mean()
    # Standard deviation below 1.3e-3; beyond six of them 2e-9 of the time.
    assert actual == pytest.approx(tight_filter.spent_delta(0.5, second), abs=8e-3)


def test_each_of_the_two_second_releases_fits_by_tight_composition():
    pure, mu = tight_filter.TIGHT
    for second in (PureEvent(pure), GaussianEvent(1 / mu)):
        assert total_eps([PureEvent(tight_filter.FIRST), second], tight_filter.DELTA) < 0.5


def test_a_ledger_leaves_room_for_what_the_twin_takes_and_not_for_more():
    pure, mu = tight_filter.FILTERED
    for events, larger in (
        ([PureEvent(pure)], [PureEvent(1.001 * pure)]),
        ([GaussianEvent(1 / mu)], [GaussianEvent(0.999 / mu)]),
    ):
        ledger = Ledger(eps=tight_filter.EPS, delta=tight_filter.DELTA)
        ledger.charge([PureEvent(tight_filter.FIRST)], adjacency="replace")
        with pytest.raises(LedgerError):
            ledger.charge(larger, adjacency="replace")
        ledger.charge(events, adjacency="replace")
