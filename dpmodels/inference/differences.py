"""The difference of two means, and how likely its size is if there is none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmodels.inference.means import GroupMoments, student_factor
from dpmodels.noise.sums import half_width, upper_tail
from dpmodels.typing import Floats

# A choice: no p-value is told from a smaller one: the law of the noise is not known so far out.
SMALLEST = 1e-9


@dataclass(frozen=True)
class Difference:
    """A mean less another, or less a public number; on the range from 0 to 1.

    The estimate is nan where a mean is lost in noise; `freedom` is that of the sampling part, as an
    estimate; `weights` are those of the independent noise variables in the estimate, in rows, each
    of sd `part_sd`.
    """

    estimate: float
    noise_sd: float
    sampling_sd: float
    freedom: float
    law: str
    weights: Floats
    part_sd: float

    @property
    def known(self) -> bool:
        """Whether there is an estimate."""
        return bool(np.isfinite(self.estimate))

    def interval(self, level: float, *, population: bool) -> tuple[float, float]:
        """Return an interval of the difference; without end where it is not known."""
        if not self.known:
            return -np.inf, np.inf
        normal = self._sampling((1 - level) / 2) if population else 0.0
        width = half_width(self.law, self.weights, self.part_sd, normal, level)
        return self.estimate - width, self.estimate + width

    @property
    def pvalue(self) -> float:
        """Probability of an estimate at least as large if the population's difference is 0."""
        from scipy.optimize import brentq

        if not self.known:
            return float("nan")
        if self._excess(SMALLEST) <= 0:
            return SMALLEST
        return float(brentq(self._excess, SMALLEST, 1.0, xtol=SMALLEST))

    def _excess(self, pvalue: float) -> float:
        """Return how much likelier the estimate is than a p-value whose law it is judged by."""
        sampling = self._sampling(pvalue / 2)
        tail = upper_tail(self.law, self.weights, self.part_sd, sampling, abs(self.estimate))
        return 2 * tail - pvalue

    def _sampling(self, tail: float) -> float:
        """Return the sampling error with Student's tail at a probability."""
        short = min(tail, 0.5 - SMALLEST)
        return self.sampling_sd * float(student_factor(np.asarray(self.freedom), short))


def difference(
    moments: GroupMoments, less: float = 0.0, pair: tuple[int, int] = (0, 1)
) -> Difference:
    """Compare the means of a pair of groups, or of one with a number.

    `less` is taken off the first mean where there is one group alone; the degree is 2 or more.

    The difference is taken to first order in the noise, good where rows are many times the noise of
    their number, which is what `told` asks; variances are not pooled, and their degrees of freedom
    are Welch's [1]_.

    .. [1] Welch, B. L. (1947). "The generalization of 'Student's' problem when several different
       population variances are involved." Biometrika 34, 28-35.
    """
    means = moments.means
    signs, compared = np.zeros(len(means)), list(pair[: len(means)])
    signs[compared] = [1.0, -1.0][: len(means)]
    score = moments.weights - np.nan_to_num(means)[:, None]
    divisor = np.where(moments.told, moments.counts, 1.0)
    own = (signs[:, None] * score / divisor[:, None]).ravel()
    weights = moments.noise.weights(own)
    variances = moments.joint_sampling_sd[compared] ** 2
    sampling = float(np.sqrt(variances.sum()))
    shares = (variances**2 / np.maximum(moments.independent[compared] - 1, 1.0)).sum()
    freedom = float(sampling**4 / shares) if shares > 0 else np.inf
    return Difference(
        estimate=float(signs[compared] @ means[compared]) - less,
        noise_sd=float(moments.noise.sd * np.sqrt((weights**2).sum())),
        sampling_sd=sampling,
        freedom=freedom,
        law=moments.noise.law,
        weights=weights,
        part_sd=moments.noise.sd,
    )
