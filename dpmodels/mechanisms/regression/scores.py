"""Gaussian noise on moments about a released line, for least squares with few rows.

Theorem
    Every round is a Gaussian mechanism, given what the rounds before released; their multipliers
    are fixed beforehand, so together they satisfy (ε, δ) with the exact trade-off of one Gaussian
    mechanism, or ρ-zCDP: ``1/m² = Σ 1/m_j²`` (docs/theory.md, Theorem 55). The coordinates, radii
    and lines of a round, and whether it reads all rows or those chosen by coins (Theorem 96), are
    functions of released values and public facts.
Sensitivity
    In each round a row is an integer vector that depends on that row and released values alone.
    A row of weight q is √q times as long, and its powers count q times: no two differ by more than
    rows of weight 0 and 1 do.
    Sums of powers have the sensitivity of :func:`dpmodels.mechanisms.add_noise.gaussian_count`;
    numbers of rows by size, one cell in each of d columns, √(2d), or √d for a row more; numbers of
    rows by length in two tables 2, or √2; moments of scores, in Frobenius norm, √2, or 1
    (:func:`dpmodels.statistics.score_moments.score_moments`); sizes of residuals along the terms
    1, or ½ (:func:`dpmodels.statistics.score_moments.residual_sizes`).
Noise
    Independent discrete Gaussians of at least 2²⁰ steps, by :data:`SHARES` of the budget: on sums
    of each column and its square, twice, on numbers of rows by the size of each column about its
    mean, on moments of terms and residuals in three rounds, with σ on the diagonal and σ/√2 off it,
    on sizes of residuals along the terms, and on numbers of rows by length of the terms, and by
    residual on both sides of the line. Each of the first two rounds of moments gives a better line,
    residual sd and axes; the result is made of the last.
Numerics
    exact: in every round an integer statistic and integer noise of exact law; floating point is
    used between rounds on released values only.
Source
    This package. Weights for long terms are those of Mallows; see Krasker and Welsch (1982),
    "Efficient bounded-influence regression estimation", JASA 77. Noise in X'X is multiplied by the
    coefficients that are left, which are near 0 about a released line: the noise in a coefficient
    is then that of the score. Axes towards rare levels and far rows are shortened to keep them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dpmodels.mechanisms.add_noise import (
    GAUSSIAN,
    LAPLACE,
    ROUND_UP,
    Law,
    NoisyMoments,
    gaussian_count,
    hand_over,
    laplace_count,
    laplace_multipliers,
    named_multipliers,
    noised_rows,
    noised_symmetric,
)
from dpmodels.mechanisms.measures import OfPasses
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.mechanisms.regression.column_location import factor_levels, locate
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import choose_lattice
from dpmodels.postprocess import score_rounds
from dpmodels.postprocess.ellipsoid import Cells
from dpmodels.postprocess.score_rounds import LENGTHS, RESIDUALS, Limits, kept_fraction, kept_whole
from dpmodels.privacy import (
    Adjacency,
    GaussianEvent,
    Guarantee,
    LaplaceEvent,
    gaussian_multiplier,
    split_gaussian,
)
from dpmodels.released import Ball, MechanismInfo, MomentNoise, MomentsRelease
from dpmodels.statistics import Passes, Statistic
from dpmodels.statistics.moments import absolute_between
from dpmodels.statistics.score_moments import residual_sizes, score_lengths, score_moments
from dpmodels.statistics.statistic import measured_as
from dpmodels.typing import Floats

# Of the budget: choices, within 10 % of the best on simulated rows of many shapes.
SHARES = {
    "powers": 0.04,
    "columns": 0.02,
    "narrowed": 0.03,
    "rough": 0.13,
    "better": 0.18,
    "sizes": 0.04,
    "lengths": 0.03,
    "final": 0.53,
}
# Choices for rounds that read some of the rows: how many they are at least, the noise in a count of
# them, and that in an entry of their moments, both as fractions of all.
FEWEST_ROWS, COUNT_ERROR, MOMENT_ERROR = 100_000, 0.005, 0.005
# That of normal noise in one of some thirty cells that a count is detected beyond.
FALSE_ALARM = 2e-4
# A choice, as `score_rounds.NOISY`, on simulated bent lines and incomes: so few counts are detected
# falsely in Laplace noise that clipping counts more.
NOISY_LAPLACE = 100.0
# What better coordinates follow from the moments of each round before the last by.
LEARNING = {
    "rough": score_rounds.rough_coordinates,
    "better": score_rounds.better_coordinates,
}


@dataclass(frozen=True)
class Scores(OfPasses):
    """A line first, then the moments of terms and residuals about it.

    Made for few rows, many terms and factors. Reads the rows eight times. Weighted rows are
    moments of weighted least squares. Of a large table with a public number of rows five of the
    eight rounds read one row in k, by coins, about 100,000 or as many as their noise asks for,
    where the first round tells all variances from noise.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> plan = Scores().plan(Facts(3, adjacency("replace"), centred=True), ZCDP(0.5))
    >>> len(plan.events), plan.events[-1].describe()
    (8, 'Gaussian, multiplier 1.37361')
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="scores",
        theorem="(eps, delta)-DP or rho-zCDP, Gaussian rounds composed exactly",
        sensitivity="L2 of each round: sums, numbers by size, moments of terms and residuals",
        noise="discrete Gaussian, variance s^2 on the diagonal and s^2/2 off it",
        numerics="exact lattice",
        source="moments about a released line in released axes; this package",
    )

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Divide a budget between the rounds; BudgetError for a pure guarantee."""
        budget_multiplier = gaussian_multiplier(guarantee) * ROUND_UP
        multipliers = split_gaussian(budget_multiplier, list(SHARES.values()))
        scales = {name: m * ROUND_UP for name, m in zip(SHARES, multipliers, strict=True)}
        changed = 2 if facts.adjacency.n_public else 1
        for name in ("powers", "narrowed"):
            scales[name] *= gaussian_count(facts, 1.0).total
        scales["lengths"] *= math.sqrt(2 * changed)
        scales["columns"] *= math.sqrt(changed * facts.columns)
        for name in ("rough", "better", "final"):
            scales[name] *= math.sqrt(changed)
        scales["sizes"] *= changed / 2
        scales["whole"] = budget_multiplier
        lattice = choose_lattice(facts.columns, max(scales.values()))
        events = tuple(map(GaussianEvent, multipliers))
        return Plan(guarantee, events, lattice, facts, scales=scales)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Read and add noise, round by round."""
        passes = measured_as(Passes, statistic, "moments")
        return _about_line(self.info, passes, plan, entropy, GAUSSIAN)


