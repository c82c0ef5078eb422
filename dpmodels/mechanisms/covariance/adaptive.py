"""A clipping radius found privately, and a release of the moments inside it.

Theorem
    The count, the trace and the moments inside the radius are Gaussian releases, the search for
    the radius is ε₁-differentially private; each may depend on the answers before it. Together
    they satisfy ρ-zCDP with the sum of their ρ, ε₁²/2 for the search, or (ε, δ)-differential
    privacy by the exact curve of their composition.
Sensitivity
    The trace changes by at most 1. What clipping to 2⁻ᵗ takes off the sum of squares changes by at
    most 1, for every t, an inequality between integers:
    :func:`dpmodels.mechanisms.clipping_shells.lost`. Rows magnified by 2ᵗ and held in the ball are
    rows of the ball: the increments between radii inside the one found are those of `Shells`, the
    moments those of `Gauss`, the eigenvalues those of `Separate`.
Noise
    Discrete Gaussian, at least 2²⁰ steps: 2 % of ρ for the count, or 15 % for the count and the
    sum of the rows; of the rest 5 % for the trace, 10 % for the search by discrete Laplace noise,
    85 % for increments between the radius, half and an eighth of it in even parts (up to 16
    columns a quarter, in parts of 0.5, 0.3 and 0.2). With ``denoise=None``, the published method,
    an eighth goes to the trace and to the search each; what is left to one matrix, its noise equal
    on and off the diagonal, or in halves to a matrix for the eigenvectors and to the eigenvalues,
    whichever has the smaller expected error by the released trace; no eigenvalue is negative and
    their sum is at most what clipped rows can have.
Numerics
    exact: integer statistic, integer noise of exact law. With ``denoise=None`` idealised, as the
    eigenvalues are computed in floating point, and the release's info says so.
Source
    Dong, Liang, Yi (2022), "Differentially private covariance revisited", NeurIPS, AdaptiveCov,
    for the radius and the choice of the two. Lyu, Su, Li (2017), "Understanding the sparse vector
    technique for differential privacy", PVLDB 10(6), for a search whose proof is sound. The
    increments inside the radius and what is made of them are this package's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np

from dpmodels.design import PrivateDesign
from dpmodels.mechanisms import clipping_shells
from dpmodels.mechanisms.add_noise import (
    COUNT_SHARE,
    EIGENVALUES,
    GAUSSIAN,
    LAPLACE,
    ROOM,
    ROUND_DOWN,
    ROUND_UP,
    SMALLEST_LAPLACE,
    SMALLEST_SCALE,
    Law,
    NoisyMoments,
    eigenvalue_scale,
    gaussian_count,
    hand_over,
    in_steps,
    laplace_count,
    laplace_multipliers,
    noise_of,
    noised_count,
    noised_eigenvalues,
    noised_symmetric,
    recombined,
    trace_cap,
)
from dpmodels.mechanisms.clipping_shells import accumulated, likely_cap, shell_noise, shells
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import Lattice, choose_lattice
from dpmodels.postprocess import denoise, denoise_values, nearest_psd
from dpmodels.postprocess.denoise import accumulate
from dpmodels.privacy import (
    ZCDP,
    ApproxDP,
    Event,
    GaussianEvent,
    Guarantee,
    LaplaceEvent,
    PureEvent,
    gaussian_multiplier,
    split_gaussian,
    total_eps,
)
from dpmodels.released import MechanismInfo, MomentNoise, MomentsRelease
from dpmodels.statistics import MomentWeights, Statistic, clipped_moments
from dpmodels.statistics.moments import absolute_sensitivity, eigenvalue_sensitivity
from dpmodels.typing import Floats, Objects, Scalars

# The search stops at a relative width of 2**-30.
STEPS = 36
# A choice: increments forgive a radius too large, so the search's noise is kept on that side.
CAUTION = 1.0


@dataclass(frozen=True)
class Adaptive:
    """Moments inside a privately found radius.

    Parameters
    ----------
    denoise : {"auto", "invariant", "spiked", "psd"} or None, default "auto"
        How the estimate is made of increments inside the radius. None is the published method
        instead.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> plan = Adaptive().plan(Facts(3, adjacency("replace"), centred=False), ZCDP(0.5))
    >>> [event.describe() for event in plan.events]
    ['Gaussian, multiplier 1.05292', 'pure, eps 0.31305']
    """

    denoise: str | None = "auto"

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="adaptive",
        theorem="rho-zCDP, or (eps, delta)-DP by exact composition",
        sensitivity="of rows clipped to a privately found radius",
        noise="discrete Laplace in the search, then discrete Gaussian",
        numerics="exact lattice",
        source="Dong, Liang, Yi (2022), with increments inside the radius",
    )

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Calibrate all parts of the noise to a guarantee.

        ArgumentError for an unknown word for `denoise`. BudgetError for a pure guarantee, which
        Gaussian noise does not give.
        """
        denoise_values(np.zeros(1), 0.0, self.denoise)
        first = COUNT_SHARE[facts.centred]
        fractions = PUBLISHED_SHARES if self.denoise is None else OWN_SHARES
        of_trace, searching, of_matrix = ((1 - first) * share for share in fractions)

        def events(rho: float) -> tuple[GaussianEvent, PureEvent]:
            gaussian = GaussianEvent(math.sqrt(0.5 / (rho * (1 - searching))))
            return gaussian, PureEvent(math.sqrt(2 * rho * searching))

        gaussian, search = events(largest_rho(guarantee, events))
        parts = split_gaussian(gaussian.multiplier * ROUND_UP, (first, of_trace, of_matrix))
        count = gaussian_count(facts, parts[0])
        widest = ROOM * max(
            clipping_shells.sparse_scales(search.eps, monotone=not facts.adjacency.n_public)
        )
        shelled = split_gaussian(parts[2], _shares(facts.columns))
        extra_scales = (count.rows, np.nan_to_num(count.total), parts[1], widest)
        lattice = clipping_shells.shell_lattice(facts, shelled, *extra_scales)
        scales = clipping_shells.reach_scales(facts.adjacency, search.eps, lattice)
        scales[clipping_shells.TRACE] = max(parts[1] * lattice.radius**2, SMALLEST_SCALE)
        off = 1.0 if self.denoise is None else math.sqrt(0.5)
        scales |= _matrix_scales(facts, lattice, parts[2], off)
        scales |= clipping_shells.shell_scales(facts, lattice, shelled)
        steps = in_steps(lattice, (*count, math.nan, math.nan), SMALLEST_SCALE)
        return Plan(guarantee, (gaussian, search), lattice, facts, steps, scales)

    def measure(self, design: PrivateDesign, plan: Plan) -> Statistic:
        """Compute the exact moments clipped to every radius that may be found."""
        last = clipping_shells.HALVINGS + clipping_shells.shells(plan.facts.columns)[-1]
        return clipped_moments(design, plan.lattice, last)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Find the radius, add the planned noise inside it, and estimate the moments."""

        def inside(exact: Objects, trace: float, cap: float | None) -> Floats:
            level = clipping_shells.clipping_radius(
                exact, partial(denoised_error, plan, trace), plan, entropy, CAUTION
            )
            noisy = clipping_shells.noised_shells(exact, level, plan, entropy)
            return accumulate(noisy, self.denoise, likely_cap(trace, cap, level, plan))

        estimator = None if self.denoise is None else inside
        return released_inside(self.info, statistic, plan, entropy, estimator)


def largest_rho(guarantee: Guarantee, events: Callable[[float], tuple[Event, ...]]) -> float:
    """Return the largest rho whose events satisfy a guarantee.

    `events` takes rho and returns events of `total_rho` rho, which cost more where rho is larger.
    BudgetError for a pure guarantee, which Gaussian noise does not give.
    """
    multiplier = gaussian_multiplier(guarantee)
    if isinstance(guarantee, ZCDP):
        # Covers the rounding of the events.
        return guarantee.rho * ROUND_DOWN
    assert isinstance(guarantee, ApproxDP)
    low = high = 0.5 / multiplier**2

    def fits(rho: float) -> bool:
        return total_eps(events(rho), guarantee.delta) <= guarantee.eps

    while not fits(low):
        low /= 2
    while fits(high):
        high *= 2
    for _ in range(STEPS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _shares(columns: int) -> tuple[float, ...]:
    """Return the shares of the increments; their noisy sum is not released here."""
    return clipping_shells.SHARES if columns <= clipping_shells.FEW else (1.0, 1.0, 1.0)


def _matrix_scales(
    facts: Facts, lattice: Lattice, multiplier: float, off: float
) -> dict[str, float]:
    """Return the noise of one release of a matrix, and of halves for it and its eigenvalues.

    `off` is the scale off the diagonal over that on it, √½ or more: with √½ the guarantee is
    exact, and more noise keeps it.
    """
    sigma = multiplier * eigenvalue_sensitivity(facts.adjacency, 2) * lattice.radius**2 * ROUND_UP
    half = multiplier * math.sqrt(2) * ROUND_UP
    return {
        DIAGONAL: max(sigma, SMALLEST_SCALE),
        OFF: max(off * sigma, SMALLEST_SCALE),
        HALF_DIAGONAL: max(sigma * math.sqrt(2), SMALLEST_SCALE),
        HALF_OFF: max(off * math.sqrt(2) * sigma, SMALLEST_SCALE),
        EIGENVALUES: eigenvalue_scale(facts.adjacency, lattice, half, 2, SMALLEST_SCALE),
    }


# The better of a noisy matrix and of noisy eigenvalues with its eigenvectors, when clipped.

# Of what the count leaves, for the trace, the search and the matrix: a choice.
OWN_SHARES = (0.05, 0.1, 0.85)
# The same, of Dong, Liang, Yi (2022).
PUBLISHED_SHARES = (0.125, 0.125, 0.75)
# Names of scales in a plan.
DIAGONAL, OFF = "diagonal", "off"
HALF_DIAGONAL, HALF_OFF = "half diagonal", "half off"


class Sizes(NamedTuple):
    """How large planned noise in a matrix is, in units of the ball."""

    frobenius: float  # Root of the expected squared Frobenius norm
    edge: float  # Of the eigenvalues, about


def sizes(plan: Plan, law: Law = GAUSSIAN, *, half: bool = False) -> Sizes:
    """Return the size of the noise that takes all, or half, of the matrix' budget."""
    diagonal = plan.scales[HALF_DIAGONAL if half else DIAGONAL]
    off = plan.scales[HALF_OFF if half else OFF]
    columns, unit = plan.facts.columns, plan.lattice.steps**2 / law.sd
    frobenius = math.sqrt(columns * (diagonal**2 + (columns - 1) * off**2))
    return Sizes(frobenius / unit, 2 * off * math.sqrt(columns) / unit)


