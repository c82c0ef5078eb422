"""Strategies tried on invented rows: what each would make of a budget."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dpmodels.errors import BudgetError, shorten
from dpmodels.mechanisms import Facts, Plan, choose
from dpmodels.mechanisms.auto import auto_moments
from dpmodels.mechanisms.choose import Mechanism, Table
from dpmodels.models.invented import MOST_ROWS_IN_PASSES, Invented, invent
from dpmodels.noise import simulation, source
from dpmodels.released import Release, SubspaceRelease
from dpmodels.results import MomentsCall
from dpmodels.results.analysis import Analysis
from dpmodels.results.comparison import Question
from dpmodels.typing import Floats

BASELINES = frozenset({"zero", "random"})
# Columns up to which a release takes seconds.
MOST_COLUMNS = 1_000
SLOW = {"iterative": 300, "ppca": 300}
SEED = 20_120_912


class Outcome(NamedTuple):
    """Of one simulated release: share of energy, error, and error over the norm."""

    energy: float
    frobenius: float
    relative: float


class World(NamedTuple):
    """Invented rows, their covariance, and the energy of its first components."""

    rows: Invented
    covariance: Floats
    energy: float


class Trial(NamedTuple):
    """What all strategies are tried on; no world where columns are too many for any."""

    question: Question
    call: MomentsCall
    worlds: tuple[World, ...]


def trial(question: Question, call: MomentsCall, shares: Floats) -> Trial:
    """Invent the rows of each repetition.

    Parameters
    ----------
    question : Question
        What is compared.
    call : MomentsCall
        What is asked of the invented rows.
    shares : ndarray, shape (columns,)
        Relative eigenvalues, largest first, with the sum 1.
    """
    small = question.columns <= MOST_COLUMNS
    return Trial(question, call, tuple(_worlds(question, shares)) if small else ())


def line(name: str, table: Table, made: Trial) -> dict[str, Any]:
    """Try one strategy; return its line of the table of a comparison."""
    asked = made.question
    facts = Facts(asked.columns, asked.adjacency, asked.center, asked.components)
    words = {"denoise": made.call.denoise, "eigenvals": None}
    rows = asked.rows if asked.adjacency.n_public else None
    known = frozenset(table)
    strategy = choose(
        name, table, partial(auto_moments, facts, asked.guarantee, rows, known), words
    ).strategy
    fits, note, outcomes = True, "baseline" if name in BASELINES else "", []
    most = SLOW.get(name, MOST_COLUMNS)
    try:
        plan = strategy.plan(facts, asked.guarantee)
    except BudgetError as error:
        fits, note = False, _reason(error)
    else:
        if asked.columns > most:
            note = f"not simulated above {most:,} columns"
        else:
            outcomes = _simulated(strategy, plan, made)
            note = note if outcomes else f"not simulated above {MOST_ROWS_IN_PASSES:,} rows"
    mean, se = _mean_and_se(outcomes)
    return {
        "mechanism": name,
        "energy": mean.energy,
        "energy_se": se.energy,
        "frobenius": mean.frobenius,
        "frobenius_se": se.frobenius,
        "relative": mean.relative,
        "numerics": strategy.card.numerics,
        "fits": fits,
        "note": note,
    }


def _simulated(strategy: Mechanism, plan: Plan, made: Trial) -> list[Outcome]:
    """Release from invented rows; every strategy meets the same rows and the same noise."""
    outcomes = []
    for repeat, world in enumerate(made.worlds):
        with simulation(seed=SEED + repeat):
            statistic = world.rows.measured(strategy, plan)
            if statistic is None:
                return []
            release = strategy.release(statistic, plan, source())
        outcomes.append(_outcome(release, world, made))
    return outcomes


def _outcome(release: Release, world: World, made: Trial) -> Outcome:
    """Hold what a verb would return against the exact covariance."""
    exact, error = world.covariance, math.nan
    if isinstance(release, SubspaceRelease):
        frame = release.frame
    else:
        analysis = Analysis(made.call, release)
        frame = analysis.eigen.vectors[:, : made.question.components]
        error = float(np.linalg.norm(analysis.denoised - exact))
    energy = float(np.einsum("ij,ij->", frame, exact @ frame))
    return Outcome(energy / world.energy, error, error / float(np.linalg.norm(exact)))


def _mean_and_se(outcomes: list[Outcome]) -> tuple[Outcome, Outcome]:
    """Return means and their standard errors, nan where there are too few."""
    unknown = Outcome(math.nan, math.nan, math.nan)
    if not outcomes:
        return unknown, unknown
    drawn = np.array(outcomes)
    mean = Outcome(*drawn.mean(axis=0).tolist())
    if len(drawn) == 1:
        return mean, unknown
    return mean, Outcome(*(drawn.std(axis=0, ddof=1) / math.sqrt(len(drawn))).tolist())


def _worlds(question: Question, shares: Floats) -> Iterator[World]:
    """Invent the rows of each repetition."""
    for repeat in range(question.repeats):
        rng = np.random.default_rng([SEED, repeat])
        rows = invent(shares, question.row_length, question.rows, rng)
        exact = rows.covariance(centred=question.center)
        energy = float(np.linalg.eigvalsh(exact)[-question.components :].sum())
        yield World(rows, exact, energy)


def _reason(error: BudgetError) -> str:
    """Return the first clause of a refusal."""
    return shorten(str(error).partition(":")[0].partition(";")[0], 90)
