"""Intervals of ratios of noisy sums, by inversion: honest where the divisor is lost in noise."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpmodels.noise.sums import half_width
from dpmodels.typing import Floats

# A number of rows is told from none where it exceeds so many of its noise sds.
TOLD = 4.0


class Noise(NamedTuple):
    """The noise of the parts of a table.

    Attributes
    ----------
    law : {"laplace", "gaussian"}
        Of each part.
    sd : float
        Standard deviation of each, before the table was balanced.
    parts : int
        How many parts share a public total; 0 where there is none.
    step : float
        What the noise of a part is a multiple of; 0 stands for a fine lattice.
    paired : bool
        Whether the parts are the three of one mean, of which the first and the
        last share their noise.
    """

    law: str
    sd: float
    parts: int
    step: float = 0.0
    paired: bool = False

    def weights(self, own: Floats) -> Floats:
        """Return the weights that a balanced table's noise has in a weighted sum of parts.

        Parameters
        ----------
        own : ndarray, shape (..., some of the parts)
            Weights of those parts; the others have weight 0.

        Returns
        -------
        ndarray, shape (..., variables)
            Of independent noise variables; the last stands for all other
            parts.
        """
        if self.paired:
            low, middle, high = np.moveaxis(own, -1, 0)
            ends = (low + high) / 2
            return np.stack([(high - low) / 2, middle - ends, -ends], axis=-1)
        if not self.parts:
            return np.concatenate([own, np.zeros((*own.shape[:-1], 1))], axis=-1)
        mean = own.sum(axis=-1, keepdims=True) / self.parts
        others = max(self.parts - own.shape[-1], 0)
        return np.concatenate([own - mean, mean * np.sqrt(others)], axis=-1)

    def product(self, left: Floats, right: Floats) -> Floats:
        """Return the noise covariance of two weighted sums of the same parts, row by row."""
        both: Floats = (self.weights(left) * self.weights(right)).sum(axis=-1)
        return self.sd**2 * both


def ratio_interval(
    sums: Floats,
    weights: Floats,
    noise: Noise,
    sampling: Floats,
    level: float,
) -> tuple[Floats, Floats]:
    """Invert the score of ratios ``r = Σ a_i b_i / Σ b_i``.

    Parameters
    ----------
    sums : ndarray, shape (groups, parts)
        Noisy sums b.
    weights : ndarray, shape (groups, parts)
        The weights a.
    noise : Noise
        Of the sums.
    sampling : ndarray, shape (groups,)
        Sampling variance of the score; zeros for the value on these rows.
    level : float
        Coverage, in (0, 1).

    Returns
    -------
    lower, upper : ndarray, shape (groups,)
        Infinite where the divisor cannot be told from 0.

    Notes
    -----
    At the true r the score ``Σ (a_i - r) b_i`` has mean 0 and a variance
    quadratic in r: Fieller's interval is where its square is below the
    variance times the squared quantile, which is that of the law of the score
    at the estimate.

    References
    ----------
    .. [1] Fieller, E. C. (1954). "Some problems in interval estimation."
       Journal of the Royal Statistical Society B 16(2), 175-185.
    """
    top, bottom = (weights * sums).sum(axis=1), sums.sum(axis=1)
    told = bottom > 0
    estimate = np.divide(top, bottom, out=np.zeros_like(top), where=told)
    scores, ones = weights - estimate[:, None], np.ones_like(weights)
    kappa = _factors(noise.weights(scores), noise, np.sqrt(sampling), level)
    # In the distance from the estimate, where the score is 0: nothing cancels.
    a = bottom**2 - kappa**2 * noise.product(ones, ones)
    half = kappa**2 * noise.product(scores, ones)
    c = kappa**2 * (noise.product(scores, scores) + sampling)
    bounded = told & (a > 0)
    root = np.sqrt(np.where(bounded, half**2 + a * c, 0.0))
    divisor = np.where(bounded, a, 1.0)
    lower = np.where(bounded, estimate - (half + root) / divisor, -np.inf)
    return lower, np.where(bounded, estimate - (half - root) / divisor, np.inf)


def _factors(score: Floats, noise: Noise, spread: Floats, level: float) -> Floats:
    """Return the quantile of each score in units of its standard deviation."""
    sds = np.sqrt(noise.sd**2 * (score**2).sum(axis=1) + spread**2)
    pairs = zip(score, spread.tolist(), sds.tolist(), strict=True)
    widths = [
        half_width(noise.law, own, noise.sd, more, level) / sd if sd > 0 else 1.0
        for own, more, sd in pairs
    ]
    return np.array(widths)
