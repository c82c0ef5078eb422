"""Gaussian noise on moments in a released ellipsoid, for least squares.

Theorem
    Every round is a Gaussian mechanism, given what the rounds before released; their multipliers
    are fixed beforehand, so together they satisfy (ε, δ) with the exact trade-off of one Gaussian
    mechanism, or ρ-zCDP: ``1/m² = Σ 1/m_j²``. Centre, axes and radius of a round are functions of
    released values and public facts.
Sensitivity
    In each round a row is an integer vector of norm at most ``2**bits`` that depends on that row
    and released values alone. Sums of rows have the sensitivity of
    :func:`dpmodels.mechanisms.add_noise.gaussian_count`; numbers of rows by column, one cell in
    each of d, √(2d), or √d for a row more; numbers of rows by length √2, or 1; and both rounds of
    augmented moments that of :func:`dpmodels.statistics.moment_sensitivity`.
Noise
    Independent discrete Gaussians of at least 2²⁰ steps: on the sum of the rows in the codebook's
    ball (2 % of the budget), on numbers of rows by the size of each column about its mean (2 %),
    on the sum of the rows divided by the spreads so found (1 %), on numbers by column again (3 %),
    on the moments of rows divided by these spreads (6 %), on numbers of rows by length along the
    axes so found (3 %), and on the moments along them (83 %), with σ on the diagonal and σ/√2 off
    it.
Numerics
    exact: in every round an integer statistic and integer noise of exact law; what happens in
    floating point in between happens to released values.
Source
    This package. Rounds of clipping in a shrinking ellipsoid are of Biswas, Dong, Kamath, Ullman
    (2020), "CoinPress", NeurIPS. Here spreads come from released counts, no normal law is assumed,
    the noise of the last round has a known law in known coordinates, and the rows stay in the
    codebook's ball where rounds are not predicted to lessen the noise in the coefficients. Rows
    (x, y) are shortened together, by a length that is that of the terms and of the residual, each
    for itself: where residuals are symmetric, whatever their spread, and the ellipsoid has the
    centre and the axes of the rows, the line of the shortened rows is that of the rows.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, replace
from typing import ClassVar

import numpy as np

from dpmodels.arguments import between
from dpmodels.design import Scaling
from dpmodels.mechanisms import add_noise
from dpmodels.mechanisms.add_noise import hand_over, noised_moments
from dpmodels.mechanisms.measures import OfPasses
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.noise import Entropy
from dpmodels.postprocess.ellipsoid import (
    Cells,
    Shape,
    Spreads,
    radius,
    sensitivity_to_noise,
    shape,
    spreads,
)
from dpmodels.privacy import GaussianEvent, Guarantee
from dpmodels.released import Ball, MechanismInfo, MomentNoise, MomentsRelease
from dpmodels.statistics import Passes, Statistic, moments
from dpmodels.statistics.passes import column_counts, turned_counts
from dpmodels.statistics.statistic import measured_as
from dpmodels.typing import Floats, Scalars

# Of the budget. A choice: where nothing is gained, noise is 10 % larger than without rounds.
SHARES = {
    "sum 1": 0.02,
    "columns 1": 0.02,
    "sum 2": 0.01,
    "columns 2": 0.03,
    "rough moments": 0.06,
    "lengths": 0.03,
    "moments": 0.83,
}
# Choices: radii of rows are told apart by 19 %, those of columns by 41 %; bounds may be thousands
# of times too wide.
BY_LENGTH, OCTAVES = 4, 15
# A choice: rough moments are of rows up to so many times as long as the root of their mean square.
ROUGH = 1.6
# A choice: a column that is told to spread no farther, in smallest radii, is taken not to vary, as
# the dummy of a level without rows: axes would be of noise alone.
FLAT = 4.0
# A choice: rows are shortened only where that is predicted to leave so much of the error.
GAIN = 0.6


@dataclass(frozen=True)
class Ellipsoid(OfPasses):
    """Centre, axes and radius first, then the moments of the rows within them.

    Made for terms that are alike and for bounds that are too wide. Reads the rows seven times.

    Parameters
    ----------
    alike : float
        Of what is cut off long rows, the share that is taken to move the coefficients in one
        direction, above 0: 0 is true where residuals are symmetric, 1 where all long rows lean
        to one side. With more the radius is wider.

    Raises
    ------
    ArgumentError
        If `alike` lies outside its range.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> plan = Ellipsoid().plan(Facts(3, adjacency("replace"), centred=True), ZCDP(0.5))
    >>> len(plan.events), plan.events[-1].describe()
    (7, 'Gaussian, multiplier 1.09764')
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="ellipsoid",
        theorem="(eps, delta)-DP or rho-zCDP, Gaussian rounds composed exactly",
        sensitivity="L2 of each round: sums, numbers by size, moments in isometric coordinates",
        noise="discrete Gaussian, variance s^2 on the diagonal and s^2/2 off it",
        numerics="exact lattice",
        source="moments along released axes in an ellipsoid of released radius; this package",
    )

    alike: float = 0.25

    def __post_init__(self) -> None:
        between("alike", self.alike, 0.001, 1000.0, ", such as 0.25")

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Divide a budget between the rounds; BudgetError for a pure guarantee."""
        multipliers = add_noise.named_multipliers(guarantee, SHARES)
        changed = 2 if facts.adjacency.n_public else 1
        distances = {"sum": add_noise.gaussian_count(facts, 1.0).total}
        distances |= {"columns": math.sqrt(changed * facts.columns), "lengths": math.sqrt(changed)}
        scales = {
            name: multiplier * distances[name.split()[0]] * add_noise.ROUND_UP
            for name, multiplier in multipliers.items()
            if "moments" not in name
        }
        rougher = multipliers["rough moments"] / multipliers["moments"] * add_noise.ROUND_UP
        lattice, steps = add_noise.gaussian_scales(facts, multipliers["moments"])
        largest = rougher * max(astuple(steps)) / lattice.radius**2
        lattice, steps = add_noise.lattice_for(lattice, steps, largest, add_noise.SMALLEST_SCALE)
        events = tuple(map(GaussianEvent, multipliers.values()))
        return Plan(guarantee, events, lattice, facts, steps, {**scales, "rough moments": rougher})

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Read and add noise, round by round."""
        statistic = measured_as(Passes, statistic, "moments")
        ball = _ellipsoid_of(statistic, plan, entropy, self.alike)
        if ball is None:
            exact, rows = statistic.measured(moments).cross()
        else:
            clipped, transform = rows_within(statistic, ball)
            exact, rows = clipped.within(transform).cross()
        return hand_over(self.info, plan, noised_moments(exact, plan, entropy), rows, ball=ball)


