"""Exact numbers of rows by the place of their number in its public range."""

from __future__ import annotations

import numpy as np

from dpmodels.design.cells import PrivateCells
from dpmodels.formula.tally import Placed
from dpmodels.statistics.statistic import Statistic, additive, digest_of, fingerprint
from dpmodels.typing import Floats, Integers


@additive
def place_counts(private: PrivateCells, ends: Floats, *, count_public: bool) -> Statistic:
    """Count complete rows of one table by the cell that their number lies in, all groups as one.

    `ends`, shape (cells + 1,), are in the number's unit and rise from its lower bound to its upper
    one. Cell k is of numbers above ``ends[k]`` and up to ``ends[k + 1]``, the first with its lower
    end. A complete row adds 1 to one cell and an incomplete one nothing, so the L1 sensitivity is 2
    when a row is replaced, 1 when it is added or removed; the L2 sensitivity √2 and 1.
    """
    cells = len(ends) - 1
    inner = (ends[1:-1] - ends[0]) / (ends[-1] - ends[0])
    total, rows = np.zeros(cells, dtype=np.int64), 0

    def counted(placed: tuple[Placed, ...]) -> Integers:
        (own,) = placed
        assert own.positions is not None
        at = np.searchsorted(inner, own.positions[own.cells >= 0])
        return np.bincount(at, minlength=cells)

    for found, seen in private.blocks(counted, count_public=count_public):
        total += found
        rows += seen
    facts = {**private.facts, "ends of cells": digest_of(ends)}
    basis = fingerprint(facts, count_public=count_public)
    return Statistic("rows by place", total.astype(object), rows, basis)
