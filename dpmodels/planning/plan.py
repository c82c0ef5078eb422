"""``plan``: predict the errors of an analysis and divide its budget, before it is spent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import ROUND_FLOOR, Context
from typing import Final, Literal

import numpy as np
import pandas as pd

from dpmodels.arguments import checked_keywords, integer, option
from dpmodels.codebook import Codebook
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.models.assumed_rows import AssumedRows, assumed_rows
from dpmodels.planning import analysis, noise_curve
from dpmodels.planning.study import Study, target_values
from dpmodels.privacy import (
    Adjacency,
    AdjacencyName,
    ApproxDP,
    ApproxEvent,
    GaussianEvent,
    Guarantee,
    PureDP,
    resolve_budget,
)
from dpmodels.privacy.spent import capacity
from dpmodels.request import related
from dpmodels.resolve_codebook import Resolved, codebook_of_call
from dpmodels.sessions.call import Call
from dpmodels.typing import Floats

# Choices: releases of each call at the recommended division, and with other numbers of rows.
_FINAL_RUNS: Final = 20
_CURVE_RUNS: Final = 3
# Rounding of the parts.
_DIGITS: Final = Context(prec=4, rounding=ROUND_FLOOR)
# Doublings of a budget that identifies too little.
_DOUBLINGS: Final = 9
# Budgets and numbers of rows of the curves, as multiples of the planned ones.
_MULTIPLES: Final = (0.25, 0.5, 1.0, 2.0, 4.0)
_FACTORS: Final = (0.1, 10.0)
# Factors for budgets if releases with different noise compose to more than the sum of their costs.
_SHRINKAGES: Final = (1.0, 0.999, 0.99, 0.97, 0.9, 0.8, 0.65, 0.5)
# Tolerance for simulation error.
_TOLERANCE: Final = 1.05


def divided(study: Study) -> analysis.AnalysisPlan:
    """Divide the budget, simulate the parts, and divide it again."""
    _require_met(study)
    study = study.refined(_parts(study))
    amounts = _rounded(study, _parts(study))
    losses = study.losses
    evenly, shares = study.ratios(losses.even()), losses.budget.shares(amounts)
    lines, frames = [], []
    for curve, amount, share, even in zip(study.curves, amounts, shares, evenly, strict=True):
        release = curve.simulated_call.at(float(amount), _FINAL_RUNS)
        frames.append(_figures(curve, release))
        line = _line(curve, release, frames[-1], float(amount))
        lines.append(_without_unused_delta(line._replace(share=float(share), even=float(even))))
    return analysis.AnalysisPlan(
        request=study.request,
        lines=tuple(lines),
        figures=pd.concat(frames, ignore_index=True),
        budget_curve=_budget_curve(study, amounts),
        rows_curve=_rows_curve(study, amounts, np.array([line.ratio for line in lines])),
        pure=study.pure(amounts),
    )


def _without_unused_delta(line: analysis.PlanLine) -> analysis.PlanLine:
    """Return a line without the delta that its release does not use.

    With the delta, a session could choose other noise than was planned.
    """
    kinds = {type(event) for event in line.events}
    if not isinstance(line.guarantee, ApproxDP) or kinds & {GaussianEvent, ApproxEvent}:
        return line
    call = replace(line.call, options={**line.call.options, "delta": 0.0})
    return line._replace(call=call, guarantee=PureDP(line.guarantee.eps))


def _parts(study: Study) -> Floats:
    losses = study.losses
    if losses.is_stated.all():
        return losses.even()
    return losses.least_worst() if study.request.best == "worst" else losses.least_mean()


def _rounded(study: Study, amounts: Floats) -> Floats:
    """Round budgets down, and shrink them until a ledger of the total accepts them all."""
    is_stated = [study.budgeting.stated_budget(name) is not None for name in study.calls]
    for scale in _SHRINKAGES:
        shrunk = [float(_DIGITS.create_decimal(amount * scale)) for amount in amounts]
        rounded = np.where(is_stated, amounts, shrunk)
        if study.fits(rounded):
            return rounded
    raise BudgetError(
        f"the calls together exceed {study.request.guarantee.describe()}, as some have several "
        "kinds of noise: write budget=dp.ZCDP(rho), in which all add up"
    )


def _figures(curve: noise_curve.NoiseCurve, release: noise_curve.Release) -> pd.DataFrame:
    sampling = curve.simulated_call.sampling
    total = np.hypot(release.noise, sampling)
    columns = {
        "name": curve.name,
        "figure": curve.simulated_call.exact.index,
        "value": curve.simulated_call.exact["value"].to_numpy(),
        "sampling": sampling,
        "noise": release.noise,
        "total": total,
        "ratio": total / sampling,
        "identified": release.chance,
    }
    return pd.DataFrame(columns)


def _line(
    curve: noise_curve.NoiseCurve, release: noise_curve.Release, frame: pd.DataFrame, amount: float
) -> analysis.PlanLine:
    identified = float(frame["identified"].mean())
    order = np.argsort(frame["ratio"].to_numpy(), kind="stable")
    figure = frame.iloc[int(order[noise_curve.place_of(len(frame), curve.over)])]
    return analysis.PlanLine(
        name=curve.name,
        call=curve.simulated_call.call,
        guarantee=curve.simulated_call.form(amount),
        mechanism=release.mechanism,
        events=release.events,
        figure=str(figure["figure"]),
        figures=len(frame),
        **{name: float(figure[name]) for name in ("sampling", "noise", "total", "ratio")},
        identified=identified,
        needs=amount if identified >= analysis.LIKELY else _identifying(curve, amount),
    )


def _identifying(curve: noise_curve.NoiseCurve, amount: float) -> float:
    for doubled in amount * 2.0 ** np.arange(1, _DOUBLINGS):
        if curve.simulated_call.at(float(doubled), _CURVE_RUNS).chance.mean() >= analysis.LIKELY:
            return float(doubled)
    return math.nan


def _budget_curve(study: Study, amounts: Floats) -> pd.DataFrame:
    """Return ratios at multiples of the total, divided in the same proportions."""
    losses, unit = study.losses, capacity(study.request.guarantee).unit
    lines = []
    for multiple in _MULTIPLES:
        amount = losses.budget.amount * multiple
        scaled = losses.budget.scaled(amount).filled(amounts)
        pairs = zip(study.calls, study.ratios(scaled), strict=True)
        lines += [{"name": name, unit: amount, "ratio": ratio} for name, ratio in pairs]
    return pd.DataFrame(lines)


def _rows_curve(study: Study, amounts: Floats, ratios: Floats) -> pd.DataFrame:
    """Return ratios with fewer and more rows, at the same budgets."""
    rows = study.request.n_rows
    ratios_by_rows = {rows: ratios}
    for factor in _FACTORS:
        n_rows = min(max(round(rows * factor), 1), row_limit(study.world.adjacency))
        pairs = zip(study.curves, amounts, strict=True)
        ratios_by_rows[n_rows] = np.array(
            [_with_rows(study, curve, n_rows, float(amount)) for curve, amount in pairs]
        )
    lines = [
        {"name": name, "n": n, "ratio": ratio}
        for n in sorted(ratios_by_rows)
        for name, ratio in zip(study.calls, ratios_by_rows[n], strict=True)
    ]
    return pd.DataFrame(lines)


def _with_rows(study: Study, curve: noise_curve.NoiseCurve, n_rows: int, amount: float) -> float:
    """Return a call's ratio with other rows; simulated sampling errors scale with their root."""
    world, base = replace(study.world, n_rows=n_rows), curve.simulated_call
    sampling = base.sampling * math.sqrt(study.world.n_rows / n_rows)
    simulated = noise_curve.simulate_call(base.call, world, base.form, sampling)
    total = np.hypot(simulated.at(amount, _CURVE_RUNS).noise, simulated.sampling)
    return float(curve.of_all(total / simulated.sampling))


