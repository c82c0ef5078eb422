"""Rows that are read again and again, each time transformed by what was released."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.design import PrivateDesign, Scaling
from dpmodels.noise.lattice import Lattice, to_lattice
from dpmodels.statistics.statistic import Fingerprint, Statistic, digest_of, fingerprint
from dpmodels.statistics.turn import Turn, turn
from dpmodels.typing import Floats, Integers

# Sums of so many rows times the squared radius fit 64-bit integers.
FITS_INT64 = 2**62


class Passes(Statistic):
    """Exact moments of transformed rows, one pass over the rows for each transform.

    The designs hold disjoint rows in the unit ball, which can be read more than once.
    """

    __slots__ = ("_count_public", "_designs", "_lattice")

    def __init__(
        self, designs: tuple[PrivateDesign, ...], lattice: Lattice, *, count_public: bool
    ) -> None:
        facts = {**(designs[0].facts if designs else {}), "lattice": repr(lattice)}
        basis = fingerprint(facts, count_public=count_public)
        super().__init__("passes over the rows", np.zeros((0, 0), dtype=object), 0, basis)
        self._designs = designs
        self._lattice = lattice
        self._count_public = count_public

    def __add__(self, other: Statistic) -> Statistic:
        """Join passes over disjoint rows; an ArgumentError names what is not bound alike."""
        if not isinstance(other, Passes):
            return NotImplemented
        self._require(other)
        designs = self._designs + other._designs
        return Passes(designs, self._lattice, count_public=self._count_public)

    @property
    def scaling(self) -> Scaling:
        """How the rows are brought into the ball."""
        return self._designs[0].scaling

    def rescaled(self, scaling: Scaling) -> Passes:
        """Return passes over the same rows, brought into the ball by released values."""
        designs = tuple(design.rescaled(scaling) for design in self._designs)
        return Passes(designs, self._lattice, count_public=self._count_public)

    def measured(self, measure: Callable[..., Statistic], *words: object) -> Statistic:
        """Measure an additive statistic on all the rows."""
        public = self._count_public
        each = (measure(own, self._lattice, *words, count_public=public) for own in self._designs)
        return reduce(add, each)

    def cross(self) -> tuple[NDArray[Any], int]:
        """Hand over the augmented moments of the rows as they are."""
        return self.within(np.eye(self._lattice.columns)).cross()

    def within(self, transform: Floats) -> Statistic:
        """Sum ``z zᵀ`` over the rows exactly, with ``z = (2**bits, T x)`` on the lattice.

        T, shape (columns, columns), is finite and a function of released values and public facts.
        The rows ``T x`` are each held in the unit ball; an incomplete one adds zero everywhere.

        T is rounded to integers (:func:`dpmodels.statistics.turn.turn`), so that the products with
        integer rows are exact in any order; all that follows is done to each row by itself. The
        integer vector a row becomes has a norm of at most ``2**bits`` and is a function of T and
        that row alone.
        """
        whole = turn(transform, self._lattice)
        basis = self.fingerprint.also({"transform": digest_of(transform)})
        return reduce(add, (self._moments(design, whole, basis) for design in self._designs))

    def _moments(self, design: PrivateDesign, whole: Turn, basis: Fingerprint) -> Statistic:
        size, rows = self._lattice.columns + 1, 0
        total: NDArray[Any] = np.zeros((size, size), dtype=np.int64)

        def product(block: Floats) -> Integers:
            rows = turned(block, whole, self._lattice)
            return np.asarray((rows @ rows.T).astype(np.int64))

        products = design.blocks(product, self._lattice, count_public=self._count_public)
        for exact, count in products:
            rows += count
            if rows * 4**self._lattice.bits >= FITS_INT64:
                total = total.astype(object)
            total = total + exact
        exact = total.astype(object)
        return Statistic("moments of transformed rows", exact, rows, basis)


def turned(block: Floats, whole: Turn, lattice: Lattice) -> Floats:
    """Transform integer rows and bring them back into the ball and onto the lattice."""
    held = np.empty_like(block)
    held[0] = block[0]
    rows = held[1:]
    whole.times(block[1:], out=rows)
    # Halved until the largest coordinate is below two radii, a row stays outside the ball
    # where it was, and its square does not overflow.
    _, halvings = np.frexp(np.abs(rows).max(axis=0, initial=0.0) / (2 * lattice.radius))
    np.ldexp(rows, -np.maximum(halvings, 0), out=rows)
    columns = np.ones(lattice.columns)
    to_lattice(rows, columns / lattice.steps, 0 * columns, lattice)
    return held
