"""A verb of the package with its arguments, as a recipe.

The verb is run as users run it, including formula, frames, design and lattice.
Many runs on the same rows repeat only the last step: the exact statistic is a
function of the table, so the strategy can release it repeatedly.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, is_dataclass
from os import PathLike
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.audit.neighbours import Pair
from dpmodels.codebook import Codebook
from dpmodels.digest import in_order
from dpmodels.errors import ArgumentError, BudgetWarning, DPModelsError
from dpmodels.frames.delimited import CsvMode, csv_mode
from dpmodels.frames.open import with_csv_mode
from dpmodels.mechanisms.protocol import PlanOfStrategy
from dpmodels.noise import Entropy, source
from dpmodels.options import current_settings
from dpmodels.privacy import compose_gaussians, gaussian_multiplier
from dpmodels.privacy.events import all_gaussian
from dpmodels.request import Request, requested
from dpmodels.sites import Parties, Witness
from dpmodels.statistics import Statistic
from dpmodels.typing import Floats, Option

_ROUNDING = 1 + 1e-6


class Measurement(NamedTuple):
    """A strategy with its plan and the exact statistics, one for each holder of rows."""

    strategy: Any
    statistics: tuple[Any, ...]
    names: tuple[str, ...]
    plan: PlanOfStrategy

    def release(self, entropy: Entropy) -> Any:
        """Release the rows of one table once."""
        (statistic,) = self.statistics
        return self.strategy.release(statistic, self.plan, entropy)


class Recorder(Witness):
    """Records the exact statistics of a verb's run."""

    def __init__(self) -> None:
        self.measurements: list[Measurement] = []

    def measured(
        self, strategy: object, statistics: Sequence[object], names: Sequence[str], plan: object
    ) -> None:
        """Record the exact statistics."""
        self.measurements.append(Measurement(strategy, tuple(statistics), tuple(names), plan))


@dataclass(frozen=True, repr=False)
class VerbRecipe:
    """A verb, its formula, its codebook and its other arguments, without rows."""

    verb: Any  # takes the formula and rows, then the other arguments by name
    formula: str
    kwargs: dict[str, Option]

    def __call__(self, rows: object) -> object:
        """Run the verb on rows."""
        return self._run(self.holders(rows, Witness()))

    def batch(self, rows: object, runs: int) -> Floats | list[Floats]:
        """Run the verb once, and its last step `runs` times: shape (runs, k).

        A list of lines if releases differ in length.
        """
        measurement, entropy = self.measurement(rows), source()
        lines = [numbers(measurement.release(entropy)) for _ in range(runs)]
        return np.stack(lines) if len({line.shape for line in lines}) == 1 else lines

    def holders(self, rows: object, witness: Witness) -> Parties:
        """Return the holders of the rows, observed by a witness."""
        mode = self.csv if isinstance(rows, str | PathLike) else "records"
        return Parties(("",), (with_csv_mode(rows, mode),), witness=witness)

    @property
    def csv(self) -> CsvMode:
        """How CSV files are read, by the verb's arguments or by ``dp.options``."""
        return csv_mode(self.kwargs.get("csv") or current_settings().csv or "records")

    def measurement(self, rows: object) -> Measurement:
        """Run the verb and return its first measurement; ArgumentError without one."""
        recorder = Recorder()
        self._run(self.holders(rows, recorder))
        if not recorder.measurements:
            raise ArgumentError(
                f"{self.verb.__name__} returned no release of a known mechanism: audit a function "
                "of the rows instead, dp.audit(lambda rows: ..., pair, eps=1)"
            )
        return recorder.measurements[0]

    def distinguishes(self, pair: Pair) -> bool:
        """Whether only one table is refused, or the numbers of rows differ by more than allowed."""
        rows, neighbour = self._n_rows(pair.rows), self._n_rows(pair.neighbour)
        if rows is None or neighbour is None:
            return (rows is None) != (neighbour is None)
        relation = self.request.adjacency
        return abs(rows - neighbour) > (0 if relation.n_public else relation.places)

    def _n_rows(self, table: object) -> int | None:
        """Return how many rows a verb counts in a table, None if it refuses the table."""
        try:
            statistics = self.measurement(table).statistics
        except Exception:
            return None
        return sum(
            statistic.cross()[1] for statistic in statistics if isinstance(statistic, Statistic)
        )

    @property
    def variables(self) -> str:
        """The arguments that may name variables, as one string."""
        texts = (value for value in self.kwargs.values() if isinstance(value, str))
        return " ".join((self.formula, *texts))

    def _run(self, data: object) -> object:
        """Run the verb without its warnings about few rows."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BudgetWarning)
            return self.verb(self.formula, data, **self.kwargs)

    def numerics(self, pair: Pair) -> str:
        """Return "exact" or "idealised", as the verb's mechanism states."""
        info = either(self.measurement, pair).strategy.info
        return "exact" if info.numerics.startswith("exact") else "idealised"

    @property
    def request(self) -> Request:
        """The request: formula, codebook, guarantee and neighbours."""
        options = {"eps": None, "delta": 0.0, "budget": None, "adjacency": "replace", **self.kwargs}
        options.pop("csv", None)
        book, eps, delta, budget, relation = (
            options.pop(name) for name in ("codebook", "eps", "delta", "budget", "adjacency")
        )
        name = self.verb.__name__.removeprefix("dp_")
        return requested(name, self.formula, book, eps, delta, budget, relation, **options)


