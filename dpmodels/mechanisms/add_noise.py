"""Integer noise: its scales in augmented moments, its lattices, and its addition."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from dpmodels import arguments, privacy
from dpmodels.mechanisms.protocol import Facts, Plan, release_terms
from dpmodels.noise import Entropy, discrete_gaussian, discrete_laplace, noisy_sums
from dpmodels.noise.discrete import Part
from dpmodels.noise.lattice import Lattice, choose_lattice
from dpmodels.postprocess.denoise import psd_values, recompose
from dpmodels.released import Ball, MechanismInfo, MomentNoise, MomentsRelease
from dpmodels.statistics import Passes, moment_sensitivity, moment_weights
from dpmodels.statistics.moments import (
    absolute_sensitivity,
    absolute_weights,
    eigenvalue_sensitivity,
    row_sums,
)
from dpmodels.typing import Floats, Integers, Scalars

# From this scale on discrete Gaussian noise is as private as continuous noise of a multiplier
# smaller by 2**-35 (docs/theory.md, lemma of Theorem 10), which the calibration allows for.
SMALLEST_SCALE = 2.0**20
# From this scale on the discrete law's variance is that of the continuous one to 1e-7.
SMALLEST_LAPLACE = 2.0**10
# Units of a row in a count: its noise has more than 2**20 steps from a multiplier of 1/16 up; and
# fewer where noise is so large that its steps would leave 64 bits.
UNITS, MOST_STEPS = 2**24, 2.0**50
# Times the scale, what a lattice has to hold: a draw outside int64 has probability exp(-256).
ROOM = 4.0
# Cover the rounding of some thousand products and quotients of floats.
ROUND_UP, ROUND_DOWN = 1 + 1e-12, 1 - 1e-12
TOO_MUCH_NOISE = (
    "the budget asks for more noise than is meaningful; give a larger eps, delta or rho"
)


class Scaled(NamedTuple):
    """A lattice and the scales of the noise on it, in lattice steps."""

    lattice: Lattice
    steps: MomentNoise


def gaussian_scales(facts: Facts, multiplier: float) -> Scaled:
    """Return the noise of one Gaussian release of the augmented moments.

    `multiplier` is the noise scale over the sensitivity in isometric coordinates. BudgetError if
    the noise leaves no useful lattice.
    """
    weights = moment_weights(facts.adjacency, centred=facts.centred)
    sigma = multiplier * moment_sensitivity(facts.adjacency, weights) * ROUND_UP
    mean = sigma / weights.mean if facts.centred else math.nan
    scales = (sigma / weights.count, mean, sigma, sigma / math.sqrt(2))
    lattice = choose_lattice(facts.columns, float(np.nanmax(scales)))
    return Scaled(lattice, in_steps(lattice, scales, SMALLEST_SCALE))


def laplace_scales(facts: Facts, multiplier: float) -> Scaled:
    """Return the noise of one Laplace release of the augmented moments.

    `multiplier` is the noise scale over the L1 sensitivity, the second moment taken on and above
    the diagonal. BudgetError if the noise leaves no useful lattice.
    """
    weights = absolute_weights(facts.adjacency, facts.columns, centred=facts.centred)
    sensitivity = absolute_sensitivity(facts.adjacency, facts.columns, weights)
    scale = multiplier * sensitivity * ROUND_UP
    mean = scale / weights.mean if facts.centred else math.nan
    scales = (scale / weights.count, mean, scale, scale)
    lattice = choose_lattice(facts.columns, ROOM * float(np.nanmax(scales)))
    return Scaled(lattice, in_steps(lattice, scales, SMALLEST_LAPLACE))


def in_steps(lattice: Lattice, scales: Sequence[float], smallest: float) -> MomentNoise:
    """Return four scales, given in squared units of the ball, in steps of a lattice."""
    # A nan, of a part not released, stays nan: max keeps its first.
    return MomentNoise(*(max(scale * lattice.radius**2, smallest) for scale in scales))


def lattice_for(lattice: Lattice, steps: MomentNoise, sigma: float, smallest: float) -> Scaled:
    """Return the same noise on the finest lattice that holds noise of scale `sigma` too.

    `sigma` is in units of the squared unit length, `steps` and `smallest` in lattice steps.
    BudgetError if `sigma` leaves no useful lattice.
    """
    coarse = choose_lattice(lattice.columns, sigma)
    if coarse.bits >= lattice.bits:
        return Scaled(lattice, steps)
    return on_smaller(lattice, steps, coarse, smallest)


def on_smaller(lattice: Lattice, steps: MomentNoise, smaller: Lattice, smallest: float) -> Scaled:
    """Return the same noise, in units of the ball, on a lattice of a smaller radius."""
    shrink = (smaller.radius / lattice.radius) ** 2
    # A nan stays nan: max keeps its first.
    return Scaled(smaller, MomentNoise(*(max(step * shrink, smallest) for step in astuple(steps))))


def laplace_multipliers(
    guarantee: privacy.Guarantee, shares: Sequence[float] = (1.0,)
) -> tuple[float, ...]:
    """Return multipliers of Laplace releases that together satisfy a guarantee.

    An (eps, delta) guarantee leaves its delta unused. A release of multiplier m costs ``1/m`` of
    eps, or ``1/(2m²)`` of rho; `shares` are of the budget in its own unit.
    """
    if isinstance(guarantee, privacy.ZCDP):
        return privacy.split_gaussian(math.sqrt(0.5 / guarantee.rho) * ROUND_UP, shares)
    total = math.fsum(shares)
    return tuple(total / (share * guarantee.eps) * ROUND_UP for share in shares)


def named_multipliers(
    guarantee: privacy.Guarantee, shares: Mapping[str, float], *, gaussian: bool = True
) -> dict[str, float]:
    """Divide a budget between releases by name; BudgetError for Gaussian noise of a pure one."""
    parts = list(shares.values())
    if not gaussian:
        return dict(zip(shares, laplace_multipliers(guarantee, parts), strict=True))
    multiplier = privacy.gaussian_multiplier(guarantee) * ROUND_UP
    return dict(zip(shares, privacy.split_gaussian(multiplier, parts), strict=True))


def part_without_delta(guarantee: privacy.Guarantee, share: float) -> privacy.Guarantee:
    """Return a share of a budget, of an (eps, delta) guarantee without its delta."""
    if isinstance(guarantee, privacy.ZCDP):
        return privacy.ZCDP(share * guarantee.rho)
    return privacy.PureDP(share * guarantee.eps)


def divided_laplace(
    guarantee: privacy.Guarantee, *shares: float
) -> tuple[privacy.Guarantee, tuple[privacy.LaplaceEvent, ...]]:
    """Return what is left of a guarantee beside Laplace releases of shares, and their events.

    The shares are those of :func:`laplace_multipliers`; what is left keeps the whole delta.
    """
    rest = 1 - math.fsum(shares)
    _, *multipliers = laplace_multipliers(guarantee, (rest, *shares))
    events = tuple(map(privacy.LaplaceEvent, multipliers))
    if isinstance(guarantee, privacy.ZCDP):
        return privacy.ZCDP(guarantee.rho * rest), events
    return replace(guarantee, eps=guarantee.eps * rest), events


def divided_gaussian(
    guarantee: privacy.Guarantee, share: float
) -> tuple[privacy.ZCDP, privacy.GaussianEvent]:
    """Return what is left of a guarantee beside a Gaussian release of a share, and its event.

    The share is one of rho, or of the square ``1/m²`` of a multiplier.
    """
    # Rounding of the split is covered by a few parts in 10^15.
    total_multiplier = privacy.gaussian_multiplier(guarantee) * (1 + 1e-14)
    rest, part = privacy.split_gaussian(total_multiplier, (1 - share, share))
    return privacy.ZCDP(0.5 / rest**2), privacy.GaussianEvent(part)


class Law(NamedTuple):
    """A law of integer noise with one scale."""

    draw: Callable[[float, int, Entropy], Integers]  # Takes scale, size and entropy
    sd: float  # Standard deviation in units of the scale, for scales of many steps
    smallest: float = SMALLEST_SCALE  # Scale that counts as many steps
    # Scale on the diagonal of a symmetric matrix, in units of that off it.
    diagonal: float = math.sqrt(2)
    room: float = 1.0  # Times the scale, what a lattice has to hold
    # What noise of scale 1 exceeds with a small probability.
    beyond: Callable[[float], float] = lambda chance: -float(ndtri(chance))


GAUSSIAN = Law(discrete_gaussian, 1.0)
LAPLACE = Law(
    discrete_laplace,
    sd=math.sqrt(2),
    smallest=SMALLEST_LAPLACE,
    diagonal=1.0,
    room=ROOM,
    beyond=lambda chance: -math.log(2 * chance),
)


def event_law(event: privacy.Event) -> Law:
    """Return the law of the noise that a release was charged for."""
    return LAPLACE if isinstance(event, privacy.LaplaceEvent) else GAUSSIAN


def one_release(facts: Facts, guarantee: privacy.Guarantee, law: Law) -> Plan:
    """Plan one release of all moments; BudgetError for Gaussian noise and a pure guarantee."""
    if law is LAPLACE:
        (multiplier,) = laplace_multipliers(guarantee)
        lattice, steps = laplace_scales(facts, multiplier)
        return Plan(guarantee, (privacy.LaplaceEvent(multiplier),), lattice, facts, steps)
    multiplier = privacy.gaussian_multiplier(guarantee)
    lattice, steps = gaussian_scales(facts, multiplier)
    return Plan(guarantee, (privacy.GaussianEvent(multiplier),), lattice, facts, steps)


@dataclass(frozen=True)
class NoisyMoments:
    """Noisy number of rows, their sum (or None) and second moment, in units of the ball."""

    count: float
    total: Floats | None
    second: Floats
    noise: MomentNoise


def add_noise(exact: Scalars, scale: float, entropy: Entropy, law: Law = GAUSSIAN) -> Floats:
    """Add noise to Python integers; float only after the sum."""
    return add_noises([(exact, scale)], entropy, law)[0]


def add_noises(parts: Sequence[Part], entropy: Entropy, law: Law = GAUSSIAN) -> list[Floats]:
    """Add noise to several arrays of integers, which are released in one round."""
    return [sums.astype(np.float64) for sums in noisy_sums(parts, law.draw, entropy)]


def row_units(scale: float) -> int:
    """Return the units of a row in a count, for noise of a scale in rows."""
    return max(int(min(UNITS, MOST_STEPS / scale)), 1)


def noised_rows(
    exact: Scalars, scale: float, entropy: Entropy, law: Law = GAUSSIAN
) -> tuple[Floats, float]:
    """Return noisy numbers of rows and the scale of their noise, in rows."""
    units = row_units(scale)
    noise_scale = max(scale, law.smallest / units)
    return add_noise(exact * units, noise_scale * units, entropy, law) / units, noise_scale


def noised_symmetric(
    exact: Scalars, diagonal: float, off: float, entropy: Entropy, law: Law = GAUSSIAN
) -> Floats:
    """Add independent noise on and above the diagonal of a symmetric integer matrix."""
    upper, on = add_noises(_triangle(exact, diagonal, off), entropy, law)
    return _symmetric(upper, on)


def _triangle(exact: Scalars, diagonal: float, off: float) -> list[Part]:
    """Divide a symmetric matrix into what is above the diagonal and what is on it."""
    return [(exact[np.triu_indices(len(exact), 1)], off), (np.diagonal(exact), diagonal)]


def _symmetric(above: Floats, diagonal: Floats) -> Floats:
    matrix = np.diag(diagonal)
    upper = np.triu_indices(len(diagonal), 1)
    matrix[upper] = matrix.T[upper] = above
    return matrix


def noised_moments(
    exact: Scalars, plan: Plan, entropy: Entropy, law: Law = GAUSSIAN
) -> NoisyMoments:
    """Release the augmented moments with noise of the plan's steps.

    `exact`, shape (columns + 1, columns + 1), is as from :func:`dpmodels.statistics.moments`.
    """
    steps, first = plan.steps, _first_line(exact, plan)
    second = _triangle(exact[1:, 1:], steps.diagonal, steps.off)
    *count, above, diagonal = add_noises([*first, *second], entropy, law)
    matrix = _symmetric(above, diagonal) / plan.lattice.steps**2
    return NoisyMoments(*_count_and_total(count, plan), matrix, noise_of(plan, law))


def noised_count(
    exact: Scalars, plan: Plan, entropy: Entropy, law: Law = GAUSSIAN
) -> tuple[float, Floats | None]:
    """Release the number of rows and, where the plan has noise for it, their sum.

    `exact` are augmented moments, shape (columns + 1, columns + 1); no sum is released where the
    scale of its noise is nan.
    """
    return _count_and_total(add_noises(_first_line(exact, plan), entropy, law), plan)


def _first_line(exact: Scalars, plan: Plan) -> list[Part]:
    """Return the number of rows and, where the plan has noise for it, their sum, exact."""
    count, total = (exact[:1, 0], plan.steps.count), (exact[0, 1:], plan.steps.mean)
    return [count] if math.isnan(plan.steps.mean) else [count, total]


def _count_and_total(noisy: Sequence[Floats], plan: Plan) -> tuple[float, Floats | None]:
    """Return both in units of the ball."""
    lattice = plan.lattice
    count = float(noisy[0][0]) / lattice.radius**2
    return count, noisy[1] / (lattice.radius * lattice.steps) if len(noisy) > 1 else None


def noise_of(plan: Plan, law: Law = GAUSSIAN) -> MomentNoise:
    """Return the standard deviations that a plan's steps come to, in units of the ball."""
    lattice, steps = plan.lattice, plan.steps
    unit, longer = lattice.steps**2, lattice.radius * lattice.steps
    return MomentNoise(
        law.sd * steps.count / lattice.radius**2,
        law.sd * steps.mean / longer,
        law.sd * steps.diagonal / unit,
        law.sd * steps.off / unit,
    )


