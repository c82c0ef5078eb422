"""Columns drawn by the size of their covariance, of which signs tell how many are false.

Theorem
    The releases and their privacy are those of peeling. Columns are drawn by ``|Σ x_j (y - c)|``
    and valued with symmetric noise; whatever the sign that is asked for, t passes from small to
    large one-sided p-values, and rejected are those up to the largest t with
    ``(1 + #{p >= 1 - t})/max(#{p <= t}, 1) <= q``.

    *False discoveries.* Let the sums of true hypotheses be symmetric about 0 and independent, of
    each other and of the rest, given their sizes. Draws depend on sizes alone, and noise is
    symmetric: given the sizes of the noisy sums and all that belongs to other columns, the signs of
    true ones are fair coins. So ``V(t)/(1 + #{false side})`` of true ones is a supermartingale
    backwards in t with mean at most 1, and FDR is at most q, exactly, for any number of columns
    looked at (Barber and Candès 2015). Sums are symmetric where the response is; else nearly, where
    rows or noise are many. The noise of the response's mean is shared by all columns, and so small
    beside that of the sums that it is left out here. Columns that go the other way make the rule
    careful, and no more.
Sensitivity
    As for peeling.
Noise
    As for peeling, Gaussian.
Numerics
    exact: integer scores and sums, draws of the exact law, integer noise of exact law.
Source
    Xia, Cai (2023), "Adaptive false discovery rate control with privacy guarantee", Journal of
    Machine Learning Research 24(252), for mirrored peeling; Lei, Fithian (2018), "AdaPT: an
    interactive procedure for multiple testing with side information", JRSS B 80; Barber, Candès
    (2015), "Controlling the false discovery rate via knockoffs", Annals of Statistics 43.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dpmodels.design import PrivateDesign
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.mechanisms.screening_plan import (
    ScreenFacts,
    ScreenPlan,
    peeled,
    rho_of,
    screen_plan,
)
from dpmodels.noise import Entropy
from dpmodels.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from dpmodels.released import MechanismInfo, ScreenedRelease
from dpmodels.statistics import Statistic
from dpmodels.statistics.associations import associations


@dataclass(frozen=True)
class ScreenAdapt:
    """Peeling whose false discoveries are counted on the side that nobody asked for.

    Examples
    --------
    >>> from dpmodels.privacy import adjacency
    >>> facts = ScreenFacts(1000, 20, "larger", adjacency("replace"))
    >>> ScreenAdapt().plan(facts, ZCDP(0.1)).law
    'gaussian'
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="adapt",
        theorem="(eps, delta)-DP or zCDP: draws of bounded range, and noisy sums",
        sensitivity="products 1 + |c| or 2(1 + |c|), scatters 4, by column",
        noise="Gumbel on scores; discrete Gaussian on values",
        numerics="exact lattice",
        source="Xia and Cai (2023); Barber and Candes (2015)",
    )

    def plan(self, facts: ScreenFacts, guarantee: Guarantee) -> ScreenPlan:
        """Calibrate draws and noise to a guarantee.

        ArgumentError where both sides are asked for. BudgetError for a pure guarantee, and where
        noise is beyond meaning.
        """
        if facts.alternative == "two-sided":
            raise ArgumentError(
                "alternative='two-sided': mechanism='adapt' estimates false discoveries from the "
                "opposite side; write alternative='larger' or 'smaller', or mechanism='peeling'"
            )
        if isinstance(guarantee, PureDP):
            raise BudgetError(
                "mechanism='adapt' adds Gaussian noise, which gives no pure eps guarantee; add "
                "delta=1e-6, or write mechanism='peeling'"
            )
        if isinstance(guarantee, ApproxDP):
            zcdp_plan = screen_plan(facts, ZCDP(rho_of(guarantee)), with_draws=True)
            return replace(zcdp_plan, guarantee=guarantee)
        return screen_plan(facts, guarantee, with_draws=True)

    def measure(self, design: PrivateDesign, plan: ScreenPlan) -> Statistic:
        """Sum columns and their products with the response."""
        return associations(design, plan.lattice, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: ScreenPlan, entropy: Entropy) -> ScreenedRelease:
        """Release the response, draw columns by size, and release their values."""
        return peeled(self.info, statistic, plan, np.abs, entropy)
