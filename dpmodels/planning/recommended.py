"""A study divided: its budget between the calls, and what they then come to."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from decimal import ROUND_FLOOR, Context
from typing import Final

import numpy as np
import pandas as pd

from dpmodels.errors import BudgetError
from dpmodels.planning.analysis import SURE, AnalysisPlan, PlanLine
from dpmodels.planning.course import Course, Release, imagined, place_of
from dpmodels.planning.guess import MOST_PERSONS, MOST_ROWS
from dpmodels.planning.study import Study, told
from dpmodels.privacy.spent import capacity
from dpmodels.typing import Floats

# Choices: releases of each call at the recommended division, and with other numbers of rows.
_CHECKED: Final = 20
_FEW: Final = 3
# To how many digits parts are rounded.
_DIGITS: Final = Context(prec=4, rounding=ROUND_FLOOR)
# How often a budget is doubled that identifies too little.
_DOUBLED: Final = 9
# Budgets and numbers of rows of the curves, as multiples of those planned for.
_MULTIPLES: Final = (0.25, 0.5, 1.0, 2.0, 4.0)
_FACTORS: Final = (0.1, 10.0)
# By how much budgets are shrunk where releases of mixed noise cost more together than apart.
_SHRUNK: Final = (1.0, 0.999, 0.99, 0.97, 0.9, 0.8, 0.65, 0.5)
# What simulations with other noise may disagree by.
_TOLERANCE: Final = 1.05


def divided(study: Study) -> AnalysisPlan:
    """Divide the budget, try the parts, and divide it once more."""
    _require_met(study)
    study = study.refined(_parts(study))
    amounts = _taken(study, _parts(study))
    losses = study.losses
    evenly, shares = study.ratios(losses.even()), losses.whole.shares(amounts)
    lines, frames = [], []
    for place, own in enumerate(study.courses):
        at = float(amounts[place])
        release = own.imagined.at(at, _CHECKED)
        frames.append(_figures(own, release))
        line = _line(own, release, frames[-1])
        parts = line._replace(share=float(shares[place]), even=float(evenly[place]))
        needs = at if line.identified >= SURE else _identifying(own, at)
        lines.append(parts._replace(guarantee=own.imagined.form(at), needs=needs))
    return AnalysisPlan(
        question=study.question,
        lines=tuple(lines),
        figures=pd.concat(frames, ignore_index=True),
        budget_curve=_budget_curve(study, amounts),
        rows_curve=_rows_curve(study, amounts, np.array([own.ratio for own in lines])),
        pure=study.pure(amounts),
    )


def _parts(study: Study) -> Floats:
    """Return the recommended amounts."""
    losses = study.losses
    if losses.said.all():
        return losses.even()
    return losses.least_worst() if study.question.best == "worst" else losses.least_mean()


def _taken(study: Study, amounts: Floats) -> Floats:
    """Round budgets down, and shrink them until a ledger of the whole takes them all."""
    said = [study.budgeting.own(name) is not None for name in study.calls]
    for scale in _SHRUNK:
        shrunk = [float(_DIGITS.create_decimal(own * scale)) for own in amounts]
        own = np.where(said, amounts, shrunk)
        if study.fits(own):
            return own
    raise BudgetError(
        f"the calls do not fit {study.question.guarantee.describe()} together, as the noise of "
        "some is of several kinds: write budget=dp.ZCDP(rho), in which all add up"
    )


def _figures(own: Course, release: Release) -> pd.DataFrame:
    """Return the figures of a call, one a row."""
    sampling = own.imagined.sampling
    total = np.hypot(release.noise, sampling)
    columns = {
        "name": own.name,
        "figure": own.imagined.exact.index,
        "value": own.imagined.exact["value"].to_numpy(),
        "sampling": sampling,
        "noise": release.noise,
        "total": total,
        "ratio": total / sampling,
        "identified": release.chance,
    }
    return pd.DataFrame(columns)


def _line(own: Course, release: Release, frame: pd.DataFrame) -> PlanLine:
    """Return what stands for a call."""
    order = np.argsort(frame["ratio"].to_numpy(), kind="stable")
    figure = frame.iloc[int(order[place_of(len(frame), own.over)])]
    return PlanLine(
        name=own.name,
        call=own.imagined.call,
        guarantee=own.imagined.form(1.0),
        mechanism=release.mechanism,
        events=release.events,
        figure=str(figure["figure"]),
        figures=len(frame),
        **{name: float(figure[name]) for name in ("sampling", "noise", "total", "ratio")},
        identified=float(frame["identified"].mean()),
    )


def _identifying(own: Course, amount: float) -> float:
    """Return a budget at which a call's figures are very likely identified, nan for none tried."""
    for doubled in amount * 2.0 ** np.arange(1, _DOUBLED):
        if own.imagined.at(float(doubled), _FEW).chance.mean() >= SURE:
            return float(doubled)
    return math.nan


