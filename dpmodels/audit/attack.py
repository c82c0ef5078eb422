"""Choose events on some runs and count them on others.

The runs of each table are split in three. On the first part scores are learnt, on
the second one score and threshold are chosen, on the third the event "score
above threshold" is counted. The counts are independent of the choice, so one
binomial test is exact however many scores and thresholds were tried; the few
counted events share the error rate (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from scipy.special import ndtri

from dpmodels.audit.claim import Claim, Counts, Guess
from dpmodels.audit.result import Point
from dpmodels.audit.runs import Runs, commonest
from dpmodels.audit.scores import Learner, Score, coarsened
from dpmodels.typing import Floats

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
        result[OUTCOMES] = _outcomes(learning)
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


def _outcomes(learning: Sides) -> Scorer:
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
