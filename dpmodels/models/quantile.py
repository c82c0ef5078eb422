"""``dp_quantile``: private quantiles by formula."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from numbers import Real as Number

import numpy as np

from dpmodels.arguments import finite
from dpmodels.codebook import Codebook
from dpmodels.design.cells import private_cells
from dpmodels.errors import ArgumentError, said
from dpmodels.formula.sides import one_measured, positions, sides
from dpmodels.formula.tally import MAX_CELLS, Tally
from dpmodels.formula.values import Category, Columns, Real
from dpmodels.mechanisms.scalar import Exponential, QuantileFacts
from dpmodels.models.asked import about
from dpmodels.models.describing import described_call
from dpmodels.noise import source
from dpmodels.privacy import (
    Adjacency,
    AdjacencyName,
    Guarantee,
    Ledger,
    charge,
    check_ledger,
    resolve_budget,
)
from dpmodels.privacy import adjacency as neighbours
from dpmodels.released import digest
from dpmodels.results.arguments import checked_level
from dpmodels.results.quantile import QuantileResult
from dpmodels.typing import Floats

# Cells of the grid: fewer where there are many groups.
FINEST, COARSEST = 2**16, 1_000
MOST_PROBS = 100


def dp_quantile(
    formula: str,
    data: object,
    *,
    codebook: Codebook,
    eps: float | None = None,
    delta: float = 0.0,
    budget: Guarantee | None = None,
    probs: float | Iterable[float] = (0.25, 0.5, 0.75),
    level: float | None = 0.95,
    adjacency: AdjacencyName | Adjacency = "replace",
    ledger: Ledger | None = None,
) -> QuantileResult:
    """Release quantiles of a variable, by groups or not.

    Parameters
    ----------
    formula : str
        ``"~ income"``, or ``"income ~ sex"`` for those of each group.
    data : frame, mapping, path or iterable of frames
        As for :func:`dp_pca`. Never kept.
    codebook : Codebook
        Public bounds and levels of the variables.
    eps, delta, budget
        The guarantee, as for :func:`dp_pca`; a delta is of use with many probs.
    probs : float or sequence of float
        From 0 to 1, increasing; they share the budget equally.
    level : float or None
        Coverage of the confidence intervals, which take half of the budget;
        None buys none.
    adjacency : {"replace", "add-remove"}
        Who is a neighbour.
    ledger : Ledger, optional
        Charged before a row is read; refuses what it cannot afford.

    Returns
    -------
    QuantileResult

    Raises
    ------
    FormulaError, CodebookError, ArgumentError, BudgetError, FrameError
        Before a row is read and before anything is charged.
    LedgerError
        If the ledger refuses; nothing is charged.

    Notes
    -----
    The exponential mechanism on a public grid of 65,536 cells over the
    declared range, fewer where there are more than 15 groups: what is noisy is
    the rank, not the value. Near 0 and 1 noise would take ranks out of the
    rows, where any value of the empty range might be drawn: there a quantile
    farther inside stands for the one asked, and `drawn` says which. Numbers of
    rows take 5 % of the budget.

    References
    ----------
    .. [1] Smith, A. (2011). "Privacy-preserving statistical estimation with
       optimal convergence rates." STOC.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(age=(0, 100), sex=["F", "M"])
    >>> rows = {"age": list(range(100)) * 10, "sex": ["F", "M"] * 500}
    >>> fit = dp_quantile("age ~ sex", rows, codebook=cb, eps=1.0, probs=[0.25, 0.5])
    >>> fit.params.shape, fit.conf_int().shape
    ((2, 2), (4, 2))
    """
    both = sides(formula, codebook)
    number, factors = one_measured(both, "dp_quantile")
    asked = checked_probs(probs)
    if level is not None:
        checked_level(level)
    guarantee, relation = resolve_budget(eps, delta, budget), neighbours(adjacency)
    check_ledger(ledger)
    grouped = Tally(factors, number)
    grid = cells_of(grouped)
    tally = Tally((*factors, _grid(number, grid)))
    private = private_cells(both.text, data, both.codebook, (tally,))
    facts = QuantileFacts(asked, grouped.cells, grid, level, relation)
    strategy = Exponential()
    plan = strategy.plan(facts, guarantee)
    charged = charge(
        ledger,
        plan.events,
        adjacency=relation,
        about=about("dp_quantile", both.text, strategy, both.codebook),
    )
    release = strategy.release(strategy.measure(private, plan), plan, source())
    charged.released(lambda: digest(release))
    call = described_call(both, (grouped,), charged.told, "")
    return QuantileResult(call, release, asked, level, grid)


def cells_of(grouped: Tally) -> int:
    """Return how many cells the grid of a range has, for all groups together not too many."""
    return max(min(FINEST, MAX_CELLS // grouped.cells), COARSEST)


def _grid(number: Real, grid: int) -> Category:
    """Cut a number's public range into equal cells."""

    def cells(columns: Columns) -> Floats:
        return np.minimum(np.floor(positions(number, columns) * grid), grid - 1.0)

    return Category(number.code, tuple(range(grid)), cells)


def checked_probs(probs: object) -> tuple[float, ...]:
    """Return increasing numbers from 0 to 1.

    Raises
    ------
    ArgumentError
        If they are not.
    """
    given = [probs] if isinstance(probs, Number) else probs
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise ArgumentError(f"probs={said(probs)}: expected numbers from 0 to 1")
    asked = tuple(_prob(one) for one in given)
    if not 1 <= len(asked) <= MOST_PROBS:
        raise ArgumentError(f"probs= has {len(asked)} numbers: expected 1 to {MOST_PROBS}")
    if any(not low < high for low, high in pairwise(asked)):
        raise ArgumentError(f"probs={said(list(asked))}: expected increasing numbers, each once")
    return asked


def _prob(given: object) -> float:
    prob = finite("probs", given)
    if not 0 <= prob <= 1:
        raise ArgumentError(f"probs= holds {said(given)}: expected numbers from 0 to 1")
    return prob
