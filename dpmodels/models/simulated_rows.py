"""Simulated rows: blocks of several shapes, repeated to the number of rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import hadamard, solve_triangular
from scipy.special import expit, logit, ndtr, ndtri

from dpmodels.codebook import Codebook
from dpmodels.dates import Date
from dpmodels.design import PrivateDesign, Scaling, row_coder, unbound_design
from dpmodels.design.parts import Part
from dpmodels.design.rows import Terms, rows_of
from dpmodels.formula import design
from dpmodels.formula.centring import ProductMap
from dpmodels.formula.response import TwoSided
from dpmodels.mechanisms import Plan
from dpmodels.mechanisms.protocol import AnyStrategy
from dpmodels.models.assumed_rows import DrawnRows
from dpmodels.statistics import Statistic
from dpmodels.typing import Array, Floats
from dpmodels.variables import Categorical, Numeric

LEAST_ROWS = 1024  # A choice: of a block of rows of one length
SHAPED_ROWS = 2048  # A choice: of any other; at least four times the columns
HEAVY = 3  # Degrees of freedom
LARGEST_COUNT = 9
RARE, COMMON = 0.05, 0.5
ONE_LENGTH = "one length"


class Shape(NamedTuple):
    """A distribution of rows within their bounds, which are -1 and 1."""

    like: str
    transform: Callable[[Floats, np.random.Generator], Floats]  # Of correlated normal columns


def _tails(latent: Floats, rng: np.random.Generator) -> Floats:
    pairs = latent.shape[1] // 2
    return np.asarray(0.1 * latent * np.repeat(np.sqrt(HEAVY / rng.chisquare(HEAVY, pairs)), 2))


def _counts(latent: Floats, rng: np.random.Generator) -> Floats:
    counts = np.floor(np.exp(0.8 * _standard(latent)))
    return np.asarray(2 * counts / LARGEST_COUNT - 1)


def _dummies(latent: Floats, rng: np.random.Generator) -> Floats:
    rates = np.geomspace(COMMON, RARE, len(latent))
    return np.where(_standard(latent) < ndtri(rates)[:, None], 1.0, -1.0)


def _standard(latent: Floats) -> Floats:
    sd = latent.std(axis=1, keepdims=True)
    return latent / np.where(sd > 0, sd, 1.0)


SHAPES: Mapping[str, Shape] = {
    "short": Shape("normal in wide bounds", lambda latent, rng: np.asarray(0.1 * latent)),
    "tails": Shape("Student's t, 3 df", _tails),
    "box": Shape(
        "uniform in the bounds", lambda latent, rng: np.asarray(2 * ndtr(_standard(latent)) - 1)
    ),
    "counts": Shape("0 to 9, half are 0", _counts),
    "dummies": Shape("0/1, 5 to 50% are 1", _dummies),
}


class Box(NamedTuple):
    """Where rows may lie, in units of the row norm."""

    low: Floats  # Shape (columns,)
    high: Floats  # Shape (columns,)
    longest: float  # Row that the codebook allows
    unit: bool = False  # Whether every row is divided by its norm


def box_of(lower: Floats, upper: Floats, scaling: Scaling) -> Box:
    """Return the public ranges of columns where a design brings them."""
    ends = [(end - scaling.centre) / scaling.scale / scaling.row_norm for end in (lower, upper)]
    return Box(ends[0], ends[1], scaling.worst_case / scaling.row_norm, scaling.unit)


@dataclass(frozen=True)
class SimulatedRows:
    """A block of simulated rows, repeated to the number of rows."""

    block: Floats  # Shape (columns, block rows)
    rows: int
    unit: bool = False
    design: PrivateDesign | None = None  # Of no rows, which codes columns x1, x2, ... as they are

    @property
    def full_blocks(self) -> int:
        """How often the block fits."""
        return self.rows // len(self.block.T)

    @property
    def remainder(self) -> Floats:
        """The rows that are left."""
        return self.block[:, : self.rows % len(self.block.T)]

    @property
    def parts(self) -> list[tuple[int, Floats]]:
        """Rows and how often they are repeated."""
        parts = [(self.full_blocks, self.block), (1, self.remainder)]
        return [(times, rows) for times, rows in parts if times and rows.size]

    def covariance(self, *, centred: bool) -> Floats:
        """Return the covariance of all rows, or their second moment about 0."""
        second = sum(times * (rows @ rows.T) for times, rows in self.parts)
        if not centred:
            return np.asarray(second / self.rows)
        total = sum(times * rows.sum(axis=1) for times, rows in self.parts)
        return np.asarray((second - np.outer(total, total) / self.rows) / max(self.rows - 1, 1))

    def measured(self, strategy: AnyStrategy, plan: Plan) -> Statistic:
        """Return a strategy's statistic of all rows, of which each block is read once."""
        return strategy.measure(self.bound, plan)

    @cached_property
    def bound(self) -> PrivateDesign:
        """Bind the rows to their design, or to one that neither shifts nor scales them."""
        names = numbered(len(self.block))
        bound_design = self.design
        if bound_design is None:
            bound = max(1.0, float(np.abs(self.block).max()))
            book, norm = Codebook.uniform(names, (-bound, bound)), "unit" if self.unit else 1.0
            public = design("~ .", book)
            bound_design = unbound_design(public, scale=None, center=False, row_norm=norm)
        size = len(self.block.T)
        places = self.full_blocks + (np.arange(size) < self.rows % size)
        part = Part(dict(zip(names, self.block, strict=True)), None, places)
        return bound_design.of(DrawnRows(part, Terms(bound_design.codebook)))


