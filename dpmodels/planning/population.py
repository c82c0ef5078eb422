"""Assumed rows as a population, and samples of any size from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpmodels.arguments import real
from dpmodels.design.parts import Part
from dpmodels.design.rows import Rows, Terms
from dpmodels.errors import ArgumentError, did_you_mean, quoted, shorten
from dpmodels.models.assumed_rows import DrawnRows, public_part
from dpmodels.typing import Array, Floats


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

    def on_steps(self, name: str, values: Floats, lower: float, step: float) -> Stepped:
        """Return each row twice, at the steps below and above its value, with the value as mean.

        Rounding would remove an effect that is small relative to the step.
        """
        above, below = np.modf((values - lower) / step)
        response = lower + step * np.concatenate([below, below + (above > 0)])
        rows = np.tile(np.arange(self.part.rows), 2)
        shares = np.concatenate([self.shares * (1 - above), self.shares * above])
        return Stepped(self.among(rows, shares).having(name, response), rows, response)

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


class Stepped(NamedTuple):
    """A population in which each row occurs twice, the indices of the rows, and new values."""

    population: Population
    rows: NDArray[np.int64]
    values: Floats


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
