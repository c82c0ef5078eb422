"""Invented rows with a chosen spectrum: what a strategy is tried on before any data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import hadamard

from dpmodels.codebook import Codebook
from dpmodels.design import PrivateDesign, private_design
from dpmodels.mechanisms import Plan
from dpmodels.mechanisms.choose import Mechanism
from dpmodels.statistics import Statistic
from dpmodels.typing import Floats

LEAST_ROWS = 1024
# Statistics that do not add over rows need every row, several times.
MOST_ROWS_IN_PASSES = 20_000


@dataclass(frozen=True)
class Invented:
    """Invented rows of the unit ball, all of one length.

    Attributes
    ----------
    block : ndarray, shape (columns, block rows)
        Rows whose mean is zero and whose second moment is the chosen one.
    rows : int
        How many rows there are: the block as often as it fits, then its first
        rows once more.
    """

    block: Floats
    rows: int

    @property
    def whole(self) -> int:
        """How often the block fits."""
        return self.rows // len(self.block.T)

    @property
    def rest(self) -> Floats:
        """The rows that are left."""
        return self.block[:, : self.rows % len(self.block.T)]

    def covariance(self, *, centred: bool) -> Floats:
        """Return the covariance of all rows, or their second moment about 0."""
        second = self.whole * (self.block @ self.block.T) + self.rest @ self.rest.T
        if not centred:
            return np.asarray(second / self.rows)
        total = self.whole * self.block.sum(axis=1) + self.rest.sum(axis=1)
        return np.asarray((second - np.outer(total, total) / self.rows) / max(self.rows - 1, 1))

    def measured(self, strategy: Mechanism, plan: Plan) -> Statistic | None:
        """Return a strategy's statistic of all rows, None where they are too many for it."""
        first = strategy.measure(_design(self.block if self.whole else self.rest), plan)
        if type(first) is not Statistic:
            if self.rows > MOST_ROWS_IN_PASSES:
                return None
            everything = np.concatenate([*[self.block] * self.whole, self.rest], axis=1)
            return strategy.measure(_design(everything), plan)
        if not self.whole:
            return first
        exact, rows = first.cross()
        every = exact.astype(object) * self.whole
        repeated = Statistic(first.name, every, rows * self.whole, first.fingerprint)
        if not self.rest.size:
            return repeated
        return repeated + strategy.measure(_design(self.rest), plan)


def invent(shares: Floats, length: float, rows: int, rng: np.random.Generator) -> Invented:
    """Make rows ``length · Σ √share_i · e_i v_i`` with signs e and random directions v.

    The signs are those of a Hadamard matrix and each row's opposite comes next
    to it: the second moment of a block is exactly ``length²`` times the shares
    along the directions, and the mean of any even number of rows is 0.

    Parameters
    ----------
    shares : ndarray, shape (columns,)
        Not negative; their sum is 1.
    length : float
        Norm of every row, in (0, 1].
    rows : int
        How many rows.
    rng : Generator
        Of the directions and the order of the signs.

    Examples
    --------
    >>> import numpy as np
    >>> made = invent(np.array([0.75, 0.25]), 0.5, 5_000, np.random.default_rng(1))
    >>> np.linalg.eigvalsh(made.block @ made.block.T / made.block.shape[1]).round(6).tolist()
    [0.0625, 0.1875]
    """
    columns = len(shares)
    pairs = max(LEAST_ROWS // 2, 2 ** (columns - 1).bit_length())
    order = rng.permutation(pairs)
    signs = hadamard(pairs, dtype=np.int8)[order[:columns]][:, rng.permutation(pairs)]
    signs = np.repeat(signs, 2, axis=1)
    signs[:, 1::2] *= -1
    directions = np.linalg.qr(rng.normal(size=(columns, columns)))[0]
    return Invented(length * directions @ (np.sqrt(shares)[:, None] * signs), rows)


def _design(rows: Floats) -> PrivateDesign:
    """Bind rows of the unit ball to a design that neither shifts nor scales them."""
    names = [f"x{number}" for number in range(1, len(rows) + 1)]
    codebook = Codebook.uniform(names, (-1, 1))
    table = dict(zip(names, rows, strict=True))
    return private_design("~ .", table, codebook, scale=None, center=False, row_norm=1.0)
