"""``plan``: predict the errors of an analysis and divide its budget, before it is spent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from dpmodels.arguments import checked_keywords, integer, option
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.models.assumed_rows import AssumedRows, assumed_rows
from dpmodels.planning.analysis import AnalysisPlan, PlanRequest
from dpmodels.planning.assumptions import MOST_PERSONS, MOST_ROWS, World
from dpmodels.planning.recommended import divided, least_budget, least_rows
from dpmodels.planning.study import Study
from dpmodels.planning.targets import named_calls, targets_of, weights_of
from dpmodels.privacy import Adjacency, AdjacencyName, Guarantee, resolve_budget
from dpmodels.request import related
from dpmodels.resolve_codebook import Resolved, codebook_of_call
from dpmodels.sessions.call import Call

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
) -> AnalysisPlan:
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
        As for the verbs. Each person is assumed to have the largest number of rows allowed.

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
    calls_by_name = named_calls(calls)
    book = codebook_of_call(codebook, None, None, "~ .")
    relation = related(book, adjacency, person, rows)
    stated = eps is not None or budget is not None
    request = PlanRequest(
        guarantee=resolve_budget(eps, delta, budget) if stated else resolve_budget(1.0, delta),
        adjacency=relation,
        n_rows=_n_rows(n, relation),
        assumed=(assumed := _guess(book, shape, relation)).about,
        subset=subset,
        targets=targets_of(targets, tuple(calls_by_name)),
        weights=weights_of(weights, tuple(calls_by_name)),
        best=option("best", best, BEST),
        over=option("over", over, OVER),
        solved="" if stated and n is not None else "n" if stated else "eps",
    )
    _check_solvable(request, stated, n)
    study = Study(calls_by_name, World(assumed, book, relation, request.n_rows, subset), request)
    if request.solved:
        study = (least_rows if request.solved == "n" else least_budget)(study)
    return divided(study)


def _n_rows(n: int | None, relation: Adjacency) -> int:
    if n is None:
        return 10_000
    return integer("n", n, 1, MOST_ROWS if relation.person is None else MOST_PERSONS)


def _check_solvable(request: PlanRequest, stated: bool, n: int | None) -> None:
    """Refuse to solve for two numbers, or for one without a target."""
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


def _guess(book: Any, shape: object, relation: Adjacency) -> AssumedRows:
    """Read the assumptions; of a frame, for all declared variables that it has."""
    if isinstance(shape, str | Mapping):
        return assumed_rows(book, shape)
    if relation.person is not None:
        raise ArgumentError(
            "shape= is a frame, from which rows of protected persons cannot be drawn: "
            'write a distribution, shape="normal", or person=False'
        )
    names = [name for name in book if name in getattr(shape, "columns", ())]
    return assumed_rows(book, shape, names)
