"""A verb of the package with its arguments as a recipe, and many runs of a recipe on one table.

The verb is run as users run it, including formula, frames, design and lattice.
Many runs on the same rows repeat only the last step: the exact statistic is a
function of the table, so the strategy can release it repeatedly.

A run that raises an error, or returns non-finite numbers or another number of
them, is an outcome like any other: its frequency is tested too.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from os import PathLike
from typing import Any, Final, NamedTuple, cast

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from dpmodels.audit.neighbours import Pair
from dpmodels.codebook import Codebook
from dpmodels.digest import in_order
from dpmodels.errors import ArgumentError, BudgetWarning, DPModelsError
from dpmodels.frames.delimited import CsvMode, csv_mode
from dpmodels.frames.open import with_csv_mode
from dpmodels.noise import Entropy, source
from dpmodels.options import current_settings
from dpmodels.privacy import compose_gaussians, gaussian_multiplier
from dpmodels.privacy.events import all_gaussian
from dpmodels.released import AnyRelease
from dpmodels.request import Request, requested
from dpmodels.sites import Parties, Witness
from dpmodels.sites.protocol import Joint
from dpmodels.statistics import Statistic
from dpmodels.typing import Flags, Floats, Indices, Option, Scalars

_ROUNDING = 1 + 1e-6


class Measurement(NamedTuple):
    """A planned release and its exact statistics, one for each holder of rows."""

    joint: Joint
    statistics: tuple[Statistic, ...]

    def release(self, entropy: Entropy) -> AnyRelease:
        """Release the rows of one table once."""
        (statistic,) = self.statistics
        return self.joint.strategy.release(statistic, self.joint.plan, entropy)


class Recorder(Witness):
    """Records the exact statistics of a verb's run."""

    def __init__(self) -> None:
        self.measurements: list[Measurement] = []

    def measured(self, joint: Joint, statistics: Sequence[Statistic]) -> None:
        """Record the exact statistics."""
        self.measurements.append(Measurement(joint, tuple(statistics)))


@dataclass(frozen=True, repr=False)
class VerbRecipe:
    """A verb, its formula, its codebook and its other arguments, without rows."""

    verb: Callable[..., object]  # takes the formula and rows, then the other arguments by name
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
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BudgetWarning)
            return self.verb(self.formula, data, **self.kwargs)

    def numerics(self, pair: Pair) -> str:
        """Return "exact" or "idealised", as the verb's mechanism states."""
        info = either(self.measurement, pair).joint.strategy.info
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
    return np.concatenate([np.empty(0), *parts])


def _once(value: Scalars) -> Floats:
    square = value.ndim == 2 and value.shape[0] == value.shape[1]
    if square and np.array_equal(value, value.T):
        value = value[np.triu_indices(len(value))]
    return np.ravel(value).astype(np.float64)


def _squares(frame: Floats) -> Floats:
    if len(frame) > _MOST_SQUARED:
        return np.ravel(frame)
    upper = np.triu_indices(len(frame))
    return np.concatenate([np.outer(direction, direction)[upper] for direction in frame.T])


Batch = Callable[[object, int], ArrayLike]


@dataclass(frozen=True, repr=False, eq=False)
class Runs:
    """The outcomes of independent runs: values by kind, names of kinds, and the kind of each run.

    A matrix of values has shape (runs of that kind, finite numbers).
    """

    values: tuple[Floats, ...]
    kinds: tuple[str, ...]
    codes: Indices

    def __len__(self) -> int:
        return len(self.codes)

    def cut(self, start: int, stop: int) -> Runs:
        """Return the runs from `start` to before `stop`."""
        chosen = self.codes[start:stop]
        before = np.bincount(self.codes[:start], minlength=len(self.kinds))
        counts = np.bincount(chosen, minlength=len(self.kinds))
        values = tuple(
            block[skip : skip + count]
            for block, skip, count in zip(self.values, before, counts, strict=True)
        )
        return Runs(values, self.kinds, chosen)

    def fraction(self, kind: str) -> float:
        """Return the fraction of the runs of a kind."""
        return float(np.mean(self.codes == self.code(kind))) if len(self) else 0.0

    def code(self, kind: str) -> int:
        """Return the code of a kind, -1 if it never occurred."""
        return self.kinds.index(kind) if kind in self.kinds else -1

    def of(self, kind: str) -> Floats:
        """Return the values of the runs of one kind."""
        return self.values[self.code(kind)] if kind in self.kinds else np.empty((0, 0))


def run(recipe: Recipe, rows: object, runs: int, batch: Batch | None = None) -> Runs:
    """Run a recipe many times on the same rows, or its batch once, with one line per run.

    ArgumentError if the batch does not return one line per run.
    """
    if batch is not None:
        try:
            output = batch(rows, runs)
            if isinstance(output, list):
                return _of_lines(output)
            values = np.asarray(output, dtype=np.float64)
        except Exception as error:
            return _sorted([f"raises {type(error).__name__}"] * runs, [np.empty(0)] * runs)
        if values.ndim == 0 or len(values) != runs:
            raise ArgumentError(
                f"batch returned an array of shape {values.shape} for {runs} runs: return one line "
                "per run, shape (runs, k)"
            )
        return _of_matrix(values.reshape(runs, -1))
    outcomes = [_run_once(recipe, rows) for _ in range(runs)]
    return _sorted([kind for kind, _ in outcomes], [value for _, value in outcomes])


