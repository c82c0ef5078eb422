"""What sites send: the integers of a release that travel, and the release made of their sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, NoReturn

import numpy as np

from dpmodels.errors import ArgumentError, PrivacyError, quoted
from dpmodels.mechanisms import Gauss
from dpmodels.mechanisms.add_noise import Law, hand_over, noised_moments
from dpmodels.mechanisms.counts import Gaussian
from dpmodels.mechanisms.protocol import AnyStrategy, CountPlan, Plan, counts_released
from dpmodels.mechanisms.regression import Moments
from dpmodels.noise import Entropy, discrete_gaussian, source
from dpmodels.privacy import GaussianEvent
from dpmodels.released import AnyRelease, CountsRelease, MomentNoise, MomentsRelease, Shared
from dpmodels.sites.protocol import POOLED, Trust
from dpmodels.statistics import Statistic
from dpmodels.typing import Exact, Floats, Indices, Integers, Objects

WEIGHTS = ("rows", "sites")
# Bytes of a number that travels.
WORD = 8
AnyPlan = Plan | CountPlan
Summed = MomentsRelease | CountsRelease

# Strategies that are independent Gaussian noise on integers and a public linear map.
GAUSSIAN = (Gauss, Moments, Gaussian)


@dataclass(frozen=True, repr=False, eq=False)
class Payload:
    """Exact integers of one site, of dtype object and shape (size,); not released.

    Each number is there once: of a symmetric matrix the part on and above the diagonal.
    """

    exact: Exact
    rows: int  # How many were read

    def __repr__(self) -> str:
        return f"<Payload: {self.exact.size:,} exact integers, not shown>"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("exact integers of a site cannot be pickled or copied")


def require_gaussian(strategy: object, plan: AnyPlan, protocol: str) -> None:
    """Refuse a strategy whose noise cannot be added by the sites."""
    if getattr(strategy, "passes", "one") == "many":
        raise ArgumentError(
            f"protocol={protocol!r}: each site sends its numbers once, and the rows would be read "
            "again after a first release (vcov='HC', or a mechanism that reads them several times):"
            f" leave that out, or write {POOLED}"
        )
    if not isinstance(strategy, GAUSSIAN) or not isinstance(plan.events[0], GaussianEvent):
        raise ArgumentError(
            f"protocol={protocol!r}: sites add Gaussian noise to sums of integers; write "
            f"mechanism='auto' and a guarantee with a delta above 0, or {POOLED}"
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
    return plan.units_per_row if isinstance(plan, CountPlan) else 4**plan.lattice.bits


def pack(statistic: Statistic, plan: AnyPlan) -> Payload:
    """Take the integers that travel out of a statistic."""
    exact, rows = statistic.cross()
    if isinstance(plan, CountPlan):
        return Payload(exact, rows)
    return Payload(exact[_places(plan)].astype(object), rows)


def unpack(
    strategy: AnyStrategy, noisy: Exact, plan: AnyPlan, rows: int, widening: float
) -> Summed:
    """Make the release of integers that hold their noise already."""
    if isinstance(plan, CountPlan):
        release = counts_released(strategy.info, plan, noisy, rows, "gaussian")
        return replace(release, noise_sd=release.noise_sd * widening)
    line, column = _places(plan)
    size = plan.lattice.columns + 1
    matrix: Objects = np.zeros((size, size), dtype=object)
    matrix[line, column] = matrix[column, line] = noisy
    law = Law(lambda scale, size, entropy: np.zeros(size, dtype=np.int64), widening)
    return hand_over(strategy.info, plan, noised_moments(matrix, plan, source(), law), rows)


def draw(noise_scales: Floats, entropy: Entropy) -> Integers:
    """Draw independent discrete Gaussians, each of its own scale."""
    noise = np.empty(noise_scales.size, dtype=np.int64)
    for scale in np.unique(noise_scales).tolist():
        chosen = noise_scales == scale
        noise[chosen] = discrete_gaussian(scale, int(chosen.sum()), entropy)
    return noise


def _places(plan: Plan) -> tuple[Indices, Indices]:
    """Return lines and columns of the augmented moments that are released."""
    line, column = np.triu_indices(plan.lattice.columns + 1)
    is_released = (line > 0) | (column == 0) | ~np.isnan(plan.steps.mean)
    return line[is_released], column[is_released]


def shared_by(
    release: AnyRelease,
    trust: Trust,
    names: tuple[str, ...],
    numbers: int = 0,
    word: int = WORD,
    holds: str = "",
) -> AnyRelease:
    """Record on a release how its sites took part."""
    against = holds or trust.holds
    shared = Shared(trust.name, names, trust.sees, against, numbers, numbers * word)
    return replace(release, shared=shared)


def coalition(colluders: int) -> str:
    """Name the parties that may combine what they know."""
    if colluders == 0:
        return "the aggregator, but not against sites, if all follow the protocol"
    sites = "one" if colluders == 1 else f"up to {colluders}"
    return f"the aggregator with {sites} of the sites, all of whom follow the protocol"


def checked_weights(weights: object, plan: AnyPlan, protocol: str) -> None:
    """Refuse unknown weights of the sites, and those that need private numbers of rows."""
    if not isinstance(weights, str) or weights not in WEIGHTS:
        raise ArgumentError(
            f"weights={quoted(weights)} of protocol {protocol!r}: expected 'rows' (each site in "
            "proportion to its rows) or 'sites' (all alike)"
        )
    moments = isinstance(plan, Plan) and plan.facts.adjacency.n_public
    if weights == "sites" and not moments:
        raise ArgumentError(
            "weights='sites' divides the moments of each site by its number of rows, which has "
            "to be public: write weights='rows', or adjacency='replace'"
        )


def site_weights(weights: str, rows: Sequence[int]) -> Floats:
    """Return what the sum of a site counts, ``N/(S N_s)`` where all sites count alike.

    Sites without rows are not counted in S.

    >>> site_weights("sites", [30, 10, 0]).tolist()
    [0.6666666666666666, 2.0, 0.0]
    """
    n_rows = np.array(rows, dtype=np.float64)
    if weights == "rows" or not n_rows.any():
        return np.ones(len(rows))
    return np.where(n_rows > 0, n_rows.sum() / ((n_rows > 0).sum() * np.maximum(n_rows, 1.0)), 0.0)


def weighted(releases: Sequence[Any], weights: Floats) -> Summed:
    """Add releases of disjoint rows; their independent noise adds up in squares."""
    first = releases[0]
    widening = float(np.sqrt((weights**2).sum()))
    rows = None if first.rows is None else sum(release.rows for release in releases)
    pairs = list(zip(weights.tolist(), releases, strict=True))
    if isinstance(first, CountsRelease):
        values = np.sum([w * release.values for w, release in pairs], axis=0)
        return replace(first, values=values, noise_sd=first.noise_sd * widening, rows=rows)
    assert isinstance(first, MomentsRelease)
    return replace(
        first,
        count=sum(w * release.count for w, release in pairs),
        total=None
        if first.total is None
        else np.sum([w * release.total for w, release in pairs], axis=0),
        second=np.sum([w * release.second for w, release in pairs], axis=0),
        noise=MomentNoise(*(sd * widening for sd in astuple(first.noise))),
        rows=rows,
    )
