"""Coupled runs: the same noise on both neighbours, so that it cancels.

*Theorem.* If noise is added to an exact statistic, two releases with the same
noise differ exactly by the difference of the statistics. A single pair whose
releases differ by more than the declared sensitivity refutes a guarantee based
on it, without any chance of error.
"""

from __future__ import annotations

import csv
import functools
import inspect
import io
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from dpmodels.arguments import checked_keywords
from dpmodels.audit.neighbours import Pair, neighbouring_tables, of_persons, worst_pairs
from dpmodels.audit.result import Finding
from dpmodels.audit.verb_recipes import Recipe, VerbRecipe, released, verb_recipe
from dpmodels.errors import ArgumentError
from dpmodels.mechanisms.protocol import PlanOfStrategy
from dpmodels.noise import seeded, simulation
from dpmodels.privacy import Adjacency, GaussianEvent, LaplaceEvent
from dpmodels.released import AnyRelease, CountsRelease, MomentsRelease
from dpmodels.typing import Floats

Distance = Callable[[Floats], float]

# Releases are rounded to floating point after the noise is added.
_ROUNDING: Final = 1e-9
# A row orthogonal to all others, which share one direction: directions drawn by a density move most
# there, and so does the normalising constant.
_TURNED: Final = ("orthogonal row", "among its like")


@dataclass(frozen=True, repr=False)
class Coupled:
    """Distances of releases from neighbours with the same noise.

    Attributes
    ----------
    largest : float
        The largest distance.
    limit : float
        The declared sensitivity, in the same unit.
    pairs : int
        Number of pairs.
    worst : str
        Name of the pair with the largest distance.
    findings : tuple of Finding
        Runs that raised an error or had another shape for a neighbour.
    """

    largest: float
    limit: float
    pairs: int
    worst: str
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> str:
        """Either "consistent" or "VIOLATION"."""
        return "VIOLATION" if self.largest > self.limit * (1 + _ROUNDING) else "consistent"

    def tidy(self) -> pd.DataFrame:
        """Return the result as one row."""
        line = {"verdict": self.verdict} | vars(self) | {"findings": len(self.findings)}
        return pd.DataFrame([line])

    def __repr__(self) -> str:
        return (
            f"<Coupled {self.verdict}: {self.largest:.6g} of {self.limit:.6g} declared, "
            f"{self.pairs:,} pairs>"
        )


@checked_keywords("dp.audit.coupled")
def coupled(
    recipe: Recipe,
    pairs: Sequence[Pair] | None = None,
    *,
    sensitivity: float | None = None,
    distance: Distance | None = None,
    seed: int = 1,
) -> Coupled:
    """Release both tables of each pair with the same noise, and compare.

    Parameters
    ----------
    recipe : callable
        From a table to a released value, with noise of this package
        (`dpmodels.noise.source`), or from a table and a seed. Or a verb with
        its arguments, as for :func:`dpmodels.audit.verb.audit`, whose
        mechanism adds noise of a planned scale.
    pairs : sequence of Pair, optional
        Neighbours. For a verb, by default more than a thousand pairs derived from
        its formula and codebook. A table in several pairs is released once.
    sensitivity : float, optional
        The largest allowed distance. For a verb it is the inverse of its planned
        multiplier, in units of the noise scales.
    distance : callable, optional
        From the difference of two releases, a vector, to a number; its
        Euclidean length by default.
    seed : int
        Seed of the noise.

    Returns
    -------
    Coupled

    Raises
    ------
    ArgumentError
        If the sensitivity is missing, or a verb's mechanism does not add noise
        of one planned distribution to a statistic.

    Examples
    --------
    >>> import functools
    >>> import dpmodels as dp
    >>> cb = dp.codebook(a=(0, 1), b=(0, 1))
    >>> verb = functools.partial(dp.dp_pca, "~ a + b", codebook=cb, eps=1, delta=1e-6)
    >>> result = coupled(verb)
    >>> result.verdict, result.pairs > 1000, bool(result.largest > 0.9 * result.limit)
    ('consistent', True, True)
    """
    if isinstance(recipe, functools.partial) and "codebook" in recipe.keywords:
        recipe = verb_recipe(recipe)
    if isinstance(recipe, VerbRecipe):
        if pairs is None:
            pairs = suggested(recipe, neighbouring_tables)
        return _compared(_planned(recipe, seed), pairs)
    if pairs is None or sensitivity is None:
        raise ArgumentError(
            "pairs= or sensitivity= is missing: write coupled(recipe, pairs, sensitivity=1.0), or "
            "give a verb with its arguments"
        )
    return _compared(_given(recipe, seed, sensitivity, distance or _length), pairs)


class _Measure(NamedTuple):
    """The release of a table, the distance of two releases, and its limit."""

    release: Callable[[object], Floats]
    distance: Distance
    limit: Callable[[], float]


def _length(difference: Floats) -> float:
    return float(np.linalg.norm(difference))


