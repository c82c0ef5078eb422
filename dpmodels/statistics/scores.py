"""Exact squares of the scores of least squares, at released parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.design import PrivateDesign
from dpmodels.noise.lattice import Lattice, to_lattice
from dpmodels.statistics.passes import turned
from dpmodels.statistics.person_squares import person_squares
from dpmodels.statistics.statistic import Fingerprint, Statistic, digest_of, fingerprint
from dpmodels.statistics.turn import turn
from dpmodels.typing import Floats, Integers


class Score(NamedTuple):
    """The score ``(F a)(g · a)`` of a row ``a = (1, T x)`` of the unit ball.

    All are finite and functions of released values and public facts; T x is held in the ball.
    """

    regressors: Floats  # F, shape (parameters, columns + 1)
    residual: Floats  # g, shape (columns + 1,)
    transform: Floats  # T, shape (columns, columns)


def score_squares(
    design: PrivateDesign, lattice: Lattice, score: Score, finer: Lattice, *, count_public: bool
) -> Statistic:
    """Sum the squares of the rows' scores exactly, each brought to the lattice `finer`.

    Each row adds to the integers, shape (parameters, parameters), the square of an integer vector
    of norm at most ``finer.radius`` that is a function of the score and that row alone; an
    incomplete one adds zero.

    F, g and T are rounded to integers (:func:`dpmodels.statistics.turn.turn`), so that their
    products with an integer row, which is at most √2 times as long as the lattice's radius, have
    partial sums below ``2**53`` in any order; a score is one correctly rounded product of two of
    them, and its norm is held on the integers that are added.
    """
    seen, ones = _seen(score, lattice), np.ones(finer.columns)

    def summed(block: Floats) -> Integers:
        scores = seen(block)
        to_lattice(scores, ones, 0 * ones, finer)
        return np.asarray((scores @ scores.T).astype(np.int64))

    total: NDArray[Any] = np.zeros((finer.columns, finer.columns), dtype=object)
    rows = 0
    for part, count in design.blocks(summed, lattice, count_public=count_public):
        total = total + part
        rows += count
    basis = _basis(design, lattice, score, finer, count_public=count_public)
    return Statistic("squares of scores", total, rows, basis)


def person_score_squares(
    design: PrivateDesign,
    lattice: Lattice,
    score: Score,
    finer: Lattice,
    places: int,
    *,
    count_public: bool,
) -> Statistic:
    """Sum the squares of persons' scores exactly, each the sum of its rows' over its places.

    See :func:`score_squares` for the score of a row, and
    :func:`dpmodels.statistics.person_squares.person_squares`.
    """
    seen = _seen(score, lattice)
    total, rows = person_squares(design, lattice, seen, finer, places, count_public=count_public)
    basis = _basis(design, lattice, score, finer, count_public=count_public)
    return Statistic("squares of persons' scores", total, rows, basis)


def _seen(score: Score, lattice: Lattice) -> Callable[[Floats], Floats]:
    """Return what gives the scores of a block of rows, shape (parameters, rows)."""
    units = np.full(lattice.columns + 1, 1 / lattice.steps)
    units[0] = 1 / lattice.radius
    whole = turn(np.vstack([score.regressors, score.residual]) * units, lattice)
    within = turn(score.transform, lattice)

    def seen(block: Floats) -> Floats:
        both = whole.times(turned(block, within, lattice))
        return np.asarray(both[:-1] * both[-1])

    return seen


def _basis(
    design: PrivateDesign, lattice: Lattice, score: Score, finer: Lattice, *, count_public: bool
) -> Fingerprint:
    facts = {**design.facts, "lattice": repr(lattice), "rounded to": repr(finer)}
    facts["score"] = digest_of(np.vstack([score.regressors, score.residual]))
    facts["transform"] = digest_of(score.transform)
    return fingerprint(facts, count_public=count_public)
