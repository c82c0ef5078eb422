"""Simulated releases of a verb on samples of a population, and the expected results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import chi2, ncx2

from dpmodels.codebook import Codebook
from dpmodels.models.assumed_rows import AssumedRows, assumed_rows
from dpmodels.models.predictor import simulated_fits
from dpmodels.models.verb_spec import Planned, VerbSpec, planned
from dpmodels.planning.population import Effect, Hypothesis, Population, population
from dpmodels.planning.verbs import Power, Reading
from dpmodels.privacy import Adjacency, AdjacencyName, Guarantee
from dpmodels.request import Request, requested
from dpmodels.sites import parties
from dpmodels.typing import Floats, Option
from dpmodels.verbs import Verb

SEED: Final = 20_231_119  # Arbitrary: every call draws the same samples and noise
# Choices: the smallest share of releases with a test, and the largest spread of standard errors
# over their median, at which estimates are taken as normal given their standard errors.
NEARLY_ALL, EVEN_SPREAD = 0.99, 0.25
# A choice: from this share on, the normal approximation and the share of rejections are averaged.
HALF_OR_MORE = 0.5


class Expected(NamedTuple):
    """Expected results for each term, shape (terms,)."""

    se: Floats  # Median standard error of the releases that have one
    se_low: Floats  # Its 10th percentile
    se_high: Floats  # Its 90th percentile
    noise: Floats  # Median standard deviation of the noise in them
    power: Floats  # nan if not tested
    power_se: Floats  # Simulation error
    identified: Floats  # Share of the releases with a standard error


@dataclass(frozen=True, eq=False)
class Trial:
    """A verb on samples of `n_rows` rows from a population, with one mechanism."""

    power: Power
    spec: VerbSpec[object]
    posed: Hypothesis
    n_rows: int
    alpha: float
    mechanism: object

    @cached_property
    def choice(self) -> Planned:
        """The mechanism with its plan, and the reason for its choice, from public facts."""
        sample = self.posed.population.sample(self.n_rows, np.random.default_rng(SEED))
        return planned(self.spec, parties({}), self.mechanism, [self.spec.private.of(sample)])

    def readings(self, count: int, first: int = 0) -> Reading:
        """Release from `count` samples; shape (releases, terms)."""
        rng, readings = np.random.default_rng([SEED, first]), []
        for number in range(first, first + count):
            private = self.spec.private.of(self.posed.population.sample(self.n_rows, rng))
            (fit,) = simulated_fits(self.spec, self.choice, private, 1, SEED + number)
            readings.append(self.power.read(fit, self.posed, self.alpha))
        return Reading(*map(np.array, zip(*readings, strict=True)))

    def expected(self, part: int = 1) -> Expected:
        """Return the expected results, from one `part`-th of the releases."""
        reading = self.readings(self.power.runs // part)
        if part == 1 and self.power.extra_runs and not self._even(reading).all():
            extra = self.readings(self.power.extra_runs, self.power.runs)
            reading = Reading(*map(np.concatenate, zip(reading, extra, strict=True)))
        return self._summed(reading)

    def _even(self, reading: Reading) -> NDArray[np.bool_]:
        """Return which terms have similar standard errors in nearly all releases."""
        identified = np.isfinite(reading.spread).mean(axis=0)
        spreads = np.where(np.isfinite(reading.spread), reading.spread, np.nan)
        with np.errstate(invalid="ignore"):
            middle = _quantile(spreads)
            spread = _quantile(np.abs(spreads - middle)) / middle / 0.6745
        even = (identified >= NEARLY_ALL) & (spread <= EVEN_SPREAD)
        return np.asarray(even & np.isfinite(self.posed.effect))

    def _summed(self, reading: Reading) -> Expected:
        runs, even = len(reading.se), self._even(reading)
        has_statistic = np.isfinite(reading.statistic)
        quantile = -float(ndtri(self.alpha / 2))
        power = (np.abs(reading.statistic) > quantile).mean(axis=0)
        error = np.sqrt(power * (1 - power) / runs)
        is_posed, shares = np.isfinite(self.posed.effect), has_statistic.mean(axis=0)
        for term in np.flatnonzero(is_posed & (shares >= HALF_OR_MORE)):
            usable = has_statistic[:, term] & np.isfinite(reading.spread[:, term])
            if not usable.any():
                continue
            pull = self.posed.effect[term] / reading.spread[usable, term]
            normal_power, normal_se = _normal(reading.statistic[usable, term], pull, quantile)
            weight = 1.0 if even[term] else 0.5
            power[term] += weight * (usable.mean() * normal_power - power[term])
            error[term] = np.hypot((1 - weight) * error[term], weight * normal_se)
        if self.posed.freedom and shares[0] >= NEARLY_ALL:
            power[0], error[0] = _upper(reading.statistic[has_statistic[:, 0], 0], quantile)
        tested = is_posed & (self.posed.effect != 0)
        identified = np.where(is_posed, shares, np.isfinite(reading.se).mean(axis=0))
        middle, low, high = (_quantile(reading.se, level) for level in (0.5, 0.1, 0.9))
        power, error = (np.where(tested, values, np.nan) for values in (power, error))
        return Expected(middle, low, high, _quantile(reading.noise), power, error, identified)


def _normal(statistic: Floats, pull: Floats, quantile: float) -> tuple[float, float]:
    """Return the mean probability of rejection given the standard errors, and its error.

    The statistic less `pull` has mean 0 and variance 1 if the test keeps its level. Significant
    departures from these are taken into account.
    """
    rest = statistic - pull
    bias = _shrunk(float(rest.mean()), 1 / len(rest))
    scale = 1 + _shrunk(float(rest.std()) - 1, 1 / (2 * len(rest)))
    at = pull + bias
    power = ndtr((at - quantile) / scale) + ndtr((-at - quantile) / scale)
    slope = np.exp(-(((np.abs(at) - quantile) / scale) ** 2) / 2) / np.sqrt(2 * np.pi)
    return float(power.mean()), float(slope.mean() / scale / np.sqrt(len(rest)))


def _shrunk(value: float, variance: float) -> float:
    """Return a number shrunk towards 0; 0 within two standard errors."""
    return value * max(0.0, 1 - 4 * variance / value**2) if value else 0.0


def _upper(statistic: Floats, quantile: float) -> tuple[float, float]:
    scale = max(float(statistic.std()), 1e-9)
    at = (float(statistic.mean()) - quantile) / scale
    slope = np.exp(-(at**2) / 2) / np.sqrt(2 * np.pi)
    return float(ndtr(at)), float(slope * np.sqrt((1 + at**2 / 2) / len(statistic)))


def _quantile(values: Floats, level: float = 0.5) -> Floats:
    columns = [column[np.isfinite(column)] for column in values.T]
    return np.array([np.quantile(column, level) if len(column) else np.nan for column in columns])


# A verb on assumed rows: one cell of a plan for any number of rows, eps and effect.

# Choices: sizes of the population from assumed distributions, and from a public sample.
BLOCK, SAMPLED = 2048, 8192


class Cell(NamedTuple):
    """A number of rows, an eps and an effect; eps is None if a budget is given instead."""

    n_rows: int
    eps: float | None
    effect: Effect


@dataclass(frozen=True, eq=False)
class PowerInputs:
    """The arguments that all cells share."""

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
    options: Mapping[str, Option]

    def trial(self, cell: Cell) -> Trial:
        """Return the trial of a cell."""
        request = self._question(cell.eps)
        posed = self.power.pose(request, self._population, cell.effect)
        if "mu" in self.verb.options:
            request = replace(request, options={**request.options, "mu": float(posed.null[0])})
        spec: VerbSpec[object] = self.verb.spec(request)
        return Trial(self.power, spec, posed, cell.n_rows, self.alpha, self.mechanism)

    @cached_property
    def assumed(self) -> AssumedRows:
        """The assumed rows, the same for every cell."""
        return assumed_rows(self.book, self.shape, tuple(self._unread.private.codebook))

    @cached_property
    def _population(self) -> Population:
        sampled = self.assumed.frame is not None
        block = self.assumed.block(SAMPLED if sampled else BLOCK)
        return population(block, self._unread.private.rows.terms, sampled=sampled)

    @cached_property
    def _unread(self) -> VerbSpec[object]:
        spec: VerbSpec[object] = self.verb.spec(self._question(None if self.budget else 1.0))
        return spec

    def _question(self, eps: float | None) -> Request:
        options = {**self.options, **({"mu": 0.0} if "mu" in self.verb.options else {})}
        terms = (self.formula, self.book, eps, self.delta, self.budget, self.adjacency)
        return requested(self.verb.name, *terms, person=False, **options)


def without_noise(posed: Hypothesis, n_rows: int, alpha: float) -> Floats:
    """Return the power without noise; nan for terms that are not tested."""
    quantile = -float(ndtri(alpha / 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        pull = posed.effect * np.sqrt(n_rows) / posed.sampling
    power = ndtr(pull - quantile) + ndtr(-pull - quantile)
    if posed.freedom:
        beyond = chi2.isf(alpha, posed.freedom)
        power[0] = ncx2.sf(beyond, posed.freedom, n_rows * posed.truth[0] ** 2)
    tested = np.isfinite(posed.effect) & (posed.effect != 0)
    return np.where(tested, power, np.nan)


def price(posed: Hypothesis, expected: Expected, n_rows: int, alpha: float) -> Floats:
    """Return by how many times noise increases the rows needed for a standard error or a power."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rows_factor = expected.se**2 * n_rows / posed.sampling**2
    if posed.freedom:
        rows_factor[0] = n_rows / _rows_for(expected.power[0], posed, n_rows, alpha)
    return np.asarray(rows_factor)


def _rows_for(power: float, posed: Hypothesis, n_rows: int, alpha: float) -> float:
    """Return how many rows without noise have the power of a chi-square test; nan if unclear."""
    if not 2 * alpha < power < 0.99:
        return np.nan
    beyond, tried = chi2.isf(alpha, posed.freedom), np.geomspace(n_rows / 1e4, n_rows, 400)
    powers = ncx2.sf(beyond, posed.freedom, tried * posed.truth[0] ** 2)
    return float(np.interp(power, powers, tried))
