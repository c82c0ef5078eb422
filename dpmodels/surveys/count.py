"""Answers counted by stratum, with their weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpmodels.formula.tally import Tally
from dpmodels.surveys.read import Respondents
from dpmodels.typing import Floats


class Counted(NamedTuple):
    """Numbers of answers, sums of weights and of their squares, each (strata, cells)."""

    values: Floats
    weights: Floats
    squares: Floats
    incomplete: int


def counted_answers(who: Respondents, tally: Tally) -> Counted:
    """Count the answers; one that is missing or no declared level makes a respondent incomplete."""
    shape = max(len(who.strata), 1), tally.cells
    sums = np.zeros((3, shape[0] * shape[1]))
    rows = 0
    for columns, weights, strata in who.chunks():
        cells = tally.place(columns).cells
        known = (cells >= 0) & (strata >= 0) & ~np.isnan(weights)
        places = strata[known] * tally.cells + cells[known]
        own = weights[known]
        for place, each in enumerate((np.ones_like(own), own, own**2)):
            sums[place] += np.bincount(places, each, sums.shape[1])
        rows += len(cells)
    values, weighed, squares = sums.reshape(3, *shape)
    return Counted(values, weighed, squares, rows - round(float(values.sum())))
