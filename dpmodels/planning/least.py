"""The least budget, or the least number of rows, at which all targets are met."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from dpmodels.errors import BudgetError
from dpmodels.planning.recommended import most_rows
from dpmodels.planning.study import Study
from dpmodels.privacy.spent import capacity

# Choices: where both are looked for, and how closely.
_SEARCHED: Final = (0.02, 64.0)
_LEAST_ROWS: Final = 20
_STEPS: Final = 14
_CLOSE: Final = 1.03
_FAR: Final = 16.0


def least_budget(study: Study) -> Study:
    """Return the study with the least budget that meets its targets, rounded up."""
    needed = replace(study, span=_SEARCHED).needed
    if not math.isfinite(needed):
        raise BudgetError(
            f"no budget up to eps = {_SEARCHED[1]:g} a call meets the targets with "
            f"{study.question.rows:,} rows: give more rows, or targets that are nearer"
            + "".join(_without_noise(study))
        )
    found = study.with_budget(_rounded_up(needed, 3))
    for _ in range(_STEPS):
        if found.needed <= capacity(found.question.guarantee).amount:
            break
        found = study.with_budget(_rounded_up(found.needed, 3))
    return found


def least_rows(study: Study) -> Study:
    """Return the study with the least number of rows that meets its targets, rounded up.

    By how much a budget falls short tells of the rows that it lacks: noise goes by one over them,
    sampling by one over their root.
    """
    whole, most = capacity(study.question.guarantee).amount, most_rows(study)
    low, high, rows = float(_LEAST_ROWS), math.inf, float(study.question.rows)
    for _ in range(_STEPS):
        short = study.with_rows(round(rows)).needed / whole
        low, high = (rows, high) if short > 1 else (low, rows)
        if high <= low * _CLOSE or low >= most or 1 / _CLOSE < short <= 1:
            break
        rows = min(max(rows * min(max(short, 1 / _FAR), _FAR) ** 2 * math.sqrt(_CLOSE), low), most)
        if not low < rows < high:
            rows = math.sqrt(low * high)
    if not math.isfinite(high):
        raise BudgetError(
            f"no number of rows up to {most:,} meets the targets with "
            f"{study.question.guarantee.describe()}: give more budget, or targets that are nearer"
        )
    return study.with_rows(min(int(_rounded_up(high, 2)), most))


def _without_noise(study: Study) -> Iterator[str]:
    """Say of which calls sampling alone is beyond a target."""
    for own in study.courses:
        sampling = own.of_all(own.imagined.sampling)
        for target in study.question.targets.get(own.name, ()):
            if target.kind == "se" and sampling >= target.level:
                yield f"; without noise the standard error of {own.name} is {sampling:.3g}"


def _rounded_up(number: float, digits: int) -> float:
    """Round up to so many digits."""
    unit: float = 10.0 ** (math.floor(math.log10(number)) - digits + 1)
    return math.ceil(number / unit - 1e-9) * unit
