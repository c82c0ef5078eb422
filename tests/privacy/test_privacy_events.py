import math

import numpy as np
import pytest

from dpmodels.errors import BudgetError
from dpmodels.privacy import BoundedRangeEvent, GaussianEvent, LaplaceEvent, Ledger, PureEvent

KINDS = [
    (GaussianEvent, "multiplier", "Gaussian, multiplier 2"),
    (LaplaceEvent, "multiplier", "Laplace, multiplier 2"),
    (BoundedRangeEvent, "eps", "bounded range, eps 2"),
    (PureEvent, "eps", "pure, eps 2"),
]


@pytest.mark.parametrize(("kind", "name", "words"), KINDS)
def test_an_event_is_a_frozen_value(kind, name, words):
    event = kind(np.float64(2), count=np.int64(1))
    assert event == kind(2.0)
    assert type(event.count) is int
    assert event.describe() == words
    assert kind(2, count=3).describe() == words + " x 3"
    with pytest.raises(AttributeError):
        event.count = 2


@pytest.mark.parametrize("wrong", [0, -1, math.nan, math.inf, "1", None, True])
@pytest.mark.parametrize(("kind", "name", "words"), KINDS)
def test_a_senseless_noise_is_refused_by_name(kind, name, words, wrong):
    with pytest.raises(BudgetError, match=f"^{name}=.*: give "):
        kind(wrong)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, 2.0, math.nan, "1", None, True, 2**53 + 1, 10**400])
@pytest.mark.parametrize(("kind", "name", "words"), KINDS)
def test_a_senseless_count_is_refused_by_name(kind, name, words, wrong):
    with pytest.raises(BudgetError, match=r"^count=.*write count=1"):
        kind(1.0, wrong)


def test_an_event_of_another_type_is_refused_before_it_is_charged():
    """One that a file could not be read with again."""

    class Own(PureEvent):
        pass

    ledger = Ledger(eps=1.0)
    with pytest.raises(BudgetError, match="contains a Own, not an event"):
        ledger.charge([Own(0.1)], adjacency="replace")
    assert ledger.entries == ()
