"""Checks of algorithms: bias, consistency, and exchangeability of rows and budget.

*Bias.* Signed errors e_1, ..., e_R of independent runs, vectors of one workload, have the squared
bias ``|E e|²`` as the mean of ``<e_i, e_j>`` over pairs of different runs. If errors are symmetric
about 0, as this package's noise is, their signs can be flipped: the p-value is the share of
flipped samples with a mean as large, exact for the flips that are drawn.

*Consistency.* The error must vanish as eps grows. It is measured at 10³ and at 10⁶ times eps: an
error proportional to 1/eps is then 1,000 times smaller, and one that does not decrease is that of
a table which the algorithm cannot represent. It must decrease by a factor of five.

*Exchangeability.* If every row is repeated ten times and eps is a tenth, the scaled error of an
algorithm that depends only on signal and noise is the same. Both are run on the same tables, and
the mean log ratio has an interval, for each table and for all. Rounding to integers is not
exchangeable, so eps is at most one half here, where it costs one percent; ratios beyond ten percent
are flagged. Noise of an (eps, delta) guarantee is not proportional to 1/eps, and may be flagged.
Absence of a flag proves nothing: see the interval, which is nan if an error is 0.
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
# Runs of the check of consistency: the errors compared differ by orders of magnitude.
CONSISTENCY_RUNS: Final = 3
ALARM: Final = 0.01
# Smaller scaled errors are rounding.
_ROUNDING: Final = 1e-9


def bias(products: Floats, rng: np.random.Generator) -> tuple[float, float]:
    """Return the squared bias as a share of the squared error, and the p-value of no bias.

    Inner products of signed errors have the shape (runs, runs). The share is an unbiased estimate,
    which may be negative; both are nan for fewer than two runs.
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
    # Sums in a different order differ in the last digits.
    larger = int((flipped >= pair_sum - 1e-9 * abs(pair_sum)).sum())
    return pair_sum / (runs * (runs - 1)) / total, (1 + larger) / (1 + SIGN_FLIPS)


def smallest_p(runs: int) -> float:
    """Return the smallest possible p-value of `runs` runs: flipping all signs changes nothing."""
    return max(2.0 ** (1 - runs), 1 / (1 + SIGN_FLIPS))


def checked(
    task: Task, recipes: Sequence[Recipe], cells: Sequence[Cell], repeats: int, seed: int
) -> pd.DataFrame:
    """Check consistency and exchangeability at the smallest scale of every table.

    One row per recipe and table, and one for the ratio over all tables, named by an empty string:
    ratios of errors with intervals, and True, False, or None if a recipe refuses such a budget.
    """
    # The last cell of a table and domain is kept: the smallest eps of the smallest scale.
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
    """Return errors on given tables; None if the recipe refuses the budget."""
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
    """Return log ratios of errors for ten times the rows and a tenth of eps; empty if refused."""
    small = cell._replace(eps=min(cell.eps, LARGEST))
    enlarged = (task.times(table, TIMES) for table in draw_tables(task, cell, repeats, seed))
    base = _errors(task, recipe, small, draw_tables(task, cell, repeats, seed), seed)
    tenfold = _errors(task, recipe, small._replace(eps=small.eps / TIMES), enlarged, seed)
    if base is None or tenfold is None or min(base.min(), tenfold.min()) <= 0:
        return np.empty(0)
    return np.asarray(np.log(tenfold / base))


def _interval(logs: Floats, level: float) -> dict[str, object]:
    """Return the ratio of errors with its interval, and whether it is compatible with 1."""
    if len(logs) < 2:
        blank = {"ratio": math.nan, "ratio_low": math.nan, "ratio_high": math.nan}
        return blank | {"exchangeable": None}
    middle, se = float(logs.mean()), float(logs.std(ddof=1)) / math.sqrt(len(logs))
    reach = float(stats.t.ppf((1 + level) / 2, len(logs) - 1)) * se
    with np.errstate(over="ignore"):
        ratio, low, high = np.exp([middle, middle - reach, middle + reach]).tolist()
    beyond = low > TOLERANCE or high < 1 / TOLERANCE
    return {"ratio": ratio, "ratio_low": low, "ratio_high": high, "exchangeable": not beyond}
