"""Numbers of a picture in a sentence, for those who do not see it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

# Things that are told one by one: a choice, what can be listened to.
MOST = 12


def number(value: Any) -> str:
    """Print a number in three digits.

    >>> number(0.12345), number(1234567.0), number(float("nan"))
    ('0.123', '1,230,000', 'not told')
    """
    if np.isnan(value):
        return "not told"
    rounded = float(f"{float(value):.3g}")
    return f"{rounded:,.0f}" if 100 <= abs(rounded) < 1e15 else f"{rounded:g}"


def between(value: Any, low: Any, high: Any) -> str:
    """Print a number with the ends of its interval, where it has any.

    >>> between(1, 0.5, 1.5), between(1, float("-inf"), 2)
    ('1 (0.5 to 1.5)', '1')
    """
    ends = f" ({number(low)} to {number(high)})" if np.isfinite([low, high]).all() else ""
    return f"{number(value)}{ends}"


def listed(names: Sequence[object], told: Iterable[str]) -> str:
    """Name things with what is told of each; of many the first ones.

    >>> listed(["a", "b"], ["1", "2"])
    'a 1; b 2'
    """
    parts = [f"{name} {own}" for name, own in zip(names, told, strict=True)]
    more = [f"and {len(parts) - MOST} more"] if len(parts) > MOST else []
    return "; ".join(parts[:MOST] + more)
