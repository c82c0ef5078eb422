"""Whole tables that agree with given margins: free of charge."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmodels.typing import Floats, Integers

# Of a table of more cells the margins are left as they come: a choice, of seconds.
MOST_CELLS = 10_000
# Of more rows the linear program would not know one from none.
MOST_ROWS = 10**9
# Rounds of the two projections, and what is near enough before counts are made whole, in rows.
ROUNDS, NEAR = 200, 1e-3


def agreeing(table: Floats, lines: Integers, columns: Integers) -> Integers:
    """Return whole counts near a table that are not negative and have the margins given.

    *Theorem.* There always are some where both margins are whole, not negative and have the same
    sum, and the linear program finds them. *Proof.* Line times column sum over the total is a
    solution in fractions. The constraints are those of flows from lines to columns, whose vertices
    are whole numbers.

    The nearest counts in fractions come first; of these the whole ones whose squared distance,
    made linear between whole numbers, is least.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, hstack

    near = fitted(table, lines.astype(np.float64), columns.astype(np.float64))
    floor = np.floor(near)
    left = (near - floor).ravel()
    # Up by one, up by more, down: what each costs a step in squared distance.
    cost = np.concatenate([1 - 2 * left, 3 - 2 * left, 1 + 2 * left])
    most = np.concatenate([np.ones(left.size), np.full(left.size, np.inf), floor.ravel()])
    places = np.arange(left.size)
    line, column = np.divmod(places, table.shape[1])
    ends = np.concatenate([line, table.shape[0] + column])
    sums = coo_array((np.ones(2 * left.size), (ends, np.tile(places, 2)))).tocsr()
    wanted = np.concatenate([lines - floor.sum(axis=1), columns - floor.sum(axis=0)])
    moved: Any = linprog(  # type: ignore[call-overload]
        cost,
        A_eq=hstack([sums, sums, -sums]),
        b_eq=wanted,
        bounds=np.column_stack([np.zeros(most.size), most]),
        method="highs-ds",
    )
    up, more, down = np.rint(moved.x).reshape(3, *table.shape)
    return np.asarray(floor + up + more - down).astype(np.int64)


def fitted(table: Floats, lines: Floats, columns: Floats) -> Floats:
    """Return nearly the nearest counts that are not negative and have the margins given.

    They are ``max(table + a + b, 0)``, a by line and b by column: each in turn makes its sums
    right, which climbs the concave dual function.
    """
    down = np.zeros((1, table.shape[1]))
    for _ in range(ROUNDS):
        across = _shifts(table + down, lines)[:, None]
        down = _shifts((table + across).T, columns)[None, :]
        found = np.maximum(table + across + down, 0.0)
        if np.abs(found.sum(axis=1) - lines).max() < NEAR:
            break
    return np.asarray(found)


def _shifts(lines: Floats, sums: Floats) -> Floats:
    """Return what each line has to be shifted by for its positive parts to have a sum."""
    falling = -np.sort(-lines, axis=1)
    excess = (falling.cumsum(axis=1) - sums[:, None]) / np.arange(1, lines.shape[1] + 1)
    kept = np.maximum((falling > excess).sum(axis=1) - 1, 0)
    return -np.asarray(excess[np.arange(len(lines)), kept])
