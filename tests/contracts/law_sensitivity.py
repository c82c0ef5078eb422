"""No neighbour is farther than declared, and some are as far: exact integers throughout.

In units of the plan's noise scales, in fractions, two statistics are
``sum Delta_i**2 / sigma_i**2`` apart where the noise is Gaussian, and
``sum |Delta_i| / b_i`` where it is Laplace's; the plan declares 1/multiplier**2
and 1/multiplier.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
from contract_cases import TINY, Case

import dpmodels as dp
from dpmodels.mechanisms import Plan
from dpmodels.privacy import BoundedRangeEvent, Guarantee

NEARLY = Fraction(99, 100)
POWER = {"svec": 2, "L2": 2, "L1": 1}
Row = dict[str, Any]


@dataclass(frozen=True)
class Rows:
    """A design and the rows to be tried on it.

    In each a row reaches the ball's surface, and some neighbours are as far
    apart as declared in the norms of `reached`; where `around`, complete rows
    lie there in every direction, so that each kind of neighbour is, in
    isometric coordinates.
    """

    name: str
    formula: str
    codebook: dp.Codebook
    complete: tuple[Row, ...]
    incomplete: tuple[Row, ...]
    scaling: dict[str, Any]
    reached: tuple[str, ...] = ("svec",)
    around: bool = False


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
    """Orthogonal, 45 degrees, opposite, t = -1/4 (twice); zero, short, and far too long.

    The second time the two rows are each other's mirror image.
    """
    third = np.degrees(np.arccos(-0.25))
    mirrored = np.degrees(np.arcsin(-0.25)) / 2
    angles = [0, 45, 90, 135, 180, 225, 270, third, 1e-3, 33, mirrored, 90 - mirrored]
    angles = np.radians(angles)
    points = np.column_stack([np.cos(angles), np.sin(angles)])
    return np.vstack([points, 0.1 * points[:3], 0.25 * points[3:5], [[0, 0], [1e-9, 0], [9e9, -1]]])


def _sphere() -> np.ndarray:
    rng = np.random.default_rng(5)
    points = rng.normal(size=(14, 7))
    return np.vstack([points, 3e-4 * points[:3], np.eye(7)[:3], -np.eye(7)[:2]])


CORNERS = np.array(list(product((-1.0, 1.0), repeat=3)))
FAMILIES = (
    Rows(
        "circle",
        "~ .",
        _book(2),
        _vectors(_circle()),
        _missing(2),
        {"row_norm": 0.25},
        ("svec", "L2", "L1"),
        around=True,
    ),
    Rows(
        "sphere", "~ .", _book(7), _vectors(_sphere()), _missing(7), {"row_norm": 0.01}, around=True
    ),
    # Corners opposite, next to each other and twice the same; beyond the bounds; inside.
    Rows(
        "cube",
        "~ .",
        _book(3),
        _vectors(np.vstack([CORNERS, CORNERS[:1], 7 * CORNERS[:2], [[np.inf] * 3, [0.3, -1, 0]]])),
        _missing(3),
        {},
        ("svec", "L1"),
    ),
    Rows(
        "codebook",
        "~ x + log(y + 1) + g",
        dp.codebook(x=(1e6, 1e6 + 3), y=(0, 250_000), g=["a", "b", "c"]),
        tuple({"x": x, "y": y, "g": g} for x, y, g in product((1e6, 1e6 + 3), (0, 250_000), "abc")),
        tuple({"x": 1e6, "y": 0, "g": level} for level in ("unlisted", None, "", "A", 3)),
        {},
    ),
    Rows(
        "natural",
        "~ x * g - 1",
        dp.codebook(x=(-2, 80), g=["a", "b"]),
        tuple({"x": x, "g": g} for x, g in product((-2, 0, 80), "ab")),
        ({"x": None, "g": "a"}, {"x": 80, "g": "z"}),
        {"scale": None},
    ),
)


def moments_apart(left: np.ndarray, right: np.ndarray, plan: Plan, power: int) -> Fraction:
    """Return the distance to this power in units of the noise."""
    delta = left - right
    sizes = np.array([[abs(int(cell)) ** power for cell in row] for row in delta], dtype=object)
    steps, size = plan.steps, len(sizes)
    parts = [(sizes[0, 0], steps.count), (sizes.diagonal()[1:].sum(), steps.diagonal)]
    parts.append((sum(sizes[i, j] for i, j in combinations(range(1, size), 2)), steps.off))
    if plan.facts.centred:
        parts.append((sizes[0, 1:].sum(), steps.mean))
    lengths = (Fraction(int(total)) / Fraction(scale) ** power for total, scale in parts)
    return sum(lengths, Fraction())


def _base(family: Rows) -> list[Row]:
    """Rows that both neighbours share, among them the ones that are tried."""
    return [family.complete[0], family.complete[0], family.complete[1], family.incomplete[0]]


def _columns(rows: list[Row]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def _pairs(case: Case, complete: list[Any], incomplete: list[Any], without: Any) -> list[Any]:
    """Return neighbours, by kind."""
    if case.adjacency == "add-remove":
        return [product(complete, [without]), product(incomplete, [without])]
    return [
        combinations(complete, 2),
        product(complete, incomplete[:2]),
        product(incomplete[:1], incomplete),
    ]


def _neighbours(case: Case, family: Rows, guarantee: Guarantee) -> tuple[list[Any], int]:
    """Return pairs of the exact moments of neighbours, by kind, and their columns."""
    base = _base(family)

    def exact(*more: Row) -> np.ndarray:
        data = _columns([*base, *more])
        statistic, _ = case.exact(
            family.formula, data, family.codebook, guarantee=guarantee, **family.scaling
        )
        return statistic.cross()[0]

    without = exact()
    complete = [exact(row) for row in family.complete]
    incomplete = [exact(row) for row in family.incomplete]
    return _pairs(case, complete, incomplete, without), len(without) - 1


def _distances(
    case: Case, family: Rows, guarantee: Guarantee
) -> tuple[list[list[Fraction]], Fraction]:
    """Return distances by kind of neighbour, and the declared one."""
    kinds, columns = _neighbours(case, family, guarantee)
    plan, power = case.plan(columns, guarantee), POWER[case.mechanism.norm]
    (event,) = plan.events
    distances = [[moments_apart(*pair, plan, power) for pair in kind] for kind in kinds]
    return distances, 1 / Fraction(event.multiplier) ** power


def _within(case: Case, guarantee: Guarantee) -> None:
    norm = case.mechanism.norm
    for family in (
        family for family in FAMILIES if norm in family.reached or family.name == "codebook"
    ):
        kinds, declared = _distances(case, family, guarantee)
        furthest = [max(kind) for kind in kinds]
        assert max(furthest) <= declared, f"{family.name}: farther than declared"
        assert furthest.pop() == 0, f"{family.name}: an incomplete row leaves a trace"
        if norm in family.reached:
            every = family.around and norm == "svec"
            reached = min(furthest) if every else max(furthest)
            assert reached >= NEARLY ** POWER[norm] * declared, f"{family.name}: nowhere near"


def neighbours_are_within_the_declared_sensitivity(case: Case) -> None:
    _within(case, case.guarantee)


def neighbours_are_within_it_on_a_coarse_lattice(case: Case) -> None:
    _within(case, TINY[case.kind])


def no_direction_is_drawn_closer_than_paid_for(case: Case) -> None:
    """The log density of any two directions moves apart by no more than the event's eps.

    About the mean only rows far from all others reach it, which are not tried.
    """
    centred = case.centred and case.mechanism.family == "subspace"
    for family in FAMILIES:
        kinds, columns = _neighbours(case, family, case.guarantee)
        plan = case.plan(columns, components=1)
        (event,) = (event for event in plan.events if isinstance(event, BoundedRangeEvent))
        slope = plan.scales["concentration"] / plan.lattice.radius**2
        pairs = (
            [_scatter(statistic, centred) for statistic in pair] for kind in kinds for pair in kind
        )
        ranges = [
            slope * float(np.ptp(np.linalg.eigvalsh(first - second))) for first, second in pairs
        ]
        assert max(ranges) <= event.eps * (1 + 1e-9), f"{family.name}: closer than paid for"
        if family.around and not centred:
            assert max(ranges) >= NEARLY * event.eps, f"{family.name}: nowhere near"


def _scatter(exact: np.ndarray, centred: bool) -> np.ndarray:
    """Return the sum of squares about the origin or the mean, in lattice steps squared."""
    second = exact[1:, 1:].astype(float)
    if not centred:
        return second
    # Row 0 has the radius in it once, entry (0, 0) twice.
    total = exact[0, 1:].astype(float)
    return second - np.outer(total, total) / float(exact[0, 0])
