"""Squares of what all rows of a person add up to, exact, and held after the sum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpmodels.design import PrivateDesign
from dpmodels.noise.lattice import Lattice, to_lattice
from dpmodels.privacy.budget import MOST_ROWS
from dpmodels.typing import Floats, Integers

# Parts of the unit length that a row is rounded to, and the most of them in a coordinate: so many
# for each of a person's places fit 64-bit integers.
PARTS: Final = 2.0**24
MOST: Final = 2.0**61 / MOST_ROWS


def person_squares(
    design: PrivateDesign,
    lattice: Lattice,
    vectors: Callable[[Floats], Floats],
    finer: Lattice,
    places: int,
    *,
    count_public: bool,
) -> tuple[NDArray[Any], int]:
    """Sum ``v vᵀ`` over persons, v the sum of vectors of its rows over its places.

    `vectors` gives those of a block of rows, shape (``finer.columns``, rows), each a function of
    released values and that row alone. Exact integers and the number of places that rows take come
    back.

    Each vector is rounded to integers, which add in any order, as often as its row takes a place;
    only the sum is held in the unit ball, on the lattice `finer`. So a person adds the square of
    one integer vector of norm at most ``finer.radius``, a function of its rows and the places that
    they take: persons who are exchanged move the sum as two rows of the unit ball do, whatever the
    number of their rows. Rows of nobody add nothing.
    """
    totals: Integers = np.zeros((finer.columns, 0), dtype=np.int64)
    rows = 0

    def whole(block: Floats) -> Integers:
        return _whole(vectors(block))

    for seen, part in design.by_person(whole, lattice, count_public=count_public):
        assert part.persons is not None
        assert part.places is not None
        rows += int(part.places.sum())
        own = part.persons >= 0
        persons = part.persons[own]
        totals = _roomy(totals, int(persons.max(initial=-1)) + 1)
        for total, line in zip(totals, seen[:, own] * part.places[own], strict=True):
            np.add.at(total, persons, line)
    return _squares(totals, finer, places), rows


def _whole(vectors: Floats) -> Integers:
    """Round vectors to whole parts; what is no number is none."""
    with np.errstate(over="ignore"):
        return np.nan_to_num(np.rint(np.clip(vectors * PARTS, -MOST, MOST))).astype(np.int64)


def _roomy(totals: Integers, persons: int) -> Integers:
    """Return totals of so many persons or more."""
    lacking = persons - totals.shape[1]
    if lacking <= 0:
        return totals
    return np.pad(totals, ((0, 0), (0, max(lacking, totals.shape[1]))))


def _squares(totals: Integers, finer: Lattice, places: int) -> NDArray[Any]:
    size, ones = finer.columns, np.ones(finer.columns)
    found: NDArray[Any] = np.zeros((size, size), dtype=object)
    for at in range(0, totals.shape[1], finer.block_rows):
        held = totals[:, at : at + finer.block_rows] / (PARTS * places)
        to_lattice(held, ones, 0 * ones, finer)
        found = found + (held @ held.T).astype(np.int64)
    return found
