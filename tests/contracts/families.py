"""Families of mechanisms: their table, their verbs, what plans are made from, what is released."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import facts_selected
import noises
import noises_ordered
import noises_screened
import noises_selected
import numpy as np
from noises_running import of_running_sums
from verb_entry import Verb
from verbs import VERBS

from dpmodels.mechanisms import (
    BOUNDS,
    COEFFICIENTS,
    COUNTS,
    COVARIANCE,
    GRAPHS,
    LEVELS,
    MARGINS,
    MEANS,
    MEASURED,
    ORDERED,
    PLANE,
    QUANTILES,
    RATES,
    REGRESSION,
    RESPONSES,
    SCREENING,
    SELECTION,
    SUBSPACE,
    Facts,
    counts,
    covariance,
    margins,
    regression,
    scalar,
    screening,
    selection,
    subspace,
)
from dpmodels.mechanisms.counts.partition import LevelFacts
from dpmodels.mechanisms.protocol import CountFacts, MarginFacts, RegressionFacts
from dpmodels.mechanisms.quantile_facts import Grid
from dpmodels.mechanisms.scalar import QuantileFacts
from dpmodels.privacy import Adjacency
from dpmodels.released import BoughtCurvature
from dpmodels.statistics.losses import Huber, Logistic, Multinomial, Predictors
from dpmodels.statistics.losses import Poisson as PoissonLoss

CENTRED = "centred"


@dataclass(frozen=True)
class Family:
    """What the laws have to know of mechanisms that release one kind of value.

    Attributes
    ----------
    table, folder
        Where they are listed, and where they are.
    ways
        Of asking the same verb, two for most.
    verbs
        The first is the one that mechanisms are tried through.
    facts
        By mechanism, neighbours and way: public facts of several sizes, for
        the laws of the plan.
    noise
        By case, rows and number of releases: the noise in them, of known law.
    released
        The names of the released values in the release, the main one last.
    plenty
        Rows of which something is released however faint the budget.
    """

    table: Mapping[str, type]
    folder: ModuleType
    ways: tuple[str, ...]
    verbs: tuple[Verb, ...]
    facts: Callable[[str, Adjacency, str], tuple[Any, ...]]
    noise: noises.Noises
    released: tuple[str, ...]
    plenty: int = 200

    def numbers(self, release: Any, without: tuple[str, ...] = ()) -> list[float]:
        """Everything that was released, as one list."""
        values = (getattr(release, name) for name in self.released if name not in without)
        return [float(x) for value in values for x in _flat(value)]


def _flat(value: Any) -> np.ndarray:
    if value is None:
        return np.zeros(0)
    if isinstance(value, BoughtCurvature):
        return np.concatenate([_flat(value.bread), _flat(value.meat)])
    cells = np.asarray(value, dtype=float)
    if cells.ndim == 2 and (cells == cells.T).all():
        return cells[np.triu_indices(len(cells))]
    return cells[~np.isnan(cells)].ravel()


def _moments(name: str, relation: Adjacency, way: str) -> tuple[Facts, ...]:
    sizes = ((1, 1), (4, 2), (4, 0), (31, 5))
    return tuple(Facts(*size[:1], relation, way != "origin", size[1]) for size in sizes)


def _predictors(name: str, relation: Adjacency, way: str) -> tuple[RegressionFacts, ...]:
    constant = way == "intercept"
    losses: tuple[Any, ...] = (Huber(0.5), Huber(2.0))
    if name == "gradients":
        losses = (PoissonLoss(9.0, 6.0), Multinomial(5))
    return tuple(
        RegressionFacts(_of_terms(terms, loss, constant=constant), loss, relation)
        for terms, loss in [(1, Logistic()), (30, Logistic()), *((4, loss) for loss in losses)]
    )


def _rates(name: str, relation: Adjacency, way: str) -> tuple[RegressionFacts, ...]:
    losses = (
        (1, PoissonLoss(9.0, 6.0)),
        (4, PoissonLoss(200.0, 28.0)),
        (30, PoissonLoss(1.0, 2.0)),
    )
    constant = way == "intercept"
    return tuple(
        RegressionFacts(_of_terms(terms, loss, constant=constant), loss, relation)
        for terms, loss in losses
    )


def _of_terms(terms: int, loss: Any, *, constant: bool) -> Predictors:
    responses = getattr(loss, "levels", 2) - 1
    return Predictors(terms, constant, 0.9, 0.5, 1.0, responses=responses)


def _tables(name: str, relation: Adjacency, way: str) -> tuple[CountFacts, ...]:
    sizes = ((1, 2, False), (1, 90_001, False), (1, 7, True), (40, 900, True))
    return tuple(CountFacts(*size, relation) for size in sizes)


def _answering(name: str, relation: Adjacency, way: str) -> tuple[CountFacts, ...]:
    return tuple(CountFacts(1, size, False, relation) for size in (3, 7, 2_001))


def _in_order(name: str, relation: Adjacency, way: str) -> tuple[CountFacts, ...]:
    shapes = ((1, 2), (1, 90_001)) if way == "all rows" else ((2, 7), (40, 300))
    return tuple(
        CountFacts(1, groups * cells + 1, False, relation, (groups, cells))
        for groups, cells in shapes
    )


def _planes(name: str, relation: Adjacency, way: str) -> tuple[CountFacts, ...]:
    groups = 2 if way == "groups" else 1
    sides = ((2, 2), (16, 5), (300, 300))
    return tuple(
        CountFacts(1, groups * x * y + 1, False, relation, (groups, x, y)) for x, y in sides
    )


def _measured(name: str, relation: Adjacency, way: str) -> tuple[CountFacts, ...]:
    parts = (4, 6) if way == "all rows" else (19, 90_001)
    return tuple(CountFacts(1, size, True, relation) for size in parts)


def _one_mean(name: str, relation: Adjacency, way: str) -> tuple[CountFacts, ...]:
    return (CountFacts(1, 4, True, relation),)


def _quantiles(name: str, relation: Adjacency, way: str) -> tuple[QuantileFacts, ...]:
    groups = 1 if way == "all rows" else 6
    choices = (((0.5,), None), ((0.0, 0.3, 1.0), 0.95), ((0.25,) * 40, 0.8))
    return tuple(
        QuantileFacts(probs, groups, Grid(1000), level, relation) for probs, level in choices
    )


def _numbers(name: str, relation: Adjacency, way: str) -> tuple[CountFacts, ...]:
    sizes = (1,) if way == "one" else (2, 10)
    return tuple(CountFacts(size, size, False, relation) for size in sizes)


def _margins(name: str, relation: Adjacency, way: str) -> tuple[MarginFacts, ...]:
    chain = tuple((i, i + 1) for i in range(20))
    request = ((0, 1),) if way == "one" else ((0,), (1,), (0, 1), (1, 2))
    shapes = (((3, 4, 3), request), ((6,) * 21, chain), ((3, 1000), ((0,), (1,))))
    return tuple(MarginFacts(sizes, terms, relation) for sizes, terms in shapes)


def _running(name: str, relation: Adjacency, way: str) -> tuple[CountFacts, ...]:
    shapes = ((1, 2), (1, 366), (1, 1_000)) if way == "all rows" else ((2, 3), (40, 365))
    sizes = [(1, groups * cells + 1, False) for groups, cells in shapes]
    return tuple(
        CountFacts(*size, relation, shape) for size, shape in zip(sizes, shapes, strict=True)
    )


def _undeclared(name: str, relation: Adjacency, way: str) -> tuple[LevelFacts, ...]:
    return tuple(LevelFacts(size, relation) for size in ((1,) if way == "one" else (2, 10)))


def _verbs(family: str) -> tuple[Verb, ...]:
    return tuple(entry for entry in VERBS if family in entry.families.split())


def _screening(
    names: tuple[str, ...], ways: tuple[str, str], family: str, noise: noises.Noises
) -> Family:
    values = ("logs",) if names == ("dp_bh",) else ("scatters", "products")
    table = {name: SCREENING[name] for name in names}
    released = ("count", "total", "squares", "chosen", *values)
    return Family(table, screening, ways, _verbs(family), facts_selected.screened, noise, released)


MOMENT_VALUES = ("count", "total", "second")
FAMILIES = {
    "covariance": Family(
        COVARIANCE,
        covariance,
        (CENTRED, "origin"),
        _verbs("covariance"),
        _moments,
        noises.of_moments,
        MOMENT_VALUES,
    ),
    "subspace": Family(
        SUBSPACE,
        subspace,
        (CENTRED, "origin"),
        _verbs("subspace"),
        _moments,
        noises.of_moments,
        ("frame",),
    ),
    "regression": Family(
        REGRESSION,
        regression,
        ("plain", "weighted"),
        _verbs("regression"),
        _moments,
        noises.of_moments,
        MOMENT_VALUES,
    ),
    "coefficients": Family(
        COEFFICIENTS,
        regression,
        ("intercept", "no intercept"),
        _verbs("coefficients"),
        _predictors,
        noises.of_coefficients,
        ("curvature", "coefficients"),
    ),
    "rates": Family(
        RATES,
        regression,
        ("intercept", "no intercept"),
        _verbs("rates"),
        _rates,
        noises.of_rates,
        ("curvature", "coefficients"),
    ),
    "counts": Family(
        COUNTS,
        counts,
        ("groups", "all rows"),
        _verbs("counts"),
        _tables,
        noises.of_counts,
        ("values",),
    ),
    "responses": Family(
        RESPONSES,
        counts,
        ("groups", "all rows"),
        _verbs("responses"),
        _answering,
        noises.of_answers,
        ("values",),
        20_000,
    ),
    "ordered": Family(
        ORDERED,
        counts,
        ("groups", "all rows"),
        _verbs("ordered"),
        _in_order,
        noises_ordered.of_sums,
        ("values",),
    ),
    "plane": Family(
        PLANE,
        counts,
        ("groups", "all rows"),
        _verbs("plane"),
        _planes,
        noises_ordered.of_sums,
        ("values",),
    ),
    "measured": Family(
        MEASURED,
        counts,
        ("groups", "all rows"),
        _verbs("measured"),
        _measured,
        noises.of_held_counts,
        ("values",),
    ),
    "running": Family(
        {"factorisation": ORDERED["factorisation"]},
        counts,
        ("groups", "all rows"),
        _verbs("running"),
        _running,
        of_running_sums,
        ("values",),
    ),
    "bounds": Family(
        BOUNDS,
        counts,
        ("several", "one"),
        _verbs("bounds"),
        _numbers,
        noises.of_cells,
        ("values",),
    ),
    "levels": Family(
        LEVELS,
        counts,
        ("several", "one"),
        _verbs("levels"),
        _undeclared,
        noises.of_levels,
        ("values",),
        20_000,
    ),
    "screening": _screening(
        ("peeling", "moments"), ("two-sided", "larger"), "screening", noises_screened.of_screened
    ),
    "centred": _screening(
        ("centred",), ("two-sided", "smaller"), "centred", noises_screened.of_centred
    ),
    "mirrored": _screening(
        ("adapt",), ("larger", "smaller"), "mirrored", noises_screened.of_screened
    ),
    "logs": _screening(("dp_bh",), ("two-sided", "larger"), "logs", noises_screened.of_logs),
    "margins": Family(
        MARGINS,
        margins,
        ("several", "one"),
        _verbs("margins"),
        _margins,
        noises.of_margins,
        ("values",),
    ),
    "graphs": Family(
        GRAPHS,
        margins,
        ("several", "one"),
        _verbs("graphs"),
        _margins,
        noises.of_margins,
        ("values",),
    ),
    "selection": Family(
        {name: values for name, values in SELECTION.items() if name != "sparse_vector"},
        selection,
        ("one", "crossed"),
        _verbs("selection"),
        facts_selected.ranked,
        noises_selected.of_selected,
        ("places", "values"),
    ),
    "columns": Family(
        {name: SELECTION[name] for name in ("permute_and_flip", "peeling")},
        selection,
        ("correlation", "z"),
        _verbs("columns"),
        facts_selected.columns,
        noises_selected.of_columns,
        ("places", "count", "centre", "values"),
    ),
    "gains": Family(
        {"peeling": SELECTION["peeling"]},
        selection,
        ("gain",),
        _verbs("gains"),
        facts_selected.columns,
        noises_selected.of_gains,
        ("places", "count", "centre", "slopes", "values"),
    ),
    "above": Family(
        {"sparse_vector": SELECTION["sparse_vector"]},
        selection,
        ("correlation", "z"),
        _verbs("above"),
        facts_selected.columns,
        noises_selected.of_columns,
        ("places", "count", "centre", "values"),
    ),
    "means": Family(
        MEANS,
        scalar,
        ("all rows",),
        _verbs("means"),
        _one_mean,
        noises.of_paired_counts,
        ("values",),
    ),
    "quantiles": Family(
        QUANTILES,
        scalar,
        ("groups", "all rows"),
        _verbs("quantiles"),
        _quantiles,
        noises.of_quantiles,
        ("counts", "values"),
    ),
}
