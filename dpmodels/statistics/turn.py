"""A matrix rounded to integers, so that its products with rows on the lattice are exact."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.noise.lattice import Lattice
from dpmodels.typing import Floats


class Turn(NamedTuple):
    """A matrix of integers whose line i stands for itself times ``2**-powers[i]``."""

    integers: Floats  # Shape (lines, columns): whole numbers
    powers: NDArray[np.intp]  # Shape (lines, 1): of two

    def times(self, rows: Floats, out: Floats | None = None) -> Floats:
        """Return the product with integer rows, shape (columns, rows), in the matrix's unit."""
        product = np.matmul(self.integers, rows, out=out)
        return np.asarray(np.ldexp(product, -self.powers, out=product))


def turn(transform: Floats, lattice: Lattice) -> Turn:
    """Round a matrix to integers, in units of its own for each line.

    `transform`, shape (lines, columns), is finite and a function of released values and public
    facts.

    A line has a Euclidean norm below ``2**(52 - bits)`` before it is rounded, by at most half the
    root of the number of columns, and a row one of at most ``2**bits``. So the absolute values of
    the terms of a product have a sum below ``2**53``: every partial sum is an integer that float64
    holds, in any order, fused or not, and the product is that of this row alone.
    """
    _, exponents = np.frexp(np.linalg.norm(transform, axis=1))
    powers = (52 - lattice.bits - exponents)[:, None].astype(np.intp)
    return Turn(np.rint(np.ldexp(transform, powers)), powers)
