"""Noisy wavelets: neighbours by brute force, for both norms."""

import pytest
from ordered_neighbours import SHAPES, declared, facts_of, farthest

from dpmodels.mechanisms import Wavelet
from dpmodels.privacy import ZCDP, ApproxDP, GaussianEvent, LaplaceEvent, PureDP


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("shape", SHAPES)
def test_neighbours_are_no_farther_than_is_paid_for(shape, relation):
    mechanism, facts = Wavelet(), facts_of(shape, relation)
    plan = mechanism.plan(facts, PureDP(1.0))
    pair_distance, _, single = farthest(mechanism, plan)
    assert pair_distance <= declared(plan.events, 1) * (1 + 1e-9)
    # Where pairs are without gaps the most is reached, in one group but in L1 norm.
    full, several = shape[1] in (2, 4, 8), shape[0] > 1 or relation == "add-remove"
    if several:
        assert pair_distance == pytest.approx(declared(plan.events, 1))
    # A row that is replaced changes a difference by 2: that is one release, not two.
    assert single == (2 if relation == "replace" else 1)
    assert plan.events == (LaplaceEvent(plan.events[0].multiplier),)
    plan = mechanism.plan(facts, ZCDP(0.1))
    _, two, _ = farthest(mechanism, plan)
    assert two <= declared(plan.events, 2) * (1 + 1e-9)
    if full or several:
        assert two == pytest.approx(declared(plan.events, 2))


@pytest.mark.parametrize("guarantee", [ApproxDP(5.0, 1e-9), ZCDP(50.0)])
def test_laplace_noise_is_for_pure_budgets_alone(guarantee):
    plan = Wavelet().plan(facts_of((1, 4), "replace"), guarantee)
    assert isinstance(plan.events[-1], GaussianEvent)
