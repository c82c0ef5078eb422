"""Mechanisms that release orthonormal directions, and no matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmodels import privacy
from dpmodels.arguments import integer, option
from dpmodels.mechanisms.add_noise import (
    ROUND_DOWN,
    ROUND_UP,
    SMALLEST_SCALE,
    add_noise,
    part_without_delta,
)
from dpmodels.mechanisms.measures import OfMoments
from dpmodels.mechanisms.protocol import SILENT, Facts, Plan, SubspaceMechanism
from dpmodels.mechanisms.second_moment import (
    axes_noise,
    checked_purchase,
    hand_over_frame,
    largest_row,
    scatter_norm,
    scatter_of_rows,
    scatter_range,
    wanted,
)
from dpmodels.noise import Entropy
from dpmodels.noise.bingham_frames import matrix_bingham, sequential_bingham, uniform_frames
from dpmodels.noise.lattice import Lattice, choose_lattice
from dpmodels.privacy import GaussianEvent, Guarantee, gaussian_multiplier, split_gaussian
from dpmodels.released import MechanismInfo, SubspaceRelease
from dpmodels.statistics import Statistic
from dpmodels.typing import Floats


@dataclass(frozen=True)
class PPCA(OfMoments):
    """The exponential mechanism for a principal subspace.

    PPCA: the exponential mechanism on the energy that a space captures.

    Theorem
        The frame V has density proportional to ``exp(c tr(Vᵀ S V))`` with respect to the uniform
        measure on orthonormal frames, S the scatter of the rows of the unit ball (their sum of
        squares; about the mean if centred). The privacy loss of a draw lies in an interval of
        length ε, so the draw is ε-differentially private and ε²/8-zCDP. Columns drawn one after
        another, each on the complement of those before, are as many draws of ε/k each. The last one
        of a full frame is given by the others but for its sign.
    Sensitivity
        ``tr(Vᵀ S V)`` and ``tr(Vᵀ S' V)`` of neighbours differ by a function of V that lies in an
        interval of length r, and the loss in one of length ``c r``: ``c = ε/r``. About the origin r
        = 2 for a row replaced, since the energy of either row is in [0, 1], for any number of
        columns; r = 1 for a row more or fewer, since the energy only rises: twice the concentration
        of the textbook's ε/2. About the mean r = 3√3 and 4, proved in
        :mod:`dpmodels.mechanisms.second_moment`; no mean is released then.
    Noise
        One column, and all but one, are drawn from the law itself. A full frame is uniform. Any
        other number is the end of a Markov chain of a public number of sweeps from a uniform start,
        and ε holds in the limit of that chain; its diagnostics on the private matrix are not
        reported, as they would be a second release. Columns one after another are exact draws.
        ``eigenvals="private"`` buys the scatter inside the space, k × k, and the number of rows
        with a share of the budget, by discrete Laplace noise for a pure guarantee and discrete
        Gaussian noise otherwise (:mod:`dpmodels.mechanisms.second_moment`); the columns become its
        eigenvectors.
    Numerics
        idealised: the statistic is exact integers, but the law lives on a sphere and is drawn in
        floating point.
    Source
        Chaudhuri, Sarwate, Sinha (2012), "Near-optimal differentially private principal
        components", NeurIPS, for the mechanism. McSherry, Talwar (2007), "Mechanism design via
        differential privacy", FOCS. Cesar, Rogers (2021), "Bounding, concentrating, and
        truncating", ALT, for ε²/8. Amin, Dick, Kulesza, Munoz, Vassilvitskii (2019),
        "Differentially private covariance estimation", NeurIPS, for one column after another.

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
            draw_guarantee = part_without_delta(guarantee, 1 - self.share)
            bought = part_without_delta(guarantee, self.share)
            if isinstance(guarantee, privacy.ApproxDP):  # The draws have no use for delta
                bought = privacy.ApproxDP(self.share * guarantee.eps, guarantee.delta)
        draws = max(1, min(wanted(facts), facts.columns - 1)) if self._sequential else 1
        eps = _eps_of_each(draw_guarantee, draws)
        frame = privacy.BoundedRangeEvent(eps, draws)
        scales = {"concentration": eps / scatter_range(facts)}
        if bought is None:
            lattice = choose_lattice(facts.columns, 1.0)
            return Plan(guarantee, (frame,), lattice, facts, scales=scales)
        axes = _purchase(bought)
        lattice, steps = axes_noise(facts, axes)
        return Plan(guarantee, (frame, axes), lattice, facts, steps, scales)

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


def _eps_of_each(guarantee: Guarantee, draws: int) -> float:
    """Return the eps of each of several equal draws that together satisfy a guarantee."""
    if isinstance(guarantee, privacy.ZCDP):
        return math.sqrt(8 * guarantee.rho / draws) * ROUND_DOWN
    return guarantee.eps / draws * ROUND_DOWN


def _purchase(guarantee: Guarantee) -> privacy.GaussianEvent | privacy.LaplaceEvent:
    if isinstance(guarantee, privacy.PureDP):
        return privacy.LaplaceEvent(1 / (guarantee.eps * ROUND_DOWN))
    return privacy.GaussianEvent(privacy.gaussian_multiplier(guarantee) / ROUND_DOWN)


# On public spectra of 5 to 200 columns the captured energy hardly changes from 4 to 10.
ITERATIONS = 6


@dataclass(frozen=True)
class Power(OfMoments):
    """The private power method for a principal subspace.

    The private power method: a public number of noisy products with the scatter.

    Theorem
        Every step multiplies a released frame by the scatter S of the rows of the unit ball (their
        sum of squares; about the mean if centred) and adds Gaussian noise. The steps, and the
        purchase of eigenvalues, are Gaussian releases of multipliers m_i that compose to one of
        multiplier m, ``1/m² = Σ 1/m_i²``, with its exact (ε, δ) trade-off, or ``1/(2m²)``-zCDP.
    Sensitivity
        ``‖Δ V‖_F ≤ ‖Δ‖_F`` for orthonormal V: √2 for a row replaced, 1 for a row more or fewer, 4
        about the mean for either, proved in :mod:`dpmodels.mechanisms.second_moment`. For one
        column ``‖Δ v‖ ≤ ‖Δ‖₂``, 1 or about the mean 4.
    Noise
        Independent discrete Gaussians on the products, rounded to the lattice, whose rounding is
        part of the sensitivity. The first frame is uniform and the number of steps is public:
        chosen from the spectrum of the rows it would be a release of its own. The directions are
        read off all released products together, which is free: on made-up spectra of 5, 10, 50 and
        200 columns they lose 64, 43, 17 and 6 percent less energy, in the mean, than the last
        product alone. ``eigenvals="private"`` buys the scatter inside the space besides
        (:mod:`dpmodels.mechanisms.second_moment`).
    Numerics
        idealised: the statistic is exact integers, its products with a frame are floating point.
    Source
        Hardt, Price (2014), "The noisy power method: a meta algorithm with applications", NeurIPS,
        for the steps, of which the paper keeps the last. Balle, Wang (2018) for the calibration.

    Parameters
    ----------
    iterations : int
        Products with the scatter, among which the budget is divided: a public number, at least 1.
    eigenvals : {None, "private"}
        Whether the variances along the principal axes of the space are bought.
    share : float
        The part of the budget that they take, between 0 and 1.

    Raises
    ------
    ArgumentError
        If an option is invalid.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> facts = Facts(5, adjacency("replace"), centred=False, components=2)
    >>> plan = Power(iterations=4).plan(facts, ZCDP(0.5))
    >>> print(*(event.describe() for event in plan.events))
    Gaussian, multiplier 2 x 4
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="power",
        theorem="(eps, delta)-DP or rho-zCDP, composition of Gaussian releases",
        sensitivity="Frobenius norm of the scatter, sqrt(2) or 1; about the mean 4",
        noise="discrete Gaussian on every product of scatter and frame",
        numerics="idealised",
        source="Hardt and Price (2014), all steps read together",
    )

    iterations: int = ITERATIONS
    eigenvals: str | None = None
    share: float = 0.2

    def __post_init__(self) -> None:
        iterations = integer(
            "iterations", self.iterations, 1, 10_000, f"; write iterations={ITERATIONS}"
        )
        object.__setattr__(self, "iterations", iterations)
        checked_purchase(self.eigenvals, self.share)

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Divide the budget among the steps, and among the eigenvalues if bought.

        BudgetError for a pure guarantee, which Gaussian noise does not give.
        """
        total_multiplier = gaussian_multiplier(guarantee) * ROUND_UP
        bought = 0.0 if self.eigenvals is None else self.share
        shares = [(1 - bought) / self.iterations] * self.iterations + [bought] * (bought > 0)
        multipliers = split_gaussian(total_multiplier, shares)
        step_multiplier = multipliers[0]
        room = 2 * step_multiplier * _sensitivity(facts)
        products = GaussianEvent(step_multiplier, self.iterations)
        if bought:
            axes = GaussianEvent(multipliers[-1])
            lattice, steps = axes_noise(facts, axes, room)
            events: tuple[GaussianEvent, ...] = (products, axes)
        else:
            lattice, steps = choose_lattice(facts.columns, room), SILENT
            events = (products,)
        scales = {"product": _scale(facts, lattice, step_multiplier)}
        return Plan(guarantee, events, lattice, facts, steps, scales)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> SubspaceRelease:
        """Make the noisy products, and buy the axes where they are planned."""
        exact = scatter_of_rows(statistic, plan.lattice, centred=plan.facts.centred)
        columns, n_kept = plan.facts.columns, wanted(plan.facts)
        frame = uniform_frames(columns, 1, n_kept, entropy)[:, 0]
        frames, products = [], []
        for _ in range(self.iterations):
            frames.append(frame)
            products.append(_noisy_product(exact.matrix @ frame, plan, entropy))
            frame = np.linalg.qr(products[-1]).Q
        noise = plan.scales["product"] / plan.lattice.radius**2
        guess = _read_together(np.hstack(frames), np.hstack(products), noise)
        directions = np.linalg.eigh(guess).eigenvectors[:, ::-1][:, :n_kept]
        return hand_over_frame(self.info, plan, directions, exact, entropy, ordered=True)


def _read_together(frames: Floats, products: Floats, noise: float) -> Floats:
    """Estimate the scatter from all its noisy products.

    `frames` and `products` have shape (columns, steps x components), `noise` is the sd of an
    entry.

    The mean of a symmetric matrix of normal entries, given the products. In a basis U of all
    frames, of lengths s, an entry inside is seen twice, from column i with precision ``s_i²`` and
    from column j with ``s_j²``; outside, once. The prior's variance is read off the products.
    """
    basis, sizes, turn = np.linalg.svd(frames, full_matrices=False)
    square = float(np.mean(products**2))
    ridge = noise**2 / max(square - noise**2, 1e-12 * square, 1e-300)
    turned = products @ turn.T
    projected = basis.T @ turned
    precision = sizes**2
    inside = projected * sizes / (precision[:, None] + precision + ridge)
    outside = (turned - basis @ projected) * (sizes / (precision + ridge))
    half = (basis @ inside + outside) @ basis.T
    return np.asarray(half + half.T)


def _sensitivity(facts: Facts) -> float:
    """Return how far a row moves the product of the scatter with a frame."""
    return largest_row(facts) if wanted(facts) == 1 else scatter_norm(facts)


def _scale(facts: Facts, lattice: Lattice, multiplier: float) -> float:
    """Return the noise of a product in lattice steps; rounding moves each entry by half of one."""
    rounding = math.sqrt(facts.columns * wanted(facts))
    steps = multiplier * (_sensitivity(facts) * lattice.radius**2 + rounding) * ROUND_UP
    return max(steps, SMALLEST_SCALE)


def _noisy_product(product: Floats, plan: Plan, entropy: Entropy) -> Floats:
    """Round a product, in units of the ball, to the lattice and add the planned noise."""
    unit = plan.lattice.radius**2
    integers = [round(value) for value in (product * unit).ravel().tolist()]
    noisy = add_noise(np.array(integers, dtype=object), plan.scales["product"], entropy)
    return noisy.reshape(product.shape) / unit


@dataclass(frozen=True)
class Random(OfMoments):
    """Random directions: a baseline that costs nothing.

    Uniformly distributed directions: what is known without spending anything.

    Theorem
        The release is independent of the rows and 0-differentially private. It satisfies every
        guarantee and is charged nothing.
    Sensitivity
        0: no row enters. The number of rows goes along where it is public.
    Noise
        A frame from the uniform (Haar) measure: normal columns made orthonormal, with the signs
        that make the result uniform. On average k directions of d capture k/d of the energy.
    Numerics
        exact: no computation with rows is released. The uniform law is that of the real numbers for
        which floating-point normals stand.
    Source
        A baseline. Mezzadri (2007), "How to generate random matrices from the classical compact
        groups", Notices of the AMS 54(5), for the frame.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> facts = Facts(5, adjacency("replace"), centred=False, components=2)
    >>> Random().plan(facts, PureDP(1.0)).events
    ()
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="random",
        theorem="0-DP",
        sensitivity="0, no row enters",
        noise="uniform on orthonormal frames",
        numerics="exact lattice",
        source="baseline; Mezzadri (2007) for the frame",
    )

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Accept any guarantee and charge nothing."""
        return Plan(guarantee, (), choose_lattice(facts.columns, 1.0), facts)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> SubspaceRelease:
        """Draw the directions; of the moments only the number of rows goes along."""
        exact = scatter_of_rows(statistic, plan.lattice, centred=plan.facts.centred)
        frame = uniform_frames(plan.facts.columns, 1, wanted(plan.facts), entropy)[:, 0]
        return hand_over_frame(self.info, plan, frame, exact, entropy, ordered=False)


SUBSPACE: dict[str, type[SubspaceMechanism]] = {"ppca": PPCA, "power": Power, "random": Random}
