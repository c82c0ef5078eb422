"""``audit``: attack a recipe as an adversary would, and bound its privacy loss from below."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from scipy.special import ndtri

from dpmodels.arguments import checked_keywords, fraction, integer, option
from dpmodels.audit.claim import (
    Claim,
    Counts,
    Guess,
    beats,
    ceiling,
    claim,
    detectable,
    lower_bound,
)
from dpmodels.audit.coupled import worst_pair
from dpmodels.audit.neighbours import Pair
from dpmodels.audit.result import AuditResult, CountedEvent, Finding, Point, Reach
from dpmodels.audit.scores import SCORES, Learner, Score, coarsened
from dpmodels.audit.verb_recipes import (
    Batch,
    Recipe,
    Runs,
    VerbRecipe,
    commonest,
    gaussian_law,
    run,
    verb_recipe,
)
from dpmodels.errors import ArgumentError, quoted
from dpmodels.options import options
from dpmodels.privacy import Guarantee, resolve_budget
from dpmodels.typing import Floats

RUNS: Final = 20_000
_MOST_RUNS: Final = 10**8
# Choosing takes an eighth of the runs, and learning needs at least eight runs.
_LEAST_RUNS: Final = 64
# The fraction of the error rate for a claim over a whole curve; the rest is for eps of any noise.
_CURVE: Final = 0.8
# With more runs a nearest-neighbour score takes minutes without being better.
_MOST_NEAREST: Final = 60_000


@checked_keywords("dp.audit")
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
    """Attack a recipe, and bound its actual privacy loss from below.

    Parameters
    ----------
    recipe : callable
        From a table to a release: numbers, arrays, mappings, frames or a
        result of this package. Or a verb with its arguments,
        ``functools.partial(dp.dp_pca, "~ a + b", codebook=cb, eps=1,
        delta=1e-6)``, which also state the claim. Its attributes `batch`,
        `law`, `numerics` and `score`, if any, are defaults of the arguments
        below.
    pair : Pair, optional
        Two artificial neighbouring tables. For a verb, by default the worst
        pair derived from its formula and codebook: rows or persons with other
        values, ids that compare equal as numbers, line breaks in a quoted cell
        of a CSV file, a missing cell that changes the type of its column.
    eps, delta, budget
        The claimed guarantee.
    law : {"gaussian", None}
        ``"gaussian"``: the recipe adds exactly calibrated Gaussian noise, so
        the claim covers the whole trade-off curve, which takes far fewer runs
        to refute.
    numerics : {"exact", "idealised"}, optional
        ``"exact"``, the default: the claim holds to the last bit. Noise added
        in floating point seldom satisfies it, since the lowest bits depend on
        the exact value. ``"idealised"``: the claim is about real numbers;
        releases are rounded to about six digits of their spread before they
        are tested.
    runs : int
        Runs on each of the two tables.
    confidence : float
        In (0, 1). A correct recipe is flagged with probability at most ``1 -
        confidence``, and the bounds hold simultaneously with probability
        `confidence`.
    tests : sequence of str, optional
        Names of scores in ``dp.audit.SCORES``; all by default.
    score : callable, optional
        From values of shape (m, k) to m numbers, larger where the neighbour is
        likelier: the exact log-likelihood ratio if the distribution is known.
        Tried in addition to the others.
    batch : callable, optional
        From a table and a number of runs to a matrix with one line per run.

    Returns
    -------
    AuditResult

    Raises
    ------
    ArgumentError, BudgetError
        From the arguments. Errors of the recipe are findings.

    Notes
    -----
    The verdict "consistent" means that this attack, on this pair, with this
    number of runs, did not refute the claim; it proves nothing. A violation is
    proved, up to the stated confidence.

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
    error = 1 - fraction("confidence", confidence)
    runs = integer("runs", runs, 1, _MOST_RUNS, f", for example {RUNS:,}")
    chosen = _chosen(tests, runs)
    recipe = _callable(recipe)
    pair = _pair_of(recipe, pair)
    if isinstance(recipe, VerbRecipe):
        if eps is None and budget is None:
            budget, delta = recipe.request.private, 0.0
            law = law or ("gaussian" if gaussian_law(recipe, pair) else None)
        numerics = numerics or recipe.numerics(pair)
    choices = ("exact", "idealised")
    mode = option("numerics", numerics or getattr(recipe, "numerics", "exact"), choices)
    claimed = claim(resolve_budget(eps, delta, budget), law or getattr(recipe, "law", None))
    batch = batch or getattr(recipe, "batch", None)
    recipe_score = score or getattr(recipe, "score", None)
    extra = {} if recipe_score is None else {"score": recipe_score}
    # Artificial tables must not charge the ledger of dp.options.
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
        findings=(*_outcomes(*sides), *_values(*sides), *_reach(reach, claimed, bool(events))),
        reach=reach,
        points=points(parts, fitted[events[0].score], error) if events else (),
    )


