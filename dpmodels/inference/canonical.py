"""Canonical correlations from noisy moments, and where the exact ones can lie.

With both blocks of columns whitened by their released covariances, canonical correlations are the
singular values ρ of the cross block, and ``±ρ`` and zeros the eigenvalues of the pencil
``J - ρ B``, J the cross blocks and B those on the diagonal [1]_. Noise moves an eigenvalue as the
symmetric matrix ``F = E_J - ρ E_B`` in whitened coordinates does:

- by no more than its norm, whatever the other eigenvalues are (Weyl). For the norm stands twice the
  root of the largest eigenvalue of ``E F²``, where the noise in eigenvalues of large matrices ends
  and beyond the mean norm of small ones, and the deviation of one eigenvalue besides;
- by ``f_kk + Σ_j f_jk²/(ρ_k - ρ_j)`` to second order, where all others are far away [2]_. The
  second term has its mean taken off and its variance added.

The second holds where the variate turns by little, ``Σ_j E f_jk²/(ρ_k - ρ_j)² <=`` :data:`TURNED`.
Where noise leaves a block without an inverse a ridge brings it to two edges of its noise; what the
ridge takes off the correlations is not known, and intervals are from 0 to 1.

.. [1] Hotelling, H. (1936). "Relations between two sets of variates." Biometrika 28, 321-377.
.. [2] Stewart, G. W. and Sun, J. (1990). Matrix Perturbation Theory. Academic Press.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpmodels.postprocess.solve import HELD, SEARCHED, NormalEquations
from dpmodels.typing import Floats

# A choice: the largest mean squared turn of a variate whose correlation is taken for apart.
TURNED = 0.05


@dataclass(frozen=True)
class Side:
    """One set of columns: `ways` are they less their means, as combinations of a row's entries."""

    ways: Floats
    scatter: Floats
    ridge: float
    told: bool

    @cached_property
    def whitening(self) -> Floats:
        """The inverse root of the scatter, ridge included, shape (columns, columns)."""
        values, axes = np.linalg.eigh(self.scatter + self.ridge * np.eye(len(self.scatter)))
        return np.asarray((axes / np.sqrt(values)) @ axes.T)


def side(equations: NormalEquations, columns: slice) -> Side:
    """Return some columns, of which noise may hide the least, or all."""
    entries = np.eye(len(equations.moments))
    own = replace(equations, regressors=np.hstack([entries[:, :1], entries[:, 1:][:, columns]]))
    values = np.linalg.eigvalsh(own.scatter)
    needed = 0.0 if own.strength >= SEARCHED else HELD * own.edge
    told = bool(values[-1] > HELD * own.edge)
    return Side(own.centred, own.scatter, max(needed - float(values[0]), 0.0), told)