def verb_recipe(partial: functools.partial[object]) -> VerbRecipe:
    """Read a verb with its arguments; a ledger is left out, since audits charge nothing.

    ArgumentError if the data are given, or the formula or the codebook is missing.
    """
    try:
        arguments = dict(inspect.signature(partial.func).bind_partial(*partial.args).arguments)
    except TypeError:
        arguments = {}
    arguments |= {name: value for name, value in partial.keywords.items() if name != "ledger"}
    formula = arguments.pop("formula", None)
    if not isinstance(formula, str) or "data" in arguments:
        raise ArgumentError(
            "recipe= is a verb without its formula, or with data: write "
            'functools.partial(dp.dp_pca, "~ a + b", codebook=cb, eps=1, delta=1e-6)'
        )
    if not isinstance(arguments.get("codebook"), Codebook):
        raise ArgumentError("recipe= is a verb whose codebook= is not a dp.Codebook")
    return VerbRecipe(partial.func, formula, arguments)


def either(function: Callable[[object], object], pair: Pair) -> Any:
    """Return a function's value for the first table of a pair that it accepts."""
    try:
        return function(pair.rows)
    except DPModelsError:
        return function(pair.neighbour)


def gaussian_law(recipe: VerbRecipe, pair: Pair) -> bool:
    """Whether a verb adds only Gaussian noise, calibrated exactly to its guarantee."""
    events = either(recipe, pair).release.events
    if not events or not all_gaussian(events):
        return False
    multipliers = [event.multiplier for event in events for _ in range(event.count)]
    return compose_gaussians(multipliers) * _ROUNDING >= gaussian_multiplier(
        recipe.request.guarantee
    )


# The numbers of a release, as an adversary with a result of this package has them.

# Public before a row is read, or a function of the plan.
_PLANNED: Final = frozenset(
    {"info", "guarantee", "adjacency", "events", "simulated", "limit", "law", "ordered"}
)
_MOST_SQUARED: Final = 16  # columns up to which directions are represented by squares


def numbers(release: object) -> Floats:
    """Lay out a release, or a part of one, as one line of numbers, shape (k,).

    Symmetric matrices are represented by their upper triangles, orthonormal directions, whose signs
    are arbitrary, by the squares ``v vᵀ``.
    """
    parts = []
    for name in in_order(release):
        value = getattr(release, name)
        if name in _PLANNED or value is None or name.endswith("_sd"):
            continue
        if name == "frame":
            parts.append(_squares(value))
        elif name == "places":
            parts.append(np.array(value, dtype=np.float64))
        elif isinstance(value, np.ndarray):
            parts.append(_once(value))
        elif is_dataclass(value) and not name.endswith("noise"):
            parts.append(numbers(value))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            parts.append(np.array([float(value)]))
    return np.concatenate(parts) if parts else np.empty(0)


def _once(value: NDArray[np.generic]) -> Floats:
    square = value.ndim == 2 and value.shape[0] == value.shape[1]
    if square and np.array_equal(value, value.T):
        value = value[np.triu_indices(len(value))]
    return np.ravel(value).astype(np.float64)


def _squares(frame: Floats) -> Floats:
    if len(frame) > _MOST_SQUARED:
        return np.ravel(frame)
    upper = np.triu_indices(len(frame))
    return np.concatenate([np.outer(direction, direction)[upper] for direction in frame.T])