def _callable(recipe: Recipe) -> Recipe:
    if isinstance(recipe, functools.partial) and "codebook" in recipe.keywords:
        recipe = verb_recipe(recipe)
    if not callable(recipe):
        raise ArgumentError(
            f"recipe= is of type {type(recipe).__name__}: expected a function of a table, or a "
            'verb with its arguments, functools.partial(dp.dp_pca, "~ a + b", codebook=cb, eps=1)'
        )
    return recipe


def _pair_of(recipe: Recipe, pair: object) -> Pair:
    """Return the tables of an attack: of a verb by default the worst pair."""
    if pair is None and isinstance(recipe, VerbRecipe):
        return worst_pair(recipe)
    if not isinstance(pair, Pair):
        raise ArgumentError(
            f"pair= is of type {type(pair).__name__}: write dp.audit.Pair(rows, neighbour)"
        )
    return pair


def _goals(claimed: Claim, error: float) -> tuple[Goal, ...]:
    """Return the goals of choosing events, each for one test with its fraction of the error."""
    if claimed.unit == "eps":
        return (Goal(claimed, error),)
    eps_claim = Claim("eps", claimed.eps, claimed.delta)
    return Goal(claimed, _CURVE * error), Goal(eps_claim, (1 - _CURVE) * error)


def _events(
    cut: Split, goals: tuple[Goal, ...], fitted: Mapping[str, Scorer]
) -> tuple[CountedEvent, ...]:
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
        slow = {"nearest"} if runs > _MOST_NEAREST else set[str]()
        return {name: learner for name, learner in SCORES.items() if name not in slow}
    names = ", ".join(map(repr, SCORES))
    if isinstance(tests, str) or not isinstance(tests, Sequence):
        raise ArgumentError(f"tests={quoted(tests)}: expected a list of names from {names}")
    for name in tests:
        if not isinstance(name, str) or name not in SCORES:
            raise ArgumentError(f"tests: {quoted(name)} is unknown; expected names from {names}")
    return {name: SCORES[name] for name in tests}


# Remarks on the outcomes of the runs.

_MANY_REPEATS = 1e-3  # a choice: atoms of the releases of small tables are of this size


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
            yield Finding("constant", f"All releases of the {name} are equal: there is no noise.")
        elif 1 - distinct / len(values) > _MANY_REPEATS:
            fraction = 1 - distinct / len(values)
            yield Finding(
                "repeats",
                f"{fraction:.2g} of the releases of the {name} repeat another one to the last bit: "
                "the distribution has atoms, or noise was reused.",
            )


def _reach(reach: Reach, claim: Claim, tested: bool) -> Iterator[Finding]:
    if not tested:
        yield Finding("no test", "Nothing could be tested: too few runs returned numbers.")
    if reach.largest <= claim.value:
        yield Finding(
            "few runs",
            f"These runs cannot show any {claim.unit} above {reach.largest:.3g}, which is below "
            "the claim: no release could have been flagged.",
        )
    elif math.isinf(reach.smallest):
        yield Finding("few runs", "These runs are too few to detect almost any violation.")


Scorer = Callable[[Runs], Floats]

