"""Audits for persons: the pairs and the lines of the registry, with a person for each row."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np

from dpmodels.audit.pair import Pair
from dpmodels.audit.registry import REGISTRY, Audited

PERSON: Final = "person"


def of_person(pair: Pair, rows: int) -> Pair:
    """Return tables in which the row that differs is a person with so many rows like it.

    Every other row is a person's of one row. The tables are mappings of columns whose last row
    differs, as those of `worst_pairs`.

    >>> own = of_person(Pair({"a": [0, 1]}, {"a": [0, 2]}), 3)
    >>> own.rows
    {'a': [0, 1, 1, 1], 'person': ['0', '1', '1', '1']}
    """
    common = min(_size(side) for side in (pair.rows, pair.neighbour))
    kept = common - 1 if pair.adjacency == "replace" else common
    one, other = (_repeated(side, kept, rows) for side in (pair.rows, pair.neighbour))
    return Pair(one, other, pair.adjacency, f"{pair.name}, a person's")


def of_persons(line: Audited, rows: Any) -> Audited:
    """Return the line of the registry that protects persons of `rows` rows, or of "mean"."""
    verb = partial(line.verb, person=PERSON, rows=rows)
    pair = of_person(line.pair, rows if isinstance(rows, int) else 2)
    return line._replace(verb=verb, worst=pair)


def _size(table: Any) -> int:
    return len(next(iter(table.values())))


def _repeated(table: Any, kept: int, rows: int) -> dict[str, list[Any]]:
    counts = [1] * kept + [rows] * (_size(table) - kept)
    at = np.repeat(np.arange(len(counts)), counts)
    own = {name: [column[place] for place in at] for name, column in table.items()}
    return {**own, PERSON: [str(place) for place in at]}


# Mechanisms that know persons of one kind alone.
_ONLY: Final = {"paired": "mean", "randomized_response": 2}

# At most two rows of a person, and all of them, in turn.
PERSONS: Final = tuple(
    of_persons(line, _ONLY.get(line.mechanism, 2 if turn % 2 else "mean"))
    for turn, line in enumerate(REGISTRY)
)