def rows_within(passes: Passes, ball: Ball) -> tuple[Passes, Floats]:
    """Return passes over rows in the codebook's ball, and what takes them into an ellipsoid.

    Rows of the ellipsoid are in the ball of these passes; others are shortened towards one centre
    twice.
    """
    assert ball.axes is not None
    public, spread = passes.scaling, np.linalg.norm(ball.axes, axis=1)
    onto = _onto(ball.axes, spread)
    outer = ball.radius * float(np.linalg.norm(ball.axes / spread[:, None], 2)) * add_noise.ROUND_UP
    scaling = replace(public, centre=ball.centre, scale=public.scale * spread, row_norm=outer)
    return passes.rescaled(scaling), np.asarray(onto * (outer / ball.radius))


def _ellipsoid_of(passes: Passes, plan: Plan, entropy: Entropy, alike: float) -> Ball | None:
    """Learn where the rows are; None where the codebook's ball is predicted to do as well."""
    public, size = passes.scaling, plan.facts.columns
    centre, spread, clipped = np.zeros(size), np.ones(size), passes
    for turn in (1, 2):
        mean, count = _mean(clipped, f"sum {turn}", plan, entropy)
        centre = centre + mean * clipped.scaling.row_norm * spread
        columns = _columns(passes, centre, count, f"columns {turn}", plan, entropy)
        spread = columns.detected
        clipped = passes.rescaled(_scaling(public, centre, spread, ROUGH * math.sqrt(size)))
    flat = (columns.detected <= FLAT * _fractions(2)[0] * _farthest(public, centre)).any()
    ellipsoid = _shape(clipped, centre, columns, plan, entropy)
    row_lengths = _lengths(passes, ellipsoid, plan, entropy)
    noise = add_noise.noise_of(plan).off
    best = radius(row_lengths, size, noise, alike)
    if flat or best is None:
        return None
    within = best.error * sensitivity_to_noise(ellipsoid.covariance, ellipsoid.axes)
    in_ball = noise * public.row_norm**2 * sensitivity_to_noise(ellipsoid.covariance, np.eye(size))
    if not within < GAIN * in_ball:
        return None
    middle = public.centre + public.scale * ellipsoid.centre
    return Ball(middle, best.length, *row_lengths.beyond(best.length), ellipsoid.axes)


