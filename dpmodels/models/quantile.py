"""``dp_quantile``: private quantiles by formula."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from itertools import pairwise
from numbers import Real as Number
from typing import Unpack

from dpmodels.arguments import finite, lists_values
from dpmodels.design.cells import unbound_cells
from dpmodels.errors import ArgumentError, quoted
from dpmodels.formula.sides import Sides, one_measured, parse_sides, positions
from dpmodels.formula.tally import MAX_CELLS, Tally
from dpmodels.formula.values import Category, Columns, Real
from dpmodels.mechanisms import QUANTILES, QuantileMechanism, choose_strategy
from dpmodels.mechanisms.quantile_facts import Grid
from dpmodels.mechanisms.scalar import Exponential, QuantileFacts
from dpmodels.mechanisms.scalar.refined import FIRST
from dpmodels.models.descriptive_specs import descriptive_call, sampled_spec
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.released import QuantilesRelease
from dpmodels.request import Request
from dpmodels.results.base import checked_level
from dpmodels.results.bounds import QuantileResult
from dpmodels.results.call import DescribedCall
from dpmodels.results.weighted import WeightedQuantileResult
from dpmodels.typing import Floats
from dpmodels.verbs import spec_of

# Cells of the grid, a choice: fewer where there are many groups.
FINEST, COARSEST = 2**16, 1_000
WEIGHTED = 128  # Under a survey design, where each has noise of its own
MOST_PROBS = 100  # A choice: they share the budget, and more leave little to each
# Without intervals so few are drawn with less noise than counts have.
FEW_PROBS = 3
# From so many on a tree has less noise in ranks than cells cut around each of them; of a number
# with few steps, whose values have cells of their own, it has not. Tried on rows of many shapes.
MANY_PROBS = 5


@verb
def dp_quantile(
    formula: str,
    data: object = None,
    *,
    probs: float | Iterable[float] = (0.25, 0.5, 0.75),
    level: float | None = 0.95,
    mechanism: str | QuantileMechanism = "auto",
    **shared: Unpack[Shared],
) -> QuantileResult:
    """Release quantiles of a variable, by groups or not.

    Parameters
    ----------
    formula : str
        ``"~ income"``, or ``"income ~ sex"`` for those of each group.
    eps
        A delta is of use with many probs.
    protocol
        Here ``"pooled"``, ``"secure_sum"`` or ``"local"``.
    probs : float or sequence of float
        From 0 to 1, increasing.
    level : float or None
        Coverage of the confidence intervals; None for none.
    mechanism : {"auto", "refined", "tree", "exponential", "bracketed"} or instance
        Counts of cells that are cut finer where the quantiles are; a tree of
        counts over cells between all of them; the exponential mechanism,
        which gives no intervals; or that with counts beside what it draws,
        whose quantiles are closer and intervals longer than those of
        ``"refined"``. By default ``"bracketed"`` for one quantile, the
        exponential mechanism for up to three with ``level=None``, the tree
        from five on, unless the variable has few steps.

    Returns
    -------
    QuantileResult

    Notes
    -----
    The noise is in the rank, not in the value. The declared range has 65,536 public cells, fewer
    where there are more than 15 groups: half of them equal, half of them finer towards 0, so that
    bounds may be far too wide. A number that is declared in steps, ``dp.Numeric(0, 15, step=1)``,
    has its steps for cells, and its quantiles are among them.

    Intervals invert ranks, without a density: they also hold for whole numbers and other values
    that many rows share. Their ends are those of cells, rounded outwards, so that they cover
    somewhat more often than stated where cells hold many rows or the noise is large.

    Near 0 and 1 the noise could move ranks beyond the rows, to any value of the empty range: there
    a quantile farther inside replaces the requested one, and `drawn` says which.

    Under a survey design a weighted distribution function on 128 public cells is inverted, with
    Woodruff's intervals.

    References
    ----------
    .. [1] Woodruff, R. S. (1952). "Confidence intervals for medians and other
       position measures." JASA 47(260), 635-646.
    .. [2] Smith, A. (2011). "Privacy-preserving statistical estimation with
       optimal convergence rates." STOC.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(age=dp.Numeric(0, 100, step=1), sex=["F", "M"])
    >>> rows = {"age": list(range(100)) * 10, "sex": ["F", "M"] * 500}
    >>> fit = dp_quantile("age ~ sex", rows, codebook=cb, eps=1.0, probs=[0.25, 0.5])
    >>> fit.params.shape, fit.conf_int().shape
    ((2, 2), (4, 2))
    """
    return run_verb("quantile", quantile_spec, **locals())


@spec_of("quantile", designs=True)
def quantile_spec(request: Request) -> VerbSpec[QuantileResult]:
    """Build the specification of a dp_quantile call."""
    formula_sides = parse_sides(request.formula, request.codebook)
    number, factors = one_measured(formula_sides, "dp_quantile")
    probs, level = checked_probs(request.options["probs"]), request.options["level"]
    if level is not None:
        checked_level(level)
    if request.codebook.design is not None:
        return _weighted_spec(request, formula_sides, probs)
    grouped = Tally(factors, number)
    grid = grid_of(grouped)
    tally = Tally((*factors, _grid(number, grid)))

    def result(call: DescribedCall, release: QuantilesRelease) -> QuantileResult:
        bought = None if release.info == Exponential.info else level
        return QuantileResult(call, release, probs, bought, grid.cells)

    return VerbSpec(
        request,
        descriptive_call(formula_sides, (grouped,)),
        result,
        unbound_cells(formula_sides.text, formula_sides.codebook, (tally,)),
        QuantileFacts(probs, grouped.cells, grid, level, request.adjacency),
        lambda mechanism, _: choose_strategy(
            mechanism, QUANTILES, lambda: _auto(probs, level, grid)
        ),
        sizes={"prob": len(probs)},
    )


def _weighted_spec(
    request: Request, formula_sides: Sides, probs: tuple[float, ...]
) -> VerbSpec[QuantileResult]:
    design, level = request.codebook.design, request.options["level"]
    units = design is not None and design.psu is not None
    number, factors = one_measured(formula_sides, "dp_quantile")
    grid = grid_of(Tally(factors, number), WEIGHTED)
    tally = Tally((*factors, _grid(number, grid)), number, running=units)
    ends = grid.lower, grid.upper
    result = partial(WeightedQuantileResult, probs=probs, level=level, grid=grid.cells, ends=ends)
    return sampled_spec(request, formula_sides, (tally,), result)


def _auto(probs: tuple[float, ...], level: float | None, grid: Grid) -> tuple[str, str]:
    if level is None and len(probs) <= FEW_PROBS:
        reason = "it draws few quantiles with less noise, and no interval is requested."
        return "exponential", reason
    if len(probs) >= MANY_PROBS and grid.cells > FIRST:
        return "tree", f"one tree of counts serves all {len(probs)} quantiles."
    if level is not None and len(probs) == 1:
        reason = (
            "it draws the quantile with less noise, and counts rows around it for the interval."
        )
        return "bracketed", reason
    if level is None:
        return "refined", "its counts serve all quantiles."
    return "refined", "it gives intervals, also for values that many rows share."


def grid_of(grouped: Tally, finest: int = FINEST) -> Grid:
    """Return the cells of a number's range, limited over all groups together."""
    number = grouped.measured
    assert number is not None
    max_cells = min(max(MAX_CELLS // grouped.cells, COARSEST), finest)
    width = number.upper - number.lower
    steps = round(width / number.step) + 1 if number.step else math.inf
    if steps <= max_cells:
        return Grid(int(steps))
    return Grid(max_cells, min(max(-number.lower / width, 0.0), 1.0) if width else 0.0)


def _grid(number: Real, grid: Grid) -> Category:
    def cells(columns: Columns) -> Floats:
        return grid.cell(positions(number, columns))

    return Category(number.code, tuple(range(grid.cells)), cells)


def checked_probs(probs: object) -> tuple[float, ...]:
    """Return increasing numbers from 0 to 1."""
    values = [probs] if isinstance(probs, Number) else probs
    if not lists_values(values):
        raise ArgumentError(f"probs={quoted(probs)}: expected numbers from 0 to 1")
    checked = tuple(_prob(value) for value in values)
    if not 1 <= len(checked) <= MOST_PROBS:
        raise ArgumentError(f"probs= has {len(checked)} numbers: expected 1 to {MOST_PROBS}")
    if any(not low < high for low, high in pairwise(checked)):
        raise ArgumentError(
            f"probs={quoted(list(checked))}: expected increasing numbers, each once"
        )
    return checked


def _prob(value: object) -> float:
    prob = finite("probs", value)
    if not 0 <= prob <= 1:
        raise ArgumentError(f"probs= holds {quoted(value)}: expected numbers from 0 to 1")
    return prob
