"""The way of a histogram of two numbers: which cells of their plane rows are counted in."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from dpmodels.arguments import several
from dpmodels.errors import ArgumentError, said
from dpmodels.formula.breaks import binned
from dpmodels.formula.sides import Sides, measured
from dpmodels.formula.tally import Tally
from dpmodels.formula.values import Real
from dpmodels.models.crossing import Way
from dpmodels.models.describing import described_way
from dpmodels.question import Question
from dpmodels.results.plane import PlaneResult

# A choice: cells of all groups together, whose counts and sums are held at once.
MOST_CELLS = 5_000_000

Ends = tuple[float, ...]


def in_plane(both: Sides) -> bool:
    """Whether a formula describes two numbers."""
    return len(both.described) == 2 and all(isinstance(own, Real) for own in both.described)


def plane_way(question: Question, both: Sides) -> Way[PlaneResult]:
    """Return the way of a question about two numbers."""
    tally, (along, across), variables = plane_bins(both, question.words["breaks"])
    made = partial(PlaneResult, along=np.array(along), across=np.array(across), variables=variables)
    shape = (math.prod(tally.shape[:-2]), *tally.shape[-2:])
    return described_way(question, both, (tally,), made, shape=shape)


def plane_bins(both: Sides, breaks: object) -> tuple[Tally, tuple[Ends, Ends], tuple[str, str]]:
    """Return the table of a plane, the ends of the bins of both numbers, and what is counted."""
    numbers = tuple(map(measured, both.described))
    pair = _pair(breaks)
    _require_room(pair, math.prod(len(own.levels) for own in both.groups))
    (first, along), (second, across) = (binned(*own) for own in zip(numbers, pair, strict=True))
    tally = Tally((*both.groups, first, second), most=MOST_CELLS)
    return tally, (along, across), (numbers[0].code, numbers[1].code)


def _pair(breaks: object) -> tuple[Any, Any]:
    """Return the breaks of each number, from one for both or a pair; those that are many listed."""
    if isinstance(breaks, int | np.integer):
        return breaks, breaks
    own = [list(one) if several(one) else one for one in breaks] if several(breaks) else []
    if len(own) != 2:
        given = f"a sequence of {len(own)}" if several(breaks) else said(breaks)
        raise ArgumentError(
            f"breaks={given}: the formula has two numbers; write a number of bins for both, or a "
            "pair with a number of bins or their ends for each, such as breaks=(256, 256)"
        )
    return own[0], own[1]


def _require_room(pair: tuple[Any, Any], groups: int) -> None:
    """Refuse more cells than are counted at once, before any of them has a name."""
    along, across = (len(own) - 1 if isinstance(own, list) else own for own in pair)
    counted = all(isinstance(own, int | np.integer) for own in (along, across))
    if counted and int(along) * int(across) * groups > MOST_CELLS:
        of = f" of {groups:,} groups" if groups > 1 else ""
        raise ArgumentError(
            f"breaks=({along}, {across}): {int(along) * int(across) * groups:,} cells{of}; at most "
            f"{MOST_CELLS:,} are counted. Write fewer bins"
        )
