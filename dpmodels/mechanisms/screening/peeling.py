"""Columns drawn one after the other by how they go with a response, then valued afresh.

Theorem
    Three kinds of releases, each a function of the rows and of what was released before, compose:
    the response's mean with noise; m' draws, each with probabilities proportional to
    ``exp(u score)`` among the columns left, whose privacy losses lie in an interval of length
    ``ε₀ = 2 u Δ`` each, so that all draws are m' ε₀-differentially private and m' ε₀²/8-zCDP; and
    products and scatters of the columns drawn. An (ε, δ) guarantee is met by the sum of the ε,
    with Laplace noise, or by zCDP, with Gaussian noise, whichever leaves less.

    *False discoveries.* Let p̃ be the p-values that all columns would have had, each with noise of
    its own as is drawn for those chosen, and no more often below a number than a uniform one where
    its hypothesis is true. Those used are p̃ for columns drawn and 1 for the others. Whatever was
    drawn, each of R rejections by the step-up rule at level q has ``p̃ <= t`` with ``t = q R/m``. So
    ``V/R <= q S`` with ``S = sup F(t)/t`` and F(t) the share of the m that are true and have
    ``p̃ <= t``. For independent p̃ of true hypotheses ``P(S > x) <= 1/x`` (Daniels 1945), and FDR is
    at most ``E min(1, q S) <= q (1 + log(1/q))``, as Su (2018) found in another way. Under any
    dependence the cut-offs ``q R/(m Σ 1/i)`` have FDR at most q (Blanchard and Roquain 2008). The
    noise of the response's mean is shared: each p̃ counts it in, and it makes them dependent.
Sensitivity
    With c the released mean of the response, in half-ranges, and rows in a box, the score
    ``|Σ x_j (y - c)|``, or that sum with a sign, moves by at most ``Δ = 1 + |c|`` when a row is
    added or removed and ``2 (1 + |c|)`` when one is replaced; of several columns some up and some
    down. The scatter about the mean moves by at most 4, the number of rows, the sum of y and that
    of its squares by √3 or 2 in L2 and 3 in L1 norm: `dpmodels.statistics.associations`.
Noise
    Draws: Gumbel on the scores, in the limit, as the peeling of columns by noisy scores. Values:
    discrete Gaussian or discrete Laplace on the lattice, independent of the draws.
Numerics
    exact: integer scores and sums, draws of the exact law, integer noise of exact law.
Source
    Dwork, Su, Zhang (2018), "Differentially private false discovery rate control",
    arXiv:1807.04209, for peeling and stepping up; Durfee, Rogers (2019), "Practical differentially
    private top-k selection with pay-what-you-get composition", NeurIPS, for draws in turn; Su
    (2018), "The FDR-linking theorem", arXiv:1812.08965; Daniels (1945), "The
    statistical theory of the strength of bundles of threads", Proceedings of the Royal Society A
    183; Blanchard, Roquain (2008), "Two simple
    sufficient conditions for FDR control", Electronic Journal of Statistics 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpmodels.design import PrivateDesign
from dpmodels.mechanisms.screening_plan import (
    SIGNS,
    ScreenFacts,
    ScreenPlan,
    peeled,
    screen_plan,
)
from dpmodels.noise import Entropy
from dpmodels.privacy import Guarantee
from dpmodels.released import MechanismInfo, ScreenedRelease
from dpmodels.statistics import Statistic
from dpmodels.statistics.associations import associations


@dataclass(frozen=True)
class ScreenPeeling:
    """Peeling by the size of the covariance with the response.

    Examples
    --------
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> facts = ScreenFacts(1000, 20, "two-sided", adjacency("replace"))
    >>> plan = ScreenPeeling().plan(facts, PureDP(1.0))
    >>> round(plan.draw_eps, 4), plan.chosen
    (0.0175, 20)
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="peeling",
        theorem="eps-DP or zCDP: draws of bounded range, and noisy sums",
        sensitivity="products 1 + |c| or 2(1 + |c|), scatters 4, by column",
        noise="Gumbel on scores; discrete Laplace or Gaussian on values",
        numerics="exact lattice",
        source="Dwork, Su and Zhang (2018); Durfee and Rogers (2019)",
    )

    def plan(self, facts: ScreenFacts, guarantee: Guarantee) -> ScreenPlan:
        """Calibrate draws and noise to a guarantee; BudgetError where noise is beyond meaning."""
        return screen_plan(facts, guarantee, with_draws=True)

    def measure(self, design: PrivateDesign, plan: ScreenPlan) -> Statistic:
        """Sum columns and their products with the response."""
        return associations(design, plan.lattice, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: ScreenPlan, entropy: Entropy) -> ScreenedRelease:
        """Release the response, draw the columns, and release their values."""
        return peeled(self.info, statistic, plan, SIGNS[plan.facts.alternative], entropy)
