"""Audits for persons: the pairs and the lines of the registry, with a person for each row."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from dpmodels.audit.pair import PERSON, of_persons
from dpmodels.audit.registry import REGISTRY, Audited


def for_persons(line: Audited, rows: Any) -> Audited:
    """Return the line of the registry that protects persons of `rows` rows, or of "mean"."""
    verb = partial(line.verb, person=PERSON, rows=rows)
    (pair,) = of_persons([line.pair], rows if isinstance(rows, int) else 2)
    return line._replace(verb=verb, worst=pair)


# Mechanisms that know persons of one kind alone.
_ONLY: Final = {"paired": "mean", "randomized_response": 2}

# At most two rows of a person, and all of them, in turn.
PERSONS: Final = tuple(
    for_persons(line, _ONLY.get(line.mechanism, 2 if turn % 2 else "mean"))
    for turn, line in enumerate(REGISTRY)
)
