"""Released numbers printed to the digits their noise leaves."""

from __future__ import annotations

import math

import numpy as np

from dpmodels.report import signif_uncertain
from dpmodels.typing import Floats

NOTHING = "-"


def uncertain(values: Floats, sds: Floats) -> tuple[str, ...]:
    """Print numbers to the digits their noise leaves."""
    return tuple(
        NOTHING if math.isnan(value) else signif_uncertain(value, sd)
        for value, sd in zip(values.tolist(), sds.tolist(), strict=True)
    )


def hundredth(value: float) -> float:
    """Return the power of ten that leaves a number four digits as its noise."""
    return float(10.0 ** math.floor(math.log10(value)) / 100) if value > 0 else 0.0


def root_sd(root: Floats, sd: Floats) -> Floats:
    """Return the noise sd of the roots of variances that have the noise sd given.

    To first order; where a root is near 0 its noise is no larger than ``sqrt(sd)``.
    """
    least = np.where(sd > 0, np.sqrt(sd), 1.0)
    return np.asarray(sd / np.maximum(2 * root, least))
