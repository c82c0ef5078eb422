"""Step-up procedures on p-values, of which some are those of hypotheses nobody looked at."""

from __future__ import annotations

from typing import Final

import numpy as np

from dpmodels.typing import Floats

METHODS: Final = {"bh": "fdr_bh", "by": "fdr_by"}
NAMES: Final = {"bh": "Benjamini-Hochberg", "by": "Benjamini-Yekutieli", "adapt": "AdaPT"}


def adjusted(p_values: Floats, hypotheses: int, method: str) -> Floats:
    """Return adjusted p-values, shape (tests,): rejected at q are those of q or less.

    `hypotheses` is how many there are, of which those without a p-value have 1; where one is nan,
    so is its adjusted one, and it counts as 1. `method` is "bh" or "by".
    """
    from statsmodels.stats.multitest import multipletests  # Dear to import

    padded = np.ones(hypotheses)
    padded[: len(p_values)] = np.where(np.isnan(p_values), 1.0, p_values)
    result = multipletests(padded, method=METHODS[method])[1][: len(p_values)]
    return np.where(np.isnan(p_values), np.nan, result)


def cut_offs(hypotheses: int, q: float, method: str) -> Floats:
    """Return what the p-value of each rank is held against, shape (hypotheses,)."""
    ranks = np.arange(1, hypotheses + 1)
    among = float((1 / ranks).sum()) if method == "by" else 1.0
    return np.asarray(q * ranks / (hypotheses * among), dtype=np.float64)


# False discoveries among one-sided p-values, counted by those that mirror them.


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
    n_small, opposite = (np.cumsum(indicator[order])[last] for indicator in (small, ~small))
    estimates = np.minimum((1 + opposite) / np.maximum(n_small, 1), 1.0)
    levels = np.empty(len(p_values))
    levels[order] = np.minimum.accumulate(estimates[::-1])[::-1]
    return np.where(small, levels, 1.0)
