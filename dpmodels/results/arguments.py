"""Words that methods of several results take."""

from __future__ import annotations

import numpy as np

from dpmodels.errors import ArgumentError, said


def checked_level(level: float) -> float:
    """Return a coverage, or say what one is."""
    if not (isinstance(level, float) and 0 < level < 1):
        raise ArgumentError(f"level={said(level)}: expected a number between 0 and 1, such as 0.95")
    return level


def checked_ncomp(ncomp: object, columns: int) -> int:
    """Return a number of components, or say what one is; None stands for all."""
    if ncomp is None:
        return columns
    whole = isinstance(ncomp, int | np.integer) and not isinstance(ncomp, bool)
    if not whole or not 1 <= ncomp <= columns:  # type: ignore[operator]
        raise ArgumentError(
            f"ncomp={said(ncomp)}: expected a whole number from 1 to {columns}, the number of "
            "coded columns of the formula, or None for all"
        )
    return int(ncomp)  # type: ignore[call-overload,no-any-return]
