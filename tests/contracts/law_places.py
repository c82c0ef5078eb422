"""What a row adds is a function of that row: at any place, beside any number of others.

Processors take numbers by the register and what is left over by other code, a row
alone by a third: what is rounded there in another order differs in its last bit.
Such bits seldom reach an integer. So rows are compared on a lattice so fine that
they do, and questions are asked under which they are magnified.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from contract_cases import BOOK, Case, Crossing, Table, table

import dpmodels as dp
from dpmodels.design import PrivateDesign, private_design
from dpmodels.frames import open_rows
from dpmodels.noise.lattice import Lattice
from dpmodels.statistics import Passes, Statistic
from dpmodels.statistics.gradient import Gradients
from tests.private_rows import private_regression

# From a row alone to every remainder of registers of up to 16 numbers, more than once.
TOGETHER = range(1, 34)
# Blocks have 8192 rows, and are coded two at a time.
AROUND = (8193, 16_385)
# On it the last bits of a number are integers, or nearly; with more, squares of unit rows
# would be too inexact to tell whether a row is inside.
FINE = 50
# Of terms that cancel in a product with a row of floats the last bits are left.
STEEP = 2.0**24
Question = Callable[[Statistic], np.ndarray]


def _taken(data: Table, rows: np.ndarray) -> dict[str, Any]:
    return {name: np.asarray(column)[rows] for name, column in data.items()}


def _orders(base: int) -> Iterator[np.ndarray]:
    """Rows of the base, each in many places, left out, moved, and again."""
    for rows in TOGETHER:
        yield (7 * rows + (-1) ** rows * np.arange(rows)) % base
        yield np.full(rows, rows % base)
    for rows in AROUND:
        yield np.arange(rows) % base


EVERY_FUNCTION = (
    "~ a * b + g + log1p(b) + log(b + 1) + log2(b + 2) + log10(b + 3) + exp(a) + sqrt(b) "
    "+ poly(a, 4) + bs(b, knots=[3]) + pow(b + 1, 0.3) + I(a ** 3) + I(1 / (b + 1)) + C(g):a"
)
ODD_BOOK = dp.codebook(a=(-1, 1), b=(0, 10), g=["u", "v", "w"], w=(0, 4), y=(0, 1))


def odd_rows(rows: int) -> dict[str, Any]:
    """Rows within their bounds and beyond, some incomplete."""
    rng = np.random.default_rng(4)
    data = {
        "a": rng.uniform(-1.2, 1.2, rows),
        "b": rng.uniform(-1, 11, rows),
        "g": rng.choice(["u", "v", "w"], rows),
        "w": rng.uniform(0, 4, rows),
        "y": rng.uniform(0, 1, rows),
    }
    data["b"][::7] = np.nan
    return data


def _joint(data: Table, **words: Any) -> PrivateDesign:
    return private_regression(f"y {EVERY_FUNCTION}", data, ODD_BOOK, **words)


# Rows inside the ball, held at its surface, brought there, and weighted.
CODINGS: dict[str, Callable[[Table], PrivateDesign]] = {
    "whole": lambda data: private_design(EVERY_FUNCTION, data, ODD_BOOK),
    "held": lambda data: private_design(EVERY_FUNCTION, data, ODD_BOOK, row_norm=0.01),
    "unit": lambda data: private_design(EVERY_FUNCTION, data, ODD_BOOK, row_norm="unit"),
    "joint": _joint,
    "weighted": lambda data: _joint(data, row_norm=0.01, weights="w"),
}


def a_row_is_coded_alike_everywhere(name: str) -> None:
    base = 33
    data = odd_rows(base)
    rows = CODINGS[name](data)
    alone = np.hstack([_coded(rows, _taken(data, np.array([i]))) for i in range(base)])
    assert len(np.unique(alone, axis=1).T) > base // 2, "rows are hardly told apart"
    for order in _orders(base):
        coded_rows = _coded(rows, _taken(data, order))
        assert (coded_rows == alone[:, order]).all(), (
            f"{len(order)} rows are not coded as each alone"
        )


def _coded(rows: PrivateDesign, data: Table) -> np.ndarray:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Lattice, "block_rows", 8192)
        lattice = Lattice(FINE, len(rows.public.names))
        blocks = rows.recipe(open_rows(data)).blocks(np.copy, lattice)
        return np.hstack([block for block, _ in blocks])


def a_row_adds_the_same_everywhere(case: Case) -> None:
    """Sums over any rows are those of each alone: it takes with it what it brought."""
    base = 9
    data = table(base, seed=1)
    crossing = case.crossing(case.formula, data, BOOK)

    def measured(order: np.ndarray) -> Statistic:
        rows = crossing.rows.recipe(open_rows(_taken(data, order)))
        return crossing.strategy.measure(rows, crossing.plan)

    statistics = [measured(np.array([i])) for i in range(base)]
    questions = _questions(crossing)
    alone = [
        np.array([ask(statistic) for statistic in statistics], dtype=object) for ask in questions
    ]
    assert any((parts != parts[:1]).any() for parts in alone), "rows are all alike"
    for order in _orders(base):
        statistic = measured(order)
        times = np.bincount(order, minlength=base).astype(object)
        for ask, parts in zip(questions, alone, strict=True):
            expected = np.tensordot(times, parts, axes=1)
            assert (ask(statistic) == expected).all(), f"{len(order)} rows add up to something else"


def _questions(crossing: Crossing) -> list[Question]:
    """All that is asked of a statistic, steeply where it can be asked again and again."""
    statistic = crossing.statistic
    if isinstance(statistic.cross()[0].flat[0] if statistic.cross()[0].size else 0, Counter):
        names = sorted(set().union(*statistic.cross()[0]))
        return [
            lambda answers: np.array(
                [[answer[at] for at in names] for answer in answers.cross()[0]]
            )
        ]
    if not isinstance(statistic, Gradients | Passes):
        return [lambda statistic: statistic.cross()[0]]
    lattice = Lattice(20, len(crossing.rows.public.names))
    block = np.hstack([block for block, _ in crossing.rows.blocks(np.copy, lattice)])
    if isinstance(statistic, Passes):
        steep = np.outer(np.arange(1, len(block)), _across(block[1:]))
        return [
            lambda statistic: statistic.cross()[0],
            lambda passes: passes.within(steep).cross()[0],
        ]
    predictors = crossing.plan.facts.predictors
    lines, columns = crossing.plan.facts.lines, crossing.plan.facts.columns
    plain, out = np.linspace(-3, 3, columns), Lattice(20, columns)
    steep = np.append(np.ones(int(predictors.intercept)), _across(block[1 : 1 + predictors.terms]))
    steep = np.kron(np.arange(1.0, lines + 1), steep)
    return [
        lambda passes: passes.moments(lattice).cross()[0],
        lambda passes: passes.gradient(plain, out).cross()[0],
        lambda passes: passes.gradient(steep, out).cross()[0],
        lambda passes: passes.curvature(steep, out).cross()[0],
        lambda passes: passes.squares(steep, out).cross()[0],
    ]


def _across(block: np.ndarray) -> np.ndarray:
    """Return a steep vector whose product with one complete row is 0, but for rounding."""
    row = block[:, block.any(axis=0)][:, 0]
    return STEEP * (np.roll(row, -1) - np.roll(row, 1))
