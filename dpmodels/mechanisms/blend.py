"""The largest budget at which releases of several kinds together keep a guarantee."""

from __future__ import annotations

import math
from collections.abc import Callable

from dpmodels.privacy import (
    ZCDP,
    ApproxDP,
    Event,
    Guarantee,
    gaussian_multiplier,
    total_eps,
)

# The search stops at a relative width of 2**-30.
STEPS = 36


def largest_rho(guarantee: Guarantee, events: Callable[[float], tuple[Event, ...]]) -> float:
    """Return a rho, as large as can be, whose events satisfy a guarantee.

    `events` takes rho and returns events of `total_rho` rho, which cost more where rho is
    larger.

    BudgetError for a pure guarantee, which Gaussian noise does not give.
    """
    multiplier = gaussian_multiplier(guarantee)
    if isinstance(guarantee, ZCDP):
        # Covers the rounding of the events.
        return guarantee.rho * (1 - 1e-12)
    assert isinstance(guarantee, ApproxDP)
    low = high = 0.5 / multiplier**2

    def fits(rho: float) -> bool:
        return total_eps(events(rho), guarantee.delta) <= guarantee.eps

    while not fits(low):
        low /= 2
    while fits(high):
        high *= 2
    for _ in range(STEPS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
