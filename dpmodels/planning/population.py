"""Assumed rows as a population, with stated effects where asked for, and samples from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpmodels.arguments import real
from dpmodels.design.parts import Part
from dpmodels.design.rows import Rows, Terms
from dpmodels.errors import ArgumentError, did_you_mean, quoted, shorten
from dpmodels.formula.sides import one_measured, parse_sides
from dpmodels.formula.tally import Tally
from dpmodels.inference.independence import degrees, margins_of
from dpmodels.models.assumed_rows import DrawnRows, public_part
from dpmodels.models.table import counted
from dpmodels.request import Request
from dpmodels.typing import Array, Floats, Integers


@dataclass(frozen=True, eq=False, repr=False)
class Population:
    """Rows and their probabilities; a sample is stored as how often it contains each row."""

    part: Part
    shares: Floats  # Shape (rows,), with the sum 1
    terms: Terms
    sampled: bool = False  # Whether they are a public sample, with dependent variables

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Which rows are in the subset."""
        mask = self.part.counted
        return np.ones(self.part.rows, dtype=bool) if mask is None else mask

    def among(self, rows: Array, shares: Floats) -> Population:
        """Return the population of some rows, with repetitions."""
        columns = {name: column[rows] for name, column in self.part.columns.items()}
        counted = None if self.part.counted is None else self.part.counted[rows]
        return replace(self, part=Part(columns, counted, None), shares=shares / shares.sum())

    def having(self, name: str, column: Floats) -> Population:
        """Return the same rows with other values of one variable."""
        part = self.part._replace(columns={**self.part.columns, name: column})
        return replace(self, part=part)

    def with_numbers(
        self, name: str, values: Floats, lower: float, step: float
    ) -> tuple[Population, Integers | slice, Floats]:
        """Return rows with other values of a number, the indices of the rows, and these values.

        Of a number with steps each row occurs twice, at the steps below and above its value, with
        the value as mean: rounding would remove an effect that is small relative to the step.
        """
        if not step:
            return self.having(name, values), slice(None), values
        above, below = np.modf((values - lower) / step)
        response = lower + step * np.concatenate([below, below + (above > 0)])
        rows = np.tile(np.arange(self.part.rows), 2)
        shares = np.concatenate([self.shares * (1 - above), self.shares * above])
        return self.among(rows, shares).having(name, response), rows, response

    def sample(self, count: int, rng: np.random.Generator) -> Rows:
        """Draw a sample, with repetitions of rows split into powers of two."""
        times, indices, repeats = rng.multinomial(count, self.shares), [], []
        for power in range(int(times.max()).bit_length()):
            positions = np.flatnonzero(times >> power & 1)
            indices.append(positions)
            repeats.append(np.full(len(positions), 1 << power))
        rows, counts = np.concatenate(indices), np.concatenate(repeats)
        part = self.among(rows, np.ones(len(rows))).part._replace(places=counts)
        return DrawnRows(part, self.terms)


def population(frame: pd.DataFrame, terms: Terms, *, sampled: bool) -> Population:
    """Return public rows with equal probabilities."""
    part = public_part(frame, terms)
    return Population(part, np.full(part.rows, 1 / part.rows), terms, sampled)


# Hypotheses about a population, and the true effects.

Effect = float | Mapping[str, float] | str | None
"""A number for all terms, numbers by term, ``"sample"`` for those of public rows, or None yet."""


class Hypothesis(NamedTuple):
    """A population with the stated effects, and the hypotheses that a verb tests."""

    population: Population
    terms: tuple[str, ...]
    truth: Floats  # Of the population, shape (terms,)
    null: Floats  # Under the null hypothesis; nan if not tested
    sampling: Floats  # Standard error without noise, times the root of the number of rows
    freedom: int = 0  # Degrees of freedom of the first term where it is a chi-square test

    @property
    def effect(self) -> Floats:
        """Truth less null; nan for terms that are not tested."""
        return self.truth - self.null


