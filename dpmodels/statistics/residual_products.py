"""Exact products of all columns, and what columns have in common with residuals of a released fit.

Rows lie in the box of :mod:`dpmodels.statistics.associations`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from dpmodels.design import PrivateDesign
from dpmodels.noise.lattice import Lattice
from dpmodels.privacy import Adjacency
from dpmodels.statistics.associations import box_sums
from dpmodels.statistics.statistic import Statistic, additive

# Parts that coefficients are multiples of: rounded, they are off by less than noise is.
PARTS = 2**20


@additive
def products(design: PrivateDesign, lattice: Lattice, *, count_public: bool) -> Statistic:
    """Sum ``z zᵀ`` over rows ``z = (1, x, y)`` of a box, exactly; shape (columns + 1, columns + 1).

    The design and the blocks are as for :func:`dpmodels.statistics.associations.associations`.
    """
    size = lattice.columns + 1
    return box_sums("products", size, lambda z: z @ z.T, design, lattice, count_public=count_public)


@dataclass(frozen=True)
class ReleasedFit:
    """Coefficients that were released: ``r = y - a - Σ b_s x_s``, in parts of a lattice step."""

    centre: int  # a
    places: tuple[int, ...] = ()  # Of the columns, from 0
    slopes: tuple[int, ...] = ()  # b_s

    @property
    def stretch(self) -> int:
        """The parts of a half-range that r can be away from ``-a``: those of y and of each x."""
        return PARTS + sum(map(abs, self.slopes))

    def longest(self, most: int) -> int:
        """Return the largest ``|r|`` of any row of the box, in parts."""
        return abs(self.centre) + self.stretch * most


def residual_products(exact: NDArray[Any], fit: ReleasedFit) -> NDArray[Any]:
    """Return ``S_j = Σ x_j r`` for each x, exactly, in parts."""
    found: NDArray[Any] = PARTS * exact[-1, 1:-1] - fit.centre * exact[0, 1:-1]
    for place, slope in zip(fit.places, fit.slopes, strict=True):
        found = found - slope * exact[place + 1, 1:-1]
    return found


def residual_change(adjacency: Adjacency, most: int, fit: ReleasedFit) -> int:
    """Return how far one row moves each ``S_j``, and each ``|S_j|``, in parts.

    A row adds ``x_j r`` to it, or nothing where it is incomplete, and ``|x_j r| <= R Q`` with the
    largest residual Q of the box (`longest`), which is a function of released numbers. That is all
    under ``add-remove``, and twice that under ``replace``. All columns together can move by so
    much each, some up and some down.
    """
    return (2 if adjacency.n_public else 1) * most * fit.longest(most)


def residual_scatter(exact: NDArray[Any], fit: ReleasedFit, place: int) -> int:
    """Return ``⌊Σ (x - x̄)(r - r̄) / stretch⌋`` of one column, exactly; 0 where there is no row.

    x is in an interval of half-length R, ``r / stretch`` too, whatever the row. So one row moves it
    by ``4 R²`` at most, as it does ``Σ (x - x̄)(y - ȳ)``, for either adjacency.
    """
    rows = max(int(exact[0, 0]), 1)
    own = rows * exact[place + 1] - exact[0, place + 1] * exact[0]
    scatter = PARTS * own[-1]
    for other, slope in zip(fit.places, fit.slopes, strict=True):
        scatter -= slope * own[other + 1]
    return int(scatter // (rows * fit.stretch))
