"""Uniformly distributed directions: what is known without spending anything.

Theorem
    The release is independent of the rows and 0-differentially private. It satisfies every
    guarantee and is charged nothing.
Sensitivity
    0: no row enters. The number of rows goes along where it is public.
Noise
    A frame from the uniform (Haar) measure: normal columns made orthonormal, with the signs that
    make the result uniform. On average k directions of d capture k/d of the energy.
Numerics
    exact: no computation with rows is released. The uniform law is that of the real numbers for
    which floating-point normals stand.
Source
    A baseline. Mezzadri (2007), "How to generate random matrices from the classical compact
    groups", Notices of the AMS 54(5), for the frame.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpmodels.design import PrivateDesign
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.mechanisms.second_moment import hand_over_frame, scatter_of_rows, wanted
from dpmodels.noise import Entropy
from dpmodels.noise.bingham_frames import uniform_frames
from dpmodels.noise.lattice import choose_lattice
from dpmodels.privacy import Guarantee
from dpmodels.released import MechanismInfo, SubspaceRelease
from dpmodels.statistics import Statistic, moments


@dataclass(frozen=True)
class Random:
    """Random directions: a baseline that costs nothing.

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

    def measure(self, design: PrivateDesign, plan: Plan) -> Statistic:
        """Compute the moments, of which only the number of rows read is used."""
        return moments(design, plan.lattice, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> SubspaceRelease:
        """Draw the directions; of the moments only the number of rows goes along."""
        exact = scatter_of_rows(statistic, plan.lattice, centred=plan.facts.centred)
        frame = uniform_frames(plan.facts.columns, 1, wanted(plan.facts), entropy)[:, 0]
        return hand_over_frame(self.info, plan, frame, exact, entropy, ordered=False)
