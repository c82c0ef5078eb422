"""Names of components and where they stand in tables."""

from __future__ import annotations


def component_names(count: int) -> list[str]:
    """Return ``PC1, PC2, ...``.

    Examples
    --------
    >>> component_names(2)
    ['PC1', 'PC2']
    """
    return [f"PC{number}" for number in range(1, count + 1)]
