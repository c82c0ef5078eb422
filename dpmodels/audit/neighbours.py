"""Worst-case neighbours for a formula and a codebook.

For rows x and y of a ball ``x xᵀ`` against 0 moves a second moment by 1,
orthogonal rows by √2, rows at 45° a weighted one most; opposite corners move
means; a row with a missing value, an unlisted level or a value beyond its
bounds must have no effect, or no larger one than other rows. They are tables of
variables, so that an audit includes formula, frames, design and lattice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np

from dpmodels.arguments import checked_keywords
from dpmodels.codebook import Codebook
from dpmodels.dates import Date, text_of_day
from dpmodels.errors import ArgumentError
from dpmodels.privacy import adjacency as relation
from dpmodels.privacy.budget import AdjacencyName
from dpmodels.variables import Categorical, Numeric, Variable

PERSON: Final = "person"


@dataclass(frozen=True, repr=False, eq=False)
class Pair:
    """Two tables that differ by one row.

    The rows are artificial: an audit needs no private table, and proves nothing
    about other tables.

    Parameters
    ----------
    rows, neighbour : table
        Anything the recipe accepts: frames, mappings of columns, arrays.
    adjacency : {"replace", "add-remove"}
        How they differ: one row changed, or one more or fewer.
    name : str
        A description of the pair for the report.

    Raises
    ------
    ArgumentError
        If the adjacency is unknown.

    Examples
    --------
    >>> Pair([0.0, 0.0], [0.0, 1.0], name="0 against 1")
    <Pair '0 against 1', replace one row, n public>
    """

    rows: Any
    neighbour: object
    adjacency: AdjacencyName = "replace"
    name: str = ""

    def __post_init__(self) -> None:
        relation(self.adjacency)

    def __repr__(self) -> str:
        return f"<Pair {self.name!r}, {relation(self.adjacency).describe()}>"


def of_persons(pairs: Sequence[Pair], n_rows: int, person: str = PERSON) -> tuple[Pair, ...]:
    """Return pairs in which the row that differs is repeated as a person with `n_rows` rows.

    Every other row is a person with one row. The tables are mappings of columns whose last row
    differs, as in `worst_pairs`; a table in several pairs is built once.

    >>> (pair,) = of_persons([Pair({"a": [0, 1]}, {"a": [0, 2]})], 3)
    >>> pair.rows
    {'a': [0, 1, 1, 1], 'person': ['0', '1', '1', '1']}
    """
    tables: dict[int, dict[str, list[object]]] = {}

    def side(table: Any, n_common: int) -> dict[str, list[object]]:
        if id(table) not in tables:
            counts = [1] * n_common + [n_rows] * (_size(table) - n_common)
            source_rows = np.repeat(np.arange(len(counts)), counts)
            columns = {
                name: [column[position] for position in source_rows]
                for name, column in table.items()
            }
            tables[id(table)] = {**columns, person: [str(position) for position in source_rows]}
        return tables[id(table)]

    result = []
    for pair in pairs:
        common = min(_size(table) for table in (pair.rows, pair.neighbour))
        n_common = common - 1 if pair.adjacency == "replace" else common
        left, right = side(pair.rows, n_common), side(pair.neighbour, n_common)
        result.append(Pair(left, right, pair.adjacency, f"{pair.name}, a person's"))
    return tuple(result)


def _size(table: Any) -> int:
    return len(next(iter(table.values())))


Row = dict[str, object]

_CROWD: Final = 12  # a choice: equal rows, so that one more moves little
_MOST_DRAWS: Final = 20  # a choice: draws for each distinct row
_FAR: Final = 1e6  # times the length of the range
_UNLISTED: Final = "(not a level)"


@checked_keywords("dp.audit.worst_pairs")
def worst_pairs(
    formula: str, codebook: Codebook, adjacency: AdjacencyName = "replace"
) -> tuple[Pair, ...]:
    """Construct the pairs of tables that an audit of a formula should try.

    Parameters
    ----------
    formula : str
        Names variables of the codebook; ``.`` means all.
    codebook : Codebook
        Public bounds and levels, from which the tables are constructed.
    adjacency : {"replace", "add-remove"}
        How the tables of a pair differ.

    Returns
    -------
    tuple of Pair
        Each in two contexts: with a few other rows, and among many equal rows.

    Raises
    ------
    ArgumentError
        If the formula names no variable of the codebook.

    Examples
    --------
    >>> import dpmodels as dp
    >>> pairs = worst_pairs("~ a + b", dp.codebook(a=(0, 1), b=(0, 1)))
    >>> pairs[0]
    <Pair 'a row against none, few others', replace one row, n public>
    """
    relation(adjacency)
    rows = _rows(_variables(formula, codebook))
    few = [rows["low"], rows["high"], rows["half"]]
    crowd = [rows["high"]] * _CROWD
    pairs = []
    for context, description in ((few, "few others"), (crowd, "among its like")):
        for name, *changed in _SWAPS if adjacency == "replace" else _MORE:
            if set(changed) <= set(rows):
                tables = [_table([*context, rows[row]]) for row in changed]
                before = _table(context) if len(changed) == 1 else tables[0]
                pairs.append(Pair(before, tables[-1], adjacency, f"{name}, {description}"))
    return tuple(pairs)


_SWAPS: Final[tuple[tuple[str, ...], ...]] = (
    ("a row against none", "high", "missing"),
    ("opposite corners", "low", "high"),
    ("orthogonal rows", "high", "half"),
    ("rows at 45 degrees", "high", "near"),
    ("one variable moved", "low", "first"),
    ("beyond the bounds against none", "beyond", "missing"),
    ("infinite against none", "infinite", "missing"),
    ("an unlisted level", "high", "unlisted"),
)
_MORE: Final[tuple[tuple[str, ...], ...]] = (
    ("one row more", "high"),
    ("an opposite row more", "low"),
    ("an orthogonal row more", "half"),
    ("a row beyond the bounds more", "beyond"),
    ("an infinite row more", "infinite"),
    ("a row with missing values more", "missing"),
    ("an unlisted level more", "unlisted"),
)


def neighbouring_tables(
    formula: str, codebook: Codebook, adjacency: AdjacencyName = "replace", n_rows: int = 48
) -> tuple[Pair, ...]:
    """Construct many pairs for coupled runs, with each table in several of them.

    Compares `n_rows` different rows: those of :func:`worst_pairs`, then random corners and inner
    points. That is ``n_rows (n_rows - 1) / 2`` pairs under ``"replace"``, else `n_rows`; fewer if
    the codebook has fewer different rows.
    """
    relation(adjacency)
    variables = _variables(formula, codebook)
    by_name = _rows(variables)
    rng = np.random.default_rng(3)
    distinct = {repr(row): (name, row) for name, row in by_name.items()}
    for _ in range(_MOST_DRAWS * n_rows):
        row = {n: _random_value(v, rng) for n, v in variables.items()}
        if len(distinct) < n_rows:
            distinct.setdefault(repr(row), (f"row {len(distinct)}", row))
    context = [by_name["low"], by_name["high"], by_name["half"]]
    tables = [(name, _table([*context, row])) for name, row in distinct.values()][:n_rows]
    if adjacency == "add-remove":
        base = _table(context)
        return tuple(Pair(base, table, adjacency, f"{name} more") for name, table in tables)
    return tuple(
        Pair(left[1], right[1], name=f"{left[0]} against {right[0]}")
        for left, right in combinations(tables, 2)
    )


def _variables(formula: str, codebook: Codebook) -> Mapping[str, Variable]:
    names = set(re.findall(r"[^\W\d]\w*", formula))
    all_variables = re.search(r"(?<![\w.])\.(?![\w.])", formula) is not None
    selected = {
        name: variable for name, variable in codebook.items() if all_variables or name in names
    }
    if not selected:
        raise ArgumentError(
            f"formula {formula!r} names no variable of the codebook; the worst cases use its "
            "bounds and levels"
        )
    return selected


def _rows(variables: Mapping[str, Variable]) -> dict[str, Row]:
    """Return rows by name: corners of the declared ranges, and rows that break them."""
    extremes = {name: _extremes(variable) for name, variable in variables.items()}
    names, numeric = list(extremes), [n for n, v in variables.items() if isinstance(v, Numeric)]
    low = {name: bounds[0] for name, bounds in extremes.items()}
    high = {name: bounds[1] for name, bounds in extremes.items()}
    rows = {
        "low": low,
        "high": high,
        "half": {name: extremes[name][position % 2] for position, name in enumerate(names)},
        "first": {**low, names[0]: high[names[0]]},
        "missing": {**high, names[-1]: None},
    }
    if numeric:
        first = numeric[0]
        rows["near"] = {**high, first: (low[first] + high[first]) / 2}
        rows["beyond"] = {
            n: high[n] + _FAR * (high[n] - low[n]) if n in numeric else high[n] for n in names
        }
        rows["infinite"] = {n: float("inf") if n in numeric else high[n] for n in names}
    for name, variable in variables.items():
        if isinstance(variable, Categorical | Date):
            rows["unlisted"] = {**high, name: _UNLISTED}
    return rows


def _extremes(variable: Variable) -> tuple[Any, Any]:
    if isinstance(variable, Numeric):
        return variable.lower, variable.upper
    if isinstance(variable, Date):
        return str(variable.lower), str(variable.upper)
    return variable.levels[0], variable.levels[-1]


def _random_value(variable: Variable, rng: np.random.Generator) -> object:
    if isinstance(variable, Categorical):
        return variable.levels[int(rng.integers(len(variable.levels)))]
    if isinstance(variable, Date):
        first, last = variable.days
        return text_of_day(float(rng.integers(int(first), int(last), endpoint=True)))
    fraction = float(rng.choice([0.0, 1.0, rng.uniform()]))
    return variable.lower + fraction * (variable.upper - variable.lower)


def _table(rows: list[Row]) -> dict[str, list[object]]:
    return {name: [row[name] for row in rows] for name in rows[0]}