def row_limit(relation: Adjacency) -> int:
    """Return how many rows can be simulated."""
    return noise_curve.MOST_ROWS if relation.person is None else noise_curve.MOST_PERSONS


def _require_met(study: Study) -> None:
    budget, request = study.losses.budget, study.request
    budgets = [study.budgeting.stated_budget(curve.name) for curve in study.curves]
    stated = np.array([part is not None for part in budgets])
    stated_amounts = np.where(stated, budget.stated_amounts, 0.0)
    smallest = np.where(stated, stated_amounts, [curve.amounts[0] for curve in study.curves])
    if stated.any() and budget.cost(smallest) > budget.amount * (1 + 1e-9):
        over = budget.cost(stated_amounts) > budget.amount * (1 + 1e-9)
        raise BudgetError(
            f"the stated budgets of calls compose to {budget.cost(stated_amounts):.3g}, "
            f"{'more than' if over else 'which leaves too little for the others of'} "
            f"{request.guarantee.describe()}: write smaller ones, or leave them out"
        )
    if study.needed > budget.amount * _TOLERANCE:
        total = request.guarantee.describe()
        raise BudgetError(f"the targets cannot be met with {total}: {_unmet(study)}")


def _unmet(study: Study) -> str:
    amount = study.losses.budget.amount
    for curve, floor in zip(study.curves, study.losses.floors, strict=True):
        for target in () if math.isfinite(floor) else study.request.targets.get(curve.name, ()):
            nearest, last = (
                target_values(curve, np.array([at]), target)[0]
                for at in (amount, curve.amounts[-1])
            )
            if last <= target.level:
                continue
            sampling = curve.of_all(curve.simulated_call.sampling)
            by_sampling = target.kind == "se" and sampling >= target.level
            advice = f"{curve.amounts[-1]:.3g} would give {last:.3g}"
            if by_sampling:
                advice = f"without noise it is {sampling:.3g}: more rows are needed"
            goal = f"{curve.name}, {target.describe()}"
            return f"{goal}: the total budget gives {nearest:.3g}; {advice}"
    unit = capacity(study.request.guarantee).unit
    return f"they need about {unit} = {study.needed:.3g}; write that, or easier targets"


