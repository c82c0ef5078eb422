"""Correlations and gains of columns with one response, from noisy scatters of a known law."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpmodels.inference.ratios import TOLD
from dpmodels.noise.sums import half_width
from dpmodels.typing import Floats


class Correlations(NamedTuple):
    """Correlations or gains, shape (columns,); nan where a scatter is not told from none."""

    values: Floats
    # What each noise adds to them: of the product, the column's scatter, that of the response.
    slopes: Floats  # shape (columns, 3)
    least: float = -1.0  # What none of them is below

    def sd(self, noise_sd: float) -> Floats:
        """Return the noise standard deviation of each."""
        return np.asarray(noise_sd * np.sqrt((self.slopes**2).sum(axis=1)))

    def own_variance(self, noise_sd: float) -> Floats:
        """Return the variance of what no two of them share: the response's scatter is left out."""
        return np.asarray(noise_sd**2 * (self.slopes[:, :2] ** 2).sum(axis=1))

    def interval(self, noise_sd: float, law: str, level: float) -> tuple[Floats, Floats]:
        """Return intervals within the least and 1, to first order in the noise."""
        known = np.isfinite(self.values)
        width = [
            half_width(law, own, noise_sd, 0.0, level) if told else math.nan
            for own, told in zip(self.slopes, known.tolist(), strict=True)
        ]
        ends = (np.clip(self.values + sign * np.array(width), self.least, 1.0) for sign in (-1, 1))
        low, high = ends
        return np.where(known, low, self.least), np.where(known, high, 1.0)

    def summed_sd(self, noise_sd: float) -> Floats:
        """Return the noise standard deviation of each of their running sums."""
        own = np.cumsum(self.slopes[:, :2] ** 2, axis=0).sum(axis=1)
        return np.asarray(noise_sd * np.sqrt(own + np.cumsum(self.slopes[:, 2]) ** 2))


def correlations(
    products: Floats, scatters: Floats, response: float, noise_sd: float
) -> Correlations:
    """Return ``r = C/√(V W)`` of noisy C, V and W with independent noise of one sd.

    To first order the noise of r is ``g_C/√(V W) - r g_V/(2 V) - r g_W/(2 W)``.
    """
    told = (scatters > TOLD * noise_sd) & (response > TOLD * noise_sd)
    own, other = np.where(told, scatters, 1.0), response if told.any() else 1.0
    root = np.sqrt(own * other)
    values = np.where(told, np.clip(products / root, -1.0, 1.0), np.nan)
    slopes = np.stack([1 / root, -values / (2 * own), -values / (2 * other)], axis=1)
    return Correlations(values, slopes)


def gains(
    products: Floats, scatters: Floats, response: float, coefficients: Floats, noise_sd: float
) -> Correlations:
    """Return shares of the response's scatter W that released coefficients b take off, in turn.

    A residual with scatter C with a column of scatter V loses ``2 b C - b² V`` once the column is
    in the fit. Noise of C and V adds to it in proportion, so it is not biased by theirs; that of W
    divides. `products` are of residuals divided by 1 and the sizes of all coefficients before.
    """
    sizes = np.abs(coefficients)
    stretch = 1 + np.cumsum(sizes) - sizes
    known = response > TOLD * noise_sd
    other = response if known else math.nan
    lines = np.stack([2 * coefficients * stretch, -(coefficients**2)], axis=1) / other
    values = lines[:, 0] * products + lines[:, 1] * scatters
    slopes = np.concatenate([lines, -values[:, None] / other], axis=1)
    return Correlations(values, slopes, -math.inf)