def denoised_error(plan: Plan, trace: float, radius: float, law: Law = GAUSSIAN) -> float:
    """Return the approximate Frobenius error of a denoised release at a clipping radius.

    Eigenvalues below the noise's edge e are lost, those above keep noise of its order: a multiple
    of ``√(e Σ λ)`` at most; the multiple is about 1/4 on simulated spectra. Nor is it more than
    the noise.
    """
    size = sizes(plan, law)
    return min(radius**2 * size.frobenius, radius * math.sqrt(size.edge * trace) / 4)


def separate_error(plan: Plan, trace: float, radius: float, law: Law = GAUSSIAN) -> float:
    """Return the approximate error of eigenvalues and eigenvectors released separately.

    Source: Dong, W., Liang, Y. and Yi, K. (2022). "Differentially private covariance revisited."
    NeurIPS 35. The constant before the first term is that of the authors' experiments.
    """
    values = law.sd * plan.scales[EIGENVALUES] * math.sqrt(plan.facts.columns)
    edge = sizes(plan, law, half=True).edge
    return radius * math.sqrt(edge * trace) / 3 + radius**2 * values / plan.lattice.steps**2


def better_error(plan: Plan, trace: float, radius: float, law: Law = GAUSSIAN) -> float:
    """Return the smaller of the two errors."""
    matrix_error = radius**2 * sizes(plan, law).frobenius
    return min(matrix_error, separate_error(plan, trace, radius, law))


