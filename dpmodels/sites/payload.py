"""The integers of a release that travel, and the release made of their noisy sum."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import ArgumentError, PrivacyError
from dpmodels.mechanisms import Gauss
from dpmodels.mechanisms.add_noise import Law, hand_over, noised_moments
from dpmodels.mechanisms.count_plan import CountPlan, counts_released
from dpmodels.mechanisms.counts import Gaussian
from dpmodels.mechanisms.protocol import Plan
from dpmodels.mechanisms.regression import Moments
from dpmodels.noise import Entropy, discrete_gaussian, source
from dpmodels.privacy import GaussianEvent
from dpmodels.released import CountsRelease, MomentsRelease
from dpmodels.statistics import Statistic
from dpmodels.typing import Floats, Integers

AnyPlan = Plan | CountPlan
Summed = MomentsRelease | CountsRelease

# Strategies that are independent Gaussian noise on integers and a public linear map.
GAUSSIAN = (Gauss, Moments, Gaussian)


@dataclass(frozen=True, repr=False, eq=False)
class Payload:
    """Exact integers of one site; not released.

    Attributes
    ----------
    exact : ndarray of int (dtype object), shape (size,)
        Each number once: of a symmetric matrix the part on and above the
        diagonal.
    rows : int
        How many rows were read.
    """

    exact: NDArray[Any]
    rows: int

    def __repr__(self) -> str:
        return f"<Payload: {self.exact.size:,} exact integers, not shown>"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("exact integers of a site cannot be pickled or copied")


def require_gaussian(strategy: object, plan: AnyPlan, protocol: str) -> None:
    """Refuse a strategy whose noise cannot be added by the sites.

    Raises
    ------
    ArgumentError
        If it is not one of Gaussian noise on a sum of integers.
    """
    if not isinstance(strategy, GAUSSIAN) or not isinstance(plan.events[0], GaussianEvent):
        raise ArgumentError(
            f"protocol={protocol!r}: sites add Gaussian noise to sums of integers; write "
            "mechanism='auto' and a guarantee with a delta above 0, or protocol='pooled', where "
            "one trusted aggregator takes any mechanism"
        )


def scales(plan: AnyPlan) -> Floats:
    """Return the scale of the noise in each number that travels, in lattice steps."""
    if isinstance(plan, CountPlan):
        return np.full(plan.facts.parts, plan.scale)
    line, column = _places(plan)
    steps = plan.steps
    second = np.where(line == column, steps.diagonal, steps.off)
    first = np.where(column == 0, steps.count, steps.mean)
    return np.where(line == 0, first, second)


def multiplier(plan: AnyPlan) -> float:
    """Return the planned noise over the sensitivity."""
    (event,) = plan.events
    assert isinstance(event, GaussianEvent)
    return event.multiplier


def unit(plan: AnyPlan) -> int:
    """Return the most that one row adds to a number that travels."""
    return plan.whole if isinstance(plan, CountPlan) else 4**plan.lattice.bits


def pack(statistic: Statistic, plan: AnyPlan) -> Payload:
    """Take the integers that travel out of a statistic."""
    exact, rows = statistic.cross()
    if isinstance(plan, CountPlan):
        return Payload(exact, rows)
    return Payload(exact[_places(plan)].astype(object), rows)


def unpack(strategy: Any, noisy: NDArray[Any], plan: AnyPlan, rows: int, widening: float) -> Summed:
    """Make the release of integers that hold their noise already.

    Parameters
    ----------
    strategy : Gauss, Moments or Gaussian
        Whose plan it is.
    noisy : ndarray of int (dtype object), shape (size,)
        Sums over the sites.
    plan : Plan or CountPlan
        What they were measured by.
    rows : int
        How many rows were read; shown where that is public.
    widening : float
        The noise's standard deviation over the planned one.
    """
    if isinstance(plan, CountPlan):
        silent = np.zeros(noisy.size, dtype=np.int64)
        release = counts_released(strategy.card, plan, noisy, silent, rows, "gaussian")
        return replace(release, noise_sd=release.noise_sd * widening)
    line, column = _places(plan)
    size = plan.lattice.columns + 1
    matrix: NDArray[Any] = np.zeros((size, size), dtype=object)
    matrix[line, column] = matrix[column, line] = noisy
    law = Law(_silent, widening)
    return hand_over(strategy.card, plan, noised_moments(matrix, plan, source(), law), rows)


def draw(own: Floats, entropy: Entropy) -> Integers:
    """Draw independent discrete Gaussians, each of its own scale."""
    drawn = np.empty(own.size, dtype=np.int64)
    for scale in np.unique(own).tolist():
        chosen = own == scale
        drawn[chosen] = discrete_gaussian(scale, int(chosen.sum()), entropy)
    return drawn


def _places(plan: Plan) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return lines and columns of the augmented moments that are released."""
    line, column = np.triu_indices(plan.lattice.columns + 1)
    kept = (line > 0) | (column == 0) | ~np.isnan(plan.steps.mean)
    return line[kept], column[kept]


def _silent(scale: float, size: int, entropy: Entropy) -> Integers:
    return np.zeros(size, dtype=np.int64)
