"""Strategies tried on invented rows with a chosen spectrum, before there are any data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import hadamard

from dpmodels.codebook import Codebook
from dpmodels.design import PrivateDesign, private_design
from dpmodels.errors import BudgetError, shorten
from dpmodels.mechanisms import Facts, Plan, choose
from dpmodels.mechanisms.choose import Mechanism, Table, auto_moments
from dpmodels.noise import simulation, source
from dpmodels.released import Release, SubspaceRelease
from dpmodels.results import MomentsCall
from dpmodels.results.analysis import Analysis
from dpmodels.results.comparison import Question
from dpmodels.statistics import Statistic
from dpmodels.typing import Floats

LEAST_ROWS = 1024  # A choice: of a block
# Statistics that do not add over rows need every row, several times.
MOST_ROWS_IN_PASSES = 20_000


@dataclass(frozen=True)
class Invented:
    """Invented rows of the unit ball, all of one length."""

    block: Floats  # Shape (columns, block rows): of mean zero, and of the chosen second moment
    rows: int  # The block as often as it fits, then its first rows once more

    @property
    def whole(self) -> int:
        """How often the block fits."""
        return self.rows // len(self.block.T)

    @property
    def rest(self) -> Floats:
        """The rows that are left."""
        return self.block[:, : self.rows % len(self.block.T)]

    def covariance(self, *, centred: bool) -> Floats:
        """Return the covariance of all rows, or their second moment about 0."""
        second = self.whole * (self.block @ self.block.T) + self.rest @ self.rest.T
        if not centred:
            return np.asarray(second / self.rows)
        total = self.whole * self.block.sum(axis=1) + self.rest.sum(axis=1)
        return np.asarray((second - np.outer(total, total) / self.rows) / max(self.rows - 1, 1))

    def measured(self, strategy: Mechanism, plan: Plan) -> Statistic | None:
        """Return a strategy's statistic of all rows, None where they are too many for it."""
        first = strategy.measure(_design(self.block if self.whole else self.rest), plan)
        if type(first) is not Statistic:
            if self.rows > MOST_ROWS_IN_PASSES:
                return None
            everything = np.concatenate([*[self.block] * self.whole, self.rest], axis=1)
            return strategy.measure(_design(everything), plan)
        if not self.whole:
            return first
        exact, rows = first.cross()
        every = exact.astype(object) * self.whole
        repeated = Statistic(first.name, every, rows * self.whole, first.fingerprint)
        if not self.rest.size:
            return repeated
        return repeated + strategy.measure(_design(self.rest), plan)


def invent(shares: Floats, length: float, rows: int, rng: np.random.Generator) -> Invented:
    """Make rows ``length · Σ √share_i · e_i v_i`` with signs e and random directions v.

    The signs are those of a Hadamard matrix and each row's opposite comes next
    to it: the second moment of a block is exactly ``length²`` times the shares
    along the directions, and the mean of any even number of rows is 0.

    Examples
    --------
    >>> import numpy as np
    >>> made = invent(np.array([0.75, 0.25]), 0.5, 5_000, np.random.default_rng(1))
    >>> np.linalg.eigvalsh(made.block @ made.block.T / made.block.shape[1]).round(6).tolist()
    [0.0625, 0.1875]
    """
    columns = len(shares)
    pairs = max(LEAST_ROWS // 2, 2 ** (columns - 1).bit_length())
    order = rng.permutation(pairs)
    signs = hadamard(pairs, dtype=np.int8)[order[:columns]][:, rng.permutation(pairs)]
    signs = np.repeat(signs, 2, axis=1)
    signs[:, 1::2] *= -1
    directions = np.linalg.qr(rng.normal(size=(columns, columns)))[0]
    return Invented(length * directions @ (np.sqrt(shares)[:, None] * signs), rows)


def _design(rows: Floats) -> PrivateDesign:
    """Bind rows of the unit ball to a design that neither shifts nor scales them."""
    names = [f"x{number}" for number in range(1, len(rows) + 1)]
    codebook = Codebook.uniform(names, (-1, 1))
    table = dict(zip(names, rows, strict=True))
    return private_design("~ .", table, codebook, scale=None, center=False, row_norm=1.0)


BASELINES = frozenset({"zero", "random"})
# Columns up to which a release takes seconds.
MOST_COLUMNS = 1_000
SLOW = {"iterative": 300, "ppca": 300}
SEED = 20_120_912  # A choice: any number makes every call invent the same rows and noise


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
    """Invent the rows of each repetition."""
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
        analysis = Analysis(made.call.held_in(release.ball), release)
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
