"""Estimates on the cells of one table, some of whose margins were released with noise.

*Estimator.* Let W be the expected counts of the cells by a model, T the released margins with the
projection G' of a table to them, and V positive weights. The corrected counts are
``W* = W + V G λ`` with ``G' W* = T``: the calibration estimator of survey sampling (Deville and
Särndal 1992), with the model as the auxiliary table. An estimate solves ``Σ W*(c) ψ(c; θ) = 0``.

Privacy noise of the estimating function is that of a linear function of the released margins, and
the model has no part in it where ψ is in the span of G (Theorem 75).

What ψ has outside the span is estimated by the model alone: it is as right as the independence that
the model assumes. The sampling covariance of the estimating function is that of ψ over the rows,
computed from W: a sandwich whose meat needs no further release.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array, hstack

from dpmodels.errors import NotAvailable
from dpmodels.postprocess.graphical.measurements import Residuals
from dpmodels.postprocess.residuals import Term, cells, largest, shape, subsets, summed
from dpmodels.typing import Floats

# Cells of a table, and of all margins it is corrected to: choices.
MOST_CELLS, MOST_SUMS = 200_000, 4_000
# Weight of a cell without rows as a share of the mean, and a ridge as a share of the largest sum.
FLOOR, RIDGE = 0.01, 1e-10


@dataclass(frozen=True, eq=False)
class ReleasedCells:
    """The table of some variables: a model of it, and the released margins inside it."""

    term: Term  # Its variables, increasing
    # Expected counts, an axis a variable, the last level of each for missing values; positive.
    model: Floats
    released: Residuals
    # Rows that may be one person's: the sampling variance is so many times that of rows.
    effect: int = 1

    @cached_property
    def margins(self) -> tuple[Term, ...]:
        """The largest released margins of these variables."""
        return largest(part for part in subsets(self.term) if part in self.released.tables)

    @cached_property
    def _sums(self) -> csr_array:
        """G: an indicator of each cell of each margin, shape (cells, sums)."""
        sizes = self.released.sizes
        n_sums = sum(cells(margin, sizes) for margin in self.margins)
        if self.model.size > MOST_CELLS or n_sums > MOST_SUMS:
            raise NotAvailable(
                f"the table of these {len(self.term)} variables has {self.model.size:,} cells and "
                f"{n_sums:,} released sums; estimates are made of at most {MOST_CELLS:,} and "
                f"{MOST_SUMS:,}: name fewer variables, or cut numbers into fewer cells"
            )
        positions = np.indices(self.model.shape).reshape(len(self.term), -1)
        return csr_array(hstack([self._indicators(margin, positions) for margin in self.margins]))

    def _indicators(self, margin: Term, positions: np.ndarray) -> csr_array:
        sizes, n_cells = self.released.sizes, positions.shape[1]
        axes = tuple(positions[self.term.index(i)] for i in margin)
        columns = np.ravel_multi_index(axes, shape(margin, sizes)) if margin else np.zeros(n_cells)
        entries = (np.ones(n_cells), (np.arange(n_cells), columns))
        return csr_array(entries, shape=(n_cells, cells(margin, sizes)))

    @cached_property
    def _weights(self) -> Floats:
        return np.asarray(self.model.ravel() + FLOOR * self.model.mean())

    @cached_property
    def _factor(self) -> tuple[Floats, bool]:
        gram = (self._sums.T @ (self._sums * self._weights[:, None])).toarray()
        gram[np.diag_indices_from(gram)] += RIDGE * gram.diagonal().max()
        return cho_factor(gram)

    @cached_property
    def corrected(self) -> Floats:
        """W*, with the released margins; cells may be negative. Shape (cells,)."""
        excess = [
            (self.released.table(margin) - summed(self.model, self.term, margin)).ravel()
            for margin in self.margins
        ]
        multipliers = cho_solve(self._factor, np.concatenate(excess))
        return np.asarray(self.model.ravel() + self._weights * (self._sums @ multipliers))

    def noise(self, scores: Floats) -> Floats:
        """Return the noise covariance of ``Σ W* ψ``; `scores` are ψ, shape (cells, k)."""
        sums = self._sums.T @ (scores * self._weights[:, None])
        ends = np.cumsum([cells(margin, self.released.sizes) for margin in self.margins])
        solved = np.split(cho_solve(self._factor, sums), ends[:-1])
        return noise_of(dict(zip(self.margins, solved, strict=True)), self.released)

    def sampling(self, scores: Floats) -> Floats:
        """Return the covariance of ``Σ ψ`` over the rows by sampling; shape (k, k)."""
        return sampled(scores, self.model.ravel(), self.effect)


def sampled(scores: Floats, counts: Floats, effect: int) -> Floats:
    """Return the covariance of sums of scores over rows with these expected counts."""
    mean = counts @ scores / counts.sum()
    away = scores - mean
    return np.asarray(effect * (away.T @ (counts[:, None] * away)))


def noise_of(tables: Mapping[Term, Floats], released: Residuals) -> Floats:
    """Return the noise covariance of sums of released margins times weights.

    `tables` has the weights of each margin's cells, shape (cells, k). A margin is made of its
    components A, whose noise is independent with covariance ``σ_A² ⊗(I − J/n)``.
    """
    sizes, by_part = released.sizes, dict[Term, Floats]()
    for margin, weights in tables.items():
        table = weights.reshape(*shape(margin, sizes), -1)
        for part in subsets(margin):
            axes = tuple(k for k, i in enumerate(margin) if i not in part)
            spread = math.prod(sizes[i] for i in margin if i not in part)
            by_part[part] = by_part.get(part, 0.0) + table.sum(axis=axes) / spread
    total: Floats = np.zeros((1, 1))
    for part, table in by_part.items():
        for axis in range(len(part)):
            table = table - table.mean(axis=axis, keepdims=True)
        root = released.sds[part] * table.reshape(-1, table.shape[-1])
        total = total + root.T @ root
    return np.asarray(total)
