"""Two releases of margins: of all pairs, then of the pairs that a graph joins.

Theorem
    Each round is ``1/(2 m²)``-zCDP, m its multiplier, and has the exact trade-off of the Gaussian
    mechanism with it; both are fixed by the plan, so the release has the sum of the two. *Proof.*
    The first round is :mod:`dpmodels.mechanisms.margins.residual` for all pairs. The graph is a
    function of what it released. Given the graph, the second round is the same mechanism for the
    pairs of the graph, with noise calibrated to the planned multiplier for whatever set of margins
    is chosen: adaptive composition of two Gaussian releases, whose cost does not depend on the
    first one's outcome. With one round nothing is chosen.
Sensitivity
    Of each round that of its set of margins, :func:`dpmodels.mechanisms.protocol.\
squared_sensitivity`; of the second round it is computed once the graph is public.
Noise
    Independent discrete Gaussians in all components of each round. That of the second round can
    be drawn for any graph: its standard deviations are below 2¹⁷ times those of the first, which
    the plan limits. Pairs have the same weight ``w_A = 1/σ_A²`` in both rounds up to a common
    factor; with at most 2·10⁶ cells, weights of one variable or none differ by less than 2³⁰.
Numerics
    exact: integer statistic, integer noise of exact law. The graph is computed from released
    floats.
Source
    This package; McKenna, Miklau and Sheldon (2021), "Winning the NIST Contest", Journal of Privacy
    and Confidentiality, for a graph chosen from released margins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dpmodels.arguments import integer
from dpmodels.design.cells import PrivateMargins
from dpmodels.errors import ArgumentError
from dpmodels.mechanisms.component_noise import (
    LARGEST_SCALE,
    component_plan,
    noisy_components,
)
from dpmodels.mechanisms.protocol import MarginFacts, MarginPlan, release_terms
from dpmodels.noise import Entropy
from dpmodels.postprocess.graphical.measurements import residuals_from
from dpmodels.postprocess.graphical.structure import choose_structure
from dpmodels.postprocess.residuals import Term, cells
from dpmodels.privacy import Event, GaussianEvent, Guarantee, gaussian_multiplier
from dpmodels.privacy.compose import divide
from dpmodels.released import GraphRelease, MechanismInfo
from dpmodels.statistics import Statistic
from dpmodels.statistics.counts import margin_counts
from dpmodels.typing import Floats

# Of the budget, for each round: a choice.
SHARES = (0.5, 0.5)
# Cells of all margins: a choice.
MOST_CELLS = 2_000_000
# How far the noise of the second round may exceed that of the first.
EXCESS = 2.0**17


@dataclass(frozen=True)
class GraphPlan:
    """A calibrated release: everything but the data."""

    guarantee: Guarantee  # Guarantee of both rounds together
    events: tuple[Event, ...]  # What the ledger is charged, one for each round
    facts: MarginFacts  # What the plan was made for
    first: MarginPlan  # Of the first round
    second: Guarantee | None  # Of the second round; None if there is only one


@dataclass(frozen=True)
class Graph:
    """Gaussian mechanism for margins in two rounds: those of `facts`, then those of a graph.

    With ``rounds=1`` the margins are those of a graph that is declared, and get all of the budget.

    Examples
    --------
    >>> from dpmodels.mechanisms.protocol import MarginFacts
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> facts = MarginFacts((3, 4, 3), ((0, 1), (0, 2), (1, 2)), adjacency("add-remove"))
    >>> plan = Graph().plan(facts, ZCDP(0.5))
    >>> [round(event.multiplier, 3) for event in plan.events], len(plan.first.measured)
    ([1.414, 1.414], 7)
    """

    rounds: int = 2

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="graph",
        theorem="(eps, delta)-DP or rho-zCDP, two Gaussian releases composed",
        sensitivity="of each round L2 of all its residual components together",
        noise="discrete Gaussian, one scale a component and round",
        numerics="exact lattice",
        source="this package; McKenna, Miklau and Sheldon (2021)",
    )

    def __post_init__(self) -> None:
        integer("rounds", self.rounds, 1, 2)

    def plan(self, facts: MarginFacts, guarantee: Guarantee) -> GraphPlan:
        """Divide the budget and calibrate the first round.

        ArgumentError if the margins have more than 2,000,000 cells; BudgetError for a pure
        guarantee, which Gaussian noise does not give, or if the noise is beyond what is meaningful.
        """
        n_cells = sum(cells(term, facts.sizes) for term in facts.terms)
        if n_cells > MOST_CELLS:
            raise ArgumentError(
                f"the margins have {n_cells:,} cells in all; at most {MOST_CELLS:,} are released. "
                "Use fewer variables or levels, or declare which pairs to release"
            )
        if self.rounds == 1:
            only = component_plan(facts, guarantee)
            return GraphPlan(guarantee, only.events, facts, only, None)
        parts = divide(guarantee, SHARES, (True, True))
        first = component_plan(facts, parts[0], LARGEST_SCALE / EXCESS)
        events = (*first.events, GaussianEvent(gaussian_multiplier(parts[1])))
        return GraphPlan(guarantee, events, facts, first, parts[1])

    def measure(self, private: PrivateMargins, plan: GraphPlan) -> Statistic:
        """Count the rows in the cells of the largest margins."""
        return margin_counts(private, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: GraphPlan, entropy: Entropy) -> GraphRelease:
        """Release all margins, choose a graph from the release, and release its margins again."""
        exact, n_rows = statistic.cross()
        facts, plans = plan.facts, [plan.first]
        values = [noisy_components(exact, n_rows, facts, plan.first, entropy)]
        if plan.second is not None:
            chosen = replace(facts, terms=chosen_margins(values[0], plan.first))
            plans.append(component_plan(chosen, plan.second))
            values.append(noisy_components(exact, n_rows, facts, plans[1], entropy))
        return GraphRelease(
            values=np.concatenate(values),
            margins=tuple(part.facts.terms for part in plans),
            noise_sds=tuple(sd for part in plans for sd in part.noise_sds),
            **release_terms(self.info, plan, n_rows),
        )


def chosen_margins(values: Floats, plan: MarginPlan) -> tuple[Term, ...]:
    """Return the edges of the graph chosen from a first round, and variables without an edge."""
    sds = dict(zip(plan.measured, plan.noise_sds, strict=True))
    public_rows = plan.facts.adjacency.n_public
    tree = choose_structure(residuals_from(values, plan.facts.sizes, sds, public_rows=public_rows))
    joined = {i for pair in tree.edges for i in pair}
    return (*((i,) for i in range(len(tree.sizes)) if i not in joined), *tree.edges)
