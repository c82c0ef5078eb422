"""What crosses to an adversary who holds a result of this package: the numbers of its release."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpmodels.digest import in_order
from dpmodels.typing import Floats

# Public before a row is read, or a function of the plan.
_PLANNED: Final = frozenset(
    {"card", "guarantee", "adjacency", "events", "simulated", "limit", "law", "ordered"}
)
_MOST_SQUARED: Final = 16  # columns up to which directions are handed over as squares


def numbers(release: Any) -> Floats:
    """Lay out a release, or a part of one, as one line of numbers, shape (k,).

    Symmetric matrices are handed over on and above the diagonal, orthonormal directions, whose
    signs mean nothing, as the squares ``v vᵀ``.
    """
    parts = []
    for name in in_order(release):
        value = getattr(release, name)
        if name in _PLANNED or value is None or name.endswith("_sd"):
            continue
        if name == "frame":
            parts.append(_squares(value))
        elif name == "places":
            parts.append(np.array(value, dtype=np.float64))
        elif isinstance(value, np.ndarray):
            parts.append(_once(value))
        elif is_dataclass(value) and not name.endswith("noise"):
            parts.append(numbers(value))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            parts.append(np.array([float(value)]))
    return np.concatenate(parts) if parts else np.empty(0)


def _once(value: NDArray[Any]) -> Floats:
    square = value.ndim == 2 and value.shape[0] == value.shape[1]
    if square and np.array_equal(value, value.T):
        value = value[np.triu_indices(len(value))]
    return np.ravel(value).astype(np.float64)


def _squares(frame: Floats) -> Floats:
    if len(frame) > _MOST_SQUARED:
        return np.ravel(frame)
    upper = np.triu_indices(len(frame))
    return np.concatenate([np.outer(one, one)[upper] for one in frame.T])
