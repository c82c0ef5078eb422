"""A verb of the package with its arguments, as a recipe.

The verb is run as anybody would, formula, frames, design and lattice included.
Many runs on the same rows repeat the last step alone: the exact statistic of a
table is a function of the table, so the strategy releases it again and again.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dpmodels.audit.handed import numbers
from dpmodels.codebook import Codebook
from dpmodels.errors import ArgumentError
from dpmodels.mechanisms import COVARIANCE, SUBSPACE
from dpmodels.mechanisms.counts import COUNTS
from dpmodels.mechanisms.regression import COEFFICIENTS, REGRESSION
from dpmodels.mechanisms.scalar import MEANS, QUANTILES
from dpmodels.noise import Entropy, source
from dpmodels.privacy import (
    Adjacency,
    GaussianEvent,
    Guarantee,
    compose_gaussians,
    gaussian_multiplier,
    resolve_budget,
)
from dpmodels.privacy import adjacency as relation
from dpmodels.released import Card
from dpmodels.typing import Floats

_TABLES: tuple[Mapping[str, type[Any]], ...] = (
    *(COVARIANCE, SUBSPACE, COUNTS),
    *(REGRESSION, COEFFICIENTS, QUANTILES, MEANS),
)
_BY_NAME = {kind.card.name: kind for table in _TABLES for kind in table.values()}
_ROUNDING = 1 + 1e-6


class Crossing(NamedTuple):
    """A strategy with the exact statistic and the plan that it releases by."""

    strategy: Any
    statistic: Any
    plan: Any

    def release(self, entropy: Entropy) -> Any:
        """Release once."""
        return self.strategy.release(self.statistic, self.plan, entropy)


@dataclass(frozen=True, repr=False)
class HouseRecipe:
    """A verb, its formula, its codebook and its other words; no rows.

    Attributes
    ----------
    verb : callable
        Takes the formula and rows, then the words by name.
    formula : str
        As written.
    words : dict
        The verb's other arguments.
    """

    verb: Any
    formula: str
    words: dict[str, Any]

    def __call__(self, rows: Any) -> Any:
        """Run the verb on rows."""
        return self.verb(self.formula, rows, **self.words)

    def batch(self, rows: Any, runs: int) -> Floats:
        """Run the verb once, and its last step as often as asked.

        Returns
        -------
        ndarray, shape (runs, k)
        """
        crossing, entropy = self.crossing(rows), source()
        return np.stack([numbers(crossing.release(entropy)) for _ in range(runs)])

    def crossing(self, rows: Any) -> Crossing:
        """Run the verb on rows and keep what its strategy was handed.

        Raises
        ------
        ArgumentError
            If the verb returns nothing that a strategy of the package released.
        """
        with _watched(_BY_NAME[self._card(rows).name]) as seen:
            self(rows)
        return seen[0]

    def _card(self, rows: Any) -> Card:
        release = getattr(self(rows), "release", None)
        card = getattr(release, "card", None)
        if not isinstance(card, Card) or card.name not in _BY_NAME:
            raise ArgumentError(
                f"{self.verb.__name__} returned no release of a known mechanism: audit a function "
                "of the rows instead, dp.audit(lambda rows: ..., pair, eps=1)"
            )
        return card

    def numerics(self, rows: Any) -> str:
        """Return "exact" or "idealised": what the verb's mechanism says of itself."""
        exact = self._card(rows).numerics.startswith("exact")
        return "exact" if exact else "idealised"

    @property
    def codebook(self) -> Codebook:
        """The public facts about the variables."""
        book: Codebook = self.words["codebook"]
        return book

    @property
    def guarantee(self) -> Guarantee:
        """What the verb was asked for."""
        words = self.words
        return resolve_budget(words.get("eps"), words.get("delta", 0.0), words.get("budget"))

    @property
    def adjacency(self) -> Adjacency:
        """Between which neighbours."""
        return relation(self.words.get("adjacency", "replace"))


def house_recipe(partial: functools.partial[Any]) -> HouseRecipe:
    """Read a verb with its arguments; a ledger among them is left out, as no rows are spent on.

    Parameters
    ----------
    partial : functools.partial
        Of a verb that takes a formula and data, with a codebook by name.

    Raises
    ------
    ArgumentError
        If the data are given already, or the formula is not.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(a=(0, 1), b=(0, 1))
    >>> house_recipe(functools.partial(dp.dp_pca, "~ a + b", codebook=cb, eps=1)).guarantee
    PureDP(eps=1.0)
    """
    try:
        given = dict(inspect.signature(partial.func).bind_partial(*partial.args).arguments)
    except TypeError:
        given = {}
    given |= {word: value for word, value in partial.keywords.items() if word != "ledger"}
    formula = given.pop("formula", None)
    if not isinstance(formula, str) or "data" in given:
        raise ArgumentError(
            "recipe= is a verb without its formula, or with data already: write "
            'functools.partial(dp.dp_pca, "~ a + b", codebook=cb, eps=1, delta=1e-6)'
        )
    if not isinstance(given.get("codebook"), Codebook):
        raise ArgumentError("recipe= is a verb whose codebook= is no dp.Codebook")
    return HouseRecipe(partial.func, formula, given)


def gaussian_law(recipe: HouseRecipe, rows: Any) -> bool:
    """Whether all that a verb spends on rows is Gaussian noise worth its guarantee exactly."""
    events = recipe(rows).release.events
    if not events or not all(isinstance(event, GaussianEvent) for event in events):
        return False
    each = [event.multiplier for event in events for _ in range(event.count)]
    return compose_gaussians(each) * _ROUNDING >= gaussian_multiplier(recipe.guarantee)


@contextmanager
def _watched(kind: type[Any]) -> Iterator[list[Crossing]]:
    """Note what a strategy is handed while the block lasts; for one thread."""
    seen: list[Crossing] = []
    own = kind.release

    def release(strategy: Any, statistic: Any, plan: Any, entropy: Entropy) -> Any:
        seen.append(Crossing(strategy, statistic, plan))
        return own(strategy, statistic, plan, entropy)

    kind.release = release
    try:
        yield seen
    finally:
        kind.release = own
