"""What was asked: the public facts of one fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmodels.codebook import Codebook


@dataclass(frozen=True)
class PCACall:
    """A principal components analysis as it was asked for.

    Attributes
    ----------
    formula : str
        As written.
    codebook : Codebook
        The declarations that were used.
    names : tuple of str
        Coded columns.
    lower, upper : ndarray, shape (columns,)
        Their public ranges.
    origin, divisor : ndarray, shape (columns,)
        The public scaling ``(x - origin) / divisor`` of the coded columns.
    row_norm, worst_case : float
        Radius rows are held in, and the one that follows from the codebook.
    center : bool
        Whether the private mean is taken off.
    scale : {"range", "sd", None}
        The scaling asked for.
    ncomp : int
        Components kept.
    ledger : str
        What the ledger said after the charge; empty without one.
    reason : str
        Why this mechanism, where the choice was automatic.
    """

    formula: str
    codebook: Codebook
    names: tuple[str, ...]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    origin: NDArray[np.float64]
    divisor: NDArray[np.float64]
    row_norm: float
    worst_case: float
    center: bool
    scale: str | None
    ncomp: int
    ledger: str = ""
    reason: str = ""
