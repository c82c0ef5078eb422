"""What was asked: the public facts of one fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from dpmodels.codebook import Codebook
from dpmodels.outside import Amount, Bounded, one_of
from dpmodels.typing import Floats


@dataclass(frozen=True)
class MomentsCall:
    """An analysis of coded columns as it was asked for.

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
    unit_rows : bool
        Whether every scaled row was divided by its own norm.
    center : bool
        Whether the private mean is taken off.
    scale : {"range", "sd", None}
        The scaling asked for.
    denoise : str or None
        The rule for the noise in the eigenvalues.
    ncomp : int
        Components kept.
    ledger : str
        What the ledger said after the charge; empty without one.
    reason : str
        Why this mechanism, where the choice was automatic.
    part_of : str
        Of what joint release this is a part; empty where it is one of its own.
    """

    formula: str
    codebook: Annotated[Codebook, Codebook.from_dict]
    names: tuple[str, ...]
    lower: Annotated[Bounded, "variable"]
    upper: Annotated[Bounded, "variable"]
    origin: Annotated[Bounded, "variable"]
    divisor: Annotated[Bounded, "variable"]
    row_norm: Amount
    worst_case: Amount
    unit_rows: bool
    center: bool
    scale: Annotated[str | None, one_of("range", "sd", None)]
    denoise: Annotated[str | None, one_of("auto", "invariant", "spiked", "psd", None)]
    ncomp: int
    ledger: str = ""
    reason: str = ""
    part_of: str = ""

    @property
    def box(self) -> tuple[Floats, Floats]:
        """Public range of each scaled coordinate."""
        ends = ((end - self.origin) / self.divisor for end in (self.lower, self.upper))
        low, high = ends
        if self.unit_rows:
            low, high = np.where(low < 0, -1.0, 0.0), np.where(high > 0, 1.0, 0.0)
        return low, high

    def scaled(self, coded: Floats) -> Floats:
        """Scale coded rows, shape (columns, rows), as those of the fit were."""
        scaled = (coded - self.origin[:, None]) / self.divisor[:, None]
        if self.unit_rows:
            norms = np.linalg.norm(scaled, axis=0)
            scaled /= np.where(norms > 0, norms, 1.0)
        return scaled