def _run_once(recipe: Recipe, rows: object) -> tuple[str, Floats]:
    try:
        value = released(recipe(rows))
    except Exception as error:
        return f"raises {type(error).__name__}", np.empty(0)
    finite = np.isfinite(value)
    return _kind(finite), value[finite]


def _kind(finite: Flags) -> str:
    numbers = f"{finite.size} number{'s' if finite.size != 1 else ''}"
    if finite.all():
        return numbers
    absent = np.flatnonzero(~finite)
    positions = ", ".join(map(str, absent[:6])) + (", ..." if len(absent) > 6 else "")
    return f"{numbers}, {len(absent)} not finite (at {positions})"


def _of_matrix(values: Floats) -> Runs:
    finite = np.isfinite(values)
    if finite.all():
        return Runs((values,), (_kind(finite[0]),), np.zeros(len(values), dtype=np.intp))
    return _of_lines(list(values))


def _of_lines(lines: list[Floats]) -> Runs:
    masks = [np.isfinite(line) for line in lines]
    values = [line[mask] for line, mask in zip(lines, masks, strict=True)]
    return _sorted([_kind(mask) for mask in masks], values)


def _sorted(kinds: Sequence[str], values: Sequence[Floats]) -> Runs:
    distinct = tuple(sorted(set(kinds)))
    code_of = {kind: code for code, kind in enumerate(distinct)}
    codes = np.array([code_of[kind] for kind in kinds], dtype=np.intp)
    parts: list[list[Floats]] = [[] for _ in distinct]
    for code, value in zip(codes, values, strict=True):
        parts[code].append(value)
    # Two masks may have the same description: then the shorter lines are padded.
    return Runs(tuple(map(_stacked, parts)), distinct, codes)


def _stacked(lines: list[Floats]) -> Floats:
    width = max(map(len, lines))
    return np.stack([np.pad(line, (0, width - len(line))) for line in lines])


def commonest(*sides: Runs) -> str:
    """Return the most frequent kind of outcome with numbers over both tables, empty without any."""
    counted: Counter[str] = Counter()
    for side in sides:
        for code, n_runs in enumerate(np.bincount(side.codes, minlength=len(side.kinds))):
            numbers = side.values[code].shape[1]
            counted[side.kinds[code]] += int(n_runs) if numbers else 0
    kind, n_runs = counted.most_common(1)[0]
    return kind if n_runs else ""


# A recipe: any function from a table to a release.

# A recipe may have the attributes batch(rows, runs) -> array of shape (runs, k), law ("gaussian")
# and score(values of shape (m, k)) -> array of shape (m,); see `dpmodels.audit.verb.audit`.
Recipe = Callable[[object], object]


def released(value: object) -> Floats:
    """Lay out a released value as one line of numbers in a fixed order.

    Parameters
    ----------
    value : number, array, mapping, xarray, pandas, or a result with ``tidy()``
        Strings and categories are hashed to numbers; None becomes nan.

    Returns
    -------
    ndarray of float64, shape (k,)

    Examples
    --------
    >>> released({"mean": 2.5, "n": 4}), released([[1, 2], [3, 4]]).tolist()
    (array([2.5, 4. ]), [1.0, 2.0, 3.0, 4.0])
    """
    match value:
        case Mapping():
            return np.concatenate([np.empty(0), *(released(part) for part in value.values())])
        case xr.DataArray() | pd.Series() | pd.Index():
            return _flat(value.to_numpy())
        case pd.DataFrame():
            return released(dict(enumerate(value[name] for name in value.columns)))
        case str() | bytes() | None:
            return np.array([_number(value)])
        case list() | tuple() if not _is_numeric(value):
            return np.concatenate([np.empty(0), *(released(part) for part in value)])
    if hasattr(value, "tidy"):
        return released(value.tidy())
    return _flat(np.asarray(value))


def _is_numeric(value: object) -> bool:
    try:
        return np.asarray(value).dtype.kind in "biuf"
    except ValueError:
        return False


def _flat(array: Scalars) -> Floats:
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], axis=-1)
    if array.dtype.kind in "biuf":
        return np.ravel(array).astype(np.float64)
    return np.array([_number(cell) for cell in np.ravel(array)], dtype=np.float64)


def _number(cell: object) -> float:
    """Return a cell as a number; a string is hashed to an integer below 2**52."""
    if cell is None:
        return float("nan")
    if isinstance(cell, str | bytes):
        code = pd.util.hash_array(np.array([str(cell)], dtype=object))[0]
        return float(int(code) >> 12)
    try:
        return float(cast("float", cell))
    except (TypeError, ValueError):
        return _number(repr(cell))
