"""Gaussian noise on the augmented moments, in isometric coordinates.

Theorem
    The release is (ε, δ)-differentially private with the exact trade-off of
    the Gaussian mechanism at multiplier σ/Δ, or ρ-zCDP with ρ = Δ²/(2σ²), for
    either adjacency. A matrix is written as ``svec(S) = (S_ii, √2 S_ij)``, so
    that ``‖svec(S)‖₂ = ‖S‖_F`` and noise of scale σ in every coordinate has
    variance σ² on the diagonal and σ²/2 off it.
Sensitivity
    Δ of :func:`dpmodels.statistics.moment_sensitivity`, an inequality between
    integers: rows are integer vectors of norm at most ``2**bits``, and their
    moments are summed exactly.
Noise
    Independent discrete Gaussians on the same integers, of scale σ times the
    squared lattice radius for the diagonal, σ/√2 off it, σ/w₀ and σ/w₁ for
    the count and the sum of the rows. Every scale is at least 2²⁰ steps,
    where the discrete law's δ(ε) exceeds the continuous one's by less than
    10⁻¹¹ of itself (the error of a Riemann sum, of order σ⁻²), which the
    calibration's margin covers; the zCDP guarantee needs no such step.
Numerics
    exact: integer statistic, integer noise of exact law; the division to real
    numbers comes after the release.
Source
    Dwork, Talwar, Thakurta, Zhang (2014), "Analyze Gauss", STOC, for Gaussian
    noise on the second moment; the isometric coordinates halve the variance
    off the diagonal at the same guarantee. Balle, Wang (2018), "Improving the
    Gaussian mechanism for differential privacy", ICML, for the calibration.
    Canonne, Kamath, Steinke (2020), "The discrete Gaussian for differential
    privacy", NeurIPS, for the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmodels.mechanisms.protocol import Facts, MomentsPlan
from dpmodels.noise import Entropy, discrete_gaussian, simulating
from dpmodels.noise.lattice import choose_lattice
from dpmodels.privacy import GaussianEvent, Guarantee, gaussian_multiplier
from dpmodels.released import Card, MomentNoise, MomentsRelease
from dpmodels.statistics import Statistic, moment_sensitivity, moment_weights

SMALLEST_SCALE = 2.0**20


@dataclass(frozen=True)
class Gauss:
    """Gaussian mechanism for a covariance, second moment and mean.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts, Gauss
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> plan = Gauss().plan(Facts(3, adjacency("replace"), centred=False), ZCDP(0.5))
    >>> round(plan.sensitivity, 3)
    1.414
    """

    card: ClassVar[Card] = Card(
        name="gauss",
        theorem="(eps, delta)-DP or rho-zCDP, exact Gaussian trade-off",
        sensitivity="L2 in isometric coordinates, sqrt(2)(1 + w^2/2) or sqrt(1 + w^2 + v^2)",
        noise="discrete Gaussian, variance s^2 on the diagonal and s^2/2 off it",
        numerics="exact lattice",
        source="Dwork et al. (2014) in isometric coordinates",
    )

    def plan(self, facts: Facts, guarantee: Guarantee) -> MomentsPlan:
        """Calibrate the noise to a guarantee.

        Raises
        ------
        BudgetError
            For a pure guarantee, which Gaussian noise does not give.
        """
        weights = moment_weights(facts.adjacency, centred=facts.centred)
        sensitivity = moment_sensitivity(facts.adjacency, weights)
        multiplier = gaussian_multiplier(guarantee)
        # One part in 10^12 covers the rounding of every product below.
        sigma = multiplier * sensitivity * (1 + 1e-12)
        mean = sigma / weights.mean if facts.centred else math.nan
        scales = (sigma / weights.count, mean, sigma, sigma / math.sqrt(2))
        lattice = choose_lattice(facts.columns, np.nanmax(scales))
        unit = lattice.radius**2
        # A scale that is nan, of a mean not released, stays nan: max keeps its first.
        steps = MomentNoise(*(max(scale * unit, SMALLEST_SCALE) for scale in scales))
        event = GaussianEvent(multiplier)
        return MomentsPlan(guarantee, (event,), sensitivity, lattice, steps, facts)

    def release(self, statistic: Statistic, plan: MomentsPlan, entropy: Entropy) -> MomentsRelease:
        """Add the planned noise to the exact moments."""
        exact, rows = statistic.cross()
        unit = plan.lattice.steps**2
        longer = plan.lattice.radius * plan.lattice.steps
        count = _noised(exact[:1, 0], plan.steps.count, entropy) / plan.lattice.radius**2
        total = None
        if plan.facts.centred:
            total = _noised(exact[0, 1:], plan.steps.mean, entropy) / longer
        noise = MomentNoise(
            plan.steps.count / plan.lattice.radius**2,
            plan.steps.mean / longer,
            plan.steps.diagonal / unit,
            plan.steps.off / unit,
        )
        return MomentsRelease(
            count=float(count[0]),
            total=total,
            second=_noised_symmetric(exact[1:, 1:], plan.steps, entropy) / unit,
            noise=noise,
            rows=rows if plan.facts.adjacency.n_public else None,
            card=self.card,
            guarantee=plan.guarantee,
            adjacency=plan.facts.adjacency,
            events=plan.events,
            simulated=simulating(),
        )


def _noised(exact: NDArray[Any], scale: float, entropy: Entropy) -> NDArray[np.float64]:
    """Add discrete Gaussian noise to Python integers; float only after the sum."""
    noised: NDArray[Any] = exact + discrete_gaussian(scale, exact.size, entropy).astype(object)
    return noised.astype(np.float64)


def _noised_symmetric(
    exact: NDArray[Any], steps: MomentNoise, entropy: Entropy
) -> NDArray[np.float64]:
    size = len(exact)
    noised = np.empty((size, size))
    upper = np.triu_indices(size, 1)
    noised[upper] = _noised(exact[upper], steps.off, entropy)
    noised.T[upper] = noised[upper]
    np.fill_diagonal(noised, _noised(np.diagonal(exact), steps.diagonal, entropy))
    return noised