# The smallest budget, or number of rows, that meets all targets.

# Choices: search ranges and tolerances of both.
_EPS_RANGE: Final = (0.02, 64.0)
_LEAST_ROWS: Final = 20
_STEPS: Final = 14
_ROW_TOLERANCE: Final = 1.03
_MAX_STEP: Final = 16.0


def least_budget(study: Study) -> Study:
    """Return the study with the smallest budget that meets its targets, rounded up."""
    needed = replace(study, span=_EPS_RANGE).needed
    if not math.isfinite(needed):
        raise BudgetError(
            f"no budget up to eps = {_EPS_RANGE[1]:g} a call meets the targets with "
            f"{study.request.n_rows:,} rows: give more rows, or easier targets"
            + "".join(_without_noise(study))
        )
    solved = study.with_budget(_rounded_up(needed, 3))
    for _ in range(_STEPS):
        if solved.needed <= capacity(solved.request.guarantee).amount:
            break
        solved = study.with_budget(_rounded_up(solved.needed, 3))
    return solved


def least_rows(study: Study) -> Study:
    """Return the study with the smallest number of rows that meets its targets, rounded up.

    Each step follows from the ratio of the needed to the given budget: noise decreases as 1/n,
    sampling errors as 1/sqrt(n).
    """
    budget, limit = capacity(study.request.guarantee).amount, row_limit(study.world.adjacency)
    low, high, n_rows = float(_LEAST_ROWS), math.inf, float(study.request.n_rows)
    for _ in range(_STEPS):
        short = study.with_rows(round(n_rows)).needed / budget
        low, high = (n_rows, high) if short > 1 else (low, n_rows)
        if high <= low * _ROW_TOLERANCE or low >= limit or 1 / _ROW_TOLERANCE < short <= 1:
            break
        step = min(max(short, 1 / _MAX_STEP), _MAX_STEP)
        n_rows = min(max(n_rows * step**2 * math.sqrt(_ROW_TOLERANCE), low), limit)
        if not low < n_rows < high:
            n_rows = math.sqrt(low * high)
    if not math.isfinite(high):
        raise BudgetError(
            f"no number of rows up to {limit:,} meets the targets with "
            f"{study.request.guarantee.describe()}: give more budget, or easier targets"
        )
    return study.with_rows(min(int(_rounded_up(high, 2)), limit))


