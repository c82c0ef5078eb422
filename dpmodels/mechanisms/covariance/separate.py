"""Noisy eigenvalues put together with the eigenvectors of a noisy matrix.

Theorem
    Two Gaussian releases of multipliers m₁ and m₂ compose to the exact trade-off of one of
    multiplier m, ``1/m² = 1/m₁² + 1/m₂²``, hence to (ε, δ)-differential privacy or 1/(2m²)-zCDP.
    The first is of the eigenvalues, the second of the augmented moments in isometric coordinates,
    whose eigenvectors are kept; putting them together is post-processing.
Sensitivity
    Of the falling eigenvalues the L2 norm √2, or 1 under ``add-remove`` (Hoffman, Wielandt 1953),
    attained by ``x ⊥ y``; rounding them to integers adds √d steps. Of the moments as for `Gauss`.
Noise
    Independent discrete Gaussians on the squared lattice, for the eigenvalues and for the moments,
    at least 2²⁰ steps. The noisy matrix is released too, with its law. The noisy eigenvalues are
    sorted and brought to the nearest that are not negative, with a sum of at most the number of
    rows where that is public.
Numerics
    idealised: the eigenvalues of the exact integers are computed in floating point, and the
    sensitivity is that of the real numbers they approximate. The error, some 10⁻¹⁶ of the number
    of rows where one row moves them by 1, is not accounted for. The moments are exact.
Source
    Dong, Liang, Yi (2022), "Differentially private covariance revisited", NeurIPS, SeparateCov;
    the isometric coordinates halve the variance of the noise off the diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpmodels.design import PrivateDesign
from dpmodels.mechanisms.add_noise import (
    EIGENVALUES,
    GAUSSIAN,
    LAPLACE,
    ROOM,
    SMALLEST_LAPLACE,
    SMALLEST_SCALE,
    Law,
    checked_share,
    eigenvalue_scale,
    gaussian_scales,
    hand_over,
    laplace_multipliers,
    laplace_scales,
    lattice_for,
    noised_eigenvalues,
    noised_moments,
    recombined,
    trace_cap,
)
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.noise import Entropy
from dpmodels.privacy import (
    GaussianEvent,
    Guarantee,
    LaplaceEvent,
    gaussian_multiplier,
    split_gaussian,
)
from dpmodels.released import MechanismInfo, MomentsRelease
from dpmodels.statistics import Statistic, moments
from dpmodels.statistics.moments import eigenvalue_sensitivity


@dataclass(frozen=True)
class Separate:
    """Eigenvalues and eigenvectors from a share of the budget each.

    Parameters
    ----------
    share : float
        The eigenvalues' part of the budget ``1/m²``, between 0 and 1.

    Raises
    ------
    ArgumentError
        If `share` lies outside its range.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> plan = Separate().plan(Facts(3, adjacency("replace"), centred=False), ZCDP(0.5))
    >>> round(plan.scales["eigenvalues"] / plan.lattice.radius**2, 3)
    2.0
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="separate",
        theorem="(eps, delta)-DP or rho-zCDP, two Gaussian releases composed exactly",
        sensitivity="eigenvalues: L2, sqrt(2) or 1; moments: L2 in isometric coordinates",
        noise="discrete Gaussian on the eigenvalues and on the moments",
        numerics="idealised",
        source="Dong, Liang, Yi (2022) in isometric coordinates",
    )

    share: float = 0.5

    def __post_init__(self) -> None:
        checked_share(self.share)

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Calibrate both parts; BudgetError for a pure guarantee: Gaussian noise gives none."""
        # Rounding of the split is covered by a few parts in 10^15.
        multiplier = gaussian_multiplier(guarantee) * (1 + 1e-14)
        values, vectors = split_gaussian(multiplier, (self.share, 1 - self.share))
        sigma = values * eigenvalue_sensitivity(facts.adjacency, 2)
        lattice, steps = lattice_for(*gaussian_scales(facts, vectors), sigma, SMALLEST_SCALE)
        scale = eigenvalue_scale(facts.adjacency, lattice, values, 2, SMALLEST_SCALE)
        events = (GaussianEvent(values), GaussianEvent(vectors))
        return Plan(guarantee, events, lattice, facts, steps, {EIGENVALUES: scale})

    def measure(self, design: PrivateDesign, plan: Plan) -> Statistic:
        """Compute the exact augmented moments."""
        return moments(design, plan.lattice, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Add noise to the moments and, apart, to the eigenvalues; put both together."""
        return _recombined_release(self.info, statistic, plan, entropy, GAUSSIAN)