def shaped(
    shape: Shape, shares: Floats, box: Box, rows: int, rng: np.random.Generator
) -> SimulatedRows:
    """Make rows of a shape between the bounds of a box.

    Normal columns have exactly the relative eigenvalues `shares` in random directions, and a mean
    square of 1; then the shape transforms them, and bounds clip them.

    >>> import numpy as np
    >>> half = np.full(4, 0.5)
    >>> box = Box(-half, half, 1.0)
    >>> rng = np.random.default_rng(1)
    >>> made = shaped(SHAPES["dummies"], np.full(4, 0.25), box, 5_000, rng)
    >>> np.linalg.norm(made.block, axis=0).round(9).max()
    np.float64(1.0)
    """
    within = np.clip(shape.transform(latents(shares, rng), rng), -1, 1)
    block = box.low[:, None] + (within + 1) / 2 * (box.high - box.low)[:, None]
    lengths = np.linalg.norm(block, axis=0)
    return SimulatedRows(block * np.minimum(1.0, box.longest / np.maximum(lengths, 1e-300)), rows)


def latents(shares: Floats, rng: np.random.Generator) -> Floats:
    """Make correlated normal columns, of which shapes are made, shape (columns, rows)."""
    columns = len(shares)
    pairs = max(SHAPED_ROWS // 2, 2 * columns)
    signed = np.repeat(rng.normal(size=(columns, pairs)), 2, axis=1)
    signed[:, 1::2] *= -1
    root = np.linalg.cholesky(signed @ signed.T / (2 * pairs))
    white = solve_triangular(root, signed, lower=True)
    return np.asarray(_directions(columns, rng) @ (np.sqrt(columns * shares)[:, None] * white))


def simulate_rows(
    shares: Floats, length: float, rows: int, rng: np.random.Generator, *, unit: bool = False
) -> SimulatedRows:
    """Make rows ``length · Σ √share_i · e_i v_i`` with signs e and random directions v.

    The signs are those of a Hadamard matrix and each row's opposite comes next
    to it: the second moment of a block is exactly ``length²`` times the shares
    along the directions, and the mean of any even number of rows is 0.

    >>> import numpy as np
    >>> made = simulate_rows(np.array([0.75, 0.25]), 0.5, 5_000, np.random.default_rng(1))
    >>> np.linalg.eigvalsh(made.block @ made.block.T / made.block.shape[1]).round(6).tolist()
    [0.0625, 0.1875]
    """
    columns = len(shares)
    pairs = max(LEAST_ROWS // 2, 2 ** (columns - 1).bit_length())
    order = rng.permutation(pairs)
    signs = hadamard(pairs, dtype=np.int8)[order[:columns]][:, rng.permutation(pairs)]
    signs = np.repeat(signs, 2, axis=1)
    signs[:, 1::2] *= -1
    block = length * _directions(columns, rng) @ (np.sqrt(shares)[:, None] * signs)
    return SimulatedRows(block, rows, unit)


def numbered(columns: int) -> list[str]:
    """Return names of simulated columns."""
    return [f"x{number}" for number in range(1, columns + 1)]


def _directions(columns: int, rng: np.random.Generator) -> Floats:
    return np.asarray(np.linalg.qr(rng.normal(size=(columns, columns)))[0])


# Simulated rows of a formula with a response: variables of a shape, coded, with a response.

# Choices, of the models that rows follow: the share of a number's variance that is explained, the
# rate of an outcome and the spread of its log odds, and, of counts, their mean as a share of the
# upper bound and the spread of its logarithm.
EXPLAINED = 0.3
RATE, ODDS = 0.3, 1.0
COUNTED, LOG_COUNTS = 0.1, 0.5


def simulate_block(lengths: tuple[float, ...]) -> Mapping[str, Shape]:
    """Return the shapes of numbers to try, or normal ones of given spreads."""
    if not lengths:
        return SHAPES
    like = "normal, sd {:g} of half the range"
    return {
        f"length {length:g}": Shape(like.format(length), partial(_spread, length))
        for length in lengths
    }


def _spread(length: float, latent: Floats, rng: np.random.Generator) -> Floats:
    return np.asarray(length * latent)


@dataclass(frozen=True)
class SimulatedFit:
    """Coded terms and response, a block repeated to the number of rows."""

    terms: Floats  # Shape (terms, block rows), in units of the coded columns
    response: Floats  # Shape (block rows,)
    rows: int
    intercept: bool

    @cached_property
    def times(self) -> Floats:
        """Repetitions of each row of the block, shape (block rows,)."""
        size = len(self.response)
        return np.asarray(self.rows // size + (np.arange(size) < self.rows % size), dtype=float)

    @cached_property
    def regressors(self) -> Floats:
        """The terms of a model, its constant first, shape (block rows, coefficients)."""
        ones = np.ones((int(self.intercept), len(self.response)))
        return np.asarray(np.concatenate([ones, self.terms]).T)

    def within(self, joint: PrivateDesign, products: ProductMap | None) -> SimulatedRows:
        """Return the same rows under the scaling of a joint design, with products centred."""
        terms, public = self.terms, joint.public
        if products is not None:
            terms = products.matrix @ terms + products.shift[:, None]
        ranges = map(Numeric, public.lower.tolist(), public.upper.tolist())
        book = Codebook(dict(zip(numbered(len(public.names)), ranges, strict=True)))
        coded = design("~ .", book)
        bound = PrivateDesign(rows_of(Terms(coded.codebook)), coded, joint.scaling)
        block = np.concatenate([terms, self.response[None]])
        return SimulatedRows(block, self.rows, design=bound)


def simulate_fit(
    equation: TwoSided,
    family: str,
    shape: Shape,
    shares: Floats,
    rows: int,
    rng: np.random.Generator,
) -> SimulatedFit:
    """Simulate variables with a spectrum between their bounds, code them, and draw a response.

    `shares`, shape (variables of the terms,), are relative eigenvalues with the sum 1. Standardised
    terms have coefficients of one size and random signs.
    """
    book = equation.terms.codebook
    terms = np.empty((0, SHAPED_ROWS))
    if book:
        latent = latents(shares, rng)
        numbers, evenly = (
            np.clip(like.transform(latent, rng), -1, 1) for like in (shape, SHAPES["box"])
        )
        table = {
            name: _levels(variable, evenly[index])
            if isinstance(variable, Categorical)
            else _numbers(variable, numbers[index])
            for index, (name, variable) in enumerate(book.items())
        }
        terms = row_coder(equation.terms)(table)
        # A number may happen to be a code for a missing one.
        terms = terms[:, np.isfinite(terms).all(axis=0)]
    linear = _linear(terms, rng)
    response = _responses(equation, family, shape, linear, rng)
    return SimulatedFit(terms, response, rows, equation.intercept)


def _levels(variable: Categorical, evenly: Floats) -> Array:
    """Return levels for uniform numbers from -1 to 1; how many rows have each falls off as 1/i."""
    rates = 1 / np.arange(1.0, len(variable.levels) + 1)
    ends = np.cumsum(rates / rates.sum())[:-1]
    return np.array(variable.levels, dtype=object)[np.searchsorted(ends, (evenly + 1) / 2)]


def _numbers(variable: Numeric | Date, within: Floats) -> Array:
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
    equation: TwoSided, family: str, shape: Shape, linear: Floats, rng: np.random.Generator
) -> Floats:
    """Return coded responses, shape (rows,), within their public range."""
    lower, upper = float(equation.response.lower[0]), float(equation.response.upper[0])
    if family == "binomial":
        return np.where(rng.random(len(linear)) < expit(logit(RATE) + ODDS * linear), 1.0, 0.0)
    if family == "poisson":
        mean = COUNTED * upper * np.exp(LOG_COUNTS * linear - LOG_COUNTS**2 / 2)
        return np.clip(rng.poisson(mean).astype(np.float64), lower, upper)
    rest = np.sqrt(1 - EXPLAINED) * rng.normal(size=len(linear))
    latent = (np.sqrt(EXPLAINED) * linear + rest)[None, :]
    within = np.clip(shape.transform(latent, rng)[0], -1, 1)
    return np.asarray(lower + (within + 1) / 2 * (upper - lower))
