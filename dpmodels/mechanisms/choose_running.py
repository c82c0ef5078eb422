"""Which mechanism counts over time, by public facts alone: what has the quieter running totals."""

from __future__ import annotations

import math

from dpmodels.mechanisms.count_plan import CountFacts
from dpmodels.mechanisms.counts import Factorisation, Tree
from dpmodels.mechanisms.counts.factorisation import MOST_CELLS
from dpmodels.postprocess.hierarchy import prefix_variances
from dpmodels.postprocess.square_root import SquareRoot
from dpmodels.privacy import Guarantee, PureDP
from dpmodels.typing import Floats


def auto_running(facts: CountFacts, guarantee: Guarantee) -> tuple[str, str]:
    """Return the name of a mechanism for running totals and the reason, as it is printed."""
    if isinstance(guarantee, PureDP):
        return "tree", "it needs no delta."
    cells = facts.shape[1]
    if cells > MOST_CELLS:
        return "tree", f"{cells:,} periods are more than the {MOST_CELLS:,} of factorisation."
    one = 1 if facts.adjacency.rows == "mean" else facts.adjacency.places
    found = {
        "factorisation": one * _of_root(facts, guarantee),
        "tree": one * _of_tree(facts, guarantee),
    }
    best, other = sorted(found, key=lambda name: found[name])
    return best, (
        f"the noise of its running totals has a root mean square of {found[best]:.3g}; that of "
        f"{other} would have {found[other]:.3g}."
    )


def _of_root(facts: CountFacts, guarantee: Guarantee) -> float:
    root = SquareRoot(facts.shape[1])
    whole = root.whole_variance(facts.shape[0])
    variances = _told(facts, root.prefix_variances, root.with_last, whole)
    return Factorisation().plan(facts, guarantee).noise_sd * math.sqrt(variances.mean())


def _of_tree(facts: CountFacts, guarantee: Guarantee) -> float:
    tree = Tree()
    plan = tree.plan(facts, guarantee)
    hierarchy, _ = tree.above(plan)
    own, added = prefix_variances(hierarchy)
    of_all = hierarchy.whole_variance
    whole = facts.shape[0] * of_all + 1
    variances = _told(facts, own**2 * of_all + added, own * of_all, whole)
    return plan.noise_sd * math.sqrt(variances.mean())


def _told(facts: CountFacts, variances: Floats, with_all: Floats, whole: float) -> Floats:
    """Take off what a public number of rows tells, by covariances with the released one."""
    return variances - with_all**2 / whole if facts.adjacency.n_public else variances
