import math
from fractions import Fraction

import numpy as np
import pytest

from dpmodels.errors import BudgetError
from dpmodels.privacy import ZCDP, ApproxDP, PureDP, resolve_budget

NOT_POSITIVE = [0, -1.0, math.nan, math.inf, 10**400, "1", None, True, 1j, 1e-200, 1e200]


@pytest.mark.parametrize("eps", NOT_POSITIVE)
@pytest.mark.parametrize("make", [PureDP, lambda eps: ApproxDP(eps, 1e-6)])
def test_a_senseless_eps_is_refused_by_name(make, eps):
    with pytest.raises(BudgetError, match=r"^eps=.*: write eps=1\.0"):
        make(eps)


@pytest.mark.parametrize("rho", NOT_POSITIVE)
def test_a_senseless_rho_is_refused_by_name(rho):
    with pytest.raises(BudgetError, match=r"^rho=.*: write budget=dp\.ZCDP\(0\.1\)"):
        ZCDP(rho)


@pytest.mark.parametrize("delta", [0, 1, -1e-6, 2, math.nan, math.inf, "1e-6", None, False])
def test_approximate_privacy_needs_a_delta_between_zero_and_one(delta):
    with pytest.raises(BudgetError, match=r"^delta=.*write .*delta=1e-6"):
        ApproxDP(1.0, delta)


@pytest.mark.parametrize("delta", [1, -1e-6, math.nan, math.inf, "1e-6", None, True])
def test_the_word_delta_lies_in_zero_to_one(delta):
    with pytest.raises(BudgetError, match=r"^delta=.*write delta=1e-6"):
        resolve_budget(1.0, delta)


@pytest.mark.parametrize("value", [1, np.float64(1), np.int64(1), np.float32(1), Fraction(1)])
def test_numbers_of_other_libraries_become_floats(value):
    for guarantee in (PureDP(value), ApproxDP(value, 1e-6)):
        assert type(guarantee.eps) is float
    assert type(ZCDP(value).rho) is float


def test_the_words_choose_the_guarantee():
    assert resolve_budget(1) == PureDP(1.0)
    assert resolve_budget(eps=1, delta=1e-6) == ApproxDP(1.0, 1e-6)
    for guarantee in (PureDP(1), ApproxDP(1, 1e-6), ZCDP(0.1)):
        assert resolve_budget(budget=guarantee) is guarantee


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ({}, "Neither eps nor budget is given"),
        ({"delta": 1e-6}, "Neither eps nor budget is given"),
        ({"eps": 1, "budget": ZCDP(0.1)}, "eps and budget are both given"),
        ({"delta": 1e-6, "budget": ZCDP(0.1)}, "delta=1e-06 is given with budget"),
        ({"budget": 1.0}, "budget is of type float, not a guarantee"),
    ],
)
def test_contradictory_words_are_refused_with_what_to_write(words, complaint):
    with pytest.raises(BudgetError) as caught:
        resolve_budget(**words)
    assert str(caught.value).startswith(complaint)
    assert "eps=1.0" in str(caught.value)


@pytest.mark.parametrize(
    ("guarantee", "words"),
    [
        (PureDP(1), "eps = 1"),
        (ApproxDP(0.25, 1e-6), "eps = 0.25, delta = 1e-06"),
        (ZCDP(0.1), "rho = 0.1 (zCDP)"),
    ],
)
def test_guarantees_are_frozen_and_describe_themselves(guarantee, words):
    assert guarantee.describe() == words
    assert hash(guarantee) == hash(
        type(guarantee)(*(getattr(guarantee, f) for f in _names(guarantee)))
    )
    with pytest.raises(AttributeError):
        setattr(guarantee, _names(guarantee)[0], 2.0)


def _names(guarantee):
    return guarantee.__match_args__
