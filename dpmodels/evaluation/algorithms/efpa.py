"""The first cosine coefficients of a table, so many as its energy and the noise make best.

Theorem
    ε-differentially private where neighbours have one row more or fewer: ε/2 to draw how many
    coefficients are kept, ε/2 for these, given how many.
Sensitivity
    The transform is orthonormal, so one row moves all coefficients together by 1 in L2, and the
    length of those left out by 1 at most. So it moves the score, that length plus what is expected
    of the noise on those kept, which is public: a draw with weights ``exp(-(ε/2) score / 2)`` is
    ε/2-differentially private. Of one row the first coefficient is ``1/√n`` and the others are at
    most ``√(2/n)``: the first k move by ``√(1/n) + (k - 1) √(2/n)`` in L1, and by no more than √k.
Noise
    Discrete Laplace on coefficients rounded to a lattice a millionth of their noise fine, the steps
    of which are counted as sensitivity besides.
Numerics
    idealised: coefficients are floats; their rounding to 1e-16 of the rows is not counted. The draw
    has the exact law of its rounded scores.
Source
    Ács, Castelluccia, Chen (2012), "Differentially private histogram publishing through lossy
    compression", ICDM, with a complex transform; the real one moves by less in L1. Code that adds
    noise to the lengths of complex coefficients and keeps their phases, as DPBench's does, keeps
    no ε: see the exhibit ``kept_phases`` of the audit.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np
from scipy.fft import dctn, idctn

from dpmodels.evaluation.algorithms.identity import noisy
from dpmodels.noise import source
from dpmodels.noise.finite import draw_finite
from dpmodels.typing import Floats, Integers

# Parts of a row that a score is rounded to, and of the noise's scale that a coefficient is.
_FINE: Final = 2**20


def efpa(counts: Integers, eps: float) -> Floats:
    """Return the table of which some first noisy coefficients are kept."""
    exact = dctn(counts.ravel().astype(np.float64), norm="ortho")
    levels = np.floor(_FINE * scores(exact, eps / 2)).astype(np.int64)
    kept = 1 + draw_finite(levels, Fraction(eps) / (4 * (_FINE + 1)), source())
    moved = float(moves(exact.size)[kept - 1])
    step = moved / _FINE
    # Rounding moves each coefficient by one step more.
    scale = (_FINE + kept) * 2 / eps
    noise = noisy(np.rint(exact[:kept] / step).astype(np.int64), scale) * step
    made = np.zeros(exact.size)
    made[:kept] = noise
    return np.asarray(idctn(made, norm="ortho").reshape(counts.shape))


def moves(cells: int) -> Floats:
    """Return how far one row moves the first 1, 2, ..., n coefficients in L1, at most."""
    kept = np.arange(1, cells + 1)
    single = (1 + (kept - 1) * math.sqrt(2)) / math.sqrt(cells)
    return np.asarray(np.minimum(np.sqrt(kept), single))


def scores(exact: Floats, eps: float) -> Floats:
    """Return the expected length of the error for each number of coefficients kept."""
    energy = np.append(np.cumsum(exact[:0:-1] ** 2)[::-1], 0.0)
    noise = np.sqrt(2.0 * np.arange(1, exact.size + 1)) * moves(exact.size) / eps
    return np.asarray(np.sqrt(energy) + noise)
