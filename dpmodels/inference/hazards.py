"""Proportional hazards from noisy counts of events and of rows at risk, by group and interval.

*Theorem.* By group and interval let R rows be at risk and D have the event, of released counts n;
let ``E = D / -log(1 - D/R)`` be the exposure, so that D/E is the interval's cumulative hazard [1]_.
With means ``m_k`` of the groups' terms x, weighted by ``E exp(xβ)`` in interval k, the score of
Cox's partial likelihood is ``U(β) = Σ D (x - m_k)``. Where hazards are proportional its mean at the
true β is 0 to first order, whatever the intervals. Its derivatives are ``x - m_k`` by D and ``B =
-D_k exp(xβ) (x - m_k) / Σ E exp(xβ)`` by E, so that a row adds a public vector l of its cell [2]_.
As E is homogeneous in the counts and ``Σ E B = 0`` in every interval, the l of all rows add up to
U. To first order the root is off by ``I⁻¹ Σ l e`` for noise e in the counts, and about the
population's by that and ``I⁻¹ Σ n l``, of covariance ``I⁻¹ (Σ n l lᵀ) I⁻¹``, whether or not hazards
are proportional.

.. [1] Prentice, R. L. and Gloeckler, L. A. (1978). "Regression analysis of grouped survival data
   with application to breast cancer data." Biometrics 34(1), 57-67.
.. [2] Lin, D. Y. and Wei, L. J. (1989). "The robust inference for the Cox proportional hazards
   model." JASA 84(408), 1074-1078.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from dpmodels.inference.proportions import SumNoise
from dpmodels.inference.survival import Noise
from dpmodels.postprocess.protocol import Spread
from dpmodels.postprocess.survival import DETECTION_SDS, at_risk
from dpmodels.typing import Floats, Integers

# Most Newton steps, and the length of one, in standard errors, at which they end.
STEPS: Final = 50
NEAR: Final = 1e-9
# Largest hazard of an interval, and the smallest, below which it is as good as 0.
HIGHEST: Final = 0.99
LOWEST: Final = 1e-4


class HazardRatios(NamedTuple):
    """Logarithms of hazard ratios, their sampling and noise errors; nan if not identified."""

    coefficients: Floats
    sampling_sd: Floats
    spread: Spread


@dataclass(frozen=True, eq=False)
class GroupedTimes:
    """Counts by group and interval, with the coded `terms` of each group, shape (groups, terms).

    `cells`, shape (groups, 2, intervals + 1), are unbiased counts of censored rows and of events,
    the last of those followed to the end; `halved` is the fraction of the rows censored in an
    interval that is not at risk in it, and `ends` how many intervals each group is followed for.
    """

    terms: Floats
    cells: Floats
    halved: Floats
    ends: Integers

    @cached_property
    def followed(self) -> Floats:
        """1 where a group is followed in an interval, else 0."""
        return (np.arange(len(self.halved)) < self.ends[:, None]).astype(float)

    @cached_property
    def events(self) -> Floats:
        """Events by group and interval."""
        return np.asarray(self.cells[:, 1, :-1] * self.followed)

    @cached_property
    def exposure(self) -> tuple[Floats, Floats, Floats]:
        """Exposed rows, and their derivatives by the rows at risk and by the events."""
        risk = at_risk(self.cells)[:, :-1] - self.halved * self.cells[:, 0, :-1]
        risk = np.maximum(risk, 0.5)
        hazard = np.clip(self.cells[:, 1, :-1] / risk, -HIGHEST, HIGHEST)
        hazard = np.where(np.abs(hazard) < LOWEST, LOWEST, hazard)
        log = -np.log1p(-hazard)
        by_event = (log - hazard / (1 - hazard)) / log**2
        return risk * hazard / log * self.followed, hazard / log - hazard * by_event, by_event

    def weighted(self, coefficients: Floats) -> tuple[Floats, Floats, Floats]:
        """Return terms less their means, (groups, intervals, terms), shares and their factors."""
        factors = self.followed * np.exp(self.terms @ coefficients)[:, None]
        factors /= np.maximum((self.exposure[0] * factors).sum(axis=0), np.finfo(float).tiny)
        shares = self.exposure[0] * factors
        means = np.einsum("gk,gp->kp", shares, self.terms)
        return np.asarray(self.terms[:, None, :] - means), shares, factors

    def score(self, coefficients: Floats) -> tuple[Floats, Floats]:
        """Return the score and the information."""
        centred, shares, _ = self.weighted(coefficients)
        each = shares * self.events.sum(axis=0)
        information = np.einsum("gk,gkp,gkq->pq", each, centred, centred)
        return np.einsum("gk,gkp->p", self.events, centred), information

    def influence(self, coefficients: Floats) -> Floats:
        """Return what a row of each cell adds to the score, shape (terms, groups, 2, cells)."""
        centred, _, factors = self.weighted(coefficients)
        by_exposure = -centred * (factors * self.events.sum(axis=0))[:, :, None]
        _, by_risk, by_event = (slope[:, :, None] * by_exposure for slope in self.exposure)
        before = np.cumsum(by_risk, axis=1)
        censored = before - self.halved[:, None] * by_risk
        event = before + by_event + centred * self.followed[:, :, None]
        endings = [np.concatenate([ending, before[:, -1:]], axis=1) for ending in (censored, event)]
        return np.moveaxis(np.stack(endings, axis=1), -1, 0)

    def detected(self, coefficients: Floats, noise: Noise, sd: float) -> bool:
        """Return whether the information exceeds the noise of the events in every direction."""
        values, vectors = np.linalg.eigh(self.score(coefficients)[1])
        centred, shares, _ = self.weighted(coefficients)
        by_event = np.zeros((len(values), *self.cells.shape))
        variances = np.einsum("gk,gkp->pk", shares, (centred @ vectors) ** 2)
        by_event[:, :, 1, :-1] = variances[:, None, :] * self.followed
        squares = noise(by_event.reshape(len(values), -1, self.cells.shape[-1])).squares
        return bool((values > DETECTION_SDS * sd * np.sqrt(squares)).all())


def hazard_ratios(times: GroupedTimes, noise: Noise, sums: SumNoise, effect: int) -> HazardRatios:
    """Return the root of the score with its errors.

    A term that does not vary between the groups that are followed is not identified; nor is any if
    the information is below five standard deviations of its noise in some direction.
    """
    out = np.full((4, times.terms.shape[1]), np.nan)
    _, information = times.score(np.zeros(len(out[0])))
    varying = np.diagonal(information) > 0
    reduced = replace(times, terms=times.terms[:, varying])
    root = _root(reduced)
    if root is not None and reduced.detected(root, noise, sums.sd):
        inverse = np.linalg.inv(reduced.score(root)[1])
        influence = np.tensordot(inverse, reduced.influence(root), axes=1)
        spread = noise(influence.reshape(len(root), -1, influence.shape[-1]))
        sampled = effect * np.einsum("pgec,gec->p", influence**2, times.cells)
        out[:, varying] = root, np.sqrt(np.maximum(sampled, 0.0)), spread.squares, spread.fourths
    return HazardRatios(out[0], out[1], Spread(out[2], out[3]))


def _root(times: GroupedTimes) -> Floats | None:
    """Return the root of the score by Newton's method from 0; None without one."""
    coefficients = np.zeros(times.terms.shape[1])
    for _ in range(STEPS):
        score, information = times.score(coefficients)
        values, vectors = np.linalg.eigh(information)
        if not len(values) or not values[0] > NEAR * values[-1]:
            return None
        step = (vectors / values) @ (vectors.T @ score)
        if score @ step < NEAR**2:
            return coefficients
        coefficients = coefficients + step
    return None
