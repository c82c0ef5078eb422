"""The zero matrix: what is known without spending anything.

Theorem
    The release is a function of public facts and 0-differentially private. It satisfies every
    guarantee and is charged nothing.
Sensitivity
    0: no row enters. The number of rows is public under ``replace`` and stands for the number of
    complete ones; under ``add-remove`` 0 does.
Noise
    None, and none is stated: a constant has no law of error.
Numerics
    exact: no computation with rows is released.
Source
    The baseline of Dong, Liang, Yi (2022), "Differentially private covariance revisited", NeurIPS:
    a release farther from the truth than zero is worse than none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmodels.design import PrivateDesign
from dpmodels.mechanisms.add_noise import NoisyMoments, hand_over
from dpmodels.mechanisms.protocol import SILENT, Facts, Plan
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import choose_lattice
from dpmodels.privacy import Guarantee
from dpmodels.released import Card, MomentsRelease
from dpmodels.statistics import Statistic, moments


@dataclass(frozen=True)
class Zero:
    """Zeros for every moment: a baseline that costs nothing.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> Zero().plan(Facts(3, adjacency("replace"), centred=False), PureDP(1.0)).events
    ()
    """

    card: ClassVar[Card] = Card(
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

    def measure(self, design: PrivateDesign, plan: Plan) -> Statistic:
        """Compute the moments, of which only the number of rows read is used."""
        return moments(design, plan.lattice, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Hand over zeros; no entropy is drawn."""
        _, rows = statistic.cross()
        columns, facts = plan.facts.columns, plan.facts
        count = float(rows) if facts.adjacency.n_public else 0.0
        total = np.zeros(columns) if facts.centred else None
        zeros = NoisyMoments(count, total, np.zeros((columns, columns)), SILENT)
        return hand_over(self.card, plan, zeros, rows)
