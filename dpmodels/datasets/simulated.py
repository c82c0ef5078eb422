"""Simulated rows of the papers on private covariance and principal components."""

from __future__ import annotations

import numpy as np

from dpmodels.typing import Floats, Integers

# Variances of the synthetic table of Chaudhuri, Sarwate and Sinha (2012).
NEAR_OPTIMAL_VARIANCES = (0.5, 0.30, 0.04, 0.03, 0.02, 0.01, 0.004, 0.003, 0.001, 0.001)


def zipf_rows(
    columns: int, rows: int = 50_000, power: float = 3.0, bins: int = 4, seed: int = 0
) -> Floats:
    """Return correlated normal rows whose lengths follow a Zipf law, shape (rows, columns).

    A row has length ``2**(i - bins)``, i from 1 to `bins`, with a probability proportional to
    ``i**-power``, as in Dong, W., Liang, Y. and Yi, K. (2022). "Differentially private covariance
    revisited." NeurIPS.

    Examples
    --------
    >>> zipf_rows(3, rows=5).shape
    (5, 3)
    """
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(rows, columns)) @ rng.uniform(size=(columns, columns))
    table -= table.mean(axis=0)
    weights = np.arange(1.0, bins + 1) ** -power
    lengths = 2.0 ** (rng.choice(bins, rows, p=weights / weights.sum()) + 1 - bins)
    return np.asarray(table * (lengths / np.linalg.norm(table, axis=1))[:, None])


def near_optimal_rows(rows: int = 5_000, seed: int = 0) -> Floats:
    """Return normal rows with ten given variances, shrunk into the unit ball: shape (rows, 10).

    From Chaudhuri, K., Sarwate, A. D. and Sinha, K. (2012). "Near-optimal differentially private
    principal components." NeurIPS.
    """
    rng = np.random.default_rng(seed)
    size = len(NEAR_OPTIMAL_VARIANCES)
    turned, _ = np.linalg.qr(rng.normal(size=(size, size)))
    table = (rng.normal(size=(rows, size)) * np.sqrt(NEAR_OPTIMAL_VARIANCES)) @ turned.T
    return np.asarray(table / np.maximum(np.linalg.norm(table, axis=1), 1.0)[:, None])


def indicator_rows(
    columns: int, rows: int, classes: int = 8, seed: int = 0
) -> tuple[Floats, Integers]:
    """Return rows of zeros and ones, shape (rows, columns), and labels 0 or 1, shape (rows,).

    A stand-in, of any shape, for tables of coded categories: rows come from a few classes, and the
    label depends on them.
    """
    rng = np.random.default_rng(seed)
    share = rng.beta(0.15, 0.6, size=(classes, columns))
    weights = 1.0 / np.arange(1, classes + 1)
    member = rng.choice(classes, rows, p=weights / weights.sum())
    table = (rng.random((rows, columns)) < share[member]).astype(float)
    return table, np.asarray(member % 2, dtype=np.int64)
