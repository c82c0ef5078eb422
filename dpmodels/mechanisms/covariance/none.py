"""The exact moments, without noise and without privacy: simulations only.

Theorem
    None: the release is not private. It is refused outside ``dp.simulation``, where nothing is
    private anyway, and nothing is charged.
Sensitivity
    As large as the data; no noise is measured by it.
Noise
    None: standard deviations of 0 are stated.
Numerics
    exact: the integers of the lattice divided by its unit.
Source
    A baseline: what a private release is compared with.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmodels.errors import BudgetError
from dpmodels.mechanisms.add_noise import NoisyMoments, hand_over
from dpmodels.mechanisms.measures import OfMoments
from dpmodels.mechanisms.protocol import SILENT, Facts, Plan
from dpmodels.noise import Entropy, simulating
from dpmodels.noise.lattice import choose_lattice
from dpmodels.privacy import Guarantee
from dpmodels.released import MechanismInfo, MomentNoise, MomentsRelease
from dpmodels.statistics import Statistic


@dataclass(frozen=True)
class Unprivate(OfMoments):
    """The answer itself: a baseline inside ``dp.simulation``.

    Examples
    --------
    >>> import dpmodels as dp
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> with dp.simulation(seed=1):
    ...     plan = Unprivate().plan(Facts(3, adjacency("replace"), centred=True), PureDP(1.0))
    >>> plan.events
    ()
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="none",
        theorem="none: not private, simulations only",
        sensitivity="as large as the data",
        noise="none",
        numerics="exact lattice",
        source="baseline",
    )

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Accept any guarantee, which nothing here gives, and charge nothing.

        BudgetError outside ``dp.simulation``.
        """
        _refuse_a_release()
        noiseless = MomentNoise(0.0, 0.0 if facts.centred else math.nan, 0.0, 0.0)
        return Plan(guarantee, (), choose_lattice(facts.columns, 1.0), facts, noiseless)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Hand over the moments as they are; no entropy is drawn.

        BudgetError outside ``dp.simulation``.
        """
        _refuse_a_release()
        integers, n_rows = statistic.cross()
        exact, lattice = integers.astype(np.float64), plan.lattice
        total = exact[0, 1:] / (lattice.radius * lattice.steps) if plan.facts.centred else None
        second = exact[1:, 1:] / lattice.steps**2
        count = float(exact[0, 0] / lattice.radius**2)
        return hand_over(self.info, plan, NoisyMoments(count, total, second, plan.steps), n_rows)


def _refuse_a_release() -> None:
    if not simulating():
        raise BudgetError(
            "mechanism='none' adds no noise and keeps no guarantee; write "
            "`with dp.simulation(seed=1):` around the call if the rows are simulated or public, "
            "else mechanism='gauss'"
        )


@dataclass(frozen=True)
class Zero(OfMoments):
    """Zeros for every moment: a baseline that costs nothing.

    The zero matrix: what is known without spending anything.

    Theorem
        The release is a function of public facts and 0-differentially private. It satisfies every
        guarantee and is charged nothing.
    Sensitivity
        0: no row enters. The number of rows is public under ``replace`` and stands for the number
        of complete ones; under ``add-remove`` 0 does.
    Noise
        None, and none is stated: a constant has no law of error.
    Numerics
        exact: no computation with rows is released.
    Source
        The baseline of Dong, Liang, Yi (2022), "Differentially private covariance revisited",
        NeurIPS: a release farther from the truth than zero is worse than none.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> Zero().plan(Facts(3, adjacency("replace"), centred=False), PureDP(1.0)).events
    ()
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="zero",
        theorem="0-DP",
        sensitivity="0, no row enters",
        noise="none: a constant",
        numerics="exact lattice",
        source="baseline of Dong, Liang, Yi (2022)",
    )

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Accept any guarantee and charge nothing."""
        return Plan(guarantee, (), choose_lattice(facts.columns, 1.0), facts)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Hand over zeros; no entropy is drawn."""
        _, n_rows = statistic.cross()
        columns, facts = plan.facts.columns, plan.facts
        count = float(n_rows) if facts.adjacency.n_public else 0.0
        total = np.zeros(columns) if facts.centred else None
        zeros = NoisyMoments(count, total, np.zeros((columns, columns)), SILENT)
        return hand_over(self.info, plan, zeros, n_rows)