def _without_noise(study: Study) -> Iterator[str]:
    for curve in study.curves:
        sampling = curve.of_all(curve.simulated_call.sampling)
        for target in study.request.targets.get(curve.name, ()):
            if target.kind == "se" and sampling >= target.level:
                yield f"; without noise the standard error of {curve.name} is {sampling:.3g}"


def _rounded_up(number: float, digits: int) -> float:
    unit: float = 10.0 ** (math.floor(math.log10(number)) - digits + 1)
    return math.ceil(number / unit - 1e-9) * unit


BEST: Final = ("mean", "worst")
OVER: Final = ("median", "worst")


@checked_keywords("dp.plan")
def plan(
    calls: Mapping[str, Call | tuple[object, ...]] | Iterable[Call | tuple[object, ...]],
    *,
    codebook: Resolved = None,
    n: int | None = None,
    eps: float | None = None,
    delta: float = 0.0,
    budget: Guarantee | None = None,
    shape: object = "normal",
    targets: Mapping[str, object] | None = None,
    weights: Mapping[str, float] | None = None,
    best: Literal["mean", "worst"] = "mean",
    over: Literal["median", "worst"] = "median",
    adjacency: AdjacencyName | Adjacency | None = None,
    person: str | Literal[False] | None = None,
    rows: int | Literal["mean"] | None = None,
    subset: str | None = None,
) -> analysis.AnalysisPlan:
    """Predict the errors of a whole analysis, and divide its budget; nothing is read or spent.

    Each call is simulated on assumed rows at several budgets. Leave out ``n`` or the budget to
    find the smallest that meets all targets.

    Parameters
    ----------
    calls : list or dict of calls
        Each ``dp.call.lm("y ~ x")`` or ``("lm", "y ~ x", dict(vcov="HC"))``, as for
        :meth:`dp.session.plan`; the keys of a dict name them. A call with a budget keeps it:
        ``dp.call.mean("~ wage", eps=0.2)``.
    codebook : Codebook
        Public bounds and levels of the variables.
    n : int, optional
        Number of rows; under ``"add-remove"``, where it is private, a public guess of it.
    eps, delta, budget
        The guarantee of all calls together: ``eps`` and ``delta``, or an object such as
        ``dp.ZCDP(0.5)``. ``delta`` may also be given where eps is solved for.
    shape : str, mapping or frame
        Assumed rows, as for :func:`dp.power`: a distribution of the numbers, such as ``"normal"``
        or ``"skewed"``, by variable a distribution or shares of levels, or a frame of **public or
        simulated rows**. Never pass private rows: the output has no privacy guarantee, and this
        is not checked.
    targets : mapping, optional
        Upper limits for a call's figure: ``{"lm": {"se": 0.2}}`` for the total standard error,
        ``{"lm": {"noise": 0.3}}`` for the share of noise in the variance, and ``{"noise": 0.5}``
        for all calls. They are met first.
    weights : mapping, optional
        Weight of a call, 1 by default; with ``best="worst"`` a call of weight 2 is kept half as
        far from its error without privacy.
    best : {"mean", "worst"}
        What to minimise of the calls' errors, each over that without privacy: the geometric mean,
        or the largest, which costs easy calls much.
    over : {"median", "worst"}
        Which figure of a call, such as a coefficient or a share, represents it.
    adjacency, person, rows, subset
        As for the verbs. Each person is assumed to have the largest number of rows allowed, and
        one with ``rows="mean"``.

    Returns
    -------
    AnalysisPlan
        ``table``, ``figures``, ``budgets``, ``calls`` with their budgets for
        :meth:`dp.session.plan`, ``curve()`` and ``plot()``.

    Raises
    ------
    ArgumentError, CodebookError, FormulaError, FrameError
        If an argument, here or of a call, is not valid, or the shape lacks a variable.
    BudgetError
        If stated budgets exceed the total, or targets cannot be met; it says what would meet them.

    Notes
    -----
    *Noise* is the median of the noise standard errors that releases print; for results without
    them (bounds, support vector machines, directions of components) it is the root mean square
    difference of releases and the exact answer. *Sampling* is the standard error at a budget with
    negligible noise; for results without one, the standard deviation over simulated tables.

    *Division.* Parts compose to the total exactly: eps and rho add up; with a delta, Gaussian
    releases add up ``1/m**2`` of their multipliers. Noise between the simulated budgets is
    interpolated by power laws, and simulated again at the recommended ones.

    A response is independent of its predictors unless the rows are a frame, so standard errors of
    regressions are those without effects. All results depend on the assumed rows.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(age=(18, 90), wage=(0, 80), sex=["F", "M"])
    >>> plan = dp.plan(
    ...     {"wages": dp.call.mean("wage ~ sex"), "model": dp.call.lm("wage ~ age + sex")},
    ...     codebook=cb, n=4_000, eps=2.0, delta=1e-6,
    ... )
    >>> list(plan.budgets), bool((plan.table["identified"] == 1).all())
    (['wages', 'model'], True)
    """
    calls_by_name = analysis.named_calls(calls)
    book = codebook_of_call(codebook, None, None, "~ .")
    relation = related(book, adjacency, person, rows)
    stated = eps is not None or budget is not None
    request = analysis.PlanRequest(
        guarantee=resolve_budget(eps, delta, budget) if stated else resolve_budget(1.0, delta),
        adjacency=relation,
        n_rows=10_000 if n is None else integer("n", n, 1, row_limit(relation)),
        assumed=(assumed := _guess(book, shape, relation)).about,
        subset=subset,
        targets=analysis.targets_of(targets, tuple(calls_by_name)),
        weights=analysis.weights_of(weights, tuple(calls_by_name)),
        best=option("best", best, BEST),
        over=option("over", over, OVER),
        solved="" if stated and n is not None else "n" if stated else "eps",
    )
    _check_solvable(request, stated, n)
    study = Study(
        calls_by_name, noise_curve.World(assumed, book, relation, request.n_rows, subset), request
    )
    if request.solved:
        study = (least_rows if request.solved == "n" else least_budget)(study)
    return divided(study)


def _check_solvable(request: analysis.PlanRequest, stated: bool, n: int | None) -> None:
    if n is None and not stated:
        raise BudgetError(
            "neither n nor a budget is given: write one of them, n=10_000 or eps=1.0, and targets="
        )
    if request.solved and not request.targets:
        missing = "n" if request.solved == "n" else "the budget"
        raise ArgumentError(
            f"{missing} is left out, but there is no target to solve for: write "
            'targets={"noise": 0.5}, or give n=10_000 and eps=1.0'
        )


def _guess(book: Codebook, shape: object, relation: Adjacency) -> AssumedRows:
    if isinstance(shape, str | Mapping):
        return assumed_rows(book, shape)
    if relation.person is not None:
        raise ArgumentError(
            "shape= is a frame, from which rows of protected persons cannot be drawn: "
            'write a distribution, shape="normal", or person=False'
        )
    names = [name for name in book if name in getattr(shape, "columns", ())]
    return assumed_rows(book, shape, names)
