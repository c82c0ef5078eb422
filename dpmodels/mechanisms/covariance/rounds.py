"""Gaussian noise on moments about a released centre, in a ball of released radius.

Theorem
    Every round is a Gaussian mechanism, given what the rounds before released; their multipliers
    are fixed beforehand, so together they satisfy (ε, δ) with the exact trade-off of one Gaussian
    mechanism, or ρ-zCDP: ``1/m² = Σ 1/m_j²``. Centre and radius of a round, and whether the last
    is of moments or of increments, are functions of released values and public facts. Rounds that
    read rows chosen by coins have the same guarantee (docs/theory.md, Theorem 96), and so have
    moments that are read together with the last lengths (Theorem 104).
Sensitivity
    In each round a row is held in the unit ball of that round's centre and radius: an integer
    vector of norm at most ``2**bits`` that depends on that row and released values alone. So sums
    of rows have the sensitivity of :func:`dpmodels.mechanisms.add_noise.gaussian_count`, numbers
    of rows by length √2, or 1 for a row more, since a row is in one cell at most. The last round
    has that of :func:`dpmodels.statistics.moment_sensitivity`, or increments that of
    :func:`dpmodels.statistics.clipped.increment_sensitivity`.
Noise
    Independent discrete Gaussians of at least 2²⁰ steps, in three turns: on the sum of the rows
    held in the ball so far (2 % of the budget each), and on their lengths about its mean (1, 1 and
    3 %, the last up to 26 % for few columns); with the rest on the moments about the third mean, σ
    on the diagonal and σ/√2 off it. Where the mean is not taken off there is one turn, of lengths
    about the public centre; and the last round may be of increments as in ``shells``. With
    ``inference`` fourth moments about the mean have 7 % of what the turns leave, and increments
    beyond the ball 25 %.
Numerics
    exact: in every round an integer statistic and integer noise of exact law; what happens in
    floating point in between happens to released values.
Source
    This package. Learning where rows are before their moments is of Biswas, Dong, Kamath, Ullman
    (2020), "CoinPress", NeurIPS; choosing a radius by released lengths of Amin, Dick, Kulesza,
    Munoz, Vassilvitskii (2019), "Differentially private covariance estimation", NeurIPS. The
    radius weighs the noise, which falls with it, against the squares of the rows that it cuts off,
    as estimated from the released lengths. The noise of the last round has a known law in
    known coordinates, so the moments are read as those of ``gauss`` are; they are of the rows held
    in the ball, and the share of those that were longer is released too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import numpy as np

from dpmodels import privacy
from dpmodels.arguments import boolean
from dpmodels.design import Scaling
from dpmodels.mechanisms import add_noise, clipping_shells
from dpmodels.mechanisms.add_noise import GAUSSIAN, Law, Lengths
from dpmodels.mechanisms.clipping_shells import accumulated, shells
from dpmodels.mechanisms.measures import OfPasses
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import Lattice
from dpmodels.released import Ball, MechanismInfo, MomentNoise, MomentsRelease
from dpmodels.statistics import Passes, Statistic, clipped_moments, moments
from dpmodels.statistics.moments import MomentsByLength, moments_by_length, norm_counts
from dpmodels.statistics.statistic import measured_as
from dpmodels.typing import Floats

# Choices for turns that read some of the rows: how many they are at least, the noise in their mean
# in radii of their ball, that in a count of them, as a fraction of all, and of how many rows some
# are read.
FEWEST_ROWS, CENTRE_ERROR, COUNT_ERROR = 25_000, 0.02, 0.005
LARGE_TABLE = 400_000
# Choices for moments that are read with the last lengths: the part of the rows that may stay in
# memory until their ball is chosen, and its smallest radius, in steps of the lattice.
MOST_APART, COARSEST = 0.05, 2.0**14
# Of the budget, turn by turn to the sum and to the lengths; see `shares` for the last. Choices: a
# tenth at most is lost where nothing is learnt, but for few columns.
TURNS = ((0.02, 0.01), (0.02, 0.01), (0.02, 0.03))
LEAST = 0.5
# A choice: increments have an estimate whose error has no known law.
WORTH = 0.72
# Names of scales, of the noise in the number of rows and in the sum of the increments.
COUNT, DIAGONAL = "count", "diagonal"


@dataclass(frozen=True)
class Rounds(OfPasses):
    """Centre and radius first, then the moments about the one within the other.

    Made for rows that do not fill the box of the codebook: counts at the edge of their bounds, and
    bounds that are too wide. Reads the rows seven times, nine with `inference`; twice where the
    mean is not taken off. Of a large table with a public number of rows, the first five times
    read one row in k, by coins, about 25,000 or as many as their noise asks for, and the last two
    are one reading of all rows.

    Parameters
    ----------
    inference : bool
        Whether a third of what the search for the ball leaves of the budget buys short intervals:
        fourth moments, and how much clipping took off. Only where the mean is taken off.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> plan = Rounds().plan(Facts(30, adjacency("replace"), centred=True), ZCDP(0.5))
    >>> len(plan.events), plan.events[-1].describe()
    (7, 'Gaussian, multiplier 1.06')
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="rounds",
        theorem="(eps, delta)-DP or rho-zCDP, Gaussian rounds composed exactly",
        sensitivity="L2 of each round: sums, numbers by length, moments in isometric coordinates",
        noise="discrete Gaussian, variance s^2 on the diagonal and s^2/2 off it",
        numerics="exact lattice",
        source="moments about a released centre in a ball of released radius; this package",
    )

    inference: bool = False

    def __post_init__(self) -> None:
        boolean("inference", self.inference)

    def plan(self, facts: Facts, guarantee: privacy.Guarantee) -> Plan:
        """Divide a budget between the rounds; BudgetError for a pure guarantee."""
        buys = self.inference and facts.centred and not facts.unit
        budget_shares = shares(facts, TURNS, LEAST, clipping_shells.TAIL_SHARES if buys else {})
        multipliers = add_noise.named_multipliers(guarantee, budget_shares)
        last, sensitivity = multipliers[MOMENTS], math.sqrt(2) if facts.adjacency.n_public else 1.0
        scales = turn_scales(multipliers, sensitivity, partial(add_noise.gaussian_count, facts))
        lattice, steps = add_noise.gaussian_scales(facts, last)
        if buys:
            lattice, steps = add_noise.lattice_for(
                lattice, steps, multipliers[clipping_shells.FOURTH], add_noise.SMALLEST_SCALE
            )
            fourth = multipliers[clipping_shells.FOURTH]
            scales[clipping_shells.FOURTH] = clipping_shells.fourth_scale(fourth, lattice.radius)
            beyond = multipliers[clipping_shells.BEYOND]
            scales[clipping_shells.BEYOND] = beyond * add_noise.ROUND_UP
        if not facts.centred:
            coarse, increments, shell_scales = clipping_shells.shell_noise(facts, last)
            lattice, steps = add_noise.on_smaller(lattice, steps, coarse, add_noise.SMALLEST_SCALE)
            scales |= shell_scales
            scales |= {COUNT: increments.count, DIAGONAL: increments.diagonal}
        events = tuple(privacy.GaussianEvent(multiplier) for multiplier in multipliers.values())
        return Plan(guarantee, events, lattice, facts, steps, scales)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Read and add noise, round by round; rows of unit length keep their ball."""
        inner = locate(measured_as(Passes, statistic, "moments"), plan, entropy)
        if inner.lengths is not None and not plan.facts.centred:
            gain = increments_gain(inner.lengths, plan)
            if gain.ratio < WORTH:
                return self._increments(inner.at(gain.radius), plan, entropy)
        tails = None
        if clipping_shells.FOURTH in plan.scales:
            tails = clipping_shells.noised_tails(inner.passes, inner.public.scaling, plan, entropy)
        return replace(_moments_within(self.info, inner, plan, entropy, GAUSSIAN), tails=tails)

    def _increments(self, inner: RowsInBall, plan: Plan, entropy: Entropy) -> MomentsRelease:
        exact = inner.passes.measured(clipped_moments, shells(plan.facts.columns)[-1])
        diagonal = plan.scales[DIAGONAL]
        steps = MomentNoise(plan.scales[COUNT], math.nan, diagonal, diagonal / math.sqrt(2))
        noisy, estimate, n_rows = accumulated(exact, replace(plan, steps=steps), entropy)
        return add_noise.hand_over(self.info, plan, noisy, n_rows, estimate, inner.ball)


# Of the budget, as TURNS and LEAST: choices.
TURNS_PURE = ((0.03, 0.02), (0.03, 0.02), (0.03, 0.05))
LEAST_PURE = 1.0


@dataclass(frozen=True)
class RoundsPure(OfPasses):
    """Centre and radius first, then the moments, with Laplace noise throughout.

    Laplace noise on moments about a released centre, in a ball of released radius.

    Theorem
        Every round is ε_j-differentially private, given what the rounds before released, with
        shares of ε fixed beforehand; together they are ε-differentially private, and so are their
        ε_j²/2 of zCDP. An (ε, δ) guarantee leaves its δ unused. Centre and radius of a round are
        functions of released values and public facts.
    Sensitivity
        As for `Rounds`, in L1: of sums of rows that of
        :func:`dpmodels.mechanisms.add_noise.laplace_count`, of numbers of rows by length 2, or 1
        for a row more, of the last round that of
        :func:`dpmodels.statistics.moments.absolute_sensitivity`.
    Noise
        Independent discrete Laplace of at least 2¹⁰ steps, in three turns: on the sum of the rows
        held in the ball so far (3 % of the budget each), and on their lengths about its mean (2, 2
        and 5 %, the last up to 37 % for few columns); with the rest on the moments about the third
        mean, on and above the diagonal. Where the mean is not taken off there is one turn, of
        lengths.
    Numerics
        exact: in every round an integer statistic and integer noise of exact law; what happens in
        floating point in between happens to released values.
    Source
        This package; the file's docstring names what it is made after.

    Reads the rows as `Rounds` does.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> plan = RoundsPure().plan(Facts(30, adjacency("replace"), centred=True), PureDP(1.0))
    >>> len(plan.events), plan.events[-1].describe()
    (7, 'Laplace, multiplier 1.21951')
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="rounds_pure",
        theorem="eps-DP, or zCDP at the sum of all rounds' eps^2/2",
        sensitivity="L1 of each round: sums, numbers by length, moments on and above the diagonal",
        noise="discrete Laplace, one scale on and above the diagonal",
        numerics="exact lattice",
        source="moments about a released centre in a ball of released radius; this package",
    )

    def plan(self, facts: Facts, guarantee: privacy.Guarantee) -> Plan:
        """Divide a budget between the rounds and calibrate their noise.

        BudgetError if the noise leaves no useful lattice.
        """
        budget_shares = shares(facts, TURNS_PURE, LEAST_PURE)
        multipliers = add_noise.named_multipliers(guarantee, budget_shares, gaussian=False)
        sensitivity = 2.0 if facts.adjacency.n_public else 1.0
        scales = turn_scales(
            multipliers,
            sensitivity,
            lambda multiplier: add_noise.laplace_count(facts, 1 / multiplier),
        )
        lattice, steps = add_noise.laplace_scales(facts, multipliers[MOMENTS])
        events = tuple(privacy.LaplaceEvent(multiplier) for multiplier in multipliers.values())
        return Plan(guarantee, events, lattice, facts, steps, scales)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Read and add noise, round by round; rows of unit length keep their ball."""
        inner = locate(measured_as(Passes, statistic, "moments"), plan, entropy, add_noise.LAPLACE)
        return _moments_within(self.info, inner, plan, entropy, add_noise.LAPLACE)


def _moments_within(
    info: MechanismInfo, inner: RowsInBall, plan: Plan, entropy: Entropy, law: Law
) -> MomentsRelease:
    if inner.by_length is not None and inner.lattice is not None:
        exact, n_rows = inner.by_length.within(inner.lattice), inner.by_length.cross()[1]
        _, steps = add_noise.on_smaller(plan.lattice, plan.steps, inner.lattice, law.smallest)
        plan = replace(plan, lattice=inner.lattice, steps=steps)
    else:
        exact, n_rows = inner.passes.measured(moments).cross()
    noisy = add_noise.noised_moments(exact, plan, entropy, law)
    return add_noise.hand_over(info, plan, noisy, n_rows, ball=inner.ball)


# Whether increments between radii have less error than moments in one ball.


class Gain(NamedTuple):
    """The predicted error of increments over that of moments, and the radius they would have."""

    ratio: float
    radius: float


def increments_gain(lengths: Lengths, plan: Plan) -> Gain:
    """Compare both at the radius that is best for each, by the released lengths."""
    levels = shells(plan.facts.columns)
    squares = [lengths.squares(2.0**-level) for level in levels]
    parts = [*(outer - inner for outer, inner in pairwise(squares)), squares[-1]]
    rings = zip(clipping_shells.INCREMENTS, (*levels[1:], levels[-1]), parts, strict=True)
    errors = []
    for name, level, part in rings:
        times = lengths.radii**2 * plan.scales[name] / 4.0**level / plan.steps.diagonal
        errors.append(denoised_error(plan, times, part, TYPICAL))
    moments_errors = moments_error(lengths, plan, TYPICAL)
    increments_errors = np.linalg.norm([*errors, squares[0][-1] - squares[0]], axis=0)
    place = int(np.argmin(increments_errors))
    if not squares[0].any():
        return Gain(1.0, float(lengths.radii[-1]))
    return Gain(float(increments_errors[place] / moments_errors.min()), float(lengths.radii[place]))


# Centre and radius of a ball that holds most rows, found in turns by noisy sums and counts.

MOMENTS = "moments"
# About their mean rows that are cut off lie in many directions: of the second moment they take
# about half as much in Frobenius norm as in trace. A choice.
SCATTERED = 0.5
# The error of a denoised matrix is a quarter to a half of what its noise could be, on simulated
# rows: a radius is chosen by the half, since rows that are cut off are lost for good.
TYPICAL, CAUTIOUS = 0.25, 0.5


class RowsInBall(NamedTuple):
    """Rows clipped to the ball that the turns found."""

    passes: Passes
    public: Passes  # Clipped to the codebook's ball
    ball: Ball | None  # None where it is the codebook's
    lengths: Lengths | None  # The last ones; None for rows of unit length
    by_length: MomentsByLength | None = None  # Where moments were read with the last lengths
    lattice: Lattice | None = None  # Of these moments in the ball, where they hold them

    def at(self, radius: float) -> RowsInBall:
        """Return the same with another radius, about the same centre."""
        assert self.lengths is not None
        if radius >= self.public.scaling.row_norm:
            return self._replace(passes=self.public, ball=None, lattice=None)
        lattice, farthest = None, float(self.lengths.radii[-1])
        if self.by_length is not None:
            outer = self.passes.lattice
            lattice = self.by_length.inner(outer, radius / farthest)
            if lattice is not None:
                # The radius of whole numbers, which is not smaller.
                radius = lattice.steps / outer.steps * farthest
        passes = _within(self.passes, radius)
        ball = Ball(passes.scaling.centre, radius, *self.lengths.beyond(radius))
        return self._replace(passes=passes, ball=ball, lattice=lattice)


def shares(
    facts: Facts,
    turns: tuple[tuple[float, float], ...],
    weight: float,
    further: Mapping[str, float] = MappingProxyType({}),
) -> Mapping[str, float]:
    """Divide a budget: of each turn to the sum of the rows and to their lengths, then to moments.

    The last lengths have at least the share `weight`/(`weight` + f), with f the Frobenius norm of
    unit noise in the moments: with few columns the noise is small, and undetected rows weigh
    more. Without a mean there is one turn, of lengths alone. Of what the turns leave, each of the
    `further` rounds has a share.
    """
    *first, (of_sum, of_lengths) = turns
    norm = math.sqrt(facts.columns * (facts.columns + 1) / 2)
    last = max(of_lengths, weight / (weight + norm))
    if not facts.centred:
        return {"lengths 1": last, MOMENTS: 1 - last}
    parts = dict[str, float]()
    for turn, (sum_share, lengths_share) in enumerate((*first, (of_sum, last)), start=1):
        parts |= {f"sum {turn}": sum_share, f"lengths {turn}": lengths_share}
    left = 1 - math.fsum(parts.values())
    parts |= {name: share * left for name, share in further.items()}
    return {**parts, MOMENTS: left * (1 - math.fsum(further.values()))}


def turn_scales(
    multipliers: Mapping[str, float],
    sensitivity: float,
    noise: Callable[[float], add_noise.CountNoise],
) -> dict[str, float]:
    """Return the scales of the noise in each turn's number of rows, their sum and their lengths.

    `sensitivity` is that of the numbers of rows by length; `noise` gives the noise of count and sum
    for a multiplier.
    """
    scales = dict[str, float]()
    for name, multiplier in multipliers.items():
        what, _, turn = name.partition(" ")
        if what == "lengths":
            scales[name] = multiplier * sensitivity * add_noise.ROUND_UP
        elif what == "sum":
            count, total = noise(multiplier)
            scales |= {f"rows {turn}": count * add_noise.ROUND_UP, name: total * add_noise.ROUND_UP}
    return scales


def locate(statistic: Passes, plan: Plan, entropy: Entropy, law: Law = GAUSSIAN) -> RowsInBall:
    """Move the ball to the mean of the rows and shrink it, turn by turn.

    Rows of unit length keep their ball, and a ball that is not smaller is not used.
    """
    public, turns = statistic.scaling, sum("lengths" in name for name in plan.scales)
    if public.unit:
        return RowsInBall(statistic, statistic, None, None)
    passes, smallest = statistic, -1
    if turns > 1:
        passes = statistic.thinned(_fewest(plan, law), entropy, LARGE_TABLE)
    # Long rows are apart until their ball is chosen, so that no cluster reads them once.
    is_thinned = any(design.rows.thinning and not design.scattered for design in passes.designs)
    is_read_once = is_thinned and clipping_shells.FOURTH not in plan.scales
    if is_read_once:
        statistic = statistic.once()
    for turn in range(1, turns + 1):
        if f"sum {turn}" in plan.scales:
            passes = _about_the_mean(passes, turn, plan, entropy, law)
        if turn == turns:
            passes = statistic.rescaled(passes.scaling)
        lengths, exact = _lengths(passes, public, turn, plan, entropy, law, smallest)
        if turn < turns:
            smallest = _smallest(lengths, plan) if is_read_once and turn == turns - 1 else -1
            size = law.sd * math.sqrt(plan.facts.columns)
            radius = lengths.radius(plan.scales[f"sum {turn + 1}"] * size)
        else:
            radius = float(lengths.radii[np.argmin(moments_error(lengths, plan, CAUTIOUS, law))])
        passes = _within(passes, radius)
    by_length = exact if isinstance(exact, MomentsByLength) else None
    return RowsInBall(passes, statistic, None, lengths, by_length).at(radius)


def _smallest(lengths: Lengths, plan: Plan) -> int:
    """Return the place of the smallest radius that may be chosen after one reading, or -1."""
    longer = 1 - np.cumsum(lengths.counts) / max(float(lengths.counts.sum()), 1.0)
    place = int(np.argmax(longer <= MOST_APART))
    is_fine = add_noise.FRACTIONS[place] * plan.lattice.radius >= COARSEST
    return place if is_fine and place < len(add_noise.FRACTIONS) - 1 else -1


def _fewest(plan: Plan, law: Law) -> float:
    """Return how many rows say well enough where the rows lie, by the noise of the turns."""
    size = law.sd * math.sqrt(plan.facts.columns)
    sums, lengths = (
        max(scale for name, scale in plan.scales.items() if name.startswith(what))
        for what in ("sum ", "lengths ")
    )
    return max(FEWEST_ROWS, size * sums / CENTRE_ERROR, law.sd * lengths / COUNT_ERROR)


def denoised_error(
    plan: Plan, times: Floats, trace: Floats, part: float, law: Law = GAUSSIAN
) -> Floats:
    """Return the approximate error of a denoised matrix with so many times a plan's noise.

    Eigenvalues below the noise's edge are lost, those above keep noise of its order: a `part`
    of ``√(edge · trace)``, and no more than the noise.
    """
    columns, steps = plan.facts.columns, plan.steps
    unit = law.sd * math.sqrt(columns) / plan.lattice.steps**2
    frobenius = unit * math.hypot(steps.diagonal, math.sqrt(columns - 1) * steps.off)
    lost = part * np.sqrt(times * (2 * unit * steps.off) * np.maximum(trace, 0.0))
    return np.asarray(np.minimum(times * frobenius, lost))


def moments_error(lengths: Lengths, plan: Plan, part: float, law: Law = GAUSSIAN) -> Floats:
    """Return the approximate error of the denoised second moment at each radius.

    If no count is detected, the largest radius has the least.
    """
    squares = lengths.squares()
    if not squares.any():
        return -lengths.radii
    cut = (squares[-1] - squares) * (SCATTERED if plan.facts.centred else 1.0)
    error = denoised_error(plan, lengths.radii**2, squares, part, law)
    return np.asarray(np.hypot(error, cut))


def _about_the_mean(passes: Passes, turn: int, plan: Plan, entropy: Entropy, law: Law) -> Passes:
    """Move the centre to the noisy mean of the rows in their ball, shrunk by what is noise."""
    noise = add_noise.CountNoise(plan.scales[f"rows {turn}"], plan.scales[f"sum {turn}"])
    mean, _ = add_noise.noisy_mean(passes, plan.lattice, noise, entropy, law)
    scaling = passes.scaling
    return passes.rescaled(
        replace(scaling, centre=scaling.centre + mean * scaling.row_norm * scaling.scale)
    )


def _lengths(
    passes: Passes,
    public: Scaling,
    turn: int,
    plan: Plan,
    entropy: Entropy,
    law: Law,
    smallest: int,
) -> tuple[Lengths, Statistic]:
    """Return noisy numbers of rows by their distance from the centre, and what they are made of.

    Moments are read with them, for radii from the place `smallest` on, where it is not negative.
    """
    limits = tuple(int(end) for end in (add_noise.FRACTIONS[:-1] * plan.lattice.radius) ** 2)
    farthest = passes.scaling.distance_of(public)
    rows = _within(passes, farthest)
    if smallest < 0:
        statistic = rows.measured(norm_counts, limits)
    else:
        statistic = rows.measured(moments_by_length, limits, limits[smallest])
    exact, _ = statistic.cross()
    counts, scale = add_noise.noised_rows(exact, plan.scales[f"lengths {turn}"], entropy, law)
    radii, faint = add_noise.FRACTIONS * farthest, add_noise.faintest(law, scale)
    return Lengths(radii, counts, law.sd * scale, faint), statistic


def _within(passes: Passes, radius: float) -> Passes:
    return passes.rescaled(replace(passes.scaling, row_norm=radius))
