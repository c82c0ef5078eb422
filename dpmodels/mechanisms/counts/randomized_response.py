"""Every row answers for itself, and answers are counted.

Theorem
    The answers of all rows together are ε-differentially private where a row is replaced, and each
    is ε-differentially private for its row against whoever sees it: an answer i has the
    probability ``e^ε / (e^ε + k - 1)`` where the row is in cell i and ``1 / (e^ε + k - 1)`` where
    it is in another, whose ratio is e^ε. It is ε²/2-zCDP (Bun and Steinke 2016, Proposition 1.4);
    an (ε, δ) guarantee leaves its δ unused.
Sensitivity
    One row moves the law of its own answer and of no other. The k cells are all combinations of
    levels and one of the incomplete rows, which answer like all others: that a row is incomplete is
    no less private than its levels. One answer to all of a row costs ε once; m answers at ε/m each
    would tell less.
Noise
    A coin for each row asks for its cell with probability ``c = (e^ε - 1) / (e^ε + k - 1)``; else
    the answer is one of the k cells, each as likely. Counts of answers depend on rows by the counts
    of cells alone, as coins are independent and alike: they are drawn from these, one coin and one
    die a row.
Numerics
    exact: coins of an exact law by integer arithmetic; estimates from answers come after them.
Source
    Warner (1965), "Randomized response", JASA, for two cells. Kairouz, Bonawitz, Ramage (2016),
    "Discrete distribution estimation under local privacy", ICML, for more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar

import numpy as np

from dpmodels.design.cells import PrivateCells
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.mechanisms.protocol import CountFacts, PlanOf, release_terms
from dpmodels.noise import Entropy
from dpmodels.noise.finite import responses, truthful
from dpmodels.postprocess.response import truth_of
from dpmodels.privacy import ZCDP, Guarantee, PureEvent
from dpmodels.released import AnswersRelease, Channel, MechanismInfo
from dpmodels.statistics import Statistic
from dpmodels.statistics.counts import counts

# A choice: beyond, an answer tells next to nothing, and the inverse fills the memory.
MOST_CELLS = 2_000
# A choice: below, estimates have errors a million times their range and more.
LEAST_EPS = 1e-6
# Beyond, no row out of 10^100 lies, and exponentials have no end.
MOST_EPS = 1e3
# Of a root, which is rounded.
ROOM = 1 - 1e-12
# Rows that answer at once.
BATCH = 2**20


@dataclass(frozen=True)
class ResponsePlan(PlanOf[CountFacts]):
    """Calibrated answers."""

    eps: float  # Of each row's answer


@dataclass(frozen=True)
class RandomizedResponse:
    """Randomised response of whole rows, k-ary.

    Examples
    --------
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> facts = CountFacts(1, 3, False, adjacency("replace"))
    >>> RandomizedResponse().plan(facts, PureDP(1.0)).events
    (PureEvent(eps=1.0, count=1),)
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="randomized_response",
        theorem="eps-DP for each row by itself, against whoever sees the answers",
        sensitivity="one answer: no row has a part in another's",
        noise="a coin and a die for each row; k-ary over all cells",
        numerics="exact lattice",
        source="Warner (1965); Kairouz, Bonawitz and Ramage (2016)",
    )

    def plan(self, facts: CountFacts, guarantee: Guarantee) -> ResponsePlan:
        """Calibrate the coin to a guarantee.

        ArgumentError if the rows are not counted whole in one table of at most 2,000 cells, or
        their number is not public. BudgetError if nothing could be learnt.
        """
        if not facts.adjacency.n_public:
            raise ArgumentError(
                "mechanism='randomized_response' shows the number of rows, because every row "
                "answers; write adjacency='replace'"
            )
        if facts.adjacency.counts_persons:
            raise ArgumentError(
                "mechanism='randomized_response' protects each row by itself, but a person may "
                "have several; write rows=1 for one row per person, or mechanism='auto'"
            )
        if facts.tables != 1 or facts.divided:
            raise ArgumentError(
                "mechanism='randomized_response' is for one table of counts, dp_table('~ a + b')"
            )
        if facts.parts - 1 > MOST_CELLS:
            raise ArgumentError(
                f"mechanism='randomized_response' takes up to {MOST_CELLS:,} cells, and the table "
                f"has {facts.parts - 1:,}; use fewer factors or levels, or mechanism='auto'"
            )
        pure = math.sqrt(2 * guarantee.rho) * ROOM if isinstance(guarantee, ZCDP) else guarantee.eps
        eps = min(pure, MOST_EPS)
        if eps < LEAST_EPS:
            raise BudgetError(
                f"the budget leaves eps = {eps:.2g} for each row's answer, too little for any "
                "estimate; give a larger eps or rho, or write mechanism='auto'"
            )
        return ResponsePlan(guarantee, (PureEvent(eps),), facts, eps)

    def measure(self, private: PrivateCells, plan: ResponsePlan) -> Statistic:
        """Compute the exact counts."""
        return counts(private, 1)

    def release(self, statistic: Statistic, plan: ResponsePlan, entropy: Entropy) -> AnswersRelease:
        """Let every row answer."""
        exact, n_rows = statistic.cross()
        cells = len(exact)
        truth_share = partial(truthful, Fraction(plan.eps), cells)
        law = (Fraction(1, cells),) * cells
        ends = np.cumsum(exact.astype(np.int64))
        answered = np.zeros(cells, dtype=np.int64)
        for start in range(0, int(ends[-1]), BATCH):
            places = np.arange(start, min(start + BATCH, int(ends[-1])))
            truths = np.searchsorted(ends, places, side="right")
            answered += np.bincount(responses(truths, truth_share, law, entropy), minlength=cells)
        channel = Channel(truth_of(plan.eps, cells), (1 / cells,) * cells, plan.eps, "k-ary")
        return AnswersRelease(
            values=answered[None, :].astype(np.float64),
            weights=None,
            squares=None,
            channels=(channel,),
            **release_terms(self.info, plan, n_rows),
        )