def hand_over(
    info: MechanismInfo,
    plan: Plan,
    noisy: NoisyMoments,
    n_rows: int,
    estimate: Floats | None = None,
    ball: Ball | None = None,
) -> MomentsRelease:
    """Make the release of noisy moments, with the number of rows read if that is public."""
    return MomentsRelease(
        count=noisy.count,
        total=noisy.total,
        second=noisy.second,
        noise=noisy.noise,
        estimate=estimate,
        ball=ball,
        centres=plan.facts.centres,
        **release_terms(info, plan, n_rows),
    )


# The number of complete rows and their sum, released separately from the second moment.

# Of the budget, without and with the sum of the rows: choices.
COUNT_SHARE = {False: 0.02, True: 0.15}


class CountNoise(NamedTuple):
    """Scales of the noise in the number of rows and their sum, in units of the ball."""

    rows: float
    total: float


def gaussian_count(facts: Facts, multiplier: float) -> CountNoise:
    """Return the noise of one Gaussian release of the count and, if centred, the sum.

    `multiplier` is the noise scale over the L2 sensitivity; nan stands for a sum not released.

    A complete row x of the unit ball adds ``(w, x)``, an incomplete one 0. The count alone moves
    by at most 1. With the sum, two complete rows are at most 2 apart and a row is ``√(w² + 1)``
    long: under ``replace`` the sensitivity is 2, up to w = √3 at no cost; under ``add-remove`` it
    is ``√(5/4)`` for w = 1/2.
    """
    if not facts.centred:
        return CountNoise(multiplier, math.nan)
    if facts.adjacency.n_public:
        return CountNoise(2 * multiplier / math.sqrt(3), 2 * multiplier)
    scale = math.sqrt(1.25) * multiplier
    return CountNoise(2 * scale, scale)


