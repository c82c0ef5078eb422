"""Names on pictures, short and distinct, and the labelled tables that they come from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np

from dpmodels.errors import ArgumentError

if TYPE_CHECKING:
    import xarray as xr

_DOTS = "..."
_HEAD = 4  # first characters kept of names that differ in the middle


def short_names(names: Sequence[str], most: int = 24) -> tuple[str, ...]:
    """Names with the middle of long ones left out, still all distinct.

    At most `most` characters, which are 16 at least. Those that would look alike
    show where they differ, or end with their number among the look-alikes.
    """
    whole = [" ".join(name.split()) for name in names]
    short = [_without_middle(name, most) for name in whole]
    for form in {one for one in short if short.count(one) > 1}:
        places = [i for i, one in enumerate(short) if one == form]
        for i, name in zip(places, _told_apart([whole[i] for i in places], most), strict=True):
            short[i] = name
    return tuple(
        f"{one[: most - 5]} #{short[:i].count(one) + 1}" if short.count(one) > 1 else one
        for i, one in enumerate(short)
    )


def thinned(count: int, room: float) -> range:
    """Positions of the ticks to label, equally spaced, at most ``room`` of them."""
    step = max(1, -(-count // max(1, int(room))))
    return range(0, count, step)


def _without_middle(name: str, most: int) -> str:
    if len(name) <= most:
        return name
    head = (most - len(_DOTS) + 1) // 2
    return name[:head] + _DOTS + name[len(name) - (most - len(_DOTS) - head) :]


def _told_apart(names: Sequence[str], most: int) -> list[str]:
    """Show each name from the first character where they differ."""
    same = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    start = len(list(same))
    stop = start + most - _HEAD - 2 * len(_DOTS)
    return [name[:_HEAD] + _DOTS + name[start:stop] + _DOTS for name in names]


_DIMS = ("variable", "component")


def ordered(table: xr.DataArray) -> xr.DataArray:
    """Transpose the table to ``variable`` by ``component``."""
    if set(table.dims) != set(_DIMS) or 0 in table.shape:
        raise ArgumentError(
            f"the table has dimensions {tuple(map(str, table.dims))}: give a non-empty DataArray "
            f"with dimensions {_DIMS}"
        )
    return table.transpose(*_DIMS)


def labels(table: xr.DataArray, dim: str) -> list[str]:
    """List the labels along a dimension; positions from 1 where it has none."""
    if dim in table.coords:
        return [str(value) for value in np.asarray(table.coords[dim])]
    return [str(i + 1) for i in range(table.sizes[dim])]


def positions(labels: Sequence[str], chosen: Sequence[int | str]) -> list[int]:
    """Positions of components given by position (0 is the first) or by name."""
    found = []
    for one in chosen:
        place = labels.index(one) if isinstance(one, str) and one in labels else one
        if isinstance(place, str) or not -len(labels) <= place < len(labels):
            raise ArgumentError(
                f"component {one!r} is not in the table: write a position below {len(labels)} "
                f"or one of {', '.join(labels[:6])}{', ...' if len(labels) > 6 else ''}"
            )
        found.append(int(place) % len(labels))
    return found