def effects(effect: Effect, terms: Sequence[str]) -> Floats:
    """Return the stated effect of each term, 0 for others."""
    if effect is None:
        return np.zeros(len(terms))
    if isinstance(effect, Mapping):
        if not effect:
            raise ArgumentError(
                f"effect={{}} names no term; write one of "
                f"{shorten(', '.join(map(repr, terms)), 300)}, such as {{{terms[0]!r}: 0.5}}"
            )
        for name, size in effect.items():
            if name not in terms:
                raise ArgumentError(
                    f"effect= names {quoted(name)}{did_you_mean(name, terms)}; the terms are "
                    f"{shorten(', '.join(map(repr, terms)), 300)}"
                )
            _nonzero(f"effect[{name!r}]", size)
        return np.array([real(effect.get(name, 0.0)) for name in terms])
    return np.full(len(terms), _nonzero("effect", effect))


def _nonzero(name: str, value: object) -> float:
    number = real(value)
    if not abs(number) > 0:
        raise ArgumentError(
            f"{name}={quoted(value)}: expected a number other than 0, in units of the coefficient; "
            'by term write effect={"age": 0.5}, and leave out terms without an effect'
        )
    return number


def null_values(effect: Effect, terms: Sequence[str]) -> Floats:
    """Return the null hypothesis, 0, for coefficients with a stated effect; nan for others."""
    if not isinstance(effect, Mapping):
        return np.zeros(len(terms))
    return np.where(effects(effect, terms) == 0, np.nan, 0.0)


def of_sample(effect: Effect, population: Population) -> bool:
    """Whether effects are those of public rows; ArgumentError for any other string."""
    if not isinstance(effect, str):
        return False
    if effect != "sample" or not population.sampled:
        raise ArgumentError(
            f'effect={effect!r}: expected a number, numbers by term, or "sample" where shape= is a '
            "frame of public rows"
        )
    return True


INDEPENDENCE = "independence"


def means(request: Request, assumed: Population, effect: Effect) -> Hypothesis:
    """Test the mean of each group against a number that is the effect below it."""
    formula = parse_sides(request.formula, request.codebook)
    number, factors = one_measured(formula, "dp_mean")
    tally = Tally(factors, number, 2)
    population, cells, values = _placed(tally, assumed)
    terms = _labels(tally) if factors else ("mean",)
    mean, sd, share = _moments(population, cells, values, len(terms))
    null = mean - stated_effects(effect, terms)
    return Hypothesis(population, terms, mean, null, sd / np.sqrt(share))


def difference(request: Request, assumed: Population, effect: Effect) -> Hypothesis:
    """Shift two groups apart by the effect; one mean is tested as in :func:`means`."""
    formula = parse_sides(request.formula, request.codebook)
    number, factors = one_measured(formula, "dp_ttest")
    tally = Tally(factors, number, 2)
    if not factors:
        return means(request, assumed, effect)
    population, cells, values = _placed(tally, assumed)
    terms = (" - ".join(_labels(tally)),)
    if not of_sample(effect, assumed):
        if number.variable is None:
            raise ArgumentError(
                f"{number.code!r} is computed from variables, and effect= needs a single one: "
                "declare it as a variable of the codebook, or write "
                'effect="sample" with shape= a frame of public rows'
            )
        mean, _, share = _moments(population, cells, values, 2)
        shifts = np.array([share[1], -share[0]]) * float(effects(effect, terms)[0])
        shifted = values - mean[cells] + float(share @ mean) + shifts[cells]
        values = np.clip(shifted, number.lower, number.upper)
        population, rows, values = population.with_numbers(
            number.variable, values, number.lower, number.step
        )
        cells = cells[rows]
    mean, sd, share = _moments(population, cells, values, 2)
    truth = np.array([mean[0] - mean[1]])
    sampling = np.sqrt(np.array([(sd**2 / share).sum()]))
    return Hypothesis(population, terms, truth, np.zeros(1), sampling)


