"""Tables of counts drawn from public shapes, and queries on their cells."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import numpy as np

from dpmodels.arguments import option
from dpmodels.codebook import Codebook
from dpmodels.errors import ArgumentError, quoted
from dpmodels.evaluation.recipe import WORKLOADS, Cell, Domain, Recipe, Score, margins, recipes
from dpmodels.noise import discrete_laplace, source
from dpmodels.typing import Floats, Integers
from dpmodels.variables import Categorical, Integer

# Below, all but one draw in e^128 are 0; more noise than requested costs less.
_SMALLEST_SCALE: Final = 2.0**-7


def noisy(counts: Integers, scale: float) -> Floats:
    """Return counts with discrete Laplace noise of a scale in rows, as floats of the same shape."""
    noise = discrete_laplace(max(scale, _SMALLEST_SCALE), counts.size, source())
    return np.asarray(counts + noise.reshape(counts.shape), dtype=np.float64)


def identity(counts: Integers, eps: float) -> Floats:
    """Add noise to every cell: the better baseline if rows are many.

    Theorem
        ε-differentially private where neighbours have one row more or fewer.
    Sensitivity
        A row is in one cell: 1 in L1.
    Noise
        Discrete Laplace of scale 1/ε on each count.
    Numerics
        exact: integers.
    Source
        Dwork, McSherry, Nissim, Smith (2006), "Calibrating noise to sensitivity in private data
        analysis", TCC.
    """
    return noisy(counts, 1 / eps)


def uniform(counts: Integers, eps: float) -> Floats:
    """Spread the noisy total evenly: the better baseline if rows are few.

    Theorem
        ε-differentially private where neighbours have one row more or fewer. Inconsistent: the
        deviation of the shape from uniform remains as error at any ε.
    Sensitivity
        A row more or fewer moves the total by 1.
    Noise
        Discrete Laplace of scale 1/ε on the total.
    Numerics
        exact: an integer.
    Source
        Hay et al. (2016), "Principled evaluation of differentially private algorithms using
        DPBench", SIGMOD, where it is the baseline of data-dependent algorithms.
    """
    total = noisy(counts.sum(keepdims=True), 1 / eps)
    return np.broadcast_to(total / counts.size, counts.shape).copy()


BASELINES: Final = {"identity": identity, "uniform": uniform}


READ: Final = ("released", "counts")
MOST_CELLS: Final = 2**24


@dataclass(frozen=True, repr=False, eq=False)
class Histograms:
    """Shapes by name, from which tables are drawn at every scale and domain."""

    shapes: Mapping[str, Floats]
    scales: tuple[int, ...]
    domains: tuple[object, ...]  # None: that of the table
    error: str

    @property
    def about(self) -> str:
        """Description of the workload and the error."""
        return f"{WORKLOADS[self.error]((2, 2)).about}; error |Wx - y| / (queries x scale)"

    @property
    def baselines(self) -> tuple[Recipe, ...]:
        """Noise on every cell, and the total spread evenly."""
        return recipes(BASELINES)

    def settings(self) -> list[Cell]:
        """Return tables, scales and domains; refuse domains that do not divide a table's."""
        return [
            Cell(name, scale, domain_of(name, self.shapes[name].shape, domain), math.nan)
            for name, domain, scale in product(self.shapes, self.domains, self.scales)
        ]

    def draw(self, cell: Cell, rng: np.random.Generator) -> Integers:
        """Draw independent rows by the table's shares of cells."""
        shares = coarsened(self.shapes[cell.table], cell.domain).ravel()
        counts = rng.multinomial(cell.scale, shares / shares.sum())
        return counts.astype(np.int64).reshape(cell.domain)

    def times(self, table: Integers, copies: int) -> Integers:
        """Return counts multiplied by `copies`."""
        return table * copies

    def truth(self, table: Integers) -> Floats:
        """Return the counts themselves."""
        return table.astype(np.float64)

    def score(self, recipe: Recipe, table: Integers, eps: float, seed: int) -> Score:
        """Measure the error of the workload's answers from released cells."""
        answer = self._answer(recipe, table, eps, seed)
        if self.error == "marginals" and recipe.read is None and _has_margins(answer):
            return _of_margins(answer, table)
        cells = recipe.array(answer, READ)
        if cells.size != table.size:
            raise ArgumentError(
                f"its answer has the shape {cells.shape}: expected a number for each cell of "
                f"{table.shape}"
            )
        cells = cells.reshape(table.shape)
        workload = WORKLOADS[self.error](table.shape)
        scale = float(table.sum())
        signed = workload.image(cells - table)
        return Score(workload.error(signed, scale), signed / scale, cells)

    def _answer(self, recipe: Recipe, table: Integers, eps: float, seed: int) -> object:
        if not recipe.is_verb:
            return recipe.of_counts(table, eps, seed)
        names = variables(table.ndim)
        positions = np.unravel_index(np.repeat(np.arange(table.size), table.ravel()), table.shape)
        kind = Categorical if self.error == "marginals" else Integer
        declared = {
            name: Categorical(tuple(range(cells))) if kind is Categorical else Integer(0, cells - 1)
            for name, cells in zip(names, table.shape, strict=True)
        }
        breaks = table.shape[0] if table.ndim == 1 else table.shape
        rows = dict(zip(names, positions, strict=True))
        book = Codebook(declared)
        return recipe.of_rows(rows, book, eps, seed, adjacency="add-remove", breaks=breaks)


