"""Step-up procedures on p-values, where some hypotheses were not tested."""

from __future__ import annotations

from typing import Final

import numpy as np

from dpmodels.typing import Floats

METHODS: Final = {"bh": "fdr_bh", "by": "fdr_by"}
NAMES: Final = {"bh": "Benjamini-Hochberg", "by": "Benjamini-Yekutieli", "adapt": "AdaPT"}


def adjusted(p_values: Floats, hypotheses: int, method: str) -> Floats:
    """Return adjusted p-values, shape (tests,); those up to q are rejected at level q.

    `hypotheses` is the number of all hypotheses; untested ones have the p-value 1. A p-value of nan
    stays nan and counts as 1. `method` is "bh" or "by".
    """
    from statsmodels.stats.multitest import multipletests  # Slow to import

    padded = np.ones(hypotheses)
    padded[: len(p_values)] = np.where(np.isnan(p_values), 1.0, p_values)
    result = multipletests(padded, method=METHODS[method])[1][: len(p_values)]
    return np.where(np.isnan(p_values), np.nan, result)


def cut_offs(hypotheses: int, q: float, method: str) -> Floats:
    """Return the threshold for the p-value of each rank, shape (hypotheses,)."""
    ranks = np.arange(1, hypotheses + 1)
    among = float((1 / ranks).sum()) if method == "by" else 1.0
    return np.asarray(q * ranks / (hypotheses * among), dtype=np.float64)


# False discoveries among one-sided p-values, estimated from the reflected ones.


def mirrored(p_values: Floats) -> Floats:
    """Return the smallest level at which each hypothesis is rejected, shape (tests,); at most 1.

    The false discovery proportion up to t is estimated by ``(1 + #{p >= 1 - t})/#{p <= t}``; at
    level q the largest t with an estimate of at most q is used. Tied p-values have the same t; for
    p-values with few bits, for which 1 - p is exact, ties are exact.
    """
    sizes = np.minimum(p_values, 1 - p_values)
    small = p_values <= 0.5
    order = np.argsort(sizes, kind="stable")
    last = np.searchsorted(sizes[order], sizes[order], side="right") - 1
    n_small, opposite = (np.cumsum(indicator[order])[last] for indicator in (small, ~small))
    estimates = np.minimum((1 + opposite) / np.maximum(n_small, 1), 1.0)
    levels = np.empty(len(p_values))
    levels[order] = np.minimum.accumulate(estimates[::-1])[::-1]
    return np.where(small, levels, 1.0)