def _scaling(public: Scaling, centre: Floats, spread: Floats, row_norm: float) -> Scaling:
    """Return the scaling of rows about a centre in units of spreads, both in scaled units."""
    middle, unit = public.centre + public.scale * centre, public.scale * spread
    return replace(public, centre=middle, scale=unit, row_norm=row_norm)


def _farthest(public: Scaling, centre: Floats) -> float:
    """Return what no row is farther from a centre than."""
    return public.row_norm + float(np.linalg.norm(centre))


def _mean(passes: Passes, name: str, plan: Plan, entropy: Entropy) -> tuple[Floats, float]:
    scale, unit = plan.scales[name], add_noise.gaussian_count(plan.facts, 1.0)
    noise = add_noise.CountNoise(scale * (unit.rows / unit.total), scale)
    return add_noise.noisy_mean(passes, plan.lattice, noise, entropy)


def _columns(
    passes: Passes, centre: Floats, count: float, name: str, plan: Plan, entropy: Entropy
) -> Spreads:
    """Return how far rows are from a centre, column by column."""
    public = passes.scaling
    farthest = _farthest(public, centre)
    whole_rows = passes.rescaled(_scaling(public, centre, np.ones_like(centre), farthest))
    halvings = 2 * OCTAVES
    exact, _ = whole_rows.measured(column_counts, halvings).cross()
    cells = _noisy(exact, _fractions(2) * farthest, plan.scales[name], entropy)
    # Scaled columns are as long as 2, from end to end.
    return spreads(cells, count, 1 + np.abs(centre))


def _shape(
    clipped: Passes, centre: Floats, columns: Spreads, plan: Plan, entropy: Entropy
) -> Shape:
    rougher = plan.scales["rough moments"]
    steps = MomentNoise(*(rougher * step for step in astuple(plan.steps)))
    exact, _ = clipped.measured(moments).cross()
    noisy = noised_moments(exact, replace(plan, steps=steps), entropy)
    count, unit = max(noisy.count, 1.0), clipped.scaling.row_norm
    law = MomentNoise(
        noisy.noise.count,
        noisy.noise.mean * unit,
        noisy.noise.diagonal * unit**2,
        noisy.noise.off * unit**2,
    )
    assert noisy.total is not None
    mean, second = noisy.total * (unit / count), noisy.second * (unit**2 / count)
    return shape(count, mean, second, law, columns, centre)


def _lengths(passes: Passes, ellipsoid: Shape, plan: Plan, entropy: Entropy) -> Cells:
    """Return noisy numbers of rows by their length along axes."""
    public, spread = passes.scaling, np.linalg.norm(ellipsoid.axes, axis=1)
    outer, onto = (
        _farthest(public, ellipsoid.centre) / float(spread.min()),
        _onto(ellipsoid.axes, spread),
    )
    farthest = outer * float(np.linalg.norm(onto, 2))
    scaled = passes.rescaled(_scaling(public, ellipsoid.centre, spread, outer))
    fractions = _fractions(BY_LENGTH)
    limits = tuple(int(end) for end in (fractions[:-1] * plan.lattice.radius) ** 2)
    exact, _ = scaled.measured(turned_counts, onto * (outer / farthest), limits).cross()
    return _noisy(exact, fractions * farthest, plan.scales["lengths"], entropy)


def _onto(axes: Floats, spread: Floats) -> Floats:
    """Return the matrix that takes rows in units of spreads to their coordinates along axes."""
    return np.asarray(np.linalg.inv(axes / spread[:, None]))


def _fractions(octave: int) -> Floats:
    """Return radii as shares of the ball's, so many an octave."""
    return np.asarray(2.0 ** (-np.arange(octave * OCTAVES, -1, -1) / octave))


def _noisy(exact: Scalars, radii: Floats, sd: float, entropy: Entropy) -> Cells:
    counts, _ = add_noise.noised_rows(exact.ravel(), sd, entropy)
    return Cells(radii, counts.reshape(exact.shape), sd)
