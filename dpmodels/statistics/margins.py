"""Exact numbers of rows in the cells of margins."""

from __future__ import annotations

from functools import reduce

import numpy as np

from dpmodels.design.margins import Codes, PrivateMargins
from dpmodels.postprocess.residuals import Term, cells, largest
from dpmodels.statistics.statistic import Statistic, additive, fingerprint
from dpmodels.typing import Integers


@additive
def margin_counts(private: PrivateMargins, *, count_public: bool) -> Statistic:
    """Count the rows of all margins that are in no other, in one pass.

    The integers are one margin after another, each with a level more of every variable, for what is
    missing or unlisted: every row adds 1 to one cell of each, and each adds up to the number of
    rows.
    """
    sizes = private.asked.sizes
    terms = largest(private.asked.terms)

    def counted(codes: list[Codes]) -> Integers:
        return np.concatenate([_counted(term, codes, sizes) for term in terms])

    total: Integers = np.zeros(sum(cells(term, sizes) for term in terms), dtype=np.int64)
    rows = 0
    for block, seen in private.blocks(counted, count_public=count_public):
        total += block
        rows += seen
    basis = fingerprint(private.facts, count_public=count_public)
    return Statistic("margins", total.astype(object), rows, basis)


def _counted(term: Term, codes: list[Codes], sizes: tuple[int, ...]) -> Integers:
    flat = reduce(lambda found, i: found * sizes[i] + codes[i], term[1:], codes[term[0]])
    return np.bincount(flat, minlength=cells(term, sizes))
