"""False discoveries among one-sided p-values, counted by those that mirror them."""

from __future__ import annotations

import numpy as np

from dpmodels.typing import Floats


def mirrored(p_values: Floats) -> Floats:
    """Return the least level at which each hypothesis is rejected, shape (tests,); at most 1.

    Up to t the share of false ones is taken for ``(1 + #{p >= 1 - t})/#{p <= t}``; at level q the
    largest t is taken of which that is at most q. Ties are of one t; for p-values with few bits, of
    which 1 less one is exact, none is missed.
    """
    sizes = np.minimum(p_values, 1 - p_values)
    small = p_values <= 0.5
    order = np.argsort(sizes, kind="stable")
    last = np.searchsorted(sizes[order], sizes[order], side="right") - 1
    found, opposite = (np.cumsum(own[order])[last] for own in (small, ~small))
    estimates = np.minimum((1 + opposite) / np.maximum(found, 1), 1.0)
    levels = np.empty(len(p_values))
    levels[order] = np.minimum.accumulate(estimates[::-1])[::-1]
    return np.where(small, levels, 1.0)