def laplace_count(facts: Facts, eps: float) -> CountNoise:
    """Return the noise of one Laplace release of the count and, if centred, the sum.

    `eps` is of both together.

    A row of the unit ball has an L1 norm of at most ``√d``, d columns. With weights (w, 1) for
    count and sum, an added row moves them by at most ``w + √d`` and two complete rows are at most
    ``2√d`` apart: under ``replace`` ``w = √d`` is free, under ``add-remove`` ``w = √d/4`` costs a
    quarter.
    """
    if not facts.centred:
        return CountNoise(1 / eps, math.nan)
    length = math.sqrt(facts.columns)
    if facts.adjacency.n_public:
        return CountNoise(2 / eps, 2 * length / eps)
    return CountNoise(5 / eps, 1.25 * length / eps)


# The noisy mean of rows in a ball, shrunk by what is noise.


def noisy_mean(
    passes: Passes, lattice: Lattice, noise: CountNoise, entropy: Entropy, law: Law = GAUSSIAN
) -> tuple[Floats, float]:
    """Return the mean, shape (columns,), in shares of the ball's radius, and the number of rows."""
    exact, _ = passes.measured(row_sums).cross()
    rows, total = (max(scale * lattice.radius, law.smallest) for scale in noise)
    (number,), sums = add_noises([(exact[:1], rows), (exact[1:], total)], entropy, law)
    count = max(float(number) / lattice.radius, 1.0)
    mean = sums / lattice.steps / count
    return shrunk(mean, law.sd * noise.total / count), count