def shares(request: Request, assumed: Population, effect: Effect) -> Hypothesis:
    """Test shares of cells against numbers, or make factors depend by Cohen's w."""
    tally = counted(parse_sides(request.formula, request.codebook))
    population, cells, _ = _placed(tally, assumed)
    names = _labels(tally)
    if len(tally.factors) == 1:
        share = _summed(cells, population.shares, tally.cells)
        sampling = np.sqrt(share * (1 - share))
        return Hypothesis(population, names, share, share - stated_effects(effect, names), sampling)
    if not of_sample(effect, assumed):
        w = float(effects(effect, (INDEPENDENCE,))[0])
        population = _dependent(population, cells, tally, w)
    share = _summed(cells, population.shares, tally.cells)
    independent = _independent(share.reshape(tally.shape))
    w = math.sqrt(float(((share - independent) ** 2 / np.maximum(independent, 1e-300)).sum()))
    sampling = np.sqrt(share * (1 - share))
    terms, truth = (INDEPENDENCE, *names), np.append(w, share)
    null = np.append(0.0, np.full(len(names), np.nan))
    freedom = degrees(tally.shape)
    return Hypothesis(population, terms, truth, null, np.append(np.nan, sampling), freedom)


def stated_effects(effect: Effect, terms: tuple[str, ...]) -> Floats:
    """Return effects by term, nan for terms that are not tested."""
    if isinstance(effect, str):
        raise ArgumentError(
            f"effect={effect!r}: expected the distance of the mean or share from the tested "
            "number, in its own unit, such as effect=2.5"
        )
    stated = effects(effect, terms)
    return stated if effect is None else np.where(stated == 0, np.nan, stated)


def _placed(tally: Tally, assumed: Population) -> tuple[Population, Integers, Floats]:
    """Return the complete rows in the subset, their cells and their values."""
    placed = tally.place(assumed.part.columns)
    complete = np.flatnonzero((placed.cells >= 0) & assumed.counted)
    population = assumed.among(complete, assumed.shares[complete])
    number = tally.measured
    values = np.zeros(len(complete)) if number is None else number.evaluate(population.part.columns)
    if number is not None:
        values = np.clip(values, number.lower, number.upper)
    cells = placed.cells[complete].astype(np.int64)
    empty = np.bincount(cells, minlength=tally.cells) == 0
    if empty.any() and (number is not None or len(tally.factors) > 1):
        names = [name for name, is_empty in zip(_labels(tally), empty, strict=True) if is_empty]
        raise ArgumentError(
            f"shape=: no assumed row is in {names[0] or 'the table'!r}; write shares above 0.001 "
            "for every level, or give a larger public sample"
        )
    return population, cells, np.asarray(values)


def _labels(tally: Tally) -> tuple[str, ...]:
    return tuple(":".join(map(str, cell)) for cell in product(*(f.levels for f in tally.factors)))


def _summed(cells: Integers, weights: Floats, size: int) -> Floats:
    return np.asarray(np.bincount(cells, weights, size), dtype=np.float64)


def _moments(
    population: Population, cells: Integers, values: Floats, size: int
) -> tuple[Floats, Floats, Floats]:
    share = _summed(cells, population.shares, size)
    mean = _summed(cells, population.shares * values, size) / share
    square = _summed(cells, population.shares * (values - mean[cells]) ** 2, size) / share
    return mean, np.sqrt(square), share


def _independent(share: Floats) -> Floats:
    return np.asarray(reduce(np.multiply.outer, margins_of(share))).ravel()


def _dependent(population: Population, cells: Integers, tally: Tally, w: float) -> Population:
    """Keep the margins, and make the first two factors depend by standardised level scores."""
    share = _summed(cells, population.shares, tally.cells).reshape(tally.shape)
    independent = _independent(share).reshape(tally.shape)
    scores = []
    for axis, margin in enumerate(margins_of(share)[:2]):
        level = np.arange(len(margin)) - float(margin @ np.arange(len(margin)))
        shape = [-1 if k == axis else 1 for k in range(share.ndim)]
        scores.append((level / math.sqrt(float(margin @ level**2))).reshape(shape))
    tilt = 1 + w * scores[0] * scores[1]
    if tilt.min() < 0:
        largest = -1 / float((scores[0] * scores[1] * np.sign(w)).min())
        raise ArgumentError(
            f"effect={w:g}: with these shares of levels Cohen's w is at most {largest:.3g}; "
            "write a smaller effect"
        )
    factors = ((independent * tilt).ravel() / share.ravel())[cells]
    return population.among(np.arange(len(cells)), population.shares * factors)
