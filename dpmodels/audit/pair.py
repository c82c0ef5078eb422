"""A pair of neighbouring tables that an adversary has to distinguish."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dpmodels.privacy import adjacency as relation
from dpmodels.privacy.budget import AdjacencyName

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