def _given(recipe: Recipe, seed: int, sensitivity: float, distance: Distance) -> _Measure:
    takes_seed = _parameters(recipe) >= 2

    def release(rows: object) -> Floats:
        if takes_seed:
            return released(recipe(rows, seed))  # type: ignore[call-arg]
        with simulation(seed=seed):
            return released(recipe(rows))

    return _Measure(release, distance, lambda: sensitivity)


def _parameters(recipe: Recipe) -> int:
    try:
        parameters = inspect.signature(recipe).parameters.values()
    except (TypeError, ValueError):
        return 1
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(
        parameter.kind in positional and parameter.default is parameter.empty
        for parameter in parameters
    )


def _planned(recipe: VerbRecipe, seed: int) -> _Measure:
    """Measure a verb's release in units of its noise scales: L1 for Laplace noise, else L2."""
    events: list[GaussianEvent | LaplaceEvent] = []

    def release(rows: object) -> Floats:
        measurement = recipe.measurement(rows)
        noisy = measurement.release(seeded(seed))
        (event,) = noisy.events if len(noisy.events) == 1 else (None,)
        if not isinstance(event, GaussianEvent | LaplaceEvent):
            raise ArgumentError(_NOT_ADDED.format(name=noisy.info.name))
        events.append(event)
        return _in_scales(noisy, measurement.joint.plan, math.sqrt(2) if norm() == 1 else 1.0)

    def norm() -> int:
        return 1 if isinstance(events[0], LaplaceEvent) else 2

    def distance(difference: Floats) -> float:
        return float(np.linalg.norm(difference, norm()))

    def limit() -> float:
        if not events:  # Every table was refused
            return math.inf
        # An event is in units of one row, and a person has several.
        n_positions = recipe.request.adjacency.places
        return float(n_positions * events[0].count ** (1 / norm()) / events[0].multiplier)

    return _Measure(release, distance, limit)


_NOT_ADDED: Final = (
    "{name} does not add noise of one planned distribution to one statistic, so coupled runs "
    "cannot test its guarantee: use dp.audit(...)"
)


def _in_scales(release: AnyRelease, plan: PlanOfStrategy, sd: float) -> Floats:
    """Return the independent numbers of a release in units of noise scales with sd `sd`."""
    match release:
        case CountsRelease():
            return np.asarray(release.values * plan.units_per_row / plan.scale)
        case MomentsRelease() if math.isfinite(release.noise.diagonal):
            noise, size = release.noise, len(release.second)
            off_diagonal = release.second[np.triu_indices(size, 1)] / noise.off
            parts = [[release.count / noise.count], np.diagonal(release.second) / noise.diagonal]
            total = [] if release.total is None else [release.total / noise.mean]
            return np.concatenate([*parts, off_diagonal, *total]) * sd
    raise ArgumentError(_NOT_ADDED.format(name=release.info.name))


def _compared(measure: _Measure, pairs: Sequence[Pair]) -> Coupled:
    findings: list[Finding] = []
    releases: dict[int, Floats | None] = {}

    def release_once(table: object) -> Floats | None:
        """Release a table once; None if that raises an error."""
        if id(table) not in releases:
            try:
                releases[id(table)] = measure.release(table)
            except ArgumentError:
                raise
            except Exception as error:
                findings.append(Finding("raised", f"The recipe raises {type(error).__name__}."))
                releases[id(table)] = None
        return releases[id(table)]

    largest, worst = 0.0, ""
    for pair in pairs:
        left, right = release_once(pair.rows), release_once(pair.neighbour)
        if left is None or right is None:
            continue
        if left.shape != right.shape:
            findings.append(Finding("shape", f"The release has another shape: {pair.name}."))
            continue
        distance = measure.distance(right - left)
        if not distance <= largest:
            largest, worst = distance, pair.name
    return Coupled(largest, measure.limit(), len(pairs), worst, tuple(findings))


def worst_pair(recipe: VerbRecipe) -> Pair:
    """Return the pair for which the releases of a verb are expected to differ most.

    The first pair of which only one table is refused, or whose public numbers of rows differ. Else,
    for noise added to a statistic, the pair with the largest distance in coupled runs; for other
    mechanisms a row orthogonal to many equal rows.
    """
    relation = recipe.request.adjacency
    pairs = suggested(recipe, worst_pairs)
    ingestion = ingestion_pairs(pairs[0], relation, lines=recipe.csv == "lines")
    distinct = (pair for pair in (*ingestion, *pairs) if recipe.distinguishes(pair))
    distinguished = next(distinct, None)
    if distinguished is not None:
        return distinguished
    try:
        return max((*pairs, *ingestion), key=lambda pair: coupled(recipe, [pair]).largest)
    except ArgumentError:
        return next(pair for pair in pairs if all(word in pair.name for word in _TURNED))


