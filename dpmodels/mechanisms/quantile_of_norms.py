"""A radius that most rows of a regression are within, by released numbers of rows by length.

Rows farther from a released centre are left out, not shortened: where the model holds, it holds for
the rows that are left. A row is in one cell: L2 sensitivity √2 when a row is replaced, 1 when it is
added or removed. Then matrices of weighted rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from dpmodels.errors import BudgetError
from dpmodels.mechanisms.add_noise import (
    GAUSSIAN,
    LAPLACE,
    ROUND_UP,
    SMALLEST_SCALE,
    UNITS,
    Law,
    add_noise,
    noised_symmetric,
)
from dpmodels.mechanisms.protocol import RegressionFacts
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import Lattice, choose_lattice
from dpmodels.released import Ball, BoughtCurvature, MomentNoise
from dpmodels.statistics import Statistic
from dpmodels.statistics.gradient import Gradients
from dpmodels.statistics.losses import Logistic, Multinomial, Predictors
from dpmodels.typing import Floats, Scalars

# A choice: radii are 19 % apart, and bounds may be a hundred times too wide.
PER_OCTAVE, OCTAVES = 4, 7
# Choices: the largest fraction of detected rows that is left out, and of all rows, within two
# standard deviations of the noise, or as it is estimated along terms without correlations.
LEFT_OUT, AT_MOST = 0.02, 0.1
# A choice: the length, in units of the mean square's root, from which on a row bends all directions
# no more than a shorter one.
BENDS = 2.0
# A choice: by how much the log odds of rows that are left out may differ from the model.
MISFIT = 1.0


class RowsWithin(NamedTuple):
    """The rows that are used."""

    predictors: Predictors
    ball: Ball | None  # None where all rows count, as they stand in the codebook's ball


def rows_within_quantile(
    rows: Gradients,
    predictors: Predictors,
    centre: Floats,
    scale: float,
    noise: float,
    weight: float,
    entropy: Entropy,
    shortest: float = 0.0,
) -> RowsWithin:
    """Count rows by their distance from a released centre; choose a radius by the counts.

    `centre`, shape (terms,), is in shares of the joint ball's radius, `scale` the noise of a count,
    `noise` that of a sum of gradients, `weight` the mean square of a row's pull. No radius below
    `shortest` is chosen.
    """
    recentred = predictors.within(centre, predictors.radius)
    octaves = np.arange(PER_OCTAVE * OCTAVES, -1, -1) / PER_OCTAVE
    ends = (predictors.radius + float(np.linalg.norm(centre))) * 2.0**-octaves
    exact, _ = rows.within(recentred).lengths(ends).cross()
    lengths = Lengths(ends, noised_counts(exact, scale, entropy), scale)
    at = lengths.chosen(noise / predictors.share, weight, predictors.terms)
    if at is None:
        return RowsWithin(predictors, None)
    at = max(at, int(np.searchsorted(ends, shortest)))
    if ends[at] >= predictors.radius:
        return RowsWithin(predictors, None)
    scaled, radius = rows.scaling, float(ends[at])
    terms = slice(predictors.terms)
    place = scaled.centre[terms] + centre * scaled.row_norm * scaled.scale[terms]
    beyond, sd = lengths.beyond
    ball = Ball(place, radius * scaled.row_norm, float(beyond[at]), float(sd[at]))
    return RowsWithin(predictors.within(centre, radius), ball)


class Lengths(NamedTuple):
    """Released numbers of rows by their distance from a centre, and the noise of each."""

    ends: Floats
    counts: Floats
    sd: float

    @property
    def detected(self) -> Floats:
        """The counts that are detected, 0 for the others.

        The largest of k normal variables seldom exceeds ``√(2 log k) + 1``.
        """
        faint = self.sd * (math.sqrt(2 * math.log(len(self.ends))) + 1)
        return np.where(self.counts > faint, self.counts, 0.0)

    @property
    def beyond(self) -> tuple[Floats, Floats]:
        """Shares of the rows beyond each end, and their standard deviations."""
        n_rows = max(float(self.detected.sum()), 1.0)
        cells = np.arange(len(self.ends))[::-1]
        return _beyond(self.counts) / n_rows, self.sd * np.sqrt(cells) / n_rows

    def chosen(
        self, noise: float, weight: float, terms: int, *, whitened: bool = False
    ) -> int | None:
        """Return the index of a radius, None if too few rows are detected.

        The squared error of a slope is about ``(s² + m²) r²/I² + 1/I``, s the noise in a sum of
        gradients of rows no longer than r, I the curvature of those within r along one of their
        directions, and m what the rows beyond might add where the model does not quite hold. Along
        `whitened` terms long rows bend one direction and not all. Noise of the curvature is then in
        proportion to ``q = s r²/I`` times the curvature. Errors grow as intervals do, by about
        ``1/(1 - 2 d q²)``, and where that has no bound nothing is identified, however few rows are
        left out (docs/theory.md, Theorem 108). Where no other radius leaves out as few rows as
        :data:`LEFT_OUT`, more of them are; where there is no other at all, errors decide.
        """
        ends, detected = self.ends, self.detected
        middle, margin = ends * 2.0 ** (-0.5 / PER_OCTAVE), 2.0
        if whitened:
            middle, margin = np.minimum(middle, BENDS * math.sqrt(terms)), 0.0
        curvature = weight * np.cumsum(detected * middle**2) / terms
        misfit = MISFIT * weight * _beyond(detected * ends) / ends
        (beyond, sd), n_rows = self.beyond, max(float(detected.sum()), 1.0)
        is_allowed = (beyond + margin * sd <= AT_MOST) & (curvature > 0)
        is_few = is_allowed & (_beyond(detected) <= LEFT_OUT * n_rows)
        inside = np.where(is_allowed, curvature, 1.0)
        square = (np.hypot(noise, misfit) * ends / inside) ** 2 + 1 / inside
        if whitened:
            hidden = 2 * terms * (noise * ends**2 / inside) ** 2
            is_clear = is_allowed & (hidden < 1)
            if is_clear.any():
                is_few = is_clear & is_few if (is_clear & is_few).any() else is_clear
                square /= np.where(is_clear, 1 - hidden, 1.0) ** 2
            else:
                square *= 1 + 2 * hidden
        if not is_few.any():
            return None
        return int(np.argmin(np.where(is_few, square, math.inf)))


def noised_counts(exact: Scalars, scale: float, entropy: Entropy, law: Law = GAUSSIAN) -> Floats:
    """Release numbers of rows; noise is added to integers of which a row is :data:`UNITS`."""
    return add_noise(exact * UNITS, max(scale * UNITS, law.smallest), entropy, law) / UNITS


def _beyond(counts: Floats) -> Floats:
    return np.asarray(counts[::-1].cumsum()[::-1] - counts)


# Curvature and squared gradients of a fit, bought together for its intervals.


class Longest(NamedTuple):
    """How far a row moves both matrices together, in units of what moves one furthest."""

    euclidean: float  # In isometric coordinates
    absolute: float  # In sums of absolute values
    bread: float = 1.0  # The largest curvature, in units of a row's square


# A row of slope q adds 4q(1-q) zzᵀ and q² zzᵀ: their largest norms, proved below.
LOGISTIC = Longest(1.0358, 4 / 3)
# Of a category of several levels; in absolute values nothing is proved.
MULTINOMIAL = Longest(math.sqrt(1.6), math.inf, 0.5)
# A row may add all of either.
APART = Longest(math.sqrt(2), 2.0)


def bought_scale(
    facts: RegressionFacts, multiplier: float, law: Law, longest: Longest | None = None
) -> float:
    """Return the noise of both matrices, in squared unit lengths.

    A row with curvature ``w ≤ 1`` and slope q adds ``(w zzᵀ, q² zzᵀ)``. In isometric coordinates
    that is at most ``√(w² + q⁴)`` long; two rows' are at most √2 times that apart, as the inner
    product of positive matrices is not negative. In absolute values on and above the diagonal it
    adds at most ``w + q²`` times ``(d + 1)/2``, and two rows' are at most twice that apart. For the
    logistic loss w is ``4q(1 - q)``: at most 1.0358 and ``max_q (4q - 3q²) = 4/3``.

    The same holds of a person, whose rows take shares ``p`` of its places, 1 in all at the most: in
    units of all its places it adds ``(Σ p w zzᵀ, ttᵀ)``, ``t = Σ p q z``. With ``r = Σ p q`` the
    second is at most r² long, and the first ``Σ p w``, for the logistic loss at most
    ``4r(1 - r)``, as w is concave in q.

    With K levels a row of probabilities p adds ``((diag p - p pᵀ) ⊗ zzᵀ, uuᵀ ⊗ zzᵀ)``, where
    ``u = e_y - p``; in units of 1/2 and 2, their largest norms, and with ``s = Σ p_k²``, the first
    is at most ``2 √(s (1 - s))`` long (:class:`dpmodels.statistics.losses.Multinomial`), and
    the second ``|u|²/2 = (1 - 2 p_y + s)/2 ≤ (1 + s)/2``. Their squares add to
    ``(1 + 18 s - 15 s²)/4``, at most 1.6, at s = 3/5. Of a person with shares p of its places the
    first is at most ``Σ p 2 √(s (1 - s))`` long, and the second, by the convexity of squares,
    ``Σ p (1 + s)/2``: both are concave in s, whose mean takes its place.

    `longest` is of other matrices bought together, by default of these. BudgetError if the noise
    leaves no useful lattice.
    """
    longest = longest or _longest(facts)
    replaced = facts.adjacency.n_public
    if law is LAPLACE:
        alone = (facts.columns + 1) / 2 * (1 + replaced) * longest.absolute
    else:
        alone = math.sqrt(1 + replaced) * longest.euclidean
    scale = multiplier * alone * ROUND_UP
    try:
        bought_lattice(facts, scale, law)
    except BudgetError:
        raise BudgetError(
            "the budget's share for intervals asks for more noise than is meaningful; give a "
            "larger eps, delta or rho, or write inference=False"
        ) from None
    return scale


def _longest(facts: RegressionFacts) -> Longest:
    match facts.loss:
        case Logistic():
            return LOGISTIC
        case Multinomial():
            return MULTINOMIAL
    return APART


def bought_lattice(facts: RegressionFacts, scale: float, law: Law) -> Lattice:
    """Return the lattice of weighted rows."""
    return choose_lattice(facts.columns, law.room * scale)


def both_matrices(
    rows: Gradients,
    point: Floats,
    facts: RegressionFacts,
    scale: float,
    entropy: Entropy,
    law: Law = GAUSSIAN,
    rougher: float = 1.0,
) -> BoughtCurvature:
    """Release curvature and squared gradients of the log-likelihood at a released point.

    The gradients are those of persons where neighbours differ in one. In units of all k places of a
    person both matrices have the same noise; `scale` is that of the curvature in units of one, k
    times as much. That of the squared gradients is `rougher` times as large.
    """
    part = _longest(facts).bread
    unit = facts.loss.smoothness * facts.loss.length / part
    requested = requested_matrix(rows.curvature, point, facts, scale * part, law, unit)
    requested_meat = squared_gradients(rows, point, facts, scale * rougher, law)
    bread, meat = requested(entropy), requested_meat(entropy)
    return BoughtCurvature(bread[0], meat[0], bread[1], meat[1], facts.adjacency.person)


def squared_gradients(
    rows: Gradients, point: Floats, facts: RegressionFacts, scale: float, law: Law
) -> Callable[[Entropy], tuple[Floats, MomentNoise]]:
    """Request the squared gradients of rows or persons, with the noise of :func:`both_matrices`."""
    squares, n_places = rows.squares, 1
    if facts.adjacency.person is not None:
        n_places = facts.adjacency.places
        squares = partial(rows.person_squares, places=n_places)
    unit = (facts.loss.length * n_places) ** 2
    return requested_matrix(squares, point, facts, scale / n_places, law, unit)


def weighted_squares(
    rows: Gradients, point: Floats, facts: RegressionFacts, scale: float, entropy: Entropy
) -> tuple[Floats, MomentNoise]:
    """Release the curvature alone at a released point, and its noise.

    A row adds ``w zzᵀ``, ``w ≤ 1``, of Frobenius norm 1 at most, and two rows' are at most √2
    apart: `scale` is the noise in these units.
    """
    unit = facts.loss.smoothness * facts.loss.length
    return requested_matrix(rows.curvature, point, facts, scale, GAUSSIAN, unit)(entropy)


def requested_matrix(
    request: Callable[[Floats, Lattice], Statistic],
    point: Floats,
    facts: RegressionFacts,
    scale: float,
    law: Law,
    unit: float,
) -> Callable[[Entropy], tuple[Floats, MomentNoise]]:
    """Request one matrix of weighted rows, and return what releases it, in units of the longest.

    Of several, all are requested before the first is released: rows on workers are then read once.

    Rounding moves a weighted row by at most ``√d/2`` steps, and so its square by little more than
    ``√d`` over the radius, which the noise is enlarged for. With K levels and d coordinates in all,
    ``√d`` at most an eighth of the radius R, rounding ``p ⊗ z`` moves its square by ``R√d + d/4``,
    and rounding all ``√p_k z`` theirs, which stand in blocks apart, by ``R√(d/K) + d/(4√K)``: in
    units of 1/2, together 3.3 √d over the radius, and of the squared gradients 1.1. A row adds 3.5
    and two add 7 then, where 4 times the length of what they move, 1.26 and 1.78, is allowed for.
    """
    lattice = bought_lattice(facts, scale, law)
    steps = scale * (1 + 4 * math.sqrt(facts.columns) / lattice.radius) * lattice.radius**2
    steps = max(steps, SMALLEST_SCALE)
    off = steps if law is LAPLACE else steps / math.sqrt(2)
    per_step = unit / lattice.steps**2
    statistic = request(point, lattice)

    def release(entropy: Entropy) -> tuple[Floats, MomentNoise]:
        noisy = noised_symmetric(statistic.cross()[0], steps, off, entropy, law) * per_step
        noise = MomentNoise(math.nan, math.nan, law.sd * steps * per_step, law.sd * off * per_step)
        return noisy, noise

    return release
