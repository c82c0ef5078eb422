"""Frames of what is told of groups, each by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from dpmodels.errors import ArgumentError, said
from dpmodels.results.call import TableCall


def by_group(
    facts: TableCall, group: object, columns: Callable[[int], Mapping[str, Any]]
) -> pd.DataFrame:
    """Return columns of one group, or of each with its levels; they are made of its place."""
    groups = _groups(facts)
    if groups is None:
        return pd.DataFrame(columns(place_of(facts, group)))
    places = range(len(groups)) if group is None else [place_of(facts, group)]
    frames = [pd.DataFrame(columns(place)) for place in places]
    for place, frame in zip(places, frames, strict=True):
        key = groups[place] if isinstance(groups[place], tuple) else (groups[place],)
        for at, (name, value) in enumerate(zip(groups.names, key, strict=True)):
            frame.insert(at, name, value)
    return pd.concat(frames, ignore_index=True)


def place_of(facts: TableCall, group: object) -> int:
    """Return the place of a group among those of all factors but the last."""
    groups = _groups(facts)
    if groups is None:
        if group is None:
            return 0
        raise ArgumentError("group= is given, and the formula has no groups: leave it out")
    try:
        return int(groups.get_loc(group))  # type: ignore[arg-type]
    except (KeyError, TypeError, pd.errors.InvalidIndexError):
        factors = ", ".join(facts.factors[:-1])
        raise ArgumentError(
            f"group={said(group)} is not one of the groups of {factors}; write one of them, such "
            f"as group={groups[0]!r}"
        ) from None


def _groups(facts: TableCall) -> pd.Index | None:
    return TableCall(facts.factors[:-1], facts.levels[:-1]).index if facts.factors[1:] else None