# Of the budget, as SHARES: choices on simulated rows of many shapes. As shares of eps add up, there
# is one round of moments less, and none of sizes of residuals.
SHARES_PURE = {
    "powers": 0.11,
    "columns": 0.09,
    "narrowed": 0.12,
    "better": 0.24,
    "lengths": 0.06,
    "final": 0.38,
}


@dataclass(frozen=True)
class ScoresPure(OfPasses):
    """A line first, then the moments of terms and residuals about it, with Laplace noise.

    Theorem
        Every round is ε_j-differentially private, given what the rounds before released, with
        shares of ε fixed beforehand; together they are ε-differentially private, and so are their
        ε_j²/2 of zCDP. An (ε, δ) guarantee leaves its δ unused (docs/theory.md, Theorem 119).
    Sensitivity
        As for `Scores`, in L1: of sums of powers that of
        :func:`dpmodels.mechanisms.add_noise.laplace_count`; of numbers of rows by size d for a row
        more or fewer and 2d for a row replaced; of numbers by length 2 and 4; of moments of scores
        on and above the diagonal that of :func:`absolute_scores`.
    Noise
        Independent discrete Laplace of at least 2¹⁰ steps, by :data:`SHARES_PURE` of ε, on and
        above the diagonal of moments. There is one round of moments before the last, and none of
        sizes of residuals: along a slope, what clipping skewed residuals moves is not allowed for.
    Numerics
        exact: in every round an integer statistic and integer noise of exact law; floating point is
        used between rounds on released values only.
    Source
        This package; the file's docstring names what it is made after.

    Reads the rows six times, otherwise as `Scores` does.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> plan = ScoresPure().plan(Facts(3, adjacency("replace"), centred=True), PureDP(1.0))
    >>> len(plan.events), plan.events[-1].describe()
    (6, 'Laplace, multiplier 2.63158')
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="scores_pure",
        theorem="eps-DP, or zCDP at the sum of all rounds' eps^2/2",
        sensitivity="L1 of each round: sums, numbers by size, moments of terms and residuals",
        noise="discrete Laplace, one scale on and above the diagonal",
        numerics="exact lattice",
        source="moments about a released line in released axes; this package",
    )

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Divide a budget between the rounds and calibrate their noise.

        BudgetError if the noise leaves no useful lattice.
        """
        multipliers = named_multipliers(guarantee, SHARES_PURE, gaussian=False)
        scales = {name: multiplier * ROUND_UP for name, multiplier in multipliers.items()}
        changed = 2 if facts.adjacency.n_public else 1
        scales["lengths"] *= 2 * changed
        scales["columns"] *= changed * facts.columns
        moments = absolute_scores(facts.adjacency, facts.columns)
        for name in ("better", "final"):
            scales[name] *= moments
        (whole,) = laplace_multipliers(guarantee)
        scales["whole"] = whole * moments
        # Sums of columns and of their squares are as many at most.
        numbers = laplace_count(replace(facts, columns=2 * facts.columns), 1.0).total
        largest = max(scales.values()), numbers * scales["powers"], numbers * scales["narrowed"]
        lattice = choose_lattice(facts.columns, LAPLACE.room * max(largest))
        events = tuple(map(LaplaceEvent, multipliers.values()))
        return Plan(guarantee, events, lattice, facts, scales=scales)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Read and add noise, round by round."""
        passes = measured_as(Passes, statistic, "moments")
        return _about_line(self.info, passes, plan, entropy, LAPLACE)


def absolute_scores(adjacency: Adjacency, terms: int) -> float:
    """Return the L1 sensitivity of moments of scores, on and above the diagonal.

    In units of the squared radius, of so many `terms`, the constant included: a row is ``(t, e)``
    with ``|t|² <= ½`` and ``e² <= ½``. Alone it adds ``(‖t‖₁² + |t|²)/2 + ‖t‖₁|e| + e²`` at most.
    Of two complete rows see docs/theory.md, Theorem 119.
    """
    root = math.sqrt(terms)
    alone = (terms + 1) / 4 + root / 2 + 0.5
    if not adjacency.n_public:
        return alone
    between = absolute_between(terms, 1.0) + max(1 - root / math.sqrt(8), 0.0)
    return max(alone, between / 2)


def _about_line(
    info: MechanismInfo, passes: Passes, plan: Plan, entropy: Entropy, law: Law
) -> MomentsRelease:
    columns, chosen = locate(passes, plan, entropy, _fewest(passes, plan, law), law)
    mean, covariance, weight, rows, response, _, fraction, variances = columns
    # Rows of a mean weight of 1, as the coordinates and radii are for.
    gain = math.sqrt(rows / weight)
    units = _units(passes, plan) * gain
    radius, cut = score_rounds.radii(plan.facts.columns, law.sd * plan.scales["whole"], rows)
    square = score_rounds.LONGEST**2 * plan.facts.columns
    noise = math.sqrt(2) * law.sd * plan.scales["final"] * square / rows
    levels = factor_levels(passes.blocks[:-1], passes.scaling)
    far_rows = score_rounds.FarRows(levels, variances, noise)
    coordinates = score_rounds.within_reach(
        score_rounds.first_coordinates(mean, covariance), far_rows, radius
    )
    for name, learn in LEARNING.items():
        if name not in plan.scales:
            continue
        transform = coordinates.transform(radius, cut) * units
        noisy, _ = _moments(chosen, transform, radius, name, plan, entropy, law)
        coordinates = learn(coordinates, _means(noisy, rows * fraction, radius, cut))
        coordinates = score_rounds.within_reach(coordinates, far_rows, radius)
    transform = coordinates.transform(radius, cut) * units
    uneven = np.zeros(plan.facts.columns - 1)
    if "sizes" in plan.scales:
        uneven = _unevenness(chosen, transform, plan, entropy, law)
    left = response - score_rounds.explained_variance(coordinates, covariance)
    terms, residuals = _lengths(passes, coordinates, left, units, plan, entropy, law)
    damping = score_rounds.NOISY if law is GAUSSIAN else NOISY_LAPLACE
    multiplier = score_sd(plan, law)
    limits = score_rounds.chosen_limits(terms, residuals, uneven, rows, multiplier, damping)
    radius, cut = limits.radius, limits.cut
    transform = coordinates.transform(radius, cut) * units
    noisy, n_rows = _moments(passes, transform, radius, "final", plan, entropy, law)
    public = passes.scaling
    middle = np.append(coordinates.centre, coordinates.line[0])
    middle[-1] += coordinates.line[1:] @ coordinates.centre
    shortened, shortened_sd = terms.beyond(radius / math.sqrt(coordinates.parameters))
    ball = Ball(
        public.centre + public.scale * middle,
        radius * math.sqrt(2) / gain,
        shortened,
        shortened_sd,
        coordinates.axes(radius, cut),
        weight,
        *_kept(noisy, limits, rows),
        limits.shift * radius / cut,
        np.append(coordinates.spread, 1.0),
        limits.skew * radius / cut,
        limits.one_sided,
    )
    return hand_over(info, plan, _without_gain(noisy, gain), n_rows, ball=ball)


def _fewest(passes: Passes, plan: Plan, law: Law) -> float:
    """Return how many rows say well enough where the rows lie, by the noise of the rounds."""
    if passes.weighted:
        return math.inf
    entry = plan.scales.get("rough", plan.scales["better"])
    counts, moments = plan.scales["columns"], entry * 2 * (plan.facts.columns + 1)
    noises = law.sd * counts / COUNT_ERROR, law.sd * moments / MOMENT_ERROR
    return max(FEWEST_ROWS, *noises)


def score_sd(plan: Plan, law: Law) -> float:
    """Return the sd of the noise in an entry of the last score; √2 of it where n is private."""
    within = law.diagonal if plan.facts.adjacency.n_public else 1.0
    return law.sd * plan.scales["final"] / within


def _unevenness(
    passes: Passes, transform: Floats, plan: Plan, entropy: Entropy, law: Law
) -> Floats:
    """Return by how much more residuals vary a standard deviation of z up, shape (terms,).

    In units of their size, at most 1 in all, and 0 for all terms where noise hides it.
    """
    finer = choose_lattice(plan.facts.columns + 1, law.room * plan.scales["sizes"])
    exact, _ = passes.measured(residual_sizes, transform, finer).cross()
    steps = max(plan.scales["sizes"] * finer.radius**2, law.smallest)
    sizes, sd = noised_rows(exact, steps, entropy, law)[0], law.sd * steps
    size = max(float(sizes[0]), sd)
    uneven = sizes[1:] / size
    noise = score_rounds.RESOLVED_SKEW * (len(sizes) - 1) * (sd / size) ** 2
    square = max(float(uneven @ uneven), noise)
    return np.asarray(uneven * math.sqrt(1 - noise / square) / max(math.sqrt(square), 1.0))


def _lengths(
    passes: Passes,
    coordinates: score_rounds.ScoreCoordinates,
    variance: float,
    units: Floats,
    plan: Plan,
    entropy: Entropy,
    law: Law,
) -> tuple[Cells, score_rounds.SignedCells]:
    """Count rows by the length of (1, z), in units of its root mean square, and by residual.

    `variance` is that of all residuals, in scaled units.
    """
    size = math.sqrt(coordinates.parameters)
    limits = (tuple((table[:-1] / math.sqrt(2)).tolist()) for table in (LENGTHS, RESIDUALS))
    transform = coordinates.transform(size, 1.0) * units
    exact, _ = passes.measured(score_lengths, transform, *limits).cross()
    counts, scale = noised_rows(exact, plan.scales["lengths"], entropy, law)
    noise_sd = law.sd * scale
    tail = law.beyond(FALSE_ALARM) / law.sd / GAUSSIAN.beyond(FALSE_ALARM)
    terms, above, below = np.split(counts, [len(LENGTHS), len(LENGTHS) + len(RESIDUALS)])
    largest = 2 * float(passes.reach[-1]) / coordinates.residual_sd
    return Cells(LENGTHS, terms, noise_sd, tail), score_rounds.SignedCells(
        Cells(RESIDUALS, above, noise_sd, tail),
        Cells(RESIDUALS, below, noise_sd, tail),
        largest,
        variance / coordinates.residual_sd**2,
    )


def _units(passes: Passes, plan: Plan) -> Floats:
    """Return what entries of a row of the unit ball on the lattice are in scaled units."""
    unit = np.full(plan.facts.columns + 1, passes.scaling.row_norm)
    unit[1:] *= plan.lattice.radius / plan.lattice.steps
    unit[0] = 1.0
    return unit


def _moments(
    passes: Passes,
    transform: Floats,
    radius: float,
    name: str,
    plan: Plan,
    entropy: Entropy,
    law: Law,
) -> tuple[NoisyMoments, int]:
    """Release the moments of (w, w z) and w e in coordinates, in the units of their ball."""
    columns = plan.facts.columns
    finer = choose_lattice(columns + 1, law.room * plan.scales[name])
    exact, n_rows = passes.measured(score_moments, transform, finer).cross()
    # Rounding may move terms beyond their half of the ball, which counts in L1.
    longest_row = finer.radius + (math.sqrt(columns) if law is LAPLACE else 0.0)
    steps = max(plan.scales[name] * longest_row**2, law.smallest)
    off = steps / law.diagonal
    noisy = noised_symmetric(exact, steps, off, entropy, law) / finer.steps**2
    longest, sd = radius * math.sqrt(2), law.sd * steps / finer.steps**2
    noise = MomentNoise(sd * longest**2, sd * longest / law.diagonal, sd, sd / law.diagonal)
    count, total = float(noisy[0, 0]) * longest**2, noisy[0, 1:] * longest
    return NoisyMoments(count, total, noisy[1:, 1:], noise), n_rows


def _without_gain(noisy: NoisyMoments, gain: float) -> NoisyMoments:
    """Return moments of rows over a released number, in units of a ball that much smaller."""
    assert noisy.total is not None
    noise = noisy.noise
    noise = replace(noise, count=noise.count / gain**2, mean=noise.mean / gain)
    return NoisyMoments(noisy.count / gain**2, noisy.total / gain, noisy.second, noise)


def _kept(noisy: NoisyMoments, limits: Limits, rows: float) -> tuple[float, float]:
    """Return the fraction of residuals that were not cut, by their mean square and by counts.

    And an sd of what it is along a direction of the terms, where it may be another.
    """
    square = max(float(noisy.second[-1, -1]) * 2 * limits.cut**2 / rows, 0.0)
    normal = np.array(kept_whole(square, limits.cut))
    kept, sd = kept_fraction(normal, np.array(limits.kept), np.array(limits.kept_sd))
    return float(kept), score_rounds.UNEVEN * float(sd)


def _means(
    noisy: NoisyMoments, rows: float, radius: float, cut: float
) -> score_rounds.ScoreMoments:
    """Return released moments as means over rows, the residual in its own unit."""
    assert noisy.total is not None
    longest, share = radius * math.sqrt(2), cut / radius
    size = len(noisy.second)
    gram = np.empty((size, size))
    gram[0, 0] = noisy.count
    gram[0, 1:] = gram[1:, 0] = noisy.total[:-1] * longest
    gram[1:, 1:] = noisy.second[:-1, :-1] * longest**2
    score = np.append(noisy.total[-1] * longest, noisy.second[:-1, -1] * longest**2) * share
    off = noisy.noise.off * longest**2
    square = max(float(noisy.second[-1, -1]) * (longest * share) ** 2 / rows, 0.0)
    kept_fraction = kept_whole(square, cut)
    return score_rounds.ScoreMoments(
        gram / rows,
        score / rows / kept_fraction,
        square / kept_fraction**2,
        off / rows,
        off * share / rows / kept_fraction,
        math.sqrt(2) * off * (share / kept_fraction) ** 2 / rows,
    )
