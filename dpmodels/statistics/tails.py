"""Exact fourth moments of rows in a ball, and how much larger the rows are than in it."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dpmodels.design import PrivateDesign
from dpmodels.noise.lattice import Lattice
from dpmodels.privacy import Adjacency
from dpmodels.statistics.scattered import additive
from dpmodels.statistics.statistic import Statistic, summed
from dpmodels.typing import Floats, Integers

# Covers the rounding of a few products of floats.
_ROUND_DOWN: Final = 1 - 1e-12


def square_unit(adjacency: Adjacency, lattice: Lattice, limits: tuple[float, ...]) -> float:
    """Return the unit of squared coordinates in which fourth moments move by ``4**bits`` at most.

    `limits` are public bounds on the absolute coordinates of a row, in units of the ball.

    *Proof.* A row y of integers of norm at most R = ``2**bits`` becomes ``q_i = ⌊g y_i²⌋``, with
    ``y_i²`` no more than ``c_i²``, ``c_i = R min(limit_i, 1)``. It adds ``q qᵀ``: entries that are
    not negative, of Frobenius norm ``|q|² <= g² min(R⁴, Σ c_i⁴)``, as ``Σ q_i <= g R²``. Two rows
    differ by the entrywise maximum of both at most, ``g² Σ c_i⁴``, and, as their inner product is
    not negative, by ``√2 g² R⁴``. So with ``g² = R²/min(√2 R⁴, Σ c_i⁴)`` the sensitivity is R², and
    with R⁴ instead of ``√2 R⁴`` where a row is added or removed. No q_i exceeds R, as neither bound
    is below ``c_i⁴``.
    """
    ball = math.sqrt(2) if adjacency.n_public else 1.0
    box = math.fsum(min(limit, 1.0) ** 4 for limit in limits)
    return _ROUND_DOWN / (lattice.radius * math.sqrt(min(ball, box) or 1.0))


@additive
def fourth_moments(
    design: PrivateDesign,
    lattice: Lattice,
    limits: tuple[float, ...],
    unit: float,
    *,
    count_public: bool,
) -> Statistic:
    """Sum ``q qᵀ`` over the rows exactly, q the squared coordinates in a unit.

    An incomplete row adds zero; :func:`square_unit` proves the sensitivity.
    """
    most = (np.minimum(np.array(limits), 1.0) * lattice.radius) ** 2

    def products(block: Floats) -> Integers:
        squares = np.floor(np.minimum(block[1:] ** 2, most[:, None]) * unit)
        return np.asarray((squares @ squares.T).astype(np.int64))

    facts = {"limits": str(limits), "unit": repr(unit)}
    return summed("fourth moments", products, design, lattice, facts, count_public)


@additive
def increments_beyond(
    design: PrivateDesign,
    lattice: Lattice,
    inner: float,
    limits: tuple[float, ...],
    units: int,
    *,
    count_public: bool,
) -> Statistic:
    """Sum how much larger the squares of rows are than those of the rows clipped to `inner`.

    `inner` is a fraction of the ball's radius, `limits` are public bounds on the absolute
    coordinates of a row in units of the ball. A row u, clipped to v, adds the largest of
    ``(u_i² - v_i²)/limit_i²`` and ``(|u|² - |v|²)/(1 - inner²)``, a number from 0 to 1, in `units`
    and rounded up. So the sensitivity is `units`, for either adjacency; an incomplete row adds 0.
    """
    most = np.array(limits) ** 2
    most[most == 0] = np.inf
    space = max(1 - inner**2, 0.0) or 1.0

    def counted(block: Floats) -> Integers:
        squares = (block[1:] / lattice.steps) ** 2
        lengths = np.zeros(squares.shape[1])
        for line in squares:
            lengths += line
        excess = np.maximum(lengths - inner**2, 0.0)
        fraction = excess / np.where(lengths > 0, lengths, 1.0)
        largest = np.maximum((squares / most[:, None]).max(axis=0) * fraction, excess / space)
        return np.array(np.ceil(np.minimum(largest, 1.0) * units).sum(), dtype=np.int64).reshape(1)

    facts = {"inner": repr(inner), "limits": str(limits), "units": str(units)}
    return summed("increments beyond a ball", counted, design, lattice, facts, count_public)
