"""The one pair that a verb is audited on where none is given."""

from __future__ import annotations

from typing import Final

from dpmodels.audit.coupled import coupled
from dpmodels.audit.house import HouseRecipe
from dpmodels.audit.neighbours import worst_pairs
from dpmodels.audit.pair import Pair
from dpmodels.errors import ArgumentError

# A row along a direction that no other one has, where all others have one: what is drawn by a
# density, as directions are, moves most there, in its normalising constant too.
_TURNED: Final = ("orthogonal row", "among its like")


def worst_pair(recipe: HouseRecipe) -> Pair:
    """Return the pair on which the releases of a verb are farthest apart, as far as is known.

    Where noise is added to a statistic coupled runs tell. Elsewhere it is a
    row orthogonal to a crowd of equal ones.

    Parameters
    ----------
    recipe : HouseRecipe
        The verb; it is run once on each table.
    """
    pairs = worst_pairs(recipe.formula, recipe.question.codebook, recipe.question.adjacency.name)
    try:
        return max(pairs, key=lambda pair: coupled(recipe, [pair]).largest)
    except ArgumentError:
        return next(pair for pair in pairs if all(word in pair.name for word in _TURNED))
