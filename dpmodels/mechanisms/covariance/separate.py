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

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from dpmodels import privacy
from dpmodels.arguments import integer
from dpmodels.mechanisms import add_noise
from dpmodels.mechanisms.add_noise import LAPLACE, ROOM, SMALLEST_LAPLACE, laplace_multipliers
from dpmodels.mechanisms.measures import OfMoments
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.noise import Entropy
from dpmodels.noise.bingham_frames import sequential_bingham
from dpmodels.noise.lattice import choose_lattice
from dpmodels.postprocess.denoise import psd_values
from dpmodels.privacy import BoundedRangeEvent, split_gaussian
from dpmodels.released import MechanismInfo, MomentNoise, MomentsRelease
from dpmodels.statistics import Statistic
from dpmodels.statistics.moments import eigenvalue_sensitivity
from dpmodels.typing import Floats


@dataclass(frozen=True)
class _Recombined(OfMoments):
    share: float = 0.5

    info: ClassVar[MechanismInfo]
    law: ClassVar[add_noise.Law]

    def __post_init__(self) -> None:
        add_noise.checked_share(self.share)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Add noise to the moments and, apart, to the eigenvalues; put both together."""
        exact, n_rows = statistic.cross()
        noisy = add_noise.noised_moments(exact, plan, entropy, self.law)
        values = add_noise.noised_eigenvalues(exact, plan, entropy, self.law)
        estimate = add_noise.recombined(
            values, noisy.second, add_noise.trace_cap(plan.facts, n_rows)
        )
        return add_noise.hand_over(self.info, plan, noisy, n_rows, estimate)


@dataclass(frozen=True)
class Separate(_Recombined):
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
    law = add_noise.GAUSSIAN

    def plan(self, facts: Facts, guarantee: privacy.Guarantee) -> Plan:
        """Calibrate both parts; BudgetError for a pure guarantee: Gaussian noise gives none."""
        # Rounding of the split is covered by a few parts in 10^15.
        multiplier = privacy.gaussian_multiplier(guarantee) * (1 + 1e-14)
        values, vectors = split_gaussian(multiplier, (self.share, 1 - self.share))
        sigma = values * eigenvalue_sensitivity(facts.adjacency, 2)
        lattice, steps = add_noise.lattice_for(
            *add_noise.gaussian_scales(facts, vectors), sigma, add_noise.SMALLEST_SCALE
        )
        scale = add_noise.eigenvalue_scale(
            facts.adjacency, lattice, values, 2, add_noise.SMALLEST_SCALE
        )
        events = (privacy.GaussianEvent(values), privacy.GaussianEvent(vectors))
        return Plan(guarantee, events, lattice, facts, steps, {add_noise.EIGENVALUES: scale})


@dataclass(frozen=True)
class SeparatePure(_Recombined):
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
    law = LAPLACE

    def plan(self, facts: Facts, guarantee: privacy.Guarantee) -> Plan:
        """Calibrate both parts; BudgetError if the noise leaves no useful lattice."""
        values, vectors = laplace_multipliers(guarantee, (self.share, 1 - self.share))
        scale = values * eigenvalue_sensitivity(facts.adjacency, 1)
        fine = add_noise.laplace_scales(facts, vectors)
        lattice, steps = add_noise.lattice_for(*fine, ROOM * scale, SMALLEST_LAPLACE)
        scale = add_noise.eigenvalue_scale(facts.adjacency, lattice, values, 1, SMALLEST_LAPLACE)
        events = (privacy.LaplaceEvent(values), privacy.LaplaceEvent(vectors))
        return Plan(guarantee, events, lattice, facts, steps, {add_noise.EIGENVALUES: scale})


# Of the budget, without and with the sum of the rows: choices.
COUNT, COUNT_AND_SUM = 0.05, 0.25
# More than the bits of a float64.
_HALVINGS = 60


class Costs(NamedTuple):
    """What is paid for the count and sum, for the eigenvalues, and for each direction, in eps."""

    rows: float
    values: float
    direction: float

    def times(self, factor: float) -> Costs:
        """Return all three, so many times."""
        return Costs(*(factor * cost for cost in self))

    def events(self, n_drawn: int) -> tuple[privacy.Event, ...]:
        """Return what the ledger is charged where so many directions are paid for."""
        laplace = privacy.LaplaceEvent(1 / self.rows), privacy.LaplaceEvent(1 / self.values)
        return (*laplace, BoundedRangeEvent(self.direction, count=n_drawn)) if n_drawn else laplace


@dataclass(frozen=True)
class Iterative(OfMoments):
    """Noisy eigenvalues, and eigenvectors by the exponential mechanism, one after another.

    Laplace-noised eigenvalues, and eigenvectors drawn one at a time by the exponential mechanism.

    Theorem
        ε-differentially private, and ρ-zCDP: the Laplace releases cost their ε or ε²/2. Drawing u
        on the unit sphere of the complement of the directions drawn before, with density
        proportional to ``exp(c uᵀSu)`` and S the sum of ``x xᵀ``, has privacy losses in an interval
        of length ε_i: it costs ε_i or ε_i²/8. The directions share their part equally, and the last
        of all ``columns`` is determined. An (ε, δ) guarantee takes the larger ε_i of two divisions,
        that of pure privacy and that of zCDP, each enlarged as far as the composition of all events
        at δ allows.
    Sensitivity
        Of the falling eigenvalues the L1 norm 2, or 1 under ``add-remove``, where a row more raises
        them by its squared norm in sum. Of ``uᵀSu``: it moves between -1 and 1 for a replaced row,
        so c = ε_i/2; a row more only raises it, by at most 1, so c = ε_i under ``add-remove``.
        Count and sum: a row's L1 norm is at most √d.
    Noise
        Discrete Laplace noise of at least 2¹⁰ steps on the squared lattice for the count, the sum
        and the eigenvalues, which are sorted and brought to the nearest that are not negative, with
        a sum of at most the number of rows where that is public. Directions are exact rejection
        draws from the vector Bingham law; those that are not drawn share the mean of the
        eigenvalues left over. The error of the matrix has no known law.
    Numerics
        idealised: eigenvalues of the exact integers and the rejection draws are computed in
        floating point; rounding the eigenvalues to integers, d steps, is covered.
    Source
        Amin, Dick, Kulesza, Muñoz Medina, Vassilvitskii (2019), "Differentially private covariance
        estimation", NeurIPS. Their sampler has ε_i/4 where ε_i/2 suffices; their code adds Laplace
        noise of scale 1/ε₀ to the eigenvalues, right for a row more or less, half of what a
        replaced row needs; it divides the budget by a bound that the number of rows enters (1 to 9
        % for the eigenvalues at ε = 0.1 to 1, 10⁴ to 10⁵ rows and 10 to 50 columns), and between
        directions by the noisy eigenvalues. Cesar, Rogers (2021), "Bounding, concentrating, and
        truncating", ALT, for ε²/8.

    Parameters
    ----------
    share : float
        The eigenvalues' part of eps (of rho for a zCDP guarantee) that the count and the sum
        leave, between 0 and 1.
    directions : int or None
        Public number of directions to draw, at least 1; None draws as many as components are
        wanted.

    Raises
    ------
    ArgumentError
        If either lies outside its range.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> plan = Iterative(share=0.5).plan(Facts(3, adjacency("replace"), centred=False), PureDP(1.0))
    >>> [event.describe() for event in plan.events]
    ['Laplace, multiplier 20', 'Laplace, multiplier 2.10526', 'bounded range, eps 0.2375 x 2']
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="iterative",
        theorem="eps-DP, or zCDP and (eps, delta)-DP by composing all draws",
        sensitivity="eigenvalues: L1, 2 or 1; captured energy: -1 to 1, or 0 to 1",
        noise="discrete Laplace on the eigenvalues, exact Bingham draws of directions",
        numerics="idealised",
        source="Amin et al. (2019), EMCov",
    )

    share: float = 0.1
    directions: int | None = None

    def __post_init__(self) -> None:
        add_noise.checked_share(self.share)
        if self.directions is not None:
            hint = ", or None for as many as components are wanted"
            directions = integer("directions", self.directions, 1, advice=hint)
            object.__setattr__(self, "directions", directions)

    def plan(self, facts: Facts, guarantee: privacy.Guarantee) -> Plan:
        """Divide a budget and calibrate the noise.

        BudgetError if the noise leaves no useful lattice.
        """
        frame = min(self.directions or facts.components or facts.columns, facts.columns)
        n_drawn = min(frame, facts.columns - 1)
        costs = _divided(guarantee, facts, self.share, n_drawn)
        count = add_noise.laplace_count(facts, costs.rows)
        largest = eigenvalue_sensitivity(facts.adjacency, 1) / costs.values
        # fmax passes over a nan, of a sum that is not released.
        lattice = choose_lattice(facts.columns, ROOM * float(np.fmax.reduce([largest, *count])))
        unit = lattice.radius**2 * add_noise.ROUND_UP
        # A nan stays nan: max keeps its first.
        noise = MomentNoise(
            max(count.rows * unit, SMALLEST_LAPLACE),
            max(count.total * unit, SMALLEST_LAPLACE),
            math.nan,
            math.nan,
        )
        scales = {
            add_noise.EIGENVALUES: add_noise.eigenvalue_scale(
                facts.adjacency, lattice, 1 / costs.values, 1, SMALLEST_LAPLACE
            ),
            "concentration": costs.direction / (2 if facts.adjacency.n_public else 1),
            "directions": frame,
        }
        return Plan(guarantee, costs.events(n_drawn), lattice, facts, noise, scales)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Add noise to the eigenvalues, draw the directions and put both together."""
        exact, n_rows = statistic.cross()
        count, total = add_noise.noised_count(exact, plan, entropy, LAPLACE)
        values = add_noise.noised_eigenvalues(exact, plan, entropy, LAPLACE)
        energy = exact[1:, 1:].astype(np.float64) / plan.lattice.radius**2
        frame = sequential_bingham(
            plan.scales["concentration"] * energy, int(plan.scales["directions"]), entropy
        )
        second = _recombined(values, frame, add_noise.trace_cap(plan.facts, n_rows))
        noisy = add_noise.NoisyMoments(count, total, second, add_noise.noise_of(plan, LAPLACE))
        return add_noise.hand_over(self.info, plan, noisy, n_rows)


def _recombined(values: Floats, frame: Floats, cap: float | None) -> Floats:
    """Give the first directions an eigenvalue each, and all others the mean of the rest."""
    size, n_drawn = frame.shape
    level = values[min(n_drawn, size - 1) :].mean()
    psd = psd_values(np.where(np.arange(size) < n_drawn, values, level), cap)
    roots = frame * np.sqrt(psd[:n_drawn])
    # Without directions left over, what follows the sum is zero.
    return np.asarray(roots @ roots.T + psd[-1] * (np.eye(size) - frame @ frame.T))


def _divided(guarantee: privacy.Guarantee, facts: Facts, share: float, n_drawn: int) -> Costs:
    """Divide a guarantee; without directions to pay for, the eigenvalues have it all."""
    count = COUNT_AND_SUM if facts.centred else COUNT
    values = (1 - count) * (share if n_drawn else 1.0)
    direction = (1 - count) * (1 - share) / max(n_drawn, 1)
    pure = Costs(count, values, direction)
    concentrated = Costs(math.sqrt(2 * count), math.sqrt(2 * values), math.sqrt(8 * direction))
    if isinstance(guarantee, privacy.ZCDP):
        return concentrated.times(math.sqrt(guarantee.rho) * add_noise.ROUND_DOWN)
    pure = pure.times(guarantee.eps * add_noise.ROUND_DOWN)
    if not isinstance(guarantee, privacy.ApproxDP):
        return pure

    def satisfied(costs: Costs) -> bool:
        return privacy.total_eps(costs.events(n_drawn), guarantee.delta) <= guarantee.eps

    spent = concentrated.rows + concentrated.values + n_drawn * concentrated.direction
    start = concentrated.times(guarantee.eps / spent * add_noise.ROUND_DOWN)
    return max(
        (_enlarged(costs, satisfied) for costs in (pure, start)),
        key=lambda costs: costs.direction if n_drawn else costs.values,
    )


def _enlarged(costs: Costs, satisfied: Callable[[Costs], bool]) -> Costs:
    """Return the largest multiple of costs that satisfies what the costs themselves do."""
    largest = 1.0
    while satisfied(costs.times(2 * largest)):
        largest *= 2
    step = largest
    for _ in range(_HALVINGS):
        step /= 2
        if satisfied(costs.times(largest + step)):
            largest += step
    return costs.times(largest)
