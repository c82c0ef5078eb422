"""``split_budget``: how to divide a budget between stages, before it is spent."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from itertools import chain
from numbers import Real
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dpmodels import privacy
from dpmodels.arguments import checked_keywords, integer, option, real
from dpmodels.errors import ArgumentError, DPModelsError, LedgerError
from dpmodels.noise import simulation
from dpmodels.privacy import adjacency as neighbours
from dpmodels.privacy.compose import divide
from dpmodels.privacy.events import all_gaussian
from dpmodels.results.plan import SplitRequest, SplitResult, ratio
from dpmodels.typing import Floats

SEED = 20_111_004  # A choice: any number gives all divisions the same random words
MOST_REPEATS = 10_000  # A choice: standard errors are a hundredth of the spread
COLUMNS = ("score", "score_se", "behind", "behind_se", "best", "near")
# A choice: shares of the first of two stages.
TENTHS = tuple(tenth / 10 for tenth in range(1, 10))


@checked_keywords("dp.split_budget")
def split_budget(
    recipe: Callable[..., float],
    data: object,
    *,
    eps: float | None = None,
    delta: float = 0.0,
    budget: privacy.Guarantee | None = None,
    shares: ArrayLike | None = None,
    repeats: int = 10,
    best: str = "largest",
    adjacency: privacy.AdjacencyName | privacy.Adjacency = "replace",
) -> SplitResult:
    """Try divisions of a budget between the stages of a recipe, on public rows.

    Parameters
    ----------
    recipe : callable
        Takes the rows, then one parameter a stage, two or more; returns a score. Each stage gets
        the options ``budget`` and ``ledger`` for its verb: ``recipe(rows, pca, svm)`` calls
        ``dp.dp_pca(..., **pca)`` and ``dp.dp_svm(..., **svm)``. Parameters with defaults are not
        stages.
    data : object
        **Public or simulated rows**, like the private ones; passed to the recipe unchanged. Scores
        on private rows would reveal them: no guarantee covers the output of this function, which
        cannot check this.
    eps, delta, budget
        The guarantee of all stages together, as for :func:`dp_pca`.
    shares : array_like, optional
        Two stages: shares of the first one, each in (0, 1); by default 0.1,
        0.2, ..., 0.9. More stages: a row of shares for each division, whose
        sum is 1.
    repeats : int
        Runs of each division, from 2.
    best : {"largest", "smallest"}
        Whether large or small scores are better.
    adjacency : {"replace", "add-remove"}
        The neighbours, as in the recipe's verbs.

    Returns
    -------
    SplitResult
        Its ``budgets`` are those of the stages in the best division.

    Raises
    ------
    ArgumentError
        If the recipe has fewer than two stages, fails, leaves a stage out or returns no finite
        number; if its stages cost more than the budget; if an argument is invalid. Messages about a
        run name its shares.
    BudgetError
        If the budget is invalid.

    Notes
    -----
    Every run is made inside a simulation of its own, with the same random words for all divisions;
    each stage has a ledger that refuses what goes beyond its part. The parts compose to the whole:
    eps and rho add up; with a delta, stages of Gaussian noise divide ``1/m**2`` of their joint
    multiplier, which is exact, and other stages their share of eps. The kind of each stage is read
    off the ledgers, in a run that is not scored.

    The best division depends on the budget, the number of rows and their distribution: public rows
    must resemble the private ones in both.

    References
    ----------
    .. [1] Dong, J., Roth, A. and Su, W. (2022). "Gaussian Differential Privacy."
       Journal of the Royal Statistical Society B 84(1), 3-37.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(age=(0, 100), wage=(0, 80))
    >>> public = {"age": [20, 40, 60] * 900, "wage": [10, 30, 20] * 900}
    >>> def error(rows, age, wage):
    ...     first = dp.dp_mean("~ age", rows, codebook=cb, **age).params.item()
    ...     second = dp.dp_mean("~ wage", rows, codebook=cb, **wage).params.item()
    ...     return abs(first - 40) / 100 + abs(second - 20) / 80
    >>> plan = dp.split_budget(
    ...     error, public, eps=1.0, shares=[0.1, 0.5, 0.9], best="smallest", repeats=20
    ... )
    >>> plan.best
    {'age': 0.5, 'wage': 0.5}
    >>> plan.budgets["age"]
    PureDP(eps=0.5)
    """
    stages = _stages(recipe)
    trial = _Trial(
        recipe,
        data,
        SplitRequest(
            recipe=getattr(recipe, "__name__", type(recipe).__name__),
            stages=stages,
            guarantee=privacy.resolve_budget(eps, delta, budget),
            adjacency=neighbours(adjacency),
            repeats=integer("repeats", repeats, 2, MOST_REPEATS),
            best=option("best", best, ("largest", "smallest")),
        ),
        _shares(shares, len(stages)),
    )
    gaussian = [False] * len(stages)
    if isinstance(trial.request.guarantee, privacy.ApproxDP):
        gaussian = _run(trial, trial.shares[0], gaussian, 0)[1]
    return _tried(trial, gaussian)


class _Trial(NamedTuple):
    recipe: Callable[..., float]
    data: object
    request: SplitRequest
    shares: Floats


def _tried(trial: _Trial, gaussian: Sequence[bool]) -> SplitResult:
    """Run all divisions; restart if a stage's noise is not of the assumed kind."""
    request = trial.request
    scores = np.empty((len(trial.shares), request.repeats))
    for number, shares in enumerate(trial.shares):
        for repeat in range(request.repeats):
            scores[number, repeat], observed = _run(trial, shares, gaussian, repeat)
            remaining = [old and new for old, new in zip(gaussian, observed, strict=True)]
            if remaining != list(gaussian):
                return _tried(trial, remaining)
    divisions = tuple(divide(request.guarantee, shares, gaussian) for shares in trial.shares)
    return SplitResult(request, trial.shares, divisions, scores)


