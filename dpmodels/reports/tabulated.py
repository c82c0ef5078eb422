"""Counts laid out with the last factor across."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.report import Row, Section, count
from dpmodels.results.call import TableCall

# Lines and columns of a page: choices.
SHOWN_ROWS = 40
SHOWN_COLUMNS = 12


def crossed(facts: TableCall, counts: NDArray[Any], *, upright: bool = False) -> Section:
    """Set the last factor across, or the others where `upright`, with totals."""
    counts = counts.reshape(-1, facts.shape[-1])
    names = [" / ".join(facts.factors[:-1]), facts.factors[-1]]
    labels = [_joined(facts.levels[:-1]), list(map(str, facts.levels[-1]))]
    if upright:
        counts, names, labels = counts.T, names[::-1], labels[::-1]
    counts = np.vstack([counts, counts.sum(axis=0)])
    counts = np.column_stack([counts, counts.sum(axis=1)])
    lines = [*range(min(len(labels[0]), SHOWN_ROWS)), len(labels[0])]
    heads = [*labels[0], "Total"]
    rows = tuple(Row(heads[i], tuple(map(count, counts[i].tolist()))) for i in lines)
    return Section(" by ".join(names), (*labels[1], "Total"), rows)


def _joined(levels: tuple[tuple[object, ...], ...]) -> list[str]:
    """Name the combinations of levels."""
    names = [""]
    for own in levels:
        names = [f"{name} / {level}" if name else str(level) for name in names for level in own]
    return names
