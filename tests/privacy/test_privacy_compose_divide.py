"""Parts of a budget compose to the whole, and to no less where that is possible."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmodels.errors import BudgetError
from dpmodels.privacy import (
    ZCDP,
    ApproxDP,
    GaussianEvent,
    Ledger,
    PureDP,
    PureEvent,
    gaussian_multiplier,
)
from dpmodels.privacy.compose import divide

STAGES = st.lists(st.tuples(st.floats(0.01, 1), st.booleans()), min_size=2, max_size=5)


def charged(total, budgets, gaussian):
    """A ledger of the whole, with the eps of pure stages kept for them, charged by stage."""
    pure = sum(budget.eps for budget, normal in zip(budgets, gaussian, strict=True) if not normal)
    ledger = Ledger(budget=total, pure=pure if any(gaussian) else 0.0)
    for budget, normal in zip(budgets, gaussian, strict=True):
        event = GaussianEvent(gaussian_multiplier(budget)) if normal else PureEvent(budget.eps)
        ledger.charge([event], adjacency="replace")
    return ledger


@pytest.mark.expensive
@settings(max_examples=60, deadline=None)
@given(STAGES, st.floats(0.05, 10), st.sampled_from([1e-9, 1e-6, 1e-3]))
def test_a_ledger_takes_all_stages(stages, eps, delta):
    weights, gaussian = zip(*stages, strict=True)
    shares = [weight / sum(weights) for weight in weights]
    total = ApproxDP(eps, delta)
    budgets = divide(total, shares, gaussian)
    ledger = charged(total, budgets, gaussian)
    assert {budget.delta for budget in budgets} == {delta}
    if all(gaussian):
        assert ledger.spent.amount == pytest.approx(eps, rel=1e-7)
        assert sum(budget.eps for budget in budgets) > eps
    for share, budget, normal in zip(shares, budgets, gaussian, strict=True):
        if not normal:
            assert budget.eps == pytest.approx(share * eps)


def test_gaussian_stages_share_the_inverse_square_of_the_multiplier():
    total = ApproxDP(1.0, 1e-6)
    complete = gaussian_multiplier(total) ** -2
    for share, part in zip(
        (0.2, 0.3, 0.5), divide(total, (0.2, 0.3, 0.5), [True] * 3), strict=True
    ):
        assert gaussian_multiplier(part) ** -2 == pytest.approx(share * complete, rel=1e-7)


def test_pure_and_concentrated_budgets_add_up():
    assert divide(PureDP(2.0), (0.25, 0.75), (True, False)) == (PureDP(0.5), PureDP(1.5))
    assert divide(ZCDP(2.0), (0.25, 0.75), (True, False)) == (ZCDP(0.5), ZCDP(1.5))


@pytest.mark.parametrize("shares", [(0.5, 0.4), (1.5, -0.5), (0.0, 1.0), (float("nan"), 1.0)])
def test_shares_that_are_none(shares):
    with pytest.raises(BudgetError, match="shares"):
        divide(PureDP(1.0), shares, (False, False))


def test_a_delta_that_leaves_a_stage_no_eps_is_named():
    with pytest.raises(BudgetError, match=r"delta=0\.9 is too large to divide"):
        divide(ApproxDP(1.0, 0.9), (0.05, 0.95), (True, True))
