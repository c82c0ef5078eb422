"""Labelled loadings as the pictures take them: variable by component."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpmodels.errors import ArgumentError

if TYPE_CHECKING:
    import xarray as xr

_DIMS = ("variable", "component")


def ordered(table: xr.DataArray) -> xr.DataArray:
    """Transpose the table to ``variable`` by ``component``.

    Raises
    ------
    ArgumentError
        If the table has other dimensions or an empty one.
    """
    if set(table.dims) != set(_DIMS) or 0 in table.shape:
        raise ArgumentError(
            f"the table has dimensions {tuple(map(str, table.dims))}: give a non-empty DataArray "
            f"with dimensions {_DIMS}"
        )
    return table.transpose(*_DIMS)


def names(table: xr.DataArray, dim: str) -> list[str]:
    """List the labels along a dimension; positions from 1 where it has none."""
    if dim in table.coords:
        return [str(value) for value in np.asarray(table.coords[dim])]
    return [str(i + 1) for i in range(table.sizes[dim])]


def positions(labels: Sequence[str], chosen: Sequence[int | str]) -> list[int]:
    """Positions of components given by position (0 is the first) or by name.

    Raises
    ------
    ArgumentError
        If one of them is not in the table.
    """
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
