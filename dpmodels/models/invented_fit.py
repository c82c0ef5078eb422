"""Invented rows of a formula with a response: variables of a shape, coded, and what fits them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from dpmodels.codebook import Codebook
from dpmodels.dates import Date
from dpmodels.design import PrivateDesign, row_coder
from dpmodels.design.rows import Terms, rows_of
from dpmodels.formula import design
from dpmodels.formula.response import TwoSided
from dpmodels.models.invented import SHAPED_ROWS, SHAPES, Invented, Shape, latents, numbered
from dpmodels.typing import Floats
from dpmodels.variables import Categorical, Numeric

# Choices, of the models that rows follow: the share of a number's variance that is explained, the
# rate of an outcome and the spread of its log odds, and, of counts, their mean as a share of the
# upper bound and the spread of its logarithm.
EXPLAINED = 0.3
RATE, ODDS = 0.3, 1.0
COUNTED, LOG_COUNTS = 0.1, 0.5


def inventing(lengths: tuple[float, ...]) -> Mapping[str, Shape]:
    """Return the shapes that numbers are tried in, or normal ones of given spreads."""
    if not lengths:
        return SHAPES
    return {
        f"length {length:g}": Shape(
            f"normal, sd {length:g} of half the range", partial(_spread, length)
        )
        for length in lengths
    }


def _spread(length: float, latent: Floats, rng: np.random.Generator) -> Floats:
    return np.asarray(length * latent)


@dataclass(frozen=True)
class InventedFit:
    """Coded terms and response, a block that stands as often as it fits, then its first rows."""

    terms: Floats  # Shape (terms, block rows), in units of the coded columns
    response: Floats  # Shape (block rows,)
    rows: int
    intercept: bool

    @cached_property
    def times(self) -> Floats:
        """How often each row of the block stands, shape (block rows,)."""
        size = len(self.response)
        return np.asarray(self.rows // size + (np.arange(size) < self.rows % size), dtype=float)

    @cached_property
    def regressors(self) -> Floats:
        """The terms of a model, its constant first, shape (block rows, coefficients)."""
        ones = np.ones((int(self.intercept), len(self.response)))
        return np.asarray(np.concatenate([ones, self.terms]).T)

    def within(self, own: PrivateDesign) -> Invented:
        """Return the same rows under the scaling of a joint design, whose columns they are."""
        public = own.public
        ranges = zip(public.lower.tolist(), public.upper.tolist(), strict=True)
        book = Codebook(
            {
                name: Numeric(*ends)
                for name, ends in zip(numbered(len(public.names)), ranges, strict=True)
            }
        )
        coded = design("~ .", book)
        bound = PrivateDesign(coded, own.scaling, rows_of(Terms(coded.codebook)))
        block = np.concatenate([self.terms, self.response[None]])
        return Invented(block, self.rows, design=bound)


def invented_fit(
    both: TwoSided,
    family: str,
    shape: Shape,
    shares: Floats,
    rows: int,
    rng: np.random.Generator,
) -> InventedFit:
    """Invent variables with a spectrum between their bounds, code them, and draw a response.

    `shares`, shape (variables of the terms,), are relative eigenvalues with the sum 1. Standardised
    terms have coefficients of one size and random signs.
    """
    book = both.terms.codebook
    terms = np.empty((0, SHAPED_ROWS))
    if book:
        latent = latents(shares, rng)
        numbers, evenly = (np.clip(one.made(latent, rng), -1, 1) for one in (shape, SHAPES["box"]))
        table = {
            name: _levels(own, evenly[at])
            if isinstance(own, Categorical)
            else _numbers(own, numbers[at])
            for at, (name, own) in enumerate(book.items())
        }
        terms = row_coder(both.terms)(table)
        # A number may happen to be a code for a missing one.
        terms = terms[:, np.isfinite(terms).all(axis=0)]
    linear = _linear(terms, rng)
    response = _responses(both, family, shape, linear, rng)
    return InventedFit(terms, response, rows, both.intercept)


def _levels(variable: Categorical, evenly: Floats) -> NDArray[Any]:
    """Return levels for uniform numbers from -1 to 1; how many rows have each falls off as 1/i."""
    rates = 1 / np.arange(1.0, len(variable.levels) + 1)
    ends = np.cumsum(rates / rates.sum())[:-1]
    return np.array(variable.levels, dtype=object)[np.searchsorted(ends, (evenly + 1) / 2)]


def _numbers(variable: Any, within: Floats) -> NDArray[Any]:
    """Return numbers or dates between their bounds for numbers from -1 to 1."""
    lower, upper = variable.days if isinstance(variable, Date) else (variable.lower, variable.upper)
    values = np.clip(lower + (within + 1) / 2 * (upper - lower), lower, upper)
    if isinstance(variable, Date):
        return np.asarray(np.rint(values).astype(int).astype("datetime64[D]"))
    return np.asarray(values)


def _linear(terms: Floats, rng: np.random.Generator) -> Floats:
    """Return a linear predictor with mean 0 and variance 1, or all zeros."""
    sd = terms.std(axis=1, keepdims=True)
    units = (terms - terms.mean(axis=1, keepdims=True)) / np.where(sd > 0, sd, 1.0)
    linear = rng.choice([-1.0, 1.0], len(terms)) @ units
    spread = float(linear.std())
    return np.asarray(linear / spread if spread > 0 else linear)


def _responses(
    both: TwoSided, family: str, shape: Shape, linear: Floats, rng: np.random.Generator
) -> Floats:
    """Return coded responses, shape (rows,), within their public range."""
    lower, upper = float(both.response.lower[0]), float(both.response.upper[0])
    if family == "binomial":
        return np.where(rng.random(len(linear)) < expit(logit(RATE) + ODDS * linear), 1.0, 0.0)
    if family == "poisson":
        mean = COUNTED * upper * np.exp(LOG_COUNTS * linear - LOG_COUNTS**2 / 2)
        return np.clip(rng.poisson(mean).astype(np.float64), lower, upper)
    rest = np.sqrt(1 - EXPLAINED) * rng.normal(size=len(linear))
    latent = (np.sqrt(EXPLAINED) * linear + rest)[None, :]
    within = np.clip(shape.made(latent, rng)[0], -1, 1)
    return np.asarray(lower + (within + 1) / 2 * (upper - lower))
