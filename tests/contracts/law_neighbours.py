"""Neighbours in the families that have more than one row's square: how far, of what is declared.

The rows are few and extreme; every measure is a share of the declared distance,
so that none may be above 1 and some have to be near it.
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from contract_cases import BOOK, Case, Crossing
from law_sensitivity import NEARLY, POWER, moments_apart
from noises import ROUNDS
from noises_running import running_sums

import dpmodels as dp
from dpmodels.mechanisms import Grid
from dpmodels.noise.lattice import Lattice
from dpmodels.postprocess.plane import plane
from dpmodels.postprocess.residuals import split, summed
from dpmodels.privacy import BoundedRangeEvent, LaplaceEvent
from dpmodels.statistics import Statistic

Row = dict[str, Any]
# Of quotients of floats.
ROUNDING = 1e-9


class Tried(NamedTuple):
    """Rows that are tried beside a few others, and how far apart two statistics are."""

    formula: str
    codebook: dp.Codebook
    rows: tuple[Row, ...]
    apart: Callable[[Case, Crossing, Crossing], float]
    words: dict[str, Any] = {}  # noqa: RUF012 (never changed)


def neighbours_are_no_farther_than_declared(case: Case) -> None:
    tried = TRIED[case.mechanism.family](case)
    base = list(tried.rows[:3])

    def crossing(*more: Row) -> Crossing:
        rows = [*base, *more]
        data = {name: [row[name] for row in rows] for name in tried.rows[0]}
        return case.crossing(tried.formula, data, tried.codebook, **tried.words)

    crossings = [crossing(row) for row in tried.rows]
    starts = crossings[:4] if case.adjacency == "replace" else [crossing()]
    shares = [tried.apart(case, *pair) for pair in product(starts, crossings)]
    assert max(shares) <= 1 + ROUNDING, f"farther than declared: {max(shares)}"
    assert max(shares) >= NEARLY, f"nowhere near: {max(shares)}"


def _of_moments(case: Case, left: Crossing, right: Crossing) -> float:
    """Squares or absolute values, in units of the plan's noise."""
    power = POWER[case.mechanism.norm]
    pair = (crossing.statistic.cross()[0] for crossing in (left, right))
    distance = float(moments_apart(*pair, left.plan, power)) ** (1 / power)
    return distance / _declared(left.plan.events, power)


SQUARE = dp.codebook(x=(-1, 1), z=(-1, 1), y=(-1, 1), k=(0, 9), w=(0, 4), g=["u", "v", "w"])


def _regression(case: Case) -> Tried:
    """Corners, and rows on the surface at angles among which is the farthest apart."""
    weights = {"weights": "w"} if case.way == "weighted" else {}
    ends, heavy = (-1, 1, 9, None), (4, 4, 1, 0)
    if case.mechanism.norm == "L1":
        rows = tuple(
            {"x": x, "y": y, "w": w} for x, y, w in product(ends, (1, -1, 0), sorted(set(heavy)))
        )
        return Tried("y ~ x", SQUARE, rows[::-1], _of_moments, weights)
    angles = np.radians([0, 47.4, 90, 132, 180, 312.6])
    rows = tuple(
        {"x": np.cos(angle), "z": np.sin(angle), "y": y, "w": w}
        for y, angle, w in product((1, -1, 7, None), angles, sorted(set(heavy)))
    )
    return Tried("y ~ x + z", SQUARE, rows[::-1], _of_moments, {"row_norm": 1.0} | weights)


def _of_gradients(case: Case, left: Crossing, right: Crossing) -> float:
    """At parameters that split the rows, and at others."""
    plan, facts = left.plan, left.plan.facts
    first, second = (
        _gradients(crossing.statistic, facts.columns, facts.lines) for crossing in (left, right)
    )
    farthest = float(np.linalg.norm(first - second, axis=1).max())
    return farthest / plan.scales["noise"] * plan.events[1].multiplier


