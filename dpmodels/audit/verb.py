"""``audit``: attack a recipe as an adversary would, and bound its privacy from below."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from dpmodels.arguments import share, whole, word
from dpmodels.audit.attack import Goal, Scorer, Split, choose, count, points, scorers, split
from dpmodels.audit.claim import Claim, beats, ceiling, claim, detectable, lower_bound
from dpmodels.audit.coupled import worst_pair
from dpmodels.audit.house import VerbRecipe, gaussian_law, verb_recipe
from dpmodels.audit.pair import Pair
from dpmodels.audit.result import AuditResult, CountedEvent, Finding, Reach
from dpmodels.audit.runs import Batch, Recipe, Runs, commonest, run
from dpmodels.audit.scores import SCORES, Learner, Score
from dpmodels.errors import ArgumentError, said
from dpmodels.options import options
from dpmodels.privacy import Guarantee, resolve_budget

RUNS: Final = 20_000
_MOST_RUNS: Final = 10**8
# Choosing takes an eighth of the runs, and nothing is learnt from fewer than eight.
_LEAST_RUNS: Final = 64
# Of the error rate, to a claim over a whole curve; the rest to eps under any law.
_CURVE: Final = 0.8
# Beyond these a score that has to look around takes minutes, and others do as well.
_MOST_NEAREST: Final = 60_000


def audit(
    recipe: Recipe,
    pair: Pair | None = None,
    *,
    eps: float | None = None,
    delta: float = 0.0,
    budget: Guarantee | None = None,
    law: str | None = None,
    numerics: str | None = None,
    runs: int = RUNS,
    confidence: float = 0.95,
    tests: Sequence[str] | None = None,
    score: Score | None = None,
    batch: Batch | None = None,
) -> AuditResult:
    """Attack a recipe, and bound from below the privacy loss that is really there.

    Parameters
    ----------
    recipe : callable
        From a table to something released: numbers, arrays, mappings, frames
        or a result of this package. Or a verb with its arguments,
        ``functools.partial(dp.dp_pca, "~ a + b", codebook=cb, eps=1,
        delta=1e-6)``, whose claim is then taken from there. Its attributes
        `batch`, `law`, `numerics` and `score`, where it has them, stand for
        the words below.
    pair : Pair, optional
        Two neighbouring tables, made up. For a verb the worst of several that
        its formula and codebook suggest: rows or persons with other values,
        ids that compare equal as numbers, line breaks in a quoted cell of a
        CSV file, a missing cell that changes the type of its column.
    eps, delta, budget
        The guarantee that is claimed.
    law : {"gaussian", None}
        ``"gaussian"``: the claim is made by exactly calibrated Gaussian noise,
        and so holds for the whole trade-off curve. That takes far fewer runs
        to refute.
    numerics : {"exact", "idealised"}, optional
        ``"exact"``, the default: the claim holds to the last bit. Noise drawn
        and added in floating point seldom keeps it, as the lowest bits depend
        on what it was added to. ``"idealised"``: the claim is about real
        numbers; releases are rounded to about six digits of their spread
        before they are looked at.
    runs : int
        Runs on each of the two tables.
    confidence : float
        In (0, 1). A recipe that keeps its claim is flagged with probability
        at most ``1 - confidence``, and the bounds hold together with this
        probability.
    tests : sequence of str, optional
        Names of scores in ``dp.audit.SCORES``; all by default.
    score : callable, optional
        From values of shape (m, k) to m numbers, larger where the neighbour is
        likelier: the exact log-likelihood ratio where the law is known. Tried
        beside the others.
    batch : callable, optional
        From a table and a number of runs to a matrix with a line a run.

    Returns
    -------
    AuditResult

    Raises
    ------
    ArgumentError, BudgetError
        From the arguments. Whatever the recipe does is a finding.

    Notes
    -----
    A verdict "consistent" says that this attack, on this pair, with so many
    runs, did not refute the claim; it proves nothing. A violation is proved, up
    to the stated confidence.

    References
    ----------
    .. [1] Ding, Z., Wang, Y., Wang, G., Zhang, D. and Kifer, D. (2018).
       "Detecting violations of differential privacy." CCS 2018.
    .. [2] Jagielski, M., Ullman, J. and Oprea, A. (2020). "Auditing
       differentially private machine learning: how private is private SGD?"
       NeurIPS 2020.

    Examples
    --------
    >>> import dpmodels as dp
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> def mean(rows):
    ...     return np.mean(rows) + rng.laplace(scale=0.5 / len(rows))
    >>> pair = dp.audit.Pair(np.zeros(10), np.append(np.zeros(9), 1.0))
    >>> result = dp.audit(mean, pair, eps=1.0, numerics="idealised", runs=4_000)
    >>> result.verdict, bool(1.5 < result.eps_lower < 2.0)
    ('VIOLATION', True)
    """
    error = 1 - share("confidence", confidence)
    runs = whole("runs", runs, 1, _MOST_RUNS, f", for example {RUNS:,}")
    chosen = _chosen(tests, runs)
    recipe = _callable(recipe)
    if isinstance(recipe, VerbRecipe):
        pair = worst_pair(recipe) if pair is None else pair
        if eps is None and budget is None:
            budget, delta = recipe.question.private, 0.0
            law = law or ("gaussian" if gaussian_law(recipe, pair) else None)
        numerics = numerics or recipe.numerics(pair)
    if not isinstance(pair, Pair):
        raise ArgumentError(
            f"pair= is of type {type(pair).__name__}: write dp.audit.Pair(rows, neighbour)"
        )
    choices = ("exact", "idealised")
    mode = word("numerics", numerics or getattr(recipe, "numerics", "exact"), choices)
    claimed = claim(resolve_budget(eps, delta, budget), law or getattr(recipe, "law", None))
    batch = batch or getattr(recipe, "batch", None)
    extra = _own_score(recipe, score)
    # Tables that are made up are not what a chosen ledger is the account of.
    with options(ledger=None):
        sides = [run(recipe, table, runs, batch) for table in (pair.rows, pair.neighbour)]
    parts = split(*sides)
    goals = _goals(claimed, error)
    fitted = scorers(parts.learning, chosen, extra, idealised=mode == "idealised")
    events = _events(parts, goals, fitted) if runs >= _LEAST_RUNS else ()
    counted = len(parts.counting.rows)
    reach = Reach(
        largest=ceiling(claimed, max(counted, 1), goals[0].error),
        smallest=detectable(claimed, max(counted, 1), goals[0].error),
    )
    return AuditResult(
        claim=claimed,
        pair=pair.name,
        adjacency=pair.adjacency,
        runs=runs,
        counted=counted,
        confidence=confidence,
        events=events,
        findings=remarks(*sides, reach=reach, claim=claimed, tested=bool(events)),
        reach=reach,
        points=points(parts, fitted[events[0].score], error) if events else (),
    )


def _callable(recipe: Recipe) -> Recipe:
    """Return a recipe that can be run: a verb with its arguments becomes one."""
    if isinstance(recipe, functools.partial) and "codebook" in recipe.keywords:
        recipe = verb_recipe(recipe)
    if not callable(recipe):
        raise ArgumentError(
            f"recipe= is of type {type(recipe).__name__}: expected a function of a table, or a "
            'verb with its arguments, functools.partial(dp.dp_pca, "~ a + b", codebook=cb, eps=1)'
        )
    return recipe


def _own_score(recipe: Recipe, score: Score | None) -> dict[str, Score]:
    """Return the score that was given, or else the recipe's, by its name; empty without one."""
    function = score or getattr(recipe, "score", None)
    return {} if function is None else {"score": function}


