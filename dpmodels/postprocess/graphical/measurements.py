"""Released residual components of one table: by round, combined, and as margins (Theorem 74 b)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dpmodels.postprocess.residuals import (
    Term,
    cells,
    components,
    rebuilt,
    shape,
    split,
    subsets,
    unlike,
)
from dpmodels.postprocess.small_samples import DETECTION_SDS, HALF
from dpmodels.released import GraphRelease
from dpmodels.typing import Floats


@dataclass(frozen=True)
class Residuals:
    """Released residual components of the margins of one table."""

    sizes: tuple[int, ...]  # Levels of each variable, the last one for what is missing or unlisted
    # Each component in rows, in the shape of its variables; that of `()` is the number of rows.
    tables: Mapping[Term, Floats]
    # The noise sd of a cell of each before it was centred; 0 for a public number of rows.
    sds: Mapping[Term, float]

    @property
    def n_rows(self) -> float:
        """The number of rows, noisy unless it is public; at least 1."""
        return max(float(self.tables[()]), 1.0)

    @property
    def pairs(self) -> tuple[Term, ...]:
        """The pairs of variables that were released."""
        return tuple(term for term in self.tables if len(term) == 2)

    def table(self, term: Term) -> Floats:
        """Return the unbiased margin of a term; negative counts are possible."""
        return rebuilt(term, self.tables, self.sizes)

    def has_missing(self, i: int) -> bool:
        """Whether missing values of a variable, its last level, are detected above the noise."""
        sd = math.sqrt(self.cell_variance((i,)))
        return float(self.table((i,))[-1]) > max(DETECTION_SDS * sd, HALF)

    def cell_variance(self, term: Term) -> float:
        """Return the noise variance of each cell of :meth:`table`, in squared rows."""
        variances = (
            self.sds[part] ** 2
            * unlike(part, self.sizes)
            / math.prod(self.sizes[i] for i in term if i not in part) ** 2
            for part in subsets(term)
            if part in self.sds
        )
        return math.fsum(variances)


def residuals_from(
    values: Floats, sizes: tuple[int, ...], noise_sds: Mapping[Term, float], *, public_rows: bool
) -> Residuals:
    """Read one round of a release: its components one after another, the smaller first.

    With `public_rows` the first value is the exact number of rows, which `noise_sds` leaves out.
    """
    sds: dict[Term, float] = {**({(): 0.0} if public_rows else {}), **noise_sds}
    tables = {part: np.asarray(table) for part, table in split(values, sds, sizes).items()}
    return Residuals(sizes, tables, sds)


def rounds_of(release: GraphRelease, sizes: tuple[int, ...]) -> tuple[Residuals, ...]:
    """Read all rounds of a release of components."""
    result, position, n_read = [], 0, 0
    public_rows = release.adjacency.n_public
    for margins in release.margins:
        parts = components(margins)
        noisy = parts[int(public_rows) :]
        length = sum(cells(part, sizes) for part in parts)
        sds = dict(zip(noisy, release.noise_sds[n_read : n_read + len(noisy)], strict=True))
        values = release.values[position : position + length]
        result.append(residuals_from(values, sizes, sds, public_rows=public_rows))
        position, n_read = position + length, n_read + len(noisy)
    return tuple(result)


def combined(first: Residuals, second: Residuals) -> Residuals:
    """Combine two rounds by component, each by its precision."""
    tables, sds = dict(first.tables), dict(first.sds)
    for part, table in second.tables.items():
        left, right = sds.get(part, math.inf) ** 2, second.sds[part] ** 2
        fraction = 1.0 if right == 0 or math.isinf(left) else left / (left + right)
        earlier = tables.get(part, np.zeros(shape(part, first.sizes)))
        tables[part] = np.asarray(earlier + fraction * (table - earlier))
        sds[part] = math.sqrt(fraction * right)
    return Residuals(first.sizes, tables, sds)


def without_missing(released: Residuals) -> Residuals:
    """Return the components of rows without missing values, for variables where none are detected.

    Without their last level these have noise of the same form (Theorem 89 c).
    """
    is_left_out = [n > 1 and not released.has_missing(i) for i, n in enumerate(released.sizes)]
    sizes = tuple(n - less for n, less in zip(released.sizes, is_left_out, strict=True))
    tables = {
        part: centred_table(table[tuple(slice(sizes[i]) for i in part)])
        for part, table in released.tables.items()
    }
    return Residuals(sizes, tables, released.sds)


def on_simplex(table: Floats, total: float) -> Floats:
    """Return the nearest nonnegative table with a positive total, in Euclidean distance."""
    falling = np.sort(table, axis=None)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, table.size + 1)
    last = int(np.nonzero(falling > excess)[0][-1])
    return np.asarray(np.maximum(table - excess[last], 0.0))


def centred_table(table: Floats) -> Floats:
    """Return a table less its mean along each axis in turn."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return np.asarray(table)