@lru_cache(maxsize=256)
def _gradients(statistic: Any, columns: int, lines: int) -> np.ndarray:
    """Gradients at all of the parameters, one a line; of several levels, two are compared."""
    lattice, sizes = Lattice(20, columns), (0.0, 1.0, -1e5, 1e5)
    distance = np.append(np.zeros(lines - 2), [1.0, -1.0]) if lines > 1 else np.ones(1)
    sums = [
        statistic.gradient(np.kron(distance, steep) * size, lattice).cross()[0].astype(float)
        for steep, size in product(np.eye(columns // lines), sizes)
    ]
    return np.array(sums) / lattice.radius


def _coefficients(case: Case) -> Tried:
    """Rows close together on both sides of a plane, and all around."""
    angles = np.radians([-0.4, 0.4, 90, 180, 270])
    rows = tuple(
        {"x": np.cos(angle), "z": np.sin(angle), "y": y, "k": k, "g": g}
        for angle, (y, k, g) in product(angles, ((1, 9, "v"), (-1, 0, "w"), (None, 1e9, "u")))
    )
    response, words = {
        "-poisson": ("k", {"clip": None}),
        "-multinomial": ("g", {}),
    }.get(case.verb.suffix, ("(y > 0)", {}))
    constant = "" if case.way == "intercept" else " - 1"
    words = {"row_norm": 1.0} | words
    return Tried(f"{response} ~ x + z{constant}", SQUARE, rows, _of_gradients, words)


def _of_counts(case: Case, left: Crossing, right: Crossing) -> float:
    power = POWER[case.mechanism.norm]
    first, second = (crossing.statistic.cross()[0].astype(float) for crossing in (left, right))
    distance = float(np.linalg.norm(first - second, power)) / left.plan.scale
    return distance / _declared(left.plan.events, power)


def _declared(events: Any, power: int) -> float:
    """The distance in units of the noise that events are charged for."""
    return float(sum(event.count / event.multiplier**power for event in events) ** (1 / power))


def _extreme(case: Case) -> tuple[Row, ...]:
    """Rows at the ends of all ranges, in all groups, beyond them, and incomplete."""
    names = ("age", "wage", "sex", "region")
    cells = product((100, 0), (-5, 45, 1e9), ("F", "M"), ("n", "s"))
    odd = ((None, 5, "F", "n"), (50, 20, "other", None), (np.inf, -np.inf, "M", "e"))
    return tuple(dict(zip(names, row, strict=True)) for row in (*cells, *odd))


def _counts(case: Case) -> Tried:
    return Tried(case.formula, BOOK, _extreme(case), _of_counts)


def _of_margins(case: Case, left: Crossing, right: Crossing) -> float:
    """All components together, or all counts."""
    plan, facts = left.plan, left.plan.facts
    distance = np.subtract(
        *(crossing.statistic.cross()[0].astype(float) for crossing in (left, right))
    )
    if case.mechanism.name == "marginals":
        return float(np.abs(distance).sum()) / plan.scales[0] / _declared(plan.events, 1)
    tables, total = split(distance, facts.largest, facts.sizes), 0.0
    for part, sd in zip(plan.measured, plan.noise_sds, strict=True):
        term = next(
            largest_cell for largest_cell in facts.largest if set(part) <= set(largest_cell)
        )
        change = summed(tables[term], term, part)
        for axis in range(change.ndim):
            change = change - change.mean(axis=axis, keepdims=True)
        total += float((change**2).sum()) / sd**2
    return total**0.5 / _declared(plan.events, 2)


def _margins(case: Case) -> Tried:
    return Tried(case.formula, BOOK, _extreme(case), _of_margins)


def _of_blocks(case: Case, left: Crossing, right: Crossing) -> float:
    """How far the counts of all blocks move, in units of the noise that is charged for."""
    power = 1 if isinstance(left.plan.events[-1], LaplaceEvent) else 2
    shape = left.plan.facts.shape
    blocks = plane(shape[1:], left.strategy.side_of(left.plan))
    nodes = []
    for crossing in (left, right):
        exact = crossing.statistic.cross()[0].astype(float) * crossing.plan.units_per_row
        cells = exact[:-1].reshape(shape[0], -1)[:, blocks.order]
        sums = np.concatenate(blocks.hierarchy.sums(cells), axis=-1).ravel()
        nodes.append(np.append(sums, exact[-1]))
    distance = float(np.linalg.norm(nodes[0] - nodes[1], power)) / left.plan.scale
    return distance / _declared(left.plan.events, power)


def _counts_of_blocks(case: Case) -> Tried:
    words = {"breaks": (6, 5), "mechanism": Grid(side=2)}
    return Tried(case.formula, BOOK, _extreme(case), _of_blocks, words)


def _running(case: Case) -> Tried:
    return Tried(case.formula, BOOK, _extreme(case), _of_running)


def _of_running(case: Case, left: Crossing, right: Crossing) -> float:
    first, second = map(running_sums, (left, right))
    return float(np.linalg.norm(first - second)) / left.plan.scale / _declared(left.plan.events, 2)


def _of_quantiles(case: Case, left: Crossing, right: Crossing) -> float:
    """How far the log density of all groups' draws together moves, in units of its eps.

    Or how far counts of any cells move, each round alone.
    """
    plan = left.plan
    if case.mechanism.name in ROUNDS:
        return _of_rounds(plan, left, right)
    (middle,) = (event.eps for event in plan.events if isinstance(event, BoundedRangeEvent))
    counts = next(event for event in plan.events if isinstance(event, LaplaceEvent))
    draws = [
        (prob, slope, middle) for prob, slope in zip(plan.facts.probs, plan.middle, strict=True)
    ]
    shares = [slope * _range(left, right, prob) / eps for prob, slope, eps in draws]
    groups = plan.facts.groups
    numbers = (crossing.statistic.cross()[0][:-1].reshape(groups, -1) for crossing in (left, right))
    largest_move = np.abs(np.subtract(*(number.sum(axis=1) for number in numbers))).sum()
    shares.append(float(largest_move) / plan.count_scale / _declared((counts,), 1))
    if case.mechanism.name == "bracketed":
        shares.append(_of_rounds(plan.cells, left, right))
    return max(shares)


def _of_rounds(plan: Any, left: Crossing, right: Crossing) -> float:
    power = 2 if plan.law == "gaussian" else 1
    first, second = (crossing.statistic.cross()[0][:-1].astype(float) for crossing in (left, right))
    distance = float(np.linalg.norm(first - second, power))
    rounds = zip(plan.levels, plan.scales, plan.events, strict=True)
    # A row moves as many counts on every level of a tree, whose cells are as far apart at most.
    change = ((levels ** (1 / power) * distance / scale, event) for levels, scale, event in rounds)
    return max(ratio / _declared((event,), power) for ratio, event in change)


def _range(left: Crossing, right: Crossing, prob: float) -> float:
    facts = left.plan.facts
    change = np.subtract(
        *(_away(crossing.statistic, facts.groups, prob) for crossing in (left, right))
    )
    return float(np.ptp(change, axis=1).sum())


@lru_cache(maxsize=256)
def _away(statistic: Statistic, groups: int, prob: float) -> np.ndarray:
    """Rank errors of the cells of each group."""
    cells = statistic.cross()[0][:-1].reshape(groups, -1).astype(float)
    ranks = np.cumsum(np.pad(cells, ((0, 0), (1, 0))), axis=1)
    target = prob * ranks[:, -1:]
    return np.maximum(np.maximum(ranks[:, :-1] - target, target - ranks[:, 1:]), 0.0)


def _quantiles(case: Case) -> Tried:
    """Numbers on both sides of the others'; a group of its own."""
    numbers = (3, 44, 20, 45, -5)
    rows = tuple({"wage": x, "age": x, "sex": sex} for x, sex in product(numbers, "FM"))
    words = {"probs": [0.5, 0.9] if case.way == "groups" else [0.05, 0.5]}
    return Tried(case.formula, BOOK, rows, _of_quantiles, words)


TRIED: dict[str, Callable[[Case], Tried]] = {
    "regression": _regression,
    "coefficients": _coefficients,
    "counts": _counts,
    "margins": _margins,
    "plane": _counts_of_blocks,
    "quantiles": _quantiles,
    "running": _running,
}