def variables(axes: int) -> list[str]:
    """Return the names of the variables of rows: ``v`` for one axis, ``v1, v2, ...`` for more."""
    return ["v"] if axes == 1 else [f"v{axis + 1}" for axis in range(axes)]


def _has_margins(answer: object) -> bool:
    return not hasattr(answer, READ[0]) and callable(getattr(answer, "table", None))


def _of_margins(answer: Any, table: Integers) -> Score:
    names, parts = variables(table.ndim), []
    for axes in margins(table.ndim):
        over = tuple(axis for axis in range(table.ndim) if axis not in axes)
        released = answer.table(*(names[axis] for axis in axes)).released
        parts.append(np.ravel(np.asarray(released, dtype=np.float64) - table.sum(axis=over)))
    signed, scale = np.concatenate(parts), float(table.sum())
    return Score(WORKLOADS["marginals"](table.shape).error(signed, scale), signed / scale)


def histograms(
    tables: object, scales: tuple[int, ...], domains: tuple[object, ...], error: object
) -> Histograms:
    """Return the task; ArgumentError if a table is not valid."""
    if not isinstance(tables, Mapping) or not tables:
        raise ArgumentError(
            f"tables={quoted(tables)}: expected a mapping from names to public histograms, such as "
            "dp.shapes.standard(4096)"
        )
    require_names(tables)
    shapes = {name: _shape(name, table) for name, table in tables.items()}
    task = Histograms(shapes, scales, domains, option("error", error, WORKLOADS))
    for cell in task.settings():
        WORKLOADS[task.error](cell.domain)
    return task


def require_names(tables: Mapping[object, object]) -> None:
    """Refuse tables whose names are not nonempty strings."""
    for name in tables:
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"tables: the name {quoted(name)} is not a nonempty string")


def _shape(name: str, table: object) -> Floats:
    try:
        shape = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError):
        shape = np.empty(0)
    fits = shape.ndim >= 1 and all(cells >= 2 for cells in shape.shape)
    if not fits or not shape.size <= MOST_CELLS:
        raise ArgumentError(
            f"tables[{name!r}] has the shape {shape.shape}: expected counts by cell, at least two "
            f"cells along each axis and at most {MOST_CELLS:,} in total"
        )
    if not np.isfinite(shape).all() or shape.min() < 0 or not 0 < shape.sum() < np.inf:
        raise ArgumentError(
            f"tables[{name!r}] is not a valid histogram: expected finite nonnegative counts or "
            "shares of a public or simulated table, not all 0"
        )
    return shape


def domain_of(name: str, table_domain: Domain, domain: Any) -> Domain:
    """Return the number of cells along each axis of a table for a domain."""
    if domain is None:
        return table_domain
    divisors = domain if isinstance(domain, tuple) else (domain,) * len(table_domain)
    divides = len(divisors) == len(table_domain) and all(
        isinstance(into, int) and into >= 2 and cells % into == 0
        for cells, into in zip(table_domain, divisors, strict=True)
    )
    if not divides:
        raise ArgumentError(
            f"domain={domain}: cells of tables[{name!r}] are merged evenly; expected divisors of "
            f"{' x '.join(map(str, table_domain))}, at least 2"
        )
    return divisors


def coarsened(shape: Floats, domain: Domain) -> Floats:
    """Merge neighbouring cells.

    >>> coarsened(np.arange(6.0), (3,))
    array([1., 5., 9.])
    """
    for axis, into in enumerate(domain):
        parts = (*shape.shape[:axis], into, -1, *shape.shape[axis + 1 :])
        shape = shape.reshape(parts).sum(axis=axis + 1)
    return shape