def _run(
    trial: _Trial, shares: Floats, gaussian: Sequence[bool], repeat: int
) -> tuple[float, list[bool]]:
    """Run the recipe once; return its score and which stages had only Gaussian noise."""
    request = trial.request
    budgets = divide(request.guarantee, shares.tolist(), gaussian)
    ledgers = [privacy.Ledger(budget=part, adjacency=request.adjacency) for part in budgets]
    options = {
        stage: {"budget": guarantee, "ledger": ledger}
        for stage, guarantee, ledger in zip(request.stages, budgets, ledgers, strict=True)
    }
    where = f"with shares {' : '.join(request.stages)} = {ratio(shares)}"
    try:
        with simulation(seed=SEED + repeat):
            score = trial.recipe(trial.data, **options)
    except Exception as error:
        detail = f": {error}" if isinstance(error, DPModelsError) else ""
        raise ArgumentError(f"the recipe raised {type(error).__name__} {where}{detail}") from error
    for stage, ledger in zip(request.stages, ledgers, strict=True):
        if not ledger.entries:
            raise ArgumentError(
                f"the recipe spent nothing of stage {stage!r} {where}: pass its options to the "
                f"verb, dp.dp_...(..., **{stage})"
            )
    events = [[event for entry in ledger.entries for event in entry.events] for ledger in ledgers]
    observed = [all_gaussian(stage_events) for stage_events in events]
    if all(now or not assumed for now, assumed in zip(observed, gaussian, strict=True)):
        _check_together(request, list(chain(*events)), where)
    return _score(score, where), observed


def _check_together(request: SplitRequest, events: Sequence[privacy.Event], where: str) -> None:
    """Refuse stages that keep to their parts but together cost more than the budget.

    A stage of many releases may: at the same delta they cost less than the sum of their eps.
    """
    ledger = privacy.Ledger(budget=request.guarantee, adjacency=request.adjacency)
    try:
        ledger.charge(events, adjacency=request.adjacency, label=request.recipe)
    except LedgerError as error:
        raise ArgumentError(
            f"the recipe's stages cost more than the budget {where}: divide a stage's eps between "
            f"its releases so that they add up to it. {error}"
        ) from None


def _score(value: object, where: str) -> float:
    score = real(value.item() if isinstance(value, np.generic) else value)
    if math.isnan(score):
        description = value if isinstance(value, Real) else type(value).__name__
        raise ArgumentError(
            f"the recipe returned {description} {where}: return one finite number, the score, such "
            "as that of a useless model where the budget leaves nothing else"
        )
    return score


def _stages(recipe: object) -> tuple[str, ...]:
    """Return the names of a recipe's parameters after the first that have no default."""
    write = "write def recipe(rows, first, second): ... return score"
    if not callable(recipe):
        raise ArgumentError(f"recipe is of type {type(recipe).__name__}, not a function: {write}")
    try:
        parameters = list(inspect.signature(recipe).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    needed = [parameter for parameter in parameters[1:] if parameter.default is parameter.empty]
    stages = [parameter.name for parameter in needed]
    if len(stages) < 2 or any(parameter.kind not in by_name for parameter in needed):
        raise ArgumentError(
            f"the recipe has the stages {', '.join(stages) or 'none'}: expected two parameters or "
            f"more after the rows, one a stage, each with a name; {write}"
        )
    reserved = sorted(set(stages) & set(COLUMNS))
    if reserved:
        raise ArgumentError(
            f"the stage {reserved[0]!r} has the name of a column of the result: rename it"
        )
    return tuple(stages)


def _shares(shares: ArrayLike | None, stages: int) -> Floats:
    if shares is None and stages > 2:
        raise ArgumentError(
            f"shares=None: with {stages} stages say which divisions to try, one row of {stages} "
            "shares each, such as shares=[(0.2, 0.3, 0.5), (0.4, 0.3, 0.3)]"
        )
    try:
        values: Floats = np.asarray(TENTHS if shares is None else shares, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if stages == 2 and values.ndim == 1:
        values = np.column_stack([values, 1 - values])
    fits = values.ndim == 2 and len(values) > 0 and values.shape[1] == stages
    if not fits or not ((values > 0) & (values < 1)).all():
        form = "numbers in (0, 1), shares of the first stage" if stages == 2 else "one row a "
        form += "" if stages == 2 else f"division of {stages} numbers in (0, 1)"
        raise ArgumentError(f"shares of shape {values.shape}: expected {form}")
    if (np.abs(values.sum(axis=1) - 1) > 1e-9).any():
        raise ArgumentError("shares: those of each division have to add up to 1")
    if len(np.unique(values, axis=0)) < len(values):
        raise ArgumentError("shares: a division is listed twice; list each once")
    return values