def shrunk(mean: Floats, sd: float) -> Floats:
    """Return the James-Stein estimate, clipped to the ball; pure noise gives the old centre."""
    square = float(mean @ mean)
    shrunken = mean * max(1 - len(mean) * sd**2 / square, 0.0) if square > 0 else mean
    return shrunken / max(1.0, float(np.linalg.norm(shrunken)))


# Released numbers of rows by length, and the radius of a ball that follows from them.

# Radii are 19 % apart, and bounds may be thousands of times too wide: choices.
PER_OCTAVE, OCTAVES = 4, 14
FRACTIONS: Floats = 2.0 ** (-np.arange(PER_OCTAVE * OCTAVES, -1, -1) / PER_OCTAVE)
# Numbers of adjacent cells that are tested together for rows, and the false alarm rate: choices.
WIDTHS = (1, 2, 4, 8)
FALSE_ALARM = 1e-3


def faintest(law: Law, scale: float) -> float:
    """Return the smallest count that is detected in one cell."""
    return scale * law.beyond(FALSE_ALARM / (len(WIDTHS) * FRACTIONS.size))


class Lengths(NamedTuple):
    """Released numbers of rows by length, up to each radius; noise of `sd` in each of them."""

    radii: Floats
    counts: Floats
    sd: float
    faint: float  # See `faintest`

    @property
    def last(self) -> int:
        """The last cell with a detected count; -1 if no count is detected."""
        last, ends = -1, np.append(0.0, np.cumsum(self.counts))
        for width in WIDTHS:
            detected = np.flatnonzero(ends[width:] - ends[:-width] > self.faint * math.sqrt(width))
            if detected.size and detected[-1] > last:
                last = int(detected[-1]) + width - 1
        return last

    @property
    def detected(self) -> Floats:
        """Non-negative counts up to the last cell with a detected count."""
        counts = np.where(np.arange(self.counts.size) <= self.last, self.counts, 0.0)
        longer = np.maximum.accumulate(np.append(0.0, np.cumsum(counts[::-1])))
        return np.diff(longer)[::-1]

    def radius(self, noise: float) -> float:
        """Return the radius with the least noise and clipping error in the sum of the rows.

        `noise` is that of the sum for a radius of 1. If no count is detected, the largest radius.
        """
        detected = self.detected
        if not detected.any():
            return float(self.radii[-1])
        cut = np.maximum(self.radii - self.radii[:, None], 0.0) @ detected
        return float(self.radii[np.argmin(np.hypot(noise * self.radii, cut))])

    def squares(self, part: float = 1.0) -> Floats:
        """Return for each radius the sum of squared lengths of rows clipped to a part of it."""
        return np.asarray(np.minimum(self.radii, part * self.radii[:, None]) ** 2 @ self.detected)

    def beyond(self, radius: float) -> tuple[float, float]:
        """Return the share of the rows that are longer than one of the radii, and its noise."""
        n_rows, longer = max(float(self.counts.sum()), 1.0), self.radii > radius
        return float(self.counts[longer].sum()) / n_rows, self.sd * math.sqrt(longer.sum()) / n_rows


