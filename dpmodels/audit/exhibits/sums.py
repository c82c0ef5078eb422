"""Sums and counts of one column: small faults that everybody can make.

All claim ε with Laplace noise, which is right if the scale is the L1
sensitivity of everything released together, divided by ε.

The faults
    `unclipped_row`: values are declared to lie in [0, 1] and nothing holds
    them there. A value of 3 moves the sum by 3: the true ε is 3ε.
    `budget_slip`: a sum and a count, each with all of ε. A row added moves
    both by 1, and where both releases lie above their centres the ratio of the
    densities is e^{2ε}: the true ε is 2ε.
    `exact_count`: a sum, and beside it the number of rows as it is, under
    neighbours that differ by a row. No ε is enough.
    `bounds_from_rows`: the noise is scaled by the least and the largest value
    found. One outlier makes it a hundred times wider: a release far out has
    probability near 1/2 with the outlier and less than e^{-50} without.
    `dp_hist` of dp-stats takes the edges of its bins so.

References
----------
Dwork, McSherry, Nissim and Smith (2006), "Calibrating noise to sensitivity in
private data analysis." TCC 2006.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from dpmodels.audit.exhibits.exhibit import Batched, Exhibit
from dpmodels.audit.pair import Pair
from dpmodels.typing import Floats

EPS = 1.0


def _laplace(
    rows: Floats,
    generator: np.random.Generator,
    runs: int,
    *,
    statistic: Callable[[Floats], Floats],
    scale: Callable[[Floats], tuple[float, ...]],
) -> Floats:
    """Release a statistic with Laplace noise, one scale an entry: shape (runs, k)."""
    exact, scales = statistic(rows), np.array(scale(rows))
    return exact + scales * generator.laplace(size=(runs, exact.size))


def _total(rows: Floats) -> Floats:
    return np.array([rows.sum()])


def _clipped_total(rows: Floats) -> Floats:
    return _total(np.clip(rows, 0.0, 1.0))


def _total_and_count(rows: Floats) -> Floats:
    return np.array([rows.sum(), float(len(rows))])


def _unit(rows: Floats) -> tuple[float, ...]:
    return (1 / EPS,)


def _both_whole(rows: Floats) -> tuple[float, ...]:
    return (1 / EPS, 1 / EPS)


def _both_halves(rows: Floats) -> tuple[float, ...]:
    return (2 / EPS, 2 / EPS)


def _first_only(rows: Floats) -> tuple[float, ...]:
    return (1 / EPS, 0.0)


def _found_width(rows: Floats) -> tuple[float, ...]:
    return (float(rows.max() - rows.min()) / EPS,)


def _recipe(
    statistic: Callable[[Floats], Floats], scale: Callable[[Floats], tuple[float, ...]]
) -> Batched:
    return Batched(partial(_laplace, statistic=statistic, scale=scale))


_ROWS = np.linspace(0.0, 0.01, 11)
UNCLIPPED = Exhibit(
    name="unclipped_row",
    fault="a value outside its declared range is let through",
    source="a slip",
    recipe=_recipe(_total, _unit),
    pair=Pair(
        rows=np.append(_ROWS, 3.0), neighbour=np.append(_ROWS, 0.0), name="a value of 3 in [0, 1]"
    ),
    eps=EPS,
    delta=0.0,
    runs=20_000,
    loss=3 * EPS,
)
BOUNDS = replace(
    UNCLIPPED,
    name="bounds_from_rows",
    fault="the range is read off the rows",
    source="dp-stats, the bin edges of dp_hist",
    recipe=_recipe(_total, _found_width),
    pair=Pair(rows=np.append(_ROWS, 1.0), neighbour=np.append(_ROWS, 0.0), name="an outlier"),
    loss=math.inf,
)
SLIP = replace(
    UNCLIPPED,
    name="budget_slip",
    fault="two releases, each with the whole budget",
    recipe=_recipe(_total_and_count, _both_whole),
    pair=Pair(
        rows=np.append(_ROWS, 1.0),
        neighbour=_ROWS,
        adjacency="add-remove",
        name="a row of value 1 more",
    ),
    loss=2 * EPS,
)
COUNT = replace(
    SLIP,
    name="exact_count",
    fault="the number of rows is released as it is",
    recipe=_recipe(_total_and_count, _first_only),
    loss=math.inf,
)

_SOURCE = "Laplace noise of scale L1 sensitivity / eps"
_CLIPPED = _recipe(_clipped_total, _unit)
_SPLIT = _recipe(_total_and_count, _both_halves)
CORRECT = {
    exhibit.name: replace(exhibit, fault="", source=_SOURCE, recipe=recipe, loss=EPS)
    for exhibit, recipe in (
        (UNCLIPPED, _CLIPPED),
        (SLIP, _SPLIT),
        (COUNT, _SPLIT),
        (BOUNDS, _CLIPPED),
    )
}
