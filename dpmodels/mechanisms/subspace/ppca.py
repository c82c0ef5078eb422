"""PPCA: the exponential mechanism on the energy that a space captures.

Theorem
    The frame V has density proportional to ``exp(c tr(Vᵀ S V))`` with respect to the uniform
    measure on orthonormal frames, S the scatter of the rows of the unit ball (their sum of
    squares; about the mean if centred). The privacy loss of a draw lies in an interval of length
    ε, so the draw is ε-differentially private and ε²/8-zCDP. Columns drawn one after another, each
    on the complement of those before, are as many draws of ε/k each. The last one of a full frame
    is given by the others but for its sign.
Sensitivity
    ``tr(Vᵀ S V)`` and ``tr(Vᵀ S' V)`` of neighbours differ by a function of V that lies in an
    interval of length r, and the loss in one of length ``c r``: ``c = ε/r``. About the origin r =
    2 for a row replaced, since the energy of either row is in [0, 1], for any number of columns; r
    = 1 for a row more or fewer, since the energy only rises: twice the concentration of the
    textbook's ε/2. About the mean r = 3√3 and 4, proved in
    :mod:`dpmodels.mechanisms.second_moment`; no mean is released then.
Noise
    One column, and all but one, are drawn from the law itself. A full frame is uniform. Any other
    number is the end of a Markov chain of a public number of sweeps from a uniform start, and ε
    holds in the limit of that chain; its diagnostics on the private matrix are not reported, as
    they would be a second release. Columns one after another are exact draws.
    ``eigenvals="private"`` buys the scatter inside the space, k × k, and the number of rows with a
    share of the budget, by discrete Laplace noise for a pure guarantee and discrete Gaussian noise
    otherwise (:mod:`dpmodels.mechanisms.second_moment`); the columns become its
    eigenvectors.
Numerics
    idealised: the statistic is exact integers, but the law lives on a sphere and is drawn in
    floating point.
Source
    Chaudhuri, Sarwate, Sinha (2012), "Near-optimal differentially private principal components",
    NeurIPS, for the mechanism. McSherry, Talwar (2007), "Mechanism design via differential
    privacy", FOCS. Cesar, Rogers (2021), "Bounding, concentrating, and truncating", ALT, for ε²/8.
    Amin, Dick, Kulesza, Munoz, Vassilvitskii (2019), "Differentially private covariance
    estimation", NeurIPS, for one column after another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from dpmodels.arguments import option
from dpmodels.design import PrivateDesign
from dpmodels.mechanisms.add_noise import ROUND_DOWN
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.mechanisms.second_moment import (
    axes_noise,
    checked_purchase,
    hand_over_frame,
    scatter_of_rows,
    scatter_range,
    wanted,
)
from dpmodels.noise import Entropy
from dpmodels.noise.bingham_frames import matrix_bingham, sequential_bingham
from dpmodels.noise.lattice import choose_lattice
from dpmodels.privacy import (
    ZCDP,
    ApproxDP,
    BoundedRangeEvent,
    GaussianEvent,
    Guarantee,
    LaplaceEvent,
    PureDP,
    gaussian_multiplier,
)
from dpmodels.released import MechanismInfo, SubspaceRelease
from dpmodels.statistics import Statistic, moments


@dataclass(frozen=True)
class PPCA:
    """The exponential mechanism for a principal subspace.

    Parameters
    ----------
    sampler : {"joint", "sequential"}
        All columns in one draw, or one after another with a k-th of the budget each: an exact
        draw, at k times the error.
    eigenvals : {None, "private"}
        Whether the variances along the principal axes of the space are bought. Without them the
        columns of a joint draw are any basis.
    share : float
        The part of the budget that they take, between 0 and 1.

    Raises
    ------
    ArgumentError
        If an option is invalid.

    Notes
    -----
    The expected loss that a release states is ``k(d - k)/(2c)``: each of the k(d - k) angles
    between a column kept and one left out is normal with variance ``1/(2 c gap)`` where c times
    the gap of the two eigenvalues is large, and loses the gap times its square.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> facts = Facts(5, adjacency("replace"), centred=False, components=2)
    >>> plan = PPCA().plan(facts, PureDP(1.0))
    >>> print(*(event.describe() for event in plan.events))
    bounded range, eps 1
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="ppca",
        theorem="eps-DP or eps^2/8-zCDP, exponential mechanism (bounded range)",
        sensitivity="range of the energy: 2 or 1; about the mean 3 sqrt(3) or 4",
        noise="Bingham law; eigenvals: discrete Laplace or Gaussian",
        numerics="idealised",
        source="Chaudhuri, Sarwate and Sinha (2012)",
    )

    sampler: str = "joint"
    eigenvals: str | None = None
    share: float = 0.2

    def __post_init__(self) -> None:
        option("sampler", self.sampler, ("joint", "sequential"))
        checked_purchase(self.eigenvals, self.share)

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Calibrate the concentration to a guarantee.

        An (eps, delta) guarantee uses its delta for bought eigenvalues only.
        """
        draw_guarantee, bought = guarantee, None
        if self.eigenvals is not None:
            draw_guarantee, bought = _shared(guarantee, self.share)
        draws = max(1, min(wanted(facts), facts.columns - 1)) if self._sequential else 1
        eps = _eps_of_each(draw_guarantee, draws)
        frame = BoundedRangeEvent(eps, draws)
        scales = {"concentration": eps / scatter_range(facts)}
        if bought is None:
            lattice = choose_lattice(facts.columns, 1.0)
            return Plan(guarantee, (frame,), lattice, facts, scales=scales)
        axes = _purchase(bought)
        lattice, steps = axes_noise(facts, axes)
        return Plan(guarantee, (frame, axes), lattice, facts, steps, scales)

    def measure(self, design: PrivateDesign, plan: Plan) -> Statistic:
        """Compute the exact augmented moments."""
        return moments(design, plan.lattice, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> SubspaceRelease:
        """Draw the frame, and buy its axes where they are planned."""
        exact = scatter_of_rows(statistic, plan.lattice, centred=plan.facts.centred)
        n_components, slope = wanted(plan.facts), plan.scales["concentration"]
        limit = ""
        if self._sequential:
            frame = sequential_bingham(slope * exact.matrix, n_components, entropy)
        else:
            frame, convergence = matrix_bingham(slope * exact.matrix, n_components, entropy)
            if not convergence.exact:
                limit = (
                    f"eps in the limit of the chain ({convergence.sweeps:,} sweeps of plane "
                    "rotations from a uniform start, a public number)"
                )
        return hand_over_frame(
            self.info,
            plan,
            frame,
            exact,
            entropy,
            ordered=n_components == 1 or self._sequential,
            limit=limit,
            expected_loss=n_components * (plan.facts.columns - n_components) / (2 * slope),
        )

    @property
    def _sequential(self) -> bool:
        return self.sampler == "sequential"


def _shared(guarantee: Guarantee, share: float) -> tuple[Guarantee, Guarantee]:
    """Split a guarantee in two; delta goes to the second part, which alone uses it."""
    match guarantee:
        case PureDP(eps):
            return PureDP((1 - share) * eps), PureDP(share * eps)
        case ApproxDP(eps, delta):
            return PureDP((1 - share) * eps), ApproxDP(share * eps, delta)
        case ZCDP(rho):
            return ZCDP((1 - share) * rho), ZCDP(share * rho)


def _eps_of_each(guarantee: Guarantee, draws: int) -> float:
    """Return the eps of each of several equal draws that together satisfy a guarantee."""
    if isinstance(guarantee, ZCDP):
        return math.sqrt(8 * guarantee.rho / draws) * ROUND_DOWN
    return guarantee.eps / draws * ROUND_DOWN


def _purchase(guarantee: Guarantee) -> GaussianEvent | LaplaceEvent:
    """Return the event of the noise that bought axes carry."""
    if isinstance(guarantee, PureDP):
        return LaplaceEvent(1 / (guarantee.eps * ROUND_DOWN))
    return GaussianEvent(gaussian_multiplier(guarantee) / ROUND_DOWN)