def better_of_two(
    exact: Scalars,
    level: int,
    trace: float,
    cap: float | None,
    plan: Plan,
    entropy: Entropy,
    law: Law = GAUSSIAN,
) -> Floats:
    """Release the second moment clipped to ``2**-level`` by the method of less expected error.

    `exact`, shape (columns + 1, columns + 1), are that level's moments of magnified rows; trace
    and cap are public, the cap in units of the ball.
    """
    radius, unit = 2.0**-level, 4.0**level * plan.lattice.steps**2
    psd_cap = None if cap is None else cap * radius**2
    second, scales = exact[1:, 1:], plan.scales
    if radius**2 * sizes(plan, law).frobenius <= separate_error(plan, trace, radius, law):
        noisy = noised_symmetric(second, scales[DIAGONAL], scales[OFF], entropy, law)
        return nearest_psd(noisy / unit, psd_cap)
    noisy = noised_symmetric(second, scales[HALF_DIAGONAL], scales[HALF_OFF], entropy, law)
    values = noised_eigenvalues(exact, plan, entropy, law) * radius**2
    return recombined(values, noisy, psd_cap)


def released_inside(
    info: MechanismInfo,
    statistic: Statistic,
    plan: Plan,
    entropy: Entropy,
    inside: Callable[[Objects, float, float | None], Floats] | None,
    law: Law = GAUSSIAN,
) -> MomentsRelease:
    """Release count, sum, trace and what stands `inside` of the radius that clipping allows.

    `inside` takes the clipped moments, the released trace and its public bound, and finds the
    radius; None is the published method, whose eigenvalues are computed in floating point.
    """
    exact, n_rows = statistic.cross()
    count, total = noised_count(exact[0], plan, entropy, law)
    trace = clipping_shells.noised_trace(exact[0], plan, entropy, law)
    cap = trace_cap(plan.facts, n_rows)
    if inside is None:
        info = replace(info, numerics="idealised")
        error = partial(better_error, plan, trace, law=law)
        level = clipping_shells.clipping_radius(exact, error, plan, entropy)
        estimate = better_of_two(exact[level], level, trace, cap, plan, entropy, law)
    else:
        estimate = inside(exact, trace, cap)
    moments = NoisyMoments(count, total, estimate, noise_of(plan, law))
    return hand_over(info, plan, moments, n_rows)


