"""Intervals of a normal variable by a variance that is known with noise."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from dpmodels.typing import Floats

# A choice: a variance is told from its noise where it exceeds so many of its sds.
TOLD = 2.0


def normal_width(variance: Floats, sd: float, level: float) -> Floats:
    """Return half the length of intervals about the mean; nan where the variance is not told.

    `variance` has normal noise of standard deviation `sd` about the true v. An interval of z times
    its root covers ``level - φ(z) z (z² + 1) sd²/4v²`` on average, to second order in the noise,
    which is what ``v + (z² + 1) sd²/4v`` in place of v makes up for. Where the noisy variance is
    told, above :data:`TOLD` sds, that covers at least `level`: as much from ``v = 5 sd`` on, 96.6 %
    of 95 % at 3 sds, and nearly always where v is smaller still.
    """
    z = float(ndtri((1 + level) / 2))
    detected = np.where(variance >= TOLD * sd, variance, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(z * np.sqrt(detected + allowance(level) * sd**2 / detected))


def allowance(level: float) -> float:
    """Return what of the squared noise of a variance, over it, has to be added: (z² + 1)/4."""
    return (float(ndtri((1 + level) / 2)) ** 2 + 1) / 4