def _budget_curve(study: Study, amounts: Floats) -> pd.DataFrame:
    """Return ratios at multiples of the whole, divided in the same proportions."""
    losses, unit = study.losses, capacity(study.question.guarantee).unit
    lines = []
    for multiple in _MULTIPLES:
        amount = losses.whole.amount * multiple
        own = losses.whole.scaled(amount).filled(amounts)
        each = zip(study.calls, study.ratios(own), strict=True)
        lines += [{"name": name, unit: amount, "ratio": ratio} for name, ratio in each]
    return pd.DataFrame(lines)


def _rows_curve(study: Study, amounts: Floats, ratios: Floats) -> pd.DataFrame:
    """Return ratios with fewer and more rows, at the same budgets."""
    rows = study.question.rows
    found = {rows: ratios}
    for factor in _FACTORS:
        other = min(max(round(rows * factor), 1), most_rows(study))
        each = zip(study.courses, amounts, strict=True)
        found[other] = np.array([_with_rows(study, own, other, float(at)) for own, at in each])
    lines = [
        {"name": name, "n": n, "ratio": ratio}
        for n in sorted(found)
        for name, ratio in zip(study.calls, found[n], strict=True)
    ]
    return pd.DataFrame(lines)


def _with_rows(study: Study, own: Course, rows: int, amount: float) -> float:
    """Return a call's ratio with other rows; sampling without a law goes by their root."""
    world, one = replace(study.world, rows=rows), own.imagined
    drawn = one.sampling * math.sqrt(study.world.rows / rows)
    other = imagined(one.call, world, one.form, drawn)
    total = np.hypot(other.at(amount, _FEW).noise, other.sampling)
    return float(own.of_all(total / other.sampling))


def most_rows(study: Study) -> int:
    """Return how many rows can be invented."""
    return MOST_ROWS if study.world.adjacency.person is None else MOST_PERSONS


def _require_met(study: Study) -> None:
    """Refuse what cannot be met, and say what would meet it."""
    whole, asked = study.losses.whole, study.question
    stated = np.array([study.budgeting.own(own.name) is not None for own in study.courses])
    said = np.where(stated, whole.said, 0.0)
    least = np.where(stated, said, [own.amounts[0] for own in study.courses])
    if stated.any() and whole.cost(least) > whole.amount * (1 + 1e-9):
        over = whole.cost(said) > whole.amount * (1 + 1e-9)
        raise BudgetError(
            f"the calls that say a budget come to {whole.cost(said):.3g}, "
            f"{'more than' if over else 'which leaves too little for the others of'} "
            f"{asked.guarantee.describe()}: write smaller ones, or leave them out"
        )
    if study.needed <= whole.amount * _TOLERANCE:
        return
    raise BudgetError(
        f"the targets cannot be met with {asked.guarantee.describe()}: {_unmet(study)}"
    )


def _unmet(study: Study) -> str:
    """Say of the first target that no budget meets what is nearest, or what all would need."""
    most = study.losses.whole.amount
    for own, floor in zip(study.courses, study.losses.floors, strict=True):
        if math.isfinite(floor):
            continue
        for target in study.question.targets.get(own.name, ()):
            nearest, last = (told(own, np.array([at]), target)[0] for at in (most, own.amounts[-1]))
            if last <= target.level:
                continue
            sampling = own.of_all(own.imagined.sampling)
            alone = target.kind == "se" and sampling >= target.level
            more = (
                f"without noise it is {sampling:.3g}: more rows are needed"
                if alone
                else f"{own.amounts[-1]:.3g} would give {last:.3g}"
            )
            return f"{own.name}, {target.describe()}: all of it gives {nearest:.3g}; {more}"
    unit = capacity(study.question.guarantee).unit
    return f"they need about {unit} = {study.needed:.3g}; write that, or targets that are nearer"


# The least budget, or the least number of rows, at which all targets are met.

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