@dataclass(frozen=True)
class AdaptivePure:
    """Moments inside a privately found radius, with Laplace noise.

    A clipping radius found privately, and Laplace noise on the moments inside it.

    Theorem
        The count, the trace and the moments inside the radius are Laplace releases, the search for
        the radius is pure; each may depend on the answers before it. Their ε add up, and their ε²/2
        of zCDP. An (ε, δ) guarantee leaves its δ unused.
    Sensitivity
        As for `Adaptive`: the moments inside the radius found are those of `Laplace`, the
        eigenvalues those of `SeparatePure`.
    Noise
        Discrete Laplace, at least 2¹⁰ steps: 2 % of the budget for the count, or 15 % for the count
        and the sum of the rows; of the rest 5 % for the trace, 10 % for the search, 85 % for the
        matrix on and above the diagonal. With ``denoise=None``, the published method, the parts of
        ``adaptive.py``.
    Numerics
        exact: integer statistic, integer noise of exact law. With ``denoise=None`` idealised, and
        the release's info says so.
    Source
        Dong, Liang, Yi (2022), "Differentially private covariance revisited", NeurIPS, for the
        radius and the choice of the two. Lyu, Su, Li (2017), "Understanding the sparse vector
        technique for differential privacy", PVLDB 10(6), for a search whose proof is sound.

    Parameters
    ----------
    denoise : {"auto", "invariant", "spiked", "psd"} or None, default "auto"
        How the noisy matrix is denoised. None is the published method instead.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> plan = AdaptivePure().plan(Facts(3, adjacency("replace"), centred=False), PureDP(1.0))
    >>> [event.describe() for event in plan.events[1:]]
    ['Laplace, multiplier 20.4082', 'pure, eps 0.098', 'Laplace, multiplier 1.20048']
    """

    denoise: str | None = "auto"

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="adaptive_pure",
        theorem="eps-DP, or zCDP at the sum of all parts' eps^2/2",
        sensitivity="of rows clipped to a privately found radius",
        noise="discrete Laplace",
        numerics="exact lattice",
        source="Dong, Liang, Yi (2022) with Laplace noise, denoised",
    )

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Calibrate all parts of the noise to a guarantee.

        ArgumentError for an unknown word for `denoise`. BudgetError if the noise leaves no useful
        lattice.
        """
        denoise_values(np.zeros(1), 0.0, self.denoise)
        first = COUNT_SHARE[facts.centred]
        fractions = PUBLISHED_SHARES if self.denoise is None else OWN_SHARES
        shares = (first, *((1 - first) * share for share in fractions))
        counting, of_trace, searching, of_matrix = laplace_multipliers(guarantee, shares)
        count = laplace_count(facts, 1 / (counting * ROUND_UP))
        alone = absolute_sensitivity(facts.adjacency, facts.columns, MomentWeights(0.0, 0.0))
        search = max(
            clipping_shells.sparse_scales(1 / searching, monotone=not facts.adjacency.n_public)
        )
        total = float(np.nan_to_num(count.total))
        widest = max(count.rows, total, of_trace, search, 2 * of_matrix * alone)
        bits = choose_lattice(facts.columns, ROOM * widest).bits
        lattice = Lattice(min(bits, clipping_shells.MOST_BITS), facts.columns)
        scales = clipping_shells.reach_scales(facts.adjacency, 1 / searching, lattice)
        scales[clipping_shells.TRACE] = _steps(of_trace, lattice)
        # Of one release of a matrix, and of halves for it and its eigenvalues.
        full, half = (_steps(factor * alone, lattice) for factor in (of_matrix, 2 * of_matrix))
        values = eigenvalue_scale(facts.adjacency, lattice, 2 * of_matrix, 1, SMALLEST_LAPLACE)
        scales |= {DIAGONAL: full, OFF: full, HALF_DIAGONAL: half, HALF_OFF: half}
        scales[EIGENVALUES] = values
        mean = _steps(count.total, lattice) if facts.centred else math.nan
        steps = MomentNoise(_steps(count.rows, lattice), mean, math.nan, math.nan)
        # Two halves of a pure budget are no Laplace release, but as private as one.
        matrix = LaplaceEvent(of_matrix) if self.denoise is not None else PureEvent(1 / of_matrix)
        first_parts = LaplaceEvent(counting), LaplaceEvent(of_trace), PureEvent(1 / searching)
        return Plan(guarantee, (*first_parts, matrix), lattice, facts, steps, scales)

    def measure(self, design: PrivateDesign, plan: Plan) -> Statistic:
        """Compute the exact moments clipped to every radius that may be found."""
        return clipped_moments(design, plan.lattice, clipping_shells.HALVINGS)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Find the radius, add the planned noise inside it, and estimate the moments."""

        def inside(exact: Objects, trace: float, cap: float | None) -> Floats:
            error = partial(denoised_error, plan, trace, law=LAPLACE)
            level = clipping_shells.clipping_radius(exact, error, plan, entropy)
            unit, scale = 4.0**level * plan.lattice.steps**2, plan.scales[OFF]
            noisy = noised_symmetric(exact[level, 1:, 1:], scale, scale, entropy, LAPLACE) / unit
            trace_bound = likely_cap(trace, cap, level, plan, LAPLACE)
            return denoise(noisy, LAPLACE.sd * scale / unit, self.denoise, trace_bound)

        estimator = None if self.denoise is None else inside
        return released_inside(self.info, statistic, plan, entropy, estimator, LAPLACE)


