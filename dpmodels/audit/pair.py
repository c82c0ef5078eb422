"""A pair of neighbouring tables: what an adversary has to tell apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpmodels.privacy import adjacency as relation
from dpmodels.privacy.budget import AdjacencyName


@dataclass(frozen=True, repr=False, eq=False)
class Pair:
    """Two tables that differ by one row.

    The rows are the auditor's own inventions: an audit proves nothing about a
    table that is not in it, and needs no private one.

    Parameters
    ----------
    rows, neighbour : table
        Anything the recipe takes: frames, mappings of columns, arrays.
    adjacency : {"replace", "add-remove"}
        How they differ: one row changed, or one more or fewer.
    name : str
        What the pair is like, for the report.

    Raises
    ------
    ArgumentError
        If the adjacency is neither word.

    Examples
    --------
    >>> Pair([0.0, 0.0], [0.0, 1.0], name="0 against 1")
    <Pair '0 against 1', replace one row, n public>
    """

    rows: Any
    neighbour: Any
    adjacency: AdjacencyName = "replace"
    name: str = ""

    def __post_init__(self) -> None:
        relation(self.adjacency)

    def __repr__(self) -> str:
        return f"<Pair {self.name!r}, {relation(self.adjacency).describe()}>"
