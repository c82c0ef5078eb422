"""A verb on rows of several sites, as a recipe: what those see who put all they know together.

The pair of neighbours is the first site's rows; the others are made up and the
same for both. The last sites collude with the aggregator: what they added
themselves, noise and masks, they take off again.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from dpmodels.audit.handed import numbers
from dpmodels.audit.house import HouseRecipe, house_recipe
from dpmodels.audit.pair import Pair
from dpmodels.audit.registry import GONE, named_pair
from dpmodels.codebook import codebook
from dpmodels.models.cov import dp_cov
from dpmodels.noise import source
from dpmodels.sites import PROTOCOLS, Parties, SiteProtocol, Witness
from dpmodels.sites.parties import NOBODY
from dpmodels.typing import Floats

SITES: Final = ("north", "east", "south")


@dataclass(frozen=True, repr=False)
class JointRecipe(HouseRecipe):
    """A verb on the rows of the first of several sites; the others hold the same few."""

    protocol: SiteProtocol  # how they release together
    others: Any  # rows of each other site

    def holders(self, rows: Any, witness: Witness) -> Parties:
        """Return rows at the first site, and the others'."""
        seated = self.protocol.seats(SITES)
        data = (rows, *(deepcopy(self.others) for _ in seated[1:]))
        return Parties(seated, data, self.protocol, witness=witness)

    def __call__(self, rows: Any) -> Any:
        """Run the verb, with the rows at the first site."""
        return self._asked(self.holders(rows, NOBODY))

    def batch(self, rows: Any, runs: int) -> Floats:
        """Run the verb once, and the protocol as often as asked: shape (runs, k)."""
        (strategy, statistics, names, plan), entropy = self.crossing(rows), source()
        seen = []
        for _ in range(runs):
            view = self.protocol.view(strategy, statistics, plan, entropy)
            if view is None:
                joint = self.protocol.release(strategy, statistics, names, plan, entropy)
                view = numbers(joint)
            seen.append(view)
        return np.stack(seen)


class JointAudited(NamedTuple):
    """A protocol, ready to be audited; as :class:`dpmodels.audit.registry.Audited`."""

    name: str
    verb: JointRecipe
    pair: Pair
    small: int  # releases a side in a small audit, and in a full one
    full: int


def joint_audited(protocol: SiteProtocol, small: int = 200, full: int = 6_000) -> JointAudited:
    """Put a protocol behind a small formula."""
    asked = partial(dp_cov, "~ a", center=False, mechanism="gauss", **_WORDS)
    recipe = house_recipe(asked)
    pair = named_pair(recipe, GONE)
    own = JointRecipe(recipe.verb, recipe.formula, recipe.words, protocol, {"a": [0.5, -0.25]})
    return JointAudited(
        f"dp_cov gauss, {protocol.trust.name} by {len(SITES)} sites", own, pair, small, full
    )


_WORDS: Final[dict[str, Any]] = {"codebook": codebook(a=(-1, 1)), "eps": 1.0, "delta": 1e-5}

# Every protocol of the package's table, as it is without words of its own.
JOINT: Final = tuple(joint_audited(kind()) for kind in PROTOCOLS.values())