def _steps(scale: float, lattice: Lattice) -> float:
    """Return a scale, given in squared units of the ball, in lattice steps squared."""
    return max(scale * lattice.radius**2 * ROUND_UP, SMALLEST_LAPLACE)


@dataclass(frozen=True)
class Shells:
    """Increments of the second moment between clipping radii.

    Gaussian noise on the increments between public clipping radii, in proportion to each.

    Theorem
        The release is (ε, δ)-differentially private with the exact trade-off of the Gaussian
        mechanism, or ρ-zCDP, for either adjacency. The parts, each in units of its own noise, are
        one vector of L2 sensitivity 1/multiplier; the estimate is post-processing.
    Sensitivity
        With S_r the second moment of the rows clipped to radius r, the increments are S_1 - S_½,
        S_½ - S_¼ and S_¼, or with ⅛ for ¼ beyond 16 columns: what one row adds has norm 1 - ¼, ¼ -
        1/16 and 1/16 at most. Each has its trace as one more coordinate. The bound, and what
        rounding adds to it, is proved at :func:`dpmodels.statistics.clipped.increment_sensitivity`,
        that of the count and the sum of the rows at
        :func:`dpmodels.mechanisms.add_noise.gaussian_count`.
    Noise
        Independent discrete Gaussians on the integers of each increment, of scale σ on the
        diagonal, σ/√2 off it, σ/w for the trace of weight w, in proportion to its sensitivity. The
        increments take 0.5, 0.3 and 0.2 of the budget from the outside in, after 2 % for the count,
        or 15 % for the count and the sum. No scale is below 2²⁰ steps. The released second moment
        is the sum of the increments: its variance on the diagonal is the sum of theirs, half of
        that off it.
    Numerics
        exact: integer statistic, integer noise of exact law; the division to real numbers and the
        estimate come after the release.
    Source
        This package. Where rows are shorter than the public bound, the inner increments have little
        noise, and hold the shape of the outer ones, which is predicted from them; only the
        remainder is denoised. Clipping to a smaller radius for less noise is of Dong, Liang, Yi
        (2022), "Differentially private covariance revisited", NeurIPS. Canonne, Kamath, Steinke
        (2020), "The discrete Gaussian for differential privacy", NeurIPS, for the noise.

    Parameters
    ----------
    denoise : {"auto", "invariant", "spiked", "psd"} or None, default "auto"
        How the estimate is made of them; None shrinks nothing.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> plan = Shells().plan(Facts(3, adjacency("replace"), centred=False), ZCDP(0.5))
    >>> round(plan.steps.diagonal / plan.lattice.radius**2, 2)
    1.6
    """

    denoise: str | None = "auto"

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="shells",
        theorem="(eps, delta)-DP or rho-zCDP, exact Gaussian trade-off",
        sensitivity="L2 in isometric coordinates, sqrt(2)(r^2 - r'^2) for radii r > r'",
        noise="discrete Gaussian on each increment, in proportion to its sensitivity",
        numerics="exact lattice",
        source="increments between clipping radii; this package",
    )

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Calibrate the noise to a guarantee.

        ArgumentError for an unknown word for `denoise`. BudgetError for a pure guarantee, which
        Gaussian noise does not give.
        """
        denoise_values(np.zeros(1), 0.0, self.denoise)
        multiplier = gaussian_multiplier(guarantee)
        lattice, steps, scales = shell_noise(facts, multiplier)
        return Plan(guarantee, (GaussianEvent(multiplier),), lattice, facts, steps, scales)

    def measure(self, design: PrivateDesign, plan: Plan) -> Statistic:
        """Compute the exact moments clipped to each radius."""
        last = shells(plan.facts.columns)[-1]
        return clipped_moments(design, plan.lattice, last)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Add the planned noise to every increment, and sum them up."""
        moments, estimate, n_rows = accumulated(statistic, plan, entropy, self.denoise)
        return hand_over(self.info, plan, moments, n_rows, estimate)
