"""Exact counts of rows, or of their parts by Bernstein polynomials, by cell."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.design.cells import BLOCK_ROWS, PrivateCells, in_blocks
from dpmodels.formula.tally import Placed, Tally
from dpmodels.privacy import Adjacency
from dpmodels.statistics.person_parts import PersonSums, by_person
from dpmodels.statistics.statistic import Statistic, additive, fingerprint
from dpmodels.typing import Floats, Integers

# Whole rows are counted in integers, however many at once: a choice.
WHOLE_ROWS = 2**20


@additive
def counts(private: PrivateCells, whole: int, *, count_public: bool) -> Statistic:
    """Count the rows of every table in units of which a row has so many.

    The integers are one table after another: for each cell its ``degree + 1`` parts, last the
    incomplete rows. Every row adds `whole` units, at most ``2**40``, to each table; they are the
    same for any chunking or order. For means of persons the rows of each are added up first, and
    the person adds as many units as all its places have: see
    :mod:`dpmodels.statistics.person_parts`.
    """
    neighbours = private.neighbours
    gathered = [by_person(own, neighbours) for own in private.tallies]
    pairs = list(zip(private.tallies, gathered, strict=True))
    persons = [PersonSums(own, neighbours) for own, whose in pairs if whose]
    plain = tuple(own for own, whose in pairs if not whose)
    divided = any(tally.degree for tally in plain)
    units, most = (whole, BLOCK_ROWS) if divided else (1, WHOLE_ROWS)
    total: NDArray[Any] = np.zeros(
        sum(tally.size for tally in plain), dtype=object if divided else np.int64
    )
    rows = 0

    def counted(placed: tuple[Placed, ...]) -> Integers:
        each = zip(plain, placed, strict=True)
        return np.concatenate([_counted(tally, own, units) for tally, own in each])

    for part in private.parts(count_public=count_public):
        rows += part.taken
        for sums in persons:
            sums.add(part)
        for block, _ in in_blocks(part, plain, counted, most) if plain else ():
            total = total + block
    total = total.astype(object) * (whole // units)
    by_rows = iter(np.split(total, np.cumsum([own.size for own in plain])))
    by_persons = (_of_persons(own, whole * neighbours.places, whole * rows) for own in persons)
    parts = [next(by_persons if whose else by_rows) for whose in gathered]
    facts = {**private.facts, "units of a row": str(whole)}
    basis = fingerprint(facts, count_public=count_public)
    return Statistic("counts", np.concatenate(parts), rows, basis)


def _of_persons(sums: PersonSums, units: int, everything: int) -> NDArray[Any]:
    """Return the parts of persons, and what is left of all units for what is incomplete."""
    parts = sums.parts(units).ravel()
    return np.append(parts, everything - sum(parts.tolist()))


def _counted(tally: Tally, placed: Placed, whole: int) -> Integers:
    """Count one block; every partial sum is an integer of at most 2**53."""
    complete = placed.cells >= 0
    cells = placed.cells[complete]
    if not tally.degree and whole == 1:
        return np.append(np.bincount(cells, minlength=tally.cells), len(complete) - len(cells))
    parts = np.full((1, len(cells)), float(whole))
    if placed.positions is not None:
        parts = shares(placed.positions[complete], tally.degree, whole)
    sums = [np.bincount(cells, part, tally.cells) for part in parts]
    incomplete = float(whole * (len(complete) - len(cells)))
    return np.append(np.stack(sums, axis=1).ravel(), incomplete).astype(np.int64)


def count_sensitivity(adjacency: Adjacency, tables: int, norm: int) -> float:
    """Return the L1 or L2 sensitivity of counts, in rows.

    The norm, 1 or 2, is of the vector of all parts of all tables.

    To each table a row adds parts that are not negative and have the sum 1, so an L1 norm of 1 and
    an L2 norm of at most 1. That is all under ``add-remove``. Under ``replace`` a row may leave
    one declared group and enter another: the difference of two such vectors has L1 norm at most 2
    and, as no product of parts is negative, L2 norm at most √2; both are reached. Groups are no
    reason to pay less.
    """
    changed = tables * (2 if adjacency.n_public else 1)
    return float(changed) if norm == 1 else math.sqrt(changed)


def shares(positions: Floats, degree: int, whole: int) -> Floats:
    """Divide every row between the parts of its cell, by where its number lies.

    `positions`, shape (rows,), are places in the public range, from 0 to 1; whole numbers of units
    come back, shape (degree + 1, rows), of which each row has `whole`, at most ``2**40``.

    Part i is ``C(d, i) t**i (1 - t)**(d - i)``, rounded down to a unit; the last part is what
    remains. So whatever the number, a row's parts have the L1 norm `whole` exactly, and the L2
    norm is at most that. The sums of powers are linear in the parts, see
    :func:`dpmodels.postprocess.power_sums.power_weights`.
    """
    parts = np.empty((degree + 1, len(positions)))
    left = np.full(len(positions), float(whole))
    for i in range(degree):
        # Products alone: the same bits for a row in whatever block it stands.
        part = np.full(len(positions), float(math.comb(degree, i) * whole))
        for _ in range(i):
            part *= positions
        for _ in range(degree - i):
            part *= 1.0 - positions
        parts[i] = np.minimum(np.floor(part), left)
        left = left - parts[i]
    parts[degree] = left
    return parts
