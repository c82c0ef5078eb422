"""Checks of algorithms: bias, consistency, and whether rows and budget can stand for each other.

*Bias.* Signed errors e_1, ..., e_R of independent runs, vectors of one workload, have the squared
bias ``|E e|²`` as the mean of ``<e_i, e_j>`` over pairs of different runs. If errors are symmetric
about 0, as noise of the house is, their signs may be turned at will: the p-value is the share of
turned samples with a mean as large, exact for the turns that are drawn.

*Consistency.* As eps grows without end the error has to vanish. It is measured at 10³ and at 10⁶
times eps: an error in proportion to 1/eps is then 1,000 times smaller, one that does not fall is
that of a table the algorithm cannot give. It has to fall by five.

*Exchangeability.* Where every row stands ten times and eps is a tenth, the scaled error of an
algorithm that knows only signal and noise is the same. The two are run on the same tables, and the
mean of the logarithm of their ratio has an interval, of each table and of all together. Rounding to
whole numbers is not exchangeable, so eps is one half at most here, where it is worth one percent;
what is flagged lies beyond ten. Noise of an (eps, delta) guarantee is not in proportion to 1/eps,
and may be flagged for that. What is not flagged is not proved: the interval says what could have
been. Where an error is 0 there is none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import pandas as pd
from scipy import stats

from dpmodels.errors import ArgumentError
from dpmodels.evaluation.recipe import Cell, Recipe, Task, draw_tables, run_once, seed_of
from dpmodels.options import options
from dpmodels.typing import Floats

SIGN_FLIPS: Final = 9_999
LARGE: Final = 1_000.0
FALL: Final = 5.0
TIMES: Final = 10
LARGEST: Final = 0.5
TOLERANCE: Final = 1.1
# Runs of the check of consistency: what has to be told apart differs by orders of magnitude.
CONSISTENCY_RUNS: Final = 3
ALARM: Final = 0.01
# Scaled errors below are rounding.
_ROUNDING: Final = 1e-9


def bias(products: Floats, rng: np.random.Generator) -> tuple[float, float]:
    """Return the squared bias as a share of the squared error, and the p-value of none.

    Inner products of signed errors have the shape (runs, runs). The share is an unbiased estimate,
    which may be negative; both are nan of fewer than two runs.
    """
    runs = len(products)
    if runs < 2:
        return math.nan, math.nan
    total = float(np.trace(products)) / runs
    if total == 0:
        return 0.0, 1.0
    pairs = products - np.diag(np.diag(products))
    pair_sum = float(pairs.sum())
    signs = rng.choice([-1.0, 1.0], size=(SIGN_FLIPS, runs))
    flipped = ((signs @ pairs) * signs).sum(axis=1)
    # Sums in another order differ in their last digits.
    larger = int((flipped >= pair_sum - 1e-9 * abs(pair_sum)).sum())
    return pair_sum / (runs * (runs - 1)) / total, (1 + larger) / (1 + SIGN_FLIPS)


def smallest_p(runs: int) -> float:
    """Return the smallest p-value that so many runs can give: turning all signs changes nothing."""
    return max(2.0 ** (1 - runs), 1 / (1 + SIGN_FLIPS))


def checked(
    task: Task, recipes: Sequence[Recipe], cells: Sequence[Cell], repeats: int, seed: int
) -> pd.DataFrame:
    """Try consistency and exchangeability at the smallest scale of every table.

    One row a recipe and table, and of ratios one for all tables, named by an empty text: ratios of
    errors with intervals, and True, False, or None where a recipe cannot be asked at such a budget.
    """
    # The last of a table and domain stays: of the smallest scale, the smallest eps.
    order = sorted(cells, key=lambda cell: (-cell.scale, -cell.eps))
    tried = {(cell.table, cell.domain): cell for cell in order}
    level = 1 - ALARM / max(len(recipes) * (len(tried) + 1), 1)
    lines = []
    with options(codebook=None, adjacency=None, ledger=None):
        for recipe in recipes:
            logs = []
            for cell in tried.values():
                logs.append(_log_ratios(task, recipe, cell, repeats, seed))
                where = {"algorithm": recipe.name, "table": cell.table, "domain": cell.size}
                consistent = _consistent(task, recipe, cell, seed)
                lines.append(where | consistent | _interval(logs[-1], level))
            where = {"algorithm": recipe.name, "table": "", "domain": ""}
            blank = {"falls_to": math.nan, "consistent": None}
            lines.append(where | blank | _interval(np.concatenate(logs), level))
    return pd.DataFrame(lines)


def _errors(
    task: Task, recipe: Recipe, cell: Cell, tables: Iterable[object], seed: int
) -> Floats | None:
    """Return errors on tables that were drawn before; None where the recipe cannot be asked."""
    try:
        scores = [
            run_once(task, recipe, table, cell, seed_of(seed, f"check {recipe.name}", cell, repeat))
            for repeat, table in enumerate(tables)
        ]
    except ArgumentError:
        return None
    return np.array([score.error for score in scores])


def _consistent(task: Task, recipe: Recipe, cell: Cell, seed: int) -> dict[str, object]:
    errors, later_errors = (
        _errors(task, recipe, step, draw_tables(task, cell, CONSISTENCY_RUNS, seed), seed)
        for step in (cell._replace(eps=cell.eps * factor) for factor in (LARGE, LARGE**2))
    )
    if errors is None or later_errors is None:
        return {"falls_to": math.nan, "consistent": None}
    first, last = float(errors.mean()), float(later_errors.mean())
    ratio = last / first if first > 0 else 0.0
    return {"falls_to": ratio, "consistent": last <= max(first / FALL, _ROUNDING)}


def _log_ratios(task: Task, recipe: Recipe, cell: Cell, repeats: int, seed: int) -> Floats:
    """Return how errors change where rows are ten times as many, eps a tenth; none if not asked."""
    small = cell._replace(eps=min(cell.eps, LARGEST))
    enlarged = (task.times(table, TIMES) for table in draw_tables(task, cell, repeats, seed))
    base = _errors(task, recipe, small, draw_tables(task, cell, repeats, seed), seed)
    tenfold = _errors(task, recipe, small._replace(eps=small.eps / TIMES), enlarged, seed)
    if base is None or tenfold is None or min(base.min(), tenfold.min()) <= 0:
        return np.empty(0)
    return np.asarray(np.log(tenfold / base))


def _interval(logs: Floats, level: float) -> dict[str, object]:
    """Return the ratio of errors with its interval, and whether that allows for about 1."""
    if len(logs) < 2:
        blank = {"ratio": math.nan, "ratio_low": math.nan, "ratio_high": math.nan}
        return blank | {"exchangeable": None}
    middle, se = float(logs.mean()), float(logs.std(ddof=1)) / math.sqrt(len(logs))
    reach = float(stats.t.ppf((1 + level) / 2, len(logs) - 1)) * se
    with np.errstate(over="ignore"):
        ratio, low, high = np.exp([middle, middle - reach, middle + reach]).tolist()
    beyond = low > TOLERANCE or high < 1 / TOLERANCE
    return {"ratio": ratio, "ratio_low": low, "ratio_high": high, "exchangeable": not beyond}
