"""Discrete Laplace noise on the sum and the counts that one mean is made of.

Theorem
    The release is ε-differentially private with ε = Δ/b, and so ε²/2-zCDP (Bun and Steinke 2016).
    An (ε, δ) guarantee leaves its δ unused.
Sensitivity
    Each row is divided between three Bernstein parts ``b0, b1, b2`` and the incomplete rows, not
    below 0 and with the sum 1. Released are ``b2 - b0``, ``b1`` and the incomplete rows; since
    ``|x - y| <= |x| + |y|``, a replaced row moves them by an L1 norm of at most what it moves all
    four by: Δ = 2, reached by a row that goes from one end of the range to the other. The public
    number of rows gives ``b0 + b2`` free of charge.
Noise
    Independent discrete Laplace noise of scale b on the three, in units of which a row has up to
    2⁴⁰. The sum of ``t - 1/2`` is half of ``b2 - b0``: its noise has the scale 1/ε, as if it alone
    were released, √2 times less than the difference of two noisy parts has.
Numerics
    exact: integer statistic, integer noise of exact law, then a division.
Source
    Dwork, McSherry, Nissim, Smith (2006), "Calibrating noise to sensitivity in private data
    analysis", TCC.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpmodels.errors import ArgumentError
from dpmodels.mechanisms.count_noise import noised_mean, one_mean, paired_plan
from dpmodels.mechanisms.measures import OfParts
from dpmodels.mechanisms.protocol import CountFacts, CountPlan
from dpmodels.noise import Entropy
from dpmodels.privacy import Guarantee
from dpmodels.released import CountsRelease, MechanismInfo
from dpmodels.statistics import Statistic


@dataclass(frozen=True)
class Paired(OfParts):
    """Laplace mechanism for the mean of all rows, whose number is public.

    Examples
    --------
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> facts = CountFacts(1, 4, True, adjacency("replace"))
    >>> round(Paired().plan(facts, PureDP(1.0)).noise_sd, 3)  # of b2 - b0, twice the sum
    2.828
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="paired",
        theorem="eps-DP, eps^2/2-zCDP",
        sensitivity="L1, 2: a row may go from one end of the range to the other",
        noise="discrete Laplace on a sum and two counts, one scale",
        numerics="exact lattice",
        source="Dwork, McSherry, Nissim and Smith (2006)",
    )

    def plan(self, facts: CountFacts, guarantee: Guarantee) -> CountPlan:
        """Calibrate the noise to a guarantee.

        ArgumentError if this is not one mean of a public number of rows. BudgetError if the noise
        is beyond what is meaningful.
        """
        if not one_mean(facts):
            raise ArgumentError(
                "mechanism='paired' is for the mean of all rows, without groups, under "
                "adjacency='replace', of persons with rows='mean'; write mechanism='auto'"
            )
        return paired_plan(facts, guarantee)

    def release(self, statistic: Statistic, plan: CountPlan, entropy: Entropy) -> CountsRelease:
        """Add the planned noise to the sum and the counts."""
        exact, n_rows = statistic.cross()
        return noised_mean(self.info, plan, exact, n_rows, entropy)
