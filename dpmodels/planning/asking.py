"""A verb asked of guessed rows: one cell of a plan for any number of rows, eps and effect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import chi2, ncx2

from dpmodels.codebook import Codebook
from dpmodels.models.crossing import Way
from dpmodels.planning.guess import Guess, guessed
from dpmodels.planning.population import Population, population
from dpmodels.planning.posed import Effect, Posed
from dpmodels.planning.trials import Expected, Trial
from dpmodels.planning.verbs import Power
from dpmodels.privacy import Adjacency, AdjacencyName, Guarantee
from dpmodels.question import Question, asked
from dpmodels.typing import Floats
from dpmodels.verbs import Verb

# Choices: rows of which tables are drawn, by laws that spread them evenly, and of a sample.
BLOCK, SAMPLED = 2048, 8192


class Cell(NamedTuple):
    """A number of rows, an eps and an effect; eps is None where a budget is given instead."""

    rows: int
    eps: float | None
    effect: Effect


@dataclass(frozen=True, eq=False)
class Asking:
    """What is said of every cell."""

    verb: Verb
    power: Power
    formula: str
    book: Codebook
    shape: object
    delta: float
    budget: Guarantee | None
    mechanism: object
    adjacency: AdjacencyName | Adjacency | None
    alpha: float
    words: Mapping[str, Any]

    def trial(self, cell: Cell) -> Trial:
        """Return the verb on tables of such rows."""
        question = self._question(cell.eps)
        posed = self.power.pose(question, self._population, cell.effect)
        if "mu" in self.verb.options:
            question = replace(question, words={**question.words, "mu": float(posed.null[0])})
        way: Way[Any] = self.verb.spec(question)
        return Trial(self.power, way, posed, cell.rows, self.alpha, self.mechanism)

    @cached_property
    def guess(self) -> Guess:
        """What rows are taken to be like, the same for every cell."""
        return guessed(self.book, self.shape, tuple(self._unread.private.codebook))

    @cached_property
    def _population(self) -> Population:
        sampled = self.guess.frame is not None
        bound = self._unread.private.bind(self.guess.block(SAMPLED if sampled else BLOCK))
        return population(bound._rows, sampled=sampled)

    @cached_property
    def _unread(self) -> Way[Any]:
        way: Way[Any] = self.verb.spec(self._question(None if self.budget else 1.0))
        return way

    def _question(self, eps: float | None) -> Question:
        words = {**self.words, **({"mu": 0.0} if "mu" in self.verb.options else {})}
        terms = (self.formula, self.book, eps, self.delta, self.budget, self.adjacency)
        return asked(self.verb.name, *terms, person=False, **words)


def without_noise(posed: Posed, rows: int, alpha: float) -> Floats:
    """Return the power of the tests of so many rows without noise; nan where nothing is tested."""
    quantile = -float(ndtri(alpha / 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        pull = posed.effect * np.sqrt(rows) / posed.sampling
    power = ndtr(pull - quantile) + ndtr(-pull - quantile)
    if posed.freedom:
        beyond = chi2.isf(alpha, posed.freedom)
        power[0] = ncx2.sf(beyond, posed.freedom, rows * posed.truth[0] ** 2)
    tested = np.isfinite(posed.effect) & (posed.effect != 0)
    return np.where(tested, power, np.nan)


def price(posed: Posed, found: Expected, rows: int, alpha: float) -> Floats:
    """Return how many times the rows are needed for a standard error, or the power of a test."""
    with np.errstate(divide="ignore", invalid="ignore"):
        own = found.se**2 * rows / posed.sampling**2
    if posed.freedom:
        own[0] = rows / _rows_for(found.power[0], posed, rows, alpha)
    return np.asarray(own)


def _rows_for(power: float, posed: Posed, rows: int, alpha: float) -> float:
    """Return how many rows without noise have the power of a chi-square test; nan if unclear."""
    if not 2 * alpha < power < 0.99:
        return np.nan
    beyond, tried = chi2.isf(alpha, posed.freedom), np.geomspace(rows / 1e4, rows, 400)
    found = ncx2.sf(beyond, posed.freedom, tried * posed.truth[0] ** 2)
    return float(np.interp(power, found, tried))