def _goals(claimed: Claim, error: float) -> tuple[Goal, ...]:
    """Return what events are chosen for; each is one test with its share of the error."""
    if claimed.unit == "eps":
        return (Goal(claimed, error),)
    eps_claim = Claim("eps", claimed.eps, claimed.delta)
    return Goal(claimed, _CURVE * error), Goal(eps_claim, (1 - _CURVE) * error)


def _events(
    cut: Split, goals: tuple[Goal, ...], fitted: Mapping[str, Scorer]
) -> tuple[CountedEvent, ...]:
    """Choose and count one event for each goal."""
    events = []
    for goal in goals:
        best = choose(cut.choosing, fitted, goal, len(cut.counting.rows))
        if best is None:
            continue
        counts = count(cut.counting, fitted[best.score], best.threshold)
        events.append(
            CountedEvent(
                claim=goal.claim,
                score=best.score,
                counts=counts,
                error=goal.error,
                p_value=beats(goal.claim, counts, best.guess, goal.error),
                bound=lower_bound(goal.claim, counts, best.guess, goal.error),
            )
        )
    return tuple(events)


def _chosen(tests: object, runs: int) -> Mapping[str, Learner]:
    if tests is None:
        is_large = runs > _MOST_NEAREST
        return {
            name: learner
            for name, learner in SCORES.items()
            if not (is_large and name == "nearest")
        }
    names = ", ".join(map(repr, SCORES))
    if isinstance(tests, str) or not isinstance(tests, Sequence):
        raise ArgumentError(f"tests={said(tests)}: expected a list of names out of {names}")
    for name in tests:
        if not isinstance(name, str) or name not in SCORES:
            raise ArgumentError(f"tests: {said(name)} is not known; expected names out of {names}")
    return {name: SCORES[name] for name in tests}


