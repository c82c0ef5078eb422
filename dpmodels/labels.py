"""Names of components, labels of arrays, and how they are printed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr
    from numpy.typing import NDArray


def component_names(count: int) -> list[str]:
    """Return ``PC1, PC2, ...``.

    >>> component_names(2)
    ['PC1', 'PC2']
    """
    return [f"PC{number}" for number in range(1, count + 1)]


def plain(text: str) -> str:
    r"""One line without characters that could act on a terminal or a page.

    Runs of white space become one space; what does not print (control characters, escape sequences,
    direction overrides) becomes its backslash code.

    >>> plain("two\n lines"), plain("\x1b[31mred")
    ('two lines', '\\x1b[31mred')
    """
    line = " ".join(text.split())
    if line.isprintable():
        return line
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in line
    )


def square(matrix: NDArray[np.generic], names: Sequence[str], name: str) -> xr.DataArray:
    """Label a matrix ``variable × variable_``; the array is copied."""
    return with_labels(matrix, name, variable=names, variable_=names)


def with_labels(values: NDArray[np.generic], name: str, **labels: Sequence[str]) -> xr.DataArray:
    """Label an array, whose dimensions are named in order; the array is copied."""
    import xarray as xr

    coords = _coordinates(tuple((dim, tuple(names)) for dim, names in labels.items()))
    return xr.DataArray(values.copy(), coords, tuple(labels), name)


@lru_cache(maxsize=64)
def _coordinates(labels: tuple[tuple[str, tuple[str, ...]], ...]) -> xr.Coordinates:
    """Index labels once: for a small array that is the slowest step."""
    import xarray as xr

    return xr.Coordinates({dim: list(names) for dim, names in labels})