def suggested(recipe: VerbRecipe, make: Callable[..., tuple[Pair, ...]]) -> tuple[Pair, ...]:
    """Return the pairs for a verb's arguments; for persons, all rows of one person differ."""
    relation = recipe.request.adjacency
    pairs = make(recipe.variables, recipe.request.codebook, relation.name)
    if relation.person is None:
        return pairs
    n_rows = relation.rows if isinstance(relation.rows, int) else 2
    return of_persons(pairs, n_rows, relation.person)


# Neighbours that differ in the representation of a record: its identity, its file, its column's
# type.
#
# Each changes one record, or all records of one person, so that a reader may see more changes: ids
# that compare equal as numbers, line breaks in a quoted cell, a missing cell that changes the type
# of its column.

Columns = dict[str, list[object]]
_LINES: Final = 12  # a choice
_FREE_TEXT: Final = "free_text"
_ID: Final = 202401010000000000
# The ids of two groups of rows before a person changes, and after.
_IDENTITIES: Final[tuple[tuple[str, tuple[object, object], tuple[object, object]], ...]] = (
    ("ids of 18 digits", (_ID, _ID + 1), (_ID, 7)),
    ("an id with a space after it", ("A1", "A1 "), ("B", "B")),
    ("ids that spell one number", ("1.1", "1.10"), ("1.1", "B")),
    ("an id that spells a missing value", ("B", "NA"), ("B", "C")),
)


class CSVFile(PathLike[str]):
    """A temporary CSV file of these columns, deleted with this object."""

    def __init__(self, columns: Columns) -> None:
        text = io.StringIO()
        csv.writer(text).writerows([columns, *zip(*columns.values(), strict=True)])
        self._folder = TemporaryDirectory()
        self._path = Path(self._folder.name, "rows.csv")
        self._path.write_text(text.getvalue(), encoding="utf-8", newline="")

    def __fspath__(self) -> str:
        return str(self._path)


def ingestion_pairs(pair: Pair, relation: Adjacency, *, lines: bool = False) -> tuple[Pair, ...]:
    """Return pairs from the rows of another pair, whose tables are mappings of columns.

    CSV files are omitted with `lines`, where every line is declared to be a record.
    """
    columns = max(pair.rows, pair.neighbour, key=lambda table: len(next(iter(table.values()))))
    pairs = [_types(columns, pair, relation.person)]
    if not lines:
        pairs.append(_files(columns, pair, relation.person))
    if relation.person is not None:
        pairs += _identities(columns, pair, relation.person)
    return tuple(pairs)


def _types(columns: Columns, pair: Pair, person: str | None) -> Pair:
    """Return columns of integers, which one missing cell converts to floats."""
    cells = {name: np.resize([1, 2], _size(columns)).tolist() for name in columns}
    cells |= {name: columns[name] for name in columns if name == person}
    start = pd.DataFrame(cells if pair.adjacency == "replace" else _without_last(cells))
    missing = {name: [*cells[name][:-1], None] for name in cells if name != person}
    name = "a missing cell among whole numbers"
    return Pair(start, pd.DataFrame({**cells, **missing}), pair.adjacency, name)


def _files(columns: Columns, pair: Pair, person: str | None) -> Pair:
    """Return files whose last record has a quoted cell with lines that look like records."""
    last = {name: cells[-1] for name, cells in columns.items()}
    identities = [{} if person is None else {person: f"line {line}"} for line in range(_LINES)]
    records = [[*{**last, **identity}.values(), ""] for identity in identities]
    text = "\n".join(["", *(",".join(map(str, record)) for record in records)])
    with_text: Columns = {**columns, _FREE_TEXT: [""] * _size(columns)}
    quoted: Columns = {**with_text, _FREE_TEXT: [*with_text[_FREE_TEXT][:-1], text]}
    start = with_text if pair.adjacency == "replace" else _without_last(with_text)
    return Pair(CSVFile(start), CSVFile(quoted), pair.adjacency, "line breaks in a quoted cell")


def _identities(columns: Columns, pair: Pair, person: str) -> Iterator[Pair]:
    """Yield tables of a person with one row and one with eight, one of which changes."""
    groups = np.repeat([0, 1, 2], [1, 8, 1])
    cells = {name: [column[-1 - group] for group in groups] for name, column in columns.items()}
    for name, before, after in _IDENTITIES:
        third = 5 if isinstance(before[0], int) else "D"
        ids, changed = ([(*two, third)[group] for group in groups] for two in (before, after))
        start = {**cells, person: ids}
        if pair.adjacency == "replace":
            yield Pair(start, {**cells, person: changed}, name=name)
        else:
            unchanged = [at for at, identity in enumerate(ids) if identity == changed[at]]
            fewer = {key: [column[at] for at in unchanged] for key, column in start.items()}
            yield Pair(fewer, start, pair.adjacency, name)


def _size(columns: Columns) -> int:
    return len(next(iter(columns.values())))


def _without_last(columns: Columns) -> Columns:
    return {name: cells[:-1] for name, cells in columns.items()}
