"""Rows of persons: faults where a person has several, and all of them are to be protected.

Rows have three columns: whose they are, a cell from 0, and a value in [0, 1]. All recipes claim ε
for a person of at most three rows that count, with Laplace noise for a sensitivity of 3; right is
to let three rows of each person count, whichever, before anything is summed [1]_.

`row_sensitivity`
    Three rows of a person count, and the noise is for one: the true ε is 3ε.
`capped_after_summing`
    Rows are summed by person and cell first, and each of these sums is held at 3. A person with
    three rows in every one of five cells moves five sums: the true ε is 5ε. Right is to choose a
    person's three rows before they are summed.
`key_from_values`
    Which of a person's rows count is drawn by a key, and the key is a checksum of the values, so
    that a run can be repeated. A person who changes one value draws other rows of everybody: with
    40 others, each with three rows of value 1 among six, the sum moves by 119, and the true ε is
    119/3 of the claim. Right is a key that no row has a part in.

References
----------
.. [1] Wilson, R. J., Zhang, C. Y., Lam, W., Desfontaines, D., Simmons-Marengo, D. and Gipson, B.
   (2020). "Differentially Private SQL with Bounded User Contribution." Proceedings on Privacy
   Enhancing Technologies 2020(2), 230-250.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from dpmodels.audit.neighbours import Pair
from dpmodels.typing import Floats
from exhibits.exhibit import LAPLACE, Batched, Exhibit

EPS = 1.0
MOST = 3  # rows of a person that count
CELLS = 5


def _noisy(
    rows: Floats,
    generator: np.random.Generator,
    runs: int,
    *,
    statistic: Callable[[Floats], Floats],
    sensitivity: float,
) -> Floats:
    exact = statistic(rows)
    return np.asarray(exact + generator.laplace(0.0, sensitivity / EPS, (runs, exact.size)))


def _recipe(statistic: Callable[[Floats], Floats], sensitivity: float) -> Batched:
    return Batched(partial(_noisy, statistic=statistic, sensitivity=sensitivity))


def _first(rows: Floats) -> Floats:
    """Keep the first rows of each person."""
    return _chosen(rows, 0)


def _chosen(rows: Floats, start: int) -> Floats:
    """Keep rows of each person from a place on, around to the first."""
    persons = [rows[rows[:, 0] == row] for row in np.unique(rows[:, 0])]
    return np.vstack([np.roll(person, -start, axis=0)[:MOST] for person in persons])


def _total(rows: Floats) -> Floats:
    return np.array([rows[:, 2].sum()])


def _by_cell(rows: Floats) -> Floats:
    return np.asarray(np.bincount(rows[:, 1].astype(int), rows[:, 2], CELLS), dtype=np.float64)


def _held_by_cell(rows: Floats) -> Floats:
    """Sum by person and cell, and hold each sum."""
    persons = (_by_cell(rows[rows[:, 0] == row]) for row in np.unique(rows[:, 0]))
    return np.asarray(sum(np.minimum(person, MOST) for person in persons))


def _drawn_by_values(rows: Floats) -> Floats:
    return _total(_chosen(rows, MOST * (int(rows[:, 2].sum()) % 2)))


def _person(name: int, cells: list[int], values: list[float]) -> Floats:
    return np.column_stack([np.full(len(cells), float(name)), cells, values])


_OTHERS = np.vstack([_person(i, [i % CELLS], [1.0]) for i in range(1, 5)])
_EVERYWHERE = _person(0, [*range(CELLS)] * MOST, [1.0] * (MOST * CELLS))
_HALVES = np.vstack([_person(i, [0] * 6, [1.0] * 3 + [0.0] * 3) for i in range(1, 41)])

_ROW = Exhibit(
    name="row_sensitivity",
    fault="noise for one row where a person has three",
    source="a slip",
    recipe=_recipe(lambda rows: _total(_first(rows)), 1.0),
    pair=Pair(
        np.vstack([_OTHERS, _EVERYWHERE]), _OTHERS, adjacency="add-remove", name="a person more"
    ),
    loss=MOST * EPS,
)
_AFTER = replace(
    _ROW,
    name="capped_after_summing",
    fault="a person's rows are held to three in each cell, not in all",
    recipe=_recipe(_held_by_cell, MOST),
    loss=CELLS * EPS,
)
_KEY = replace(
    _ROW,
    name="key_from_values",
    fault="the key that draws rows follows from the rows",
    recipe=_recipe(_drawn_by_values, MOST),
    pair=Pair(
        np.vstack([_HALVES, _person(0, [0] * 3, [1.0] * 3)]),
        np.vstack([_HALVES, _person(0, [0] * 3, [1.0, 1.0, 0.0])]),
        name="one value of one person",
    ),
    loss=float("nan"),
)
_KEY = replace(
    _KEY,
    loss=float(
        np.abs(np.subtract(*map(_drawn_by_values, (_KEY.pair.rows, _KEY.pair.neighbour))))[0]
    )
    * EPS
    / MOST,
)

EXHIBITS = {value.name: value for value in (_ROW, _AFTER, _KEY)}
_RIGHT = _recipe(lambda rows: _total(_first(rows)), MOST)
CORRECT = {
    _ROW.name: _ROW.mended(_RIGHT, LAPLACE),
    _AFTER.name: _AFTER.mended(_recipe(lambda rows: _by_cell(_first(rows)), MOST), LAPLACE),
    _KEY.name: _KEY.mended(_RIGHT, LAPLACE, loss=EPS / MOST),
}