OUTCOMES: Final = "outcomes"
# Choices, of runs per table: more would be slow, and are more useful for counting.
_MOST_LEARNT: Final = 25_000
_MOST_RANKED: Final = 100_000
_MOST_CHOOSING: Final = 500_000
_LEAST: Final = 8  # a choice: the fewest runs per table from which scores are learnt
_EVEN: Final = 250  # a choice: thresholds at even quantiles of the scores
_TAIL: Final = 80  # a choice: additional geometric thresholds in each tail
# Standard errors: about the largest of the few hundred deviations among which the best is chosen.
_LUCK: Final = 2.5
# If two rates err by one standard error each, their sum errs by about this fraction of both.
_TOGETHER: Final = 0.8
_POINTS: Final = 9  # a choice: points of the measured curve in a picture


class Sides(NamedTuple):
    """Runs of both tables for one purpose."""

    rows: Runs
    neighbour: Runs


class Split(NamedTuple):
    """Runs for learning, for choosing and for counting."""

    learning: Sides
    choosing: Sides
    counting: Sides


class Chosen(NamedTuple):
    """An event, and its rates among the runs that chose it."""

    score: str
    threshold: float
    guess: Guess
    worth: float


@dataclass(frozen=True)
class Goal:
    """The criterion for choosing an event: a large lower bound of a claim's number."""

    claim: Claim
    error: float

    def worth(self, alarms: Floats, misses: Floats, runs: int) -> Floats:
        """Predict the lower bounds of events with these rates, counted in `runs` runs."""
        z = -float(ndtri(self.error)) * _TOGETHER
        raised = [rate + z * np.sqrt(rate * (1 - rate) / runs) for rate in (alarms, misses)]
        return self.claim.smallest(*(np.clip(rate, 1e-15, 1 - 1e-12) for rate in raised))


