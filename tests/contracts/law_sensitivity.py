"""No neighbour is farther than declared, and some are as far: exact integers throughout.

The distance of two statistics is ``sqrt(sum Delta_i**2 / sigma_i**2)`` with
the plan's noise scales, in fractions; the plan declares 1/multiplier.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
from contract_cases import TINY, Case

import dpmodels as dp
from dpmodels.mechanisms import MomentsPlan
from dpmodels.privacy import Guarantee

NEARLY = Fraction(99, 100) ** 2
Row = dict[str, Any]


@dataclass(frozen=True)
class Family:
    """A design and the rows to be tried on it.

    In each a row reaches the ball's surface; where `around`, complete rows lie
    there in every direction, so that two of them are as far apart as declared.
    """

    name: str
    formula: str
    codebook: dp.Codebook
    complete: tuple[Row, ...]
    incomplete: tuple[Row, ...]
    scaling: dict[str, Any]
    around: bool


def _vectors(points: np.ndarray) -> tuple[Row, ...]:
    return tuple({f"x{i}": float(c) for i, c in enumerate(point)} for point in points)


def _missing(columns: int) -> tuple[Row, ...]:
    """Rows with a hole, of every kind, in the last place and everywhere."""
    start = dict.fromkeys((f"x{i}" for i in range(columns - 1)), 1.0)
    last = f"x{columns - 1}"
    holes = [{**start, last: hole} for hole in (None, float("nan"), "", "many", [1.0])]
    return (*holes, dict.fromkeys((f"x{i}" for i in range(columns)), None))


def _book(columns: int) -> dp.Codebook:
    return dp.codebook.uniform([f"x{i}" for i in range(columns)], (-1, 1))


def _circle() -> np.ndarray:
    """Orthogonal, 45 degrees, opposite, t = -1/4; zero, short, and far too long."""
    angles = np.radians([0, 45, 90, 135, 180, 225, 270, np.degrees(np.arccos(-0.25)), 1e-3, 33])
    points = np.column_stack([np.cos(angles), np.sin(angles)])
    return np.vstack([points, 0.1 * points[:3], 0.25 * points[3:5], [[0, 0], [1e-9, 0], [9e9, -1]]])


def _sphere() -> np.ndarray:
    rng = np.random.default_rng(5)
    points = rng.normal(size=(14, 7))
    return np.vstack([points, 3e-4 * points[:3], np.eye(7)[:3], -np.eye(7)[:2]])


CORNERS = np.array(list(product((-1.0, 1.0), repeat=3)))
FAMILIES = (
    Family("circle", "~ .", _book(2), _vectors(_circle()), _missing(2), {"row_norm": 0.25}, True),
    Family("sphere", "~ .", _book(7), _vectors(_sphere()), _missing(7), {"row_norm": 0.01}, True),
    # Corners opposite, next to each other and twice the same; beyond the bounds; inside.
    Family(
        "cube",
        "~ .",
        _book(3),
        _vectors(np.vstack([CORNERS, CORNERS[:1], 7 * CORNERS[:2], [[np.inf] * 3, [0.3, -1, 0]]])),
        _missing(3),
        {},
        False,
    ),
    Family(
        "codebook",
        "~ x + log(y + 1) + g",
        dp.codebook(x=(1e6, 1e6 + 3), y=(0, 250_000), g=["a", "b", "c"]),
        tuple({"x": x, "y": y, "g": g} for x, y, g in product((1e6, 1e6 + 3), (0, 250_000), "abc")),
        tuple({"x": 1e6, "y": 0, "g": level} for level in ("unlisted", None, "", "A", 3)),
        {},
        False,
    ),
    Family(
        "natural",
        "~ x * g - 1",
        dp.codebook(x=(-2, 80), g=["a", "b"]),
        tuple({"x": x, "g": g} for x, g in product((-2, 0, 80), "ab")),
        ({"x": None, "g": "a"}, {"x": 80, "g": "z"}),
        {"scale": None},
        False,
    ),
)


def _distance(left: np.ndarray, right: np.ndarray, plan: MomentsPlan) -> Fraction:
    """Return the squared distance in units of the noise."""
    delta = left - right
    squares = np.array([[int(cell) ** 2 for cell in row] for row in delta], dtype=object)
    steps, size = plan.steps, len(squares)
    parts = [(squares[0, 0], steps.count), (squares.diagonal()[1:].sum(), steps.diagonal)]
    parts.append((sum(squares[i, j] for i, j in combinations(range(1, size), 2)), steps.off))
    if plan.facts.centred:
        parts.append((squares[0, 1:].sum(), steps.mean))
    return sum((Fraction(int(total)) / Fraction(scale) ** 2 for total, scale in parts), Fraction())


def _base(family: Family) -> list[Row]:
    """Rows that both neighbours share, among them the ones that are tried."""
    return [family.complete[0], family.complete[0], family.complete[1], family.incomplete[0]]


def _columns(rows: list[Row]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def _distances(
    case: Case, family: Family, guarantee: Guarantee
) -> tuple[list[list[Fraction]], Fraction]:
    """Return squared distances by kind of neighbour, and the declared one."""
    base = _base(family)

    def exact(*more: Row) -> np.ndarray:
        data = _columns([*base, *more])
        statistic, _ = case.exact(
            family.formula, data, family.codebook, guarantee=guarantee, **family.scaling
        )
        return statistic.cross()[0]

    columns = len(exact()) - 1
    plan = case.plan(columns, guarantee)
    complete = [exact(row) for row in family.complete]
    incomplete = [exact(row) for row in family.incomplete]
    if case.adjacency == "add-remove":
        without = exact()
        kinds = [
            [_distance(one, without, plan) for one in complete],
            [_distance(one, without, plan) for one in incomplete],
        ]
    else:
        kinds = [
            [_distance(*pair, plan) for pair in combinations(complete, 2)],
            [_distance(*pair, plan) for pair in product(complete, incomplete[:2])],
            [_distance(incomplete[0], other, plan) for other in incomplete],
        ]
    (event,) = plan.events
    return kinds, 1 / Fraction(event.multiplier) ** 2


def _within(case: Case, guarantee: Guarantee) -> None:
    for family in FAMILIES:
        kinds, declared = _distances(case, family, guarantee)
        furthest = [max(kind) for kind in kinds]
        assert max(furthest) <= declared, f"{family.name}: farther than declared"
        assert furthest.pop() == 0, f"{family.name}: an incomplete row leaves a trace"
        least = min(furthest) if family.around else max(furthest)
        assert least >= NEARLY * declared, f"{family.name}: nowhere near the bound"


def neighbours_are_within_the_declared_sensitivity(case: Case) -> None:
    _within(case, case.guarantee)


def neighbours_are_within_it_on_a_coarse_lattice(case: Case) -> None:
    _within(case, TINY[case.kind])
