"""Which mechanism names candidates, by public facts alone: whose noise goes least far.

Of m candidates the noise of one exceeds its scale times log m once, on average, where it is
exponential, Gumbel or Laplace noise; of Gaussian noise that is a quantile.
"""

from __future__ import annotations

import math

from dpmodels.mechanisms.level_score import LevelScore
from dpmodels.mechanisms.selection import NoisyCounts, Peeling, PermuteAndFlip
from dpmodels.mechanisms.selection.noisy_counts import reach
from dpmodels.mechanisms.selection_plan import SelectionFacts
from dpmodels.privacy import Guarantee


def auto_selection(facts: SelectionFacts, guarantee: Guarantee) -> tuple[str, str]:
    """Return the name of a mechanism that names candidates and the reason, as it is printed.

    Of two that go as far the first is taken: the expected error of permute-and-flip is never above
    that of the exponential mechanism of the same eps.
    """
    if facts.threshold is not None:
        if isinstance(facts.score, LevelScore):
            return (
                "noisy_counts",
                "a row is in one level, and noise on all counts costs least.",
            )
        return "sparse_vector", "what is below the threshold costs nothing."
    width, size = facts.score.width(facts.adjacency), facts.score.size
    farthest = {
        own.card.name: width / own.plan(facts, guarantee).eps * math.log(size)
        for own in (PermuteAndFlip(), Peeling())
    }
    if isinstance(facts.score, LevelScore):
        farthest[NoisyCounts.card.name] = reach(NoisyCounts().plan(facts, guarantee))
    best, other, *_ = sorted(farthest, key=lambda name: farthest[name])
    return best, (
        f"its noise in the ranking goes as far as {farthest[best]:.3g}; that of {other} would go "
        f"as far as {farthest[other]:.3g}."
    )