def split(rows: Runs, neighbour: Runs) -> Split:
    """Split the runs of both tables in three."""
    n_runs = min(len(rows), len(neighbour))
    learning = min(n_runs // 4, _MOST_LEARNT)
    choosing = learning + min(n_runs // 8, _MOST_CHOOSING)
    bounds = (0, learning, choosing)
    cuts = [
        Sides(rows.cut(start, stop or len(rows)), neighbour.cut(start, stop or len(neighbour)))
        for start, stop in zip(bounds, (*bounds[1:], 0), strict=True)
    ]
    return Split(*cuts)


def scorers(
    learning: Sides,
    learners: Mapping[str, Learner],
    fixed: Mapping[str, Score],
    *,
    idealised: bool = False,
) -> dict[str, Scorer]:
    """Learn scores of runs, and add the fixed scores.

    `idealised` values are rounded first, so that no score uses their lowest bits.
    """
    kind = commonest(*learning)
    result = {name: _on(kind, score) for name, score in fixed.items()} if kind else {}
    values = learning.rows.of(kind), learning.neighbour.of(kind)
    if kind and min(map(len, values)) >= _LEAST:
        rounded = coarsened(*values) if idealised else _same
        values = rounded(values[0]), rounded(values[1])
        for name, learner in learners.items():
            try:
                result[name] = _on(kind, learner(*values), rounded)
            except np.linalg.LinAlgError:
                continue
    if len({*learning.rows.kinds, *learning.neighbour.kinds}) > 1:
        result[OUTCOMES] = _outcome_scorer(learning)
    return result


def _same(values: Floats) -> Floats:
    return values


def _on(kind: str, score: Score, rounded: Callable[[Floats], Floats] = _same) -> Scorer:
    """Score runs of one kind; other runs never raise an alarm."""

    def scored(runs: Runs) -> Floats:
        scores = np.full(len(runs), -np.inf)
        values = runs.of(kind)
        if len(values):
            raw = np.asarray(score(rounded(values)), dtype=np.float64).reshape(len(values))
            scores[runs.codes == runs.code(kind)] = np.where(np.isnan(raw), -np.inf, raw)
        return scores

    return scored


def _outcome_scorer(learning: Sides) -> Scorer:
    """Score the kinds of outcomes by their log frequency ratio."""
    kinds = {*learning.rows.kinds, *learning.neighbour.kinds}
    sides = [side for side in learning if len(side)]
    ratio = {
        kind: float(np.log(learning.neighbour.fraction(kind) + 1e-4))
        - float(np.log(learning.rows.fraction(kind) + 1e-4))
        for kind in kinds
        if sides
    }
    return lambda runs: np.array([ratio.get(kind, 0.0) for kind in runs.kinds])[runs.codes]


def choose(
    choosing: Sides, scorers_by_name: Mapping[str, Scorer], goal: Goal, runs: int
) -> Chosen | None:
    """Choose the score, on some of the runs, and its threshold, on all of them.

    `runs` is the number of runs per table for counting. None if there is no score.
    """
    subset = Sides(*(side.cut(0, _MOST_RANKED) for side in choosing))
    events = [_best(subset, name, scorer, goal, runs) for name, scorer in scorers_by_name.items()]
    if not events:
        return None
    best = max(events, key=lambda event: event.worth)
    return _best(choosing, best.score, scorers_by_name[best.score], goal, runs)


def _best(sides: Sides, name: str, scorer: Scorer, goal: Goal, runs: int) -> Chosen:
    rows, neighbour = (np.sort(scorer(side)) for side in sides)
    cuts = thresholds(rows, neighbour)
    above = len(rows) - np.searchsorted(rows, cuts, side="right")
    below = np.searchsorted(neighbour, cuts, side="right")
    alarms, misses = (above + 0.5) / (len(rows) + 1), (below + 0.5) / (len(neighbour) + 1)
    worth = goal.worth(_shaved(alarms, len(rows)), _shaved(misses, len(neighbour)), max(runs, 1))
    best = int(worth.argmax())
    guess = Guess(float(alarms[best]), float(misses[best]))
    return Chosen(name, float(cuts[best]), guess, float(worth[best]))


def _shaved(rates: Floats, runs: int) -> Floats:
    """Raise rates to correct for the selection of the best of many events."""
    raised = rates + _LUCK * np.sqrt(rates * (1 - rates) / runs) + _LUCK**2 / runs
    return np.asarray(np.minimum(raised, 1 - 1e-12))


def thresholds(rows: Floats, neighbour: Floats, even: int = _EVEN) -> Floats:
    """Return thresholds: even quantiles of all scores, and finer ones in the tails."""
    pooled = np.sort(np.concatenate([rows, neighbour]))
    n_scores = len(pooled)
    tail = np.unique(np.geomspace(1, n_scores, _TAIL).astype(np.int64))
    positions = np.concatenate(
        [np.linspace(0, n_scores - 1, even).astype(np.int64), tail, n_scores - tail]
    )
    cuts = np.unique(pooled[np.clip(positions, 0, n_scores - 1)])
    return cuts[np.isfinite(cuts)] if np.isfinite(cuts).any() else np.zeros(1)


def count(sides: Sides, scorer: Scorer, threshold: float) -> Counts:
    """Count the event "score above threshold"."""
    rows, neighbour = (scorer(side) for side in sides)
    return Counts(
        alarms=int((rows > threshold).sum()),
        rows_runs=len(rows),
        misses=int((neighbour <= threshold).sum()),
        neighbour_runs=len(neighbour),
    )


def points(cut: Split, scorer: Scorer, error: float) -> tuple[Point, ...]:
    """Count a score at thresholds that the choosing runs spread over the trade-off curve.

    All boxes contain their rates simultaneously except with probability `error`.
    """
    scores = np.concatenate([scorer(side) for side in cut.choosing])
    scores = scores[np.isfinite(scores)]
    if not len(scores):
        return ()
    levels = np.linspace(0, 1, _POINTS + 2)[1:-1]
    thresholds = np.unique(np.quantile(scores, levels, method="lower"))
    measured = []
    for threshold in thresholds:
        counts = count(cut.counting, scorer, float(threshold))
        measured.append(Point(*counts.rates, *counts.box(error / len(thresholds))))
    return tuple(measured)
