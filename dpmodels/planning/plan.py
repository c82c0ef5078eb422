"""``plan``: what an analysis will tell, and how to divide its budget, before it is spent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from dpmodels.arguments import whole, word
from dpmodels.declared import Declared, declared
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.planning.analysis import AnalysisPlan, PlanQuestion
from dpmodels.planning.guess import MOST_PERSONS, MOST_ROWS, Guess, World, guessed
from dpmodels.planning.recommended import divided, least_budget, least_rows
from dpmodels.planning.study import Study
from dpmodels.planning.targets import named_calls, targets_of, weights_of
from dpmodels.privacy import Adjacency, AdjacencyName, Guarantee, resolve_budget
from dpmodels.question import related
from dpmodels.sessions.call import Call

BEST: Final = ("mean", "worst")
OVER: Final = ("median", "worst")


def plan(
    calls: Mapping[str, Call | tuple[Any, ...]] | Iterable[Call | tuple[Any, ...]],
    *,
    codebook: Declared = None,
    n: int | None = None,
    eps: float | None = None,
    delta: float = 0.0,
    budget: Guarantee | None = None,
    shape: Any = "normal",
    targets: Mapping[str, Any] | None = None,
    weights: Mapping[str, float] | None = None,
    best: Literal["mean", "worst"] = "mean",
    over: Literal["median", "worst"] = "median",
    adjacency: AdjacencyName | Adjacency | None = None,
    person: str | Literal[False] | None = None,
    rows: int | Literal["mean"] | None = None,
    subset: str | None = None,
) -> AnalysisPlan:
    """Predict the errors of a whole analysis, and divide its budget; nothing is read or spent.

    Each call is made on rows that are guessed, and released in simulation at several budgets. One
    of ``n`` and the budget may be left out: the least is then found at which all targets are met.

    Parameters
    ----------
    calls : list or dict of calls
        Each ``dp.call.lm("y ~ x")`` or ``("lm", "y ~ x", dict(vcov="HC"))``, as for
        :meth:`dp.session.plan`; by the keys of a dict they are named. One that says a budget keeps
        it: ``dp.call.mean("~ wage", eps=0.2)``.
    codebook : Codebook
        Public bounds and levels, as for :func:`dp_pca`.
    n : int, optional
        Number of rows; under ``"add-remove"``, where it is private, a public guess of it.
    eps, delta, budget
        What all calls together satisfy, as for :func:`dp_pca`. Where eps is left out, and found,
        delta may be said.
    shape : str, mapping or frame
        What rows are like, as for :func:`dp.power`: a law of the numbers, such as ``"normal"`` or
        ``"skewed"``, by variable such a law or shares of levels, or a frame of **public or
        simulated rows**. Private rows would be given away: no guarantee covers what this function
        returns, and it cannot tell.
    targets : mapping, optional
        What a call's figure is to be: ``{"lm": {"se": 0.2}}`` for a standard error, noise and
        sampling together, ``{"lm": {"noise": 0.3}}`` for the share of noise in its square, and
        ``{"noise": 0.5}`` for all calls. They are met before anything else.
    weights : mapping, optional
        How much a call counts, 1 where it is not said; with ``best="worst"`` one of weight 2 is
        kept half as far from the error that it has without privacy.
    best : {"mean", "worst"}
        What is made as small as can be of each call's error as a multiple of that without privacy:
        the geometric mean over calls, or the largest, for which easy calls give up much.
    over : {"median", "worst"}
        Which figure of a call, such as a coefficient or a share, stands for it.
    adjacency, person, rows, subset
        As for :func:`dp_pca`. Each person is taken to have as many rows as count.

    Returns
    -------
    AnalysisPlan
        ``table``, ``figures``, ``budgets``, ``calls`` with their budgets for
        :meth:`dp.session.plan`, ``curve()`` and ``plot()``.

    Raises
    ------
    ArgumentError, CodebookError, FormulaError, FrameError
        If a word makes no sense, a call's own does not, or the shape lacks a variable.
    BudgetError
        If calls say more than the whole, or targets cannot be met; it says what would meet them.

    Notes
    -----
    *Noise* is the median of the standard errors that released results print for it; where they have
    none (bounds, support vector machines, directions of components), the root mean square
    difference of releases and the exact answer. *Sampling* is what results say with so large a
    budget that noise is nothing; where they have no law of it, the spread over tables that are
    invented.

    *Division.* Parts compose to the whole exactly: eps and rho add up, with a delta Gaussian
    releases add up ``1/m**2`` of their multipliers. The noise between the budgets that were tried
    is interpolated by powers; at the recommended ones it is simulated once more.

    A response does not depend on its predictors unless rows are given where it does, so that
    standard errors of regressions are those of no effect. All is as good as the guess.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(age=(18, 90), wage=(0, 80), sex=["F", "M"])
    >>> made = dp.plan(
    ...     {"wages": dp.call.mean("wage ~ sex"), "model": dp.call.lm("wage ~ age + sex")},
    ...     codebook=cb, n=4_000, eps=2.0, delta=1e-6,
    ... )
    >>> list(made.budgets), bool((made.table["identified"] == 1).all())
    (['wages', 'model'], True)
    """
    calls_by_name = named_calls(calls)
    book = declared(codebook, None, None, "~ .")
    relation = related(book, adjacency, person, rows)
    stated = eps is not None or budget is not None
    question = PlanQuestion(
        guarantee=resolve_budget(eps, delta, budget) if stated else resolve_budget(1.0, delta),
        adjacency=relation,
        n_rows=_n_rows(n, relation),
        guess=(guess := _guess(book, shape, relation)).about,
        subset=subset,
        targets=targets_of(targets, tuple(calls_by_name)),
        weights=weights_of(weights, tuple(calls_by_name)),
        best=word("best", best, BEST),
        over=word("over", over, OVER),
        solved="" if stated and n is not None else "n" if stated else "eps",
    )
    _check_solvable(question, stated, n)
    study = Study(calls_by_name, World(guess, book, relation, question.n_rows, subset), question)
    if question.solved:
        study = (least_rows if question.solved == "n" else least_budget)(study)
    return divided(study)


def _n_rows(n: int | None, relation: Adjacency) -> int:
    if n is None:
        return 10_000
    return whole("n", n, 1, MOST_ROWS if relation.person is None else MOST_PERSONS)


def _check_solvable(question: PlanQuestion, stated: bool, n: int | None) -> None:
    """Refuse to look for two numbers, or for one without a target."""
    if n is None and not stated:
        raise BudgetError(
            "neither n nor a budget is given: write one of them, n=10_000 or eps=1.0, and targets="
        )
    if question.solved and not question.targets:
        missing = "n" if question.solved == "n" else "the budget"
        raise ArgumentError(
            f"{missing} is left out and there is nothing to look for it by: write "
            'targets={"noise": 0.5}, or give it, n=10_000, eps=1.0'
        )


def _guess(book: Any, shape: Any, relation: Adjacency) -> Guess:
    """Read the guess, of all variables that a frame of public rows has."""
    if isinstance(shape, str | Mapping):
        return guessed(book, shape)
    if relation.person is not None:
        raise ArgumentError(
            "shape= is a frame, and persons are protected, whose rows cannot be drawn from it: "
            'write a law, shape="normal", or person=False'
        )
    names = [name for name in book if name in getattr(shape, "columns", ())]
    return guessed(book, shape, names)