@dataclass(frozen=True)
class Canonical:
    """Canonical correlations of two sides, of moments with noise of known law.

    `left` and `right`, shape (columns, pairs), multiply the columns; the sums of squares of the
    variates are 1.
    """

    equations: NormalEquations
    sides: tuple[Side, Side]

    @property
    def told(self) -> bool:
        """Whether both sides have a direction that stands clear of the noise."""
        return self.sides[0].told and self.sides[1].told

    @property
    def ridged(self) -> bool:
        """Whether a ridge was needed."""
        return any(own.ridge > 0 for own in self.sides)

    @cached_property
    def _ways(self) -> tuple[Floats, Floats]:
        """Whitened columns, as combinations of a row's entries."""
        one, other = (own.ways @ own.whitening for own in self.sides)
        return one, other

    @cached_property
    def _singular(self) -> tuple[Floats, Floats, Floats]:
        left, right = self._ways
        u, values, v = np.linalg.svd(left.T @ self.equations.moments @ right)
        return u, values, v.T

    @property
    def correlations(self) -> Floats:
        """The canonical correlations, largest first, at most 1."""
        return np.minimum(self._singular[1], 1.0)

    @property
    def left(self) -> Floats:
        """Coefficients of the left columns."""
        u, values, _ = self._singular
        return np.asarray(self.sides[0].whitening @ u[:, : len(values)])

    @property
    def right(self) -> Floats:
        """Coefficients of the right columns."""
        _, values, v = self._singular
        return np.asarray(self.sides[1].whitening @ v[:, : len(values)])

    @cached_property
    def _pencil(self) -> tuple[Floats, Floats]:
        """All eigenvalues, and their vectors by columns in whitened coordinates."""
        u, values, v = self._singular
        pairs, p, q = len(values), len(u), len(v)
        vectors = np.zeros((p + q, p + q))
        half = math.sqrt(0.5)
        for at, sign in ((slice(0, pairs), 1), (slice(pairs, 2 * pairs), -1)):
            vectors[:p, at], vectors[p:, at] = u[:, :pairs] * half, sign * v[:, :pairs] * half
        vectors[:p, 2 * pairs : p + pairs] = u[:, pairs:]
        vectors[p:, p + pairs :] = v[:, pairs:]
        return np.concatenate([values, -values, np.zeros(p + q - 2 * pairs)]), vectors

    def _moved(self, one: int, other: int, rho: float) -> float:
        """Return the variance of the entry of F between two eigenvectors."""
        left, right = self._ways
        p, vectors = left.shape[1], self._pencil[1]
        x, y = left @ vectors[:p, [one, other]], right @ vectors[p:, [one, other]]
        crossed = np.outer(x[:, 0], y[:, 1]) + np.outer(y[:, 0], x[:, 1])
        own = np.outer(x[:, 0], x[:, 1]) + np.outer(y[:, 0], y[:, 1])
        weights = crossed - rho * own
        return self.equations.form_sd((weights + weights.T) / 2) ** 2

    def edge(self, rho: float) -> float:
        """Return where the noise in eigenvalues of the pencil at ρ ends."""
        left, right = self._ways
        by_left, by_right = (self.equations.noise_of(own @ own.T) for own in (left, right))
        both = -rho * (left.T @ (by_left + by_right) @ right)
        squared = [
            [left.T @ (rho**2 * by_left + by_right) @ left, both],
            [both.T, right.T @ (rho**2 * by_right + by_left) @ right],
        ]
        return 2 * math.sqrt(max(float(np.linalg.eigvalsh(np.block(squared))[-1]), 0.0))

    @cached_property
    def _apart(self) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
        """First-order variance, bias, second-order variance, and whether each is apart."""
        values, found = self._pencil[0], []
        for k, rho in enumerate(self.correlations):
            others = np.delete(np.arange(len(values)), k)
            gaps = values[k] - values[others]
            moved = np.array([self._moved(k, int(j), float(rho)) for j in others])
            with np.errstate(divide="ignore", invalid="ignore"):
                shares = moved / gaps**2
            turned = float(shares.sum())
            if not turned <= TURNED:
                found.append((self._moved(k, k, float(rho)), 0.0, 0.0, 0.0))
                continue
            second = 2 * float((moved * shares).sum())
            found.append((self._moved(k, k, float(rho)), float((moved / gaps).sum()), second, 1.0))
        table = np.array(found, dtype=np.float64).T
        return table[0], table[1], table[2], table[3] > 0

    @property
    def apart(self) -> NDArray[np.bool_]:
        """Whether each correlation, and its variates, is far enough from all others."""
        return self._apart[3]

    @property
    def noise_sd(self) -> Floats:
        """Noise sd of each correlation to first order, as if it were apart."""
        return np.asarray(np.sqrt(self._apart[0]))

    def noise_ends(self, level: float) -> Floats:
        """Return where the exact correlations can lie, shape (pairs, 2), within [0, 1]."""
        values = self.correlations
        if self.ridged or not self.told:
            return np.tile([0.0, 1.0], (len(values), 1))
        width = float(ndtri((1 + level) / 2))
        variance, bias, more, apart = self._apart
        edges = np.array([self.edge(float(rho)) for rho in values])
        whole = edges + width * np.sqrt(variance)
        own = width * np.sqrt(variance + more)
        middle = np.where(apart, values - bias, values)
        half = np.where(apart, np.minimum(own, whole), whole)
        return np.asarray(np.clip(np.column_stack([middle - half, middle + half]), 0.0, 1.0))


def canonical(equations: NormalEquations, left: int) -> Canonical:
    """Return the canonical correlations of the first columns, so many, with the others."""
    pair = side(equations, slice(None, left)), side(equations, slice(left, None))
    return Canonical(equations, pair)
