"""Gaussian noise on moments about a released centre, in a ball of released radius.

Theorem
    Every round is a Gaussian mechanism, given what the rounds before released; their multipliers
    are fixed beforehand, so together they satisfy (ε, δ) with the exact trade-off of one Gaussian
    mechanism, or ρ-zCDP: ``1/m² = Σ 1/m_j²``. Centre and radius of a round are functions of
    released values and public facts.
Sensitivity
    In each round a row is held in the unit ball of that round's centre and radius: an integer
    vector of norm at most ``2**bits`` that depends on that row and released values alone. So sums
    of rows have the sensitivity of :func:`dpmodels.mechanisms.noisy_count.gaussian_count`, numbers
    of rows by length √2, or 1 for a row more, since a row is in one cell at most, and the last
    round, the augmented moments, that of :func:`dpmodels.statistics.moment_sensitivity`.
Noise
    Independent discrete Gaussians of at least 2²⁰ steps: on the sum of the rows in the codebook's
    ball (3 % of the budget), on their lengths about its mean (2 %), on the sum of the rows held in
    the ball of most of them (3 %), on the lengths about the second mean (3 %), and on the moments
    about it, with σ on the diagonal and σ/√2 off it (the rest).
Numerics
    exact: in every round an integer statistic and integer noise of exact law; what happens in
    floating point in between happens to released values.
Source
    This package. Learning where rows are before their moments is of Biswas, Dong, Kamath, Ullman
    (2020), "CoinPress", NeurIPS; choosing a radius by released lengths of Amin, Dick, Kulesza,
    Munoz, Vassilvitskii (2019), "Differentially private covariance estimation", NeurIPS. The
    radius weighs the noise, which falls with it, against the squares of the rows that it cuts off,
    as far as the released lengths tell of them. The noise of the last round has a known law in
    known coordinates, so the moments are read as those of ``gauss`` are; they are of the rows held
    in the ball, and the share of those that were longer is released too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from dpmodels.design import PrivateDesign, Scaling
from dpmodels.errors import ArgumentError
from dpmodels.mechanisms.add_noise import (
    ROUND_UP,
    SMALLEST_SCALE,
    add_noise,
    gaussian_scales,
    hand_over,
    noised_moments,
)
from dpmodels.mechanisms.noisy_count import gaussian_count
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.noise import Entropy
from dpmodels.privacy import GaussianEvent, Guarantee, gaussian_multiplier, split_gaussian
from dpmodels.released import Ball, Card, MomentsRelease
from dpmodels.statistics import Passes, Statistic, moments
from dpmodels.statistics.norms import norm_counts, row_sums
from dpmodels.typing import Floats

# Of the budget. A choice: a ninth at most is lost where nothing is learnt.
SHARES = {"sum 1": 0.03, "lengths 1": 0.02, "sum 2": 0.03, "lengths 2": 0.03, "moments": 0.89}
# A choice: radii are told apart by 19 %, and bounds may be thousands of times too wide.
PER_OCTAVE, OCTAVES = 4, 14
# Units of a row in a count: its noise has more than 2**20 steps from a multiplier of 1/16 up.
UNITS = 2**24


class Lengths(NamedTuple):
    """Released numbers of rows by length, up to each radius, and the noise of each of them."""

    radii: Floats
    counts: Floats
    sd: float

    @property
    def told(self) -> Floats:
        """The counts that are told from noise, 0 for the others.

        The largest of k normal variables seldom exceeds ``√(2 log k) + 1``.
        """
        faint = self.sd * (math.sqrt(2 * math.log(self.counts.size)) + 1)
        return np.where(self.counts > faint, self.counts, 0.0)

    def radius(self, noise: float, power: int) -> float:
        """Return where noise and what is cut off the sum of ``length**power`` are least.

        `noise` is that of the sum for a radius of 1; it grows as ``radius**power``. The largest
        radius where no row is told of.
        """
        told = self.told
        if not told.any():
            return float(self.radii[-1])
        powers = self.radii**power
        cut = np.maximum(powers - powers[:, None], 0.0) @ told
        return float(self.radii[np.argmin(np.hypot(noise * powers, cut))])

    def beyond(self, radius: float) -> tuple[float, float]:
        """Return the share of the rows that are longer than one of the radii, and its noise."""
        rows, longer = max(float(self.counts.sum()), 1.0), self.radii > radius
        return float(self.counts[longer].sum()) / rows, self.sd * math.sqrt(longer.sum()) / rows


@dataclass(frozen=True)
class Rounds:
    """Centre and radius first, then the moments about the one within the other.

    Made for rows that do not fill the box of the codebook: counts at the edge of their bounds, and
    bounds that are too wide. Reads the rows five times.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> plan = Rounds().plan(Facts(3, adjacency("replace"), centred=True), ZCDP(0.5))
    >>> len(plan.events), plan.events[-1].describe()
    (5, 'Gaussian, multiplier 1.06')
    """

    card: ClassVar[Card] = Card(
        name="rounds",
        theorem="(eps, delta)-DP or rho-zCDP, Gaussian rounds composed exactly",
        sensitivity="L2 of each round: sums, numbers by length, moments in isometric coordinates",
        noise="discrete Gaussian, variance s^2 on the diagonal and s^2/2 off it",
        numerics="exact lattice",
        source="moments about a released centre in a ball of released radius; this package",
    )
    passes: ClassVar[str] = "many"

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Divide a budget between the rounds and calibrate their noise.

        Raises
        ------
        BudgetError
            For a pure guarantee, which Gaussian noise does not give.
        """
        wanted = {name: own for name, own in SHARES.items() if facts.centred or "sum" not in name}
        whole = gaussian_multiplier(guarantee) * ROUND_UP
        multipliers = dict(zip(wanted, split_gaussian(whole, list(wanted.values())), strict=True))
        lattice, steps = gaussian_scales(facts, multipliers["moments"])
        moved = math.sqrt(2) if facts.adjacency.n_public else 1.0
        scales = {
            name: gaussian_count(facts, own).total if "sum" in name else own * moved
            for name, own in multipliers.items()
            if name != "moments"
        }
        scales = {name: scale * ROUND_UP for name, scale in scales.items()}
        events = tuple(GaussianEvent(own) for own in multipliers.values())
        return Plan(guarantee, events, lattice, facts, steps, scales)

    def measure(self, design: PrivateDesign, plan: Plan) -> Passes:
        """Make ready to read the rows, once for each round."""
        return Passes((design,), plan.lattice, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Read and add noise, round by round; rows of one length are not held in another ball."""
        if not isinstance(statistic, Passes):
            raise ArgumentError("statistic= is one of moments; expected what measure() returned")
        public = statistic.scaling
        held, ball = statistic, None
        if not public.unit:
            size, entry = plan.facts.columns, plan.steps.diagonal / plan.lattice.steps**2
            # Of the sum that each turn's radius is for: of the rows, and of their squares.
            noises = (
                plan.scales.get("sum 2", 0.0) * math.sqrt(size),
                entry * math.sqrt(size * (size + 1) / 2),
            )
            for turn, noise in enumerate(noises, start=1):
                held = _about_the_mean(held, f"sum {turn}", plan, entropy)
                seen = _lengths(held, public, f"lengths {turn}", plan, entropy)
                held = _within(held, seen.radius(noise, power=turn))
            found = held.scaling
            if found.row_norm < public.row_norm:
                ball = Ball(found.centre, found.row_norm, *seen.beyond(found.row_norm))
            else:
                held = statistic
        exact, rows = held.measured(moments).cross()
        noisy = noised_moments(exact, plan, entropy)
        return hand_over(self.card, plan, noisy, rows, ball=ball)


def _about_the_mean(passes: Passes, name: str, plan: Plan, entropy: Entropy) -> Passes:
    """Move the centre to the noisy mean of the rows in their ball, shrunk by what is noise."""
    if name not in plan.scales:
        return passes
    exact, _ = passes.measured(row_sums).cross()
    lattice, scale, noise = plan.lattice, plan.scales[name], gaussian_count(plan.facts, 1.0)
    own = scale * lattice.radius
    steps = [max(own * share, SMALLEST_SCALE) for share in (noise.rows / noise.total, 1.0)]
    count = max(float(add_noise(exact[:1], steps[0], entropy)[0]) / lattice.radius, 1.0)
    mean = add_noise(exact[1:], steps[1], entropy) / lattice.steps / count
    # James and Stein's estimate: where the mean is lost in noise, the centre stays.
    square = float(mean @ mean)
    lost = lattice.columns * (scale / count) ** 2
    mean = mean * max(1 - lost / square, 0.0) if square > 0 else mean
    mean = mean / max(1.0, float(np.linalg.norm(mean)))
    held = passes.scaling
    return passes.rescaled(replace(held, centre=held.centre + mean * held.row_norm * held.scale))


def _lengths(passes: Passes, public: Scaling, name: str, plan: Plan, entropy: Entropy) -> Lengths:
    """Return noisy numbers of rows by their distance from the centre."""
    fractions = 2.0 ** (-np.arange(PER_OCTAVE * OCTAVES, -1, -1) / PER_OCTAVE)
    limits = tuple(int(end) for end in (fractions[:-1] * plan.lattice.radius) ** 2)
    away = np.linalg.norm((passes.scaling.centre - public.centre) / public.scale)
    farthest = public.row_norm + float(away)
    exact, _ = _within(passes, farthest).measured(norm_counts, limits).cross()
    sd = plan.scales[name]
    found = add_noise(exact * UNITS, max(sd * UNITS, SMALLEST_SCALE), entropy) / UNITS
    return Lengths(fractions * farthest, found, sd)


def _within(passes: Passes, radius: float) -> Passes:
    return passes.rescaled(replace(passes.scaling, row_norm=radius))