# What the outcomes of the runs look like, in words.

_MANY_REPEATS = 1e-3  # a choice: releases of the small tables here have atoms of such sizes


def remarks(
    rows: Runs, neighbour: Runs, *, reach: Reach, claim: Claim, tested: bool
) -> tuple[Finding, ...]:
    """Describe what came of all runs besides rates of events, and what could have been found."""
    return (*_outcomes(rows, neighbour), *_values(rows, neighbour), *_reach(reach, claim, tested))


def _outcomes(rows: Runs, neighbour: Runs) -> Iterator[Finding]:
    common = commonest(rows, neighbour)
    for kind in sorted({*rows.kinds, *neighbour.kinds}):
        shares = f"in {rows.fraction(kind):.3g} of the runs on the rows and "
        shares += f"{neighbour.fraction(kind):.3g} on the neighbour"
        if kind.startswith("raises"):
            yield Finding("raised", f"The recipe {kind} {shares}.")
        elif "not finite" in kind:
            yield Finding("not finite", f"It releases {kind}, {shares}.")
        elif kind != common:
            yield Finding("shape", f"It releases {kind} {shares}, elsewhere {common}.")


def _values(rows: Runs, neighbour: Runs) -> Iterator[Finding]:
    kind = commonest(rows, neighbour)
    for side, name in ((rows, "rows"), (neighbour, "neighbour")):
        values = side.of(kind)
        if len(values) < 2 or not values.shape[1]:
            continue
        distinct = len(np.unique(values, axis=0))
        if distinct == 1:
            yield Finding(
                "constant", f"Every release of the {name} is the same: there is no noise."
            )
        elif 1 - distinct / len(values) > _MANY_REPEATS:
            share = 1 - distinct / len(values)
            yield Finding(
                "repeats",
                f"{share:.2g} of the releases of the {name} repeat another one to the last bit: "
                "the law has atoms, or noise was used twice.",
            )


def _reach(reach: Reach, claim: Claim, tested: bool) -> Iterator[Finding]:
    if not tested:
        yield Finding("no test", "Nothing could be tested: no runs gave numbers, or too few did.")
    if reach.largest <= claim.value:
        yield Finding(
            "few runs",
            f"So few runs can show no {claim.unit} above {reach.largest:.3g}, less than is "
            "claimed: no release could have been flagged.",
        )
    elif math.isinf(reach.smallest):
        yield Finding("few runs", "With so few runs hardly any release would have been flagged.")