@dataclass(frozen=True)
class SeparatePure:
    """Eigenvalues and eigenvectors from a share of a pure budget each.

    Laplace-noised eigenvalues put together with the eigenvectors of a Laplace-noised matrix.

    Theorem
        Two Laplace releases add their ε, and their ε²/2 of zCDP. The first is of the eigenvalues,
        the second of the augmented moments, whose eigenvectors are kept; putting them together is
        post-processing. An (ε, δ) guarantee leaves its δ unused.
    Sensitivity
        Of the falling eigenvalues the L1 norm 2, or 1 under ``add-remove``: a row more raises all
        of them, by its squared norm in sum. Rounding them to integers adds d steps. Of the moments
        as for `Laplace`.
    Noise
        Independent discrete Laplace noise on the squared lattice, for the eigenvalues and for the
        moments, at least 2¹⁰ steps; what is made of both is as for `Separate`.
    Numerics
        idealised, as for `Separate`. The moments are exact.
    Source
        Dong, Liang, Yi (2022), "Differentially private covariance revisited", NeurIPS, for the two
        parts. Amin, Dick, Kulesza, Muñoz Medina, Vassilvitskii (2019), "Differentially private
        covariance estimation", NeurIPS, for Laplace noise on the eigenvalues.

    Parameters
    ----------
    share : float
        The eigenvalues' part of eps (of rho for a zCDP guarantee), between 0 and 1.

    Raises
    ------
    ArgumentError
        If `share` lies outside its range.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> plan = SeparatePure().plan(Facts(3, adjacency("replace"), centred=False), PureDP(1.0))
    >>> round(plan.scales["eigenvalues"] / plan.lattice.radius**2, 3)
    4.0
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="separate_pure",
        theorem="eps-DP, or zCDP at the sum of both parts' eps^2/2",
        sensitivity="eigenvalues: L1, 2 or 1; moments: L1 on and above the diagonal",
        noise="discrete Laplace on the eigenvalues and on the moments",
        numerics="idealised",
        source="Dong, Liang, Yi (2022) with Laplace noise",
    )

    share: float = 0.5

    def __post_init__(self) -> None:
        checked_share(self.share)

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Calibrate both parts; BudgetError if the noise leaves no useful lattice."""
        values, vectors = laplace_multipliers(guarantee, (self.share, 1 - self.share))
        scale = values * eigenvalue_sensitivity(facts.adjacency, 1)
        fine = laplace_scales(facts, vectors)
        lattice, steps = lattice_for(*fine, ROOM * scale, SMALLEST_LAPLACE)
        scale = eigenvalue_scale(facts.adjacency, lattice, values, 1, SMALLEST_LAPLACE)
        events = (LaplaceEvent(values), LaplaceEvent(vectors))
        return Plan(guarantee, events, lattice, facts, steps, {EIGENVALUES: scale})

    def measure(self, design: PrivateDesign, plan: Plan) -> Statistic:
        """Compute the exact augmented moments."""
        return moments(design, plan.lattice, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Add noise to the moments and, apart, to the eigenvalues; put both together."""
        return _recombined_release(self.info, statistic, plan, entropy, LAPLACE)


def _recombined_release(
    info: MechanismInfo, statistic: Statistic, plan: Plan, entropy: Entropy, law: Law
) -> MomentsRelease:
    """Put noisy eigenvalues together with the eigenvectors of the noisy moments."""
    exact, n_rows = statistic.cross()
    noisy = noised_moments(exact, plan, entropy, law)
    values = noised_eigenvalues(exact, plan, entropy, law)
    estimate = recombined(values, noisy.second, trace_cap(plan.facts, n_rows))
    return hand_over(info, plan, noisy, n_rows, estimate)
