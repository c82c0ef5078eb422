"""Words that verbs and methods of several results take."""

from __future__ import annotations

from dpmodels.arguments import share, whole


def checked_level(level: float) -> float:
    """Return a coverage, or say what one is."""
    return share("level", level, ", such as 0.95")


def checked_ncomp(ncomp: object, columns: int) -> int:
    """Return a number of components, or say what one is; None stands for all."""
    if ncomp is None:
        return columns
    more = ", the number of coded columns of the formula, or None for all"
    return whole("ncomp", ncomp, 1, columns, more)