# Eigenvalues released separately from the eigenvectors, their matrix, and bounds on their sum.

EIGENVALUES = "eigenvalues"


def checked_share(share: object) -> None:
    """Refuse, with an ArgumentError, a share that leaves nothing for one of two parts."""
    arguments.fraction("share", share, ", the eigenvalues' part of the budget; write share=0.5")


def eigenvalue_scale(
    adjacency: privacy.Adjacency, lattice: Lattice, multiplier: float, norm: int, smallest: float
) -> float:
    """Return the scale of noise in eigenvalues rounded to integers, in lattice steps.

    `multiplier` is the noise scale over the sensitivity, taken in L1 or L2 norm.

    Rounding moves two vectors of d eigenvalues apart by at most ``d^(1/norm)``.
    """
    between = eigenvalue_sensitivity(adjacency, norm) * lattice.radius**2
    rounded = between + lattice.columns ** (1 / norm)
    return float(max(multiplier * rounded * ROUND_UP, smallest))


def noised_eigenvalues(exact: Scalars, plan: Plan, entropy: Entropy, law: Law = GAUSSIAN) -> Floats:
    """Release the eigenvalues of the second moment, in units of the ball, largest first.

    `exact`, shape (columns + 1, columns + 1), is as from :func:`dpmodels.statistics.moments`.
    """
    values = np.linalg.eigvalsh(exact[1:, 1:].astype(np.float64))[::-1]
    integers = np.array([round(value) for value in values.tolist()], dtype=object)
    released = add_noise(integers, plan.scales[EIGENVALUES], entropy, law)
    return np.sort(released)[::-1] / plan.lattice.steps**2


def recombined(values: Floats, second: Floats, cap: float | None) -> Floats:
    """Return the matrix of released eigenvalues and another matrix' eigenvectors.

    `values`, shape (columns,), largest first, are brought to the nearest that are not negative
    with a sum of at most `cap`; the eigenvectors of `second`, released too, are taken in the order
    of its eigenvalues.
    """
    vectors = np.linalg.eigh(second).eigenvectors[:, ::-1]
    return recompose(psd_values(values, cap), vectors)


def trace_cap(facts: Facts, n_rows: int) -> float | None:
    """Return the number of rows read, at least 1, where it is public, else None.

    Each row of the unit ball adds at most 1 to the trace.
    """
    return float(max(n_rows, 1)) if facts.adjacency.n_public else None
