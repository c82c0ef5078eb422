"""Names of components and where labels stand in tables and arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr


def component_names(count: int) -> list[str]:
    """Return ``PC1, PC2, ...``.

    Examples
    --------
    >>> component_names(2)
    ['PC1', 'PC2']
    """
    return [f"PC{number}" for number in range(1, count + 1)]


def square(matrix: Any, names: Sequence[str], name: str) -> xr.DataArray:
    """Label a matrix ``variable × variable_``; the array is copied."""
    import xarray as xr

    labels = list(names)
    return xr.DataArray(matrix.copy(), [("variable", labels), ("variable_", labels)], name=name)
