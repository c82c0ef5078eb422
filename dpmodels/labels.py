"""Names of components, where labels stand in arrays, and how they are printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr


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


def square(matrix: Any, names: Sequence[str], name: str) -> xr.DataArray:
    """Label a matrix ``variable × variable_``; the array is copied."""
    import xarray as xr

    labels = list(names)
    return xr.DataArray(matrix.copy(), [("variable", labels), ("variable_", labels)], name=name)
