"""Intervals of ratios of noisy sums, by inversion: valid even if noise hides the divisor."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpmodels.noise.sums import half_width
from dpmodels.typing import Floats

# Noise sds above which a count is taken as distinguishable from 0: a choice.
DETECTION_SDS = 4.0


class Noise(NamedTuple):
    """The noise of the parts of a table.

    `sd` is that of each part, before the table was balanced; `parts` is the number of parts with a
    public total, 0 without one; the noise of a part is a multiple of `step`, 0 for a fine lattice.
    With `paired` the three parts are those of one mean, and the first and the last share their
    noise. `added` gives for each part of the table the index of the part it was added to; it is
    empty if no parts were added.
    """

    law: str
    sd: float
    parts: int
    step: float = 0.0
    paired: bool = False
    added: tuple[int, ...] = ()

    def divided(self, rows: float) -> Noise:
        """Return the noise of parts in units of `rows` rows."""
        return self._replace(sd=self.sd / rows, step=self.step / rows)

    def weights(self, part_weights: Floats) -> Floats:
        """Return the weights of independent noise variables in a weighted sum of a balanced table.

        `part_weights`, shape (..., some parts), are the weights of those parts; the others have
        weight 0. In the result, shape (..., variables), the last variable stands for the others.
        """
        part_weights = part_weights[..., list(self.added)] if self.added else part_weights
        if self.paired:
            low, middle, high = np.moveaxis(part_weights, -1, 0)
            ends = (low + high) / 2
            return np.stack([(high - low) / 2, middle - ends, -ends], axis=-1)
        if not self.parts:
            return np.concatenate([part_weights, np.zeros((*part_weights.shape[:-1], 1))], axis=-1)
        mean = part_weights.sum(axis=-1, keepdims=True) / self.parts
        n_others = max(self.parts - part_weights.shape[-1], 0)
        return np.concatenate([part_weights - mean, mean * np.sqrt(n_others)], axis=-1)

    def product(self, left: Floats, right: Floats) -> Floats:
        """Return the noise covariance of two weighted sums of the same parts, row by row."""
        products: Floats = (self.weights(left) * self.weights(right)).sum(axis=-1)
        return self.sd**2 * products


def ratio_interval(
    sums: Floats,
    weights: Floats,
    noise: Noise,
    sampling: Floats,
    level: float,
) -> tuple[Floats, Floats]:
    """Invert the score of ratios ``r = Σ a_i b_i / Σ b_i``.

    `sums` are noisy b and `weights` a, shape (groups, parts); `sampling` is the sampling variance
    of the score, shape (groups,), 0 for the value on these rows. Ends have the shape (groups,),
    and are infinite where the divisor is not distinguishable from 0.

    At the true r the score ``Σ (a_i - r) b_i`` has mean 0 and a variance quadratic in r: Fieller's
    interval is where its square is below the variance times the squared quantile, that of the
    score's distribution at the estimate.

    .. [1] Fieller, E. C. (1954). "Some problems in interval estimation." Journal of the Royal
       Statistical Society B 16(2), 175-185.
    """
    top, bottom = (weights * sums).sum(axis=1), sums.sum(axis=1)
    detected = bottom > 0
    estimate = np.divide(top, bottom, out=np.zeros_like(top), where=detected)
    scores, ones = weights - estimate[:, None], np.ones_like(weights)
    kappa = _factors(noise.weights(scores), noise, np.sqrt(sampling), level)
    # In terms of the distance from the estimate, where the score is 0: avoids cancellation.
    a = bottom**2 - kappa**2 * noise.product(ones, ones)
    half = kappa**2 * noise.product(scores, ones)
    c = kappa**2 * (noise.product(scores, scores) + sampling)
    bounded = detected & (a > 0)
    root = np.sqrt(np.where(bounded, half**2 + a * c, 0.0))
    divisor = np.where(bounded, a, 1.0)
    lower = np.where(bounded, estimate - (half + root) / divisor, -np.inf)
    return lower, np.where(bounded, estimate - (half - root) / divisor, np.inf)


def _factors(score: Floats, noise: Noise, spread: Floats, level: float) -> Floats:
    """Return the quantile of each score in units of its standard deviation."""
    sds = np.sqrt(noise.sd**2 * (score**2).sum(axis=1) + spread**2)
    pairs = zip(score, spread.tolist(), sds.tolist(), strict=True)
    widths = [
        half_width(noise.law, row, noise.sd, extra_sd, level) / sd if sd > 0 else 1.0
        for row, extra_sd, sd in pairs
    ]
    return np.array(widths)
