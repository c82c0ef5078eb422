"""What rows are counted by: levels, breaks, margins, positions in a range, weights and strata."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpmodels.arguments import finite, lists_values
from dpmodels.codebook import Codebook
from dpmodels.column_roles import SurveyDesign
from dpmodels.dates import day_of, text_of_day
from dpmodels.errors import ArgumentError, CodebookError, FormulaError, quoted, shorten
from dpmodels.formula import functions
from dpmodels.formula.coding import Block, Design, Factor, known_formula, used_codebook
from dpmodels.formula.expression import as_category, compile_factor
from dpmodels.formula.response import TwoSided
from dpmodels.formula.sides import positions
from dpmodels.formula.values import Category, Columns, Real
from dpmodels.typing import Floats, Integers
from dpmodels.variables import Numeric, Variable

# The largest declared weight in steps of the lattice: sums over 2**33 rows are exact.
STEPS: Final = 2**30


@dataclass(frozen=True)
class Sampling:
    """A design with the public facts that its columns need.

    A weight w is the integer ``w/upper`` in steps of 2**-30, rounded; the row does not count where
    the weight is missing or outside its bounds, or the stratum is missing.
    """

    design: SurveyDesign
    lower: float  # the smallest and the largest weight
    upper: float
    strata: Category | None
    codebook: Codebook  # of the columns that are read, without the sampling units

    @property
    def facts(self) -> dict[str, str]:
        """Public facts, as comparable texts."""
        return {"design": self.design.describe(), "weights": f"{self.lower!r} to {self.upper!r}"}

    def weights(self, columns: Columns, n_rows: int) -> Integers:
        """Return the weights of rows as integers up to 2**30, 0 for rows that do not count."""
        weights = np.full(n_rows, STEPS, dtype=np.int64)
        if self.design.weights is not None:
            values = np.asarray(columns[self.design.weights], dtype=np.float64)
            counted = (values >= self.lower) & (values <= self.upper)
            scaled = np.where(counted, values, 0.0) / self.upper
            weights = np.rint(scaled * STEPS).astype(np.int64)
        if self.strata is not None:
            weights[self.stratum(columns, n_rows) < 0] = 0
        return weights

    def stratum(self, columns: Columns, n_rows: int) -> NDArray[np.intp]:
        """Return the stratum of each row, -1 where it is missing; 0 without strata."""
        if self.strata is None:
            return np.zeros(n_rows, dtype=np.intp)
        codes = np.asarray(self.strata.evaluate(columns))
        return np.where(np.isnan(codes), -1.0, codes).astype(np.intp)


def sampling_of(codebook: Codebook) -> Sampling | None:
    """Return the sampling of a codebook's design; CodebookError where a declaration lacks."""
    design = codebook.design
    if design is None:
        return None
    lower, upper, read = 1.0, 1.0, dict[str, Variable]()
    if design.weights is not None:
        lower, upper = _bounds(design, codebook)
        variable = codebook.get(design.weights)
        read[design.weights] = variable if isinstance(variable, Numeric) else Numeric(lower, upper)
    strata = None
    if design.strata is not None:
        if design.strata not in codebook:
            raise CodebookError(
                f"strata={quoted(design.strata)} is not in the codebook: declare its levels, "
                f'dp.codebook({design.strata}=["north", "south"], ...)'
            )
        read[design.strata] = codebook[design.strata]
        try:
            strata = as_category(compile_factor(design.strata, codebook), design.strata)
        except FormulaError:
            raise CodebookError(
                f"strata={quoted(design.strata)} is declared as a number: declare its levels"
            ) from None
    return Sampling(design, lower, upper, strata, Codebook(read))


def _bounds(design: SurveyDesign, codebook: Codebook) -> tuple[float, float]:
    if design.bounds is not None:
        return design.bounds
    variable = codebook.get(design.weights or "")
    if not isinstance(variable, Numeric) or not 0 < variable.lower <= variable.upper:
        raise CodebookError(
            f"the weights {quoted(design.weights)} have no bounds: write the smallest and largest "
            "weight, dp.design(weights=..., bounds=(1, 50), ...), from public facts"
        )
    return float(variable.lower), float(variable.upper)


# A choice: counts that are released, and fit, at once.
MAX_CELLS = 1_000_000


@dataclass(frozen=True)
class Placed:
    """Each row's flat cell, -1 if incomplete, and the measured number's position in [0, 1]."""

    cells: NDArray[np.intp]
    positions: Floats | None


# The level of missing values in a table that has one.
MISSING: Final = "(missing)"
# Bernstein parts of degree 2; of counts the shares of capped units, and products of shares.
CAPPED_PARTS: Final = 3
# Of counts by stratum: products of the share of a cell with itself, with others, and with the rest.
PRODUCT_PARTS: Final = 3


# Of units of several rows, whose rows have mean squares: products of three parts, and these.
MIXED_PARTS: Final = 9


def sampled_parts(degree: int, *, units: bool = False) -> int:
    """Return the numbers of a cell of sampled units: Bernstein parts of two degrees, or a count."""
    if units and degree == 2:
        return MIXED_PARTS
    return 2 * degree + 1 + CAPPED_PARTS if degree else 1


def stratum_size(cells: int, parts: int, degree: int) -> int:
    """Return the numbers of a stratum of sampled units."""
    return cells * (parts if degree else PRODUCT_PARTS) + 1


@dataclass(frozen=True)
class Tally:
    """A table to which every row adds one in total.

    It has a cell for each combination of the factors' levels, with the power sums of `measured` up
    to `degree`, or only counts if it is None; `max_cells` limits the parts of cells. If
    `clustered`, every person adds one, whose rows may be in several cells or in none: degree 2.
    Under `sampling` a unit adds one; `degree` is then that of the powers whose means are estimated,
    and the parts are those of :mod:`dpmodels.statistics.sampled`. `running` counts have products of
    the running sums over the levels of the last factor; with `has_missing` the last level of
    each factor is what is missing, and the products are of cells without it. Rows outside the range
    of `measured` are divided between its end and the points `beyond`, in its unit and in order.
    """

    factors: tuple[Category, ...]
    measured: Real | None = None
    degree: int = 0
    clustered: bool = False
    max_cells: int = MAX_CELLS
    sampling: Sampling | None = None
    running: bool = False
    has_missing: bool = False
    beyond: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.cells * self.parts > self.max_cells:
            names = " + ".join(factor.code for factor in self.factors)
            raise FormulaError(
                f"{shorten(names)!r} has {self.cells:,} combinations of levels; at most "
                f"{self.max_cells // self.parts:,} are counted. Use fewer factors or levels"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of levels of each factor."""
        return tuple(len(factor.levels) for factor in self.factors)

    @property
    def cells(self) -> int:
        """Number of combinations of levels; 1 without factors."""
        return math.prod(self.shape)

    @property
    def parts(self) -> int:
        """Numbers of each cell: the Bernstein parts, and two where persons are in several."""
        if self.sampling is not None:
            return sampled_parts(self.degree, units=self.sampling.design.psu is not None)
        return self.degree + 1 + len(self.beyond) + self.clustered * (2 + len(self.beyond))

    @property
    def stratum_size(self) -> int:
        """Numbers of each stratum: those of its cells, and the rest of its units."""
        return stratum_size(self.cells, self.parts, self.degree)

    @property
    def size(self) -> int:
        """Length of the statistic: parts of each cell, and the incomplete rows."""
        return self.cells * self.parts + 1

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Which cells are of declared levels, shape (cells,)."""
        mask = np.ones(self.shape, dtype=bool)
        if self.has_missing:
            mask = np.pad(mask[(slice(-1),) * mask.ndim], [(0, 1)] * mask.ndim)
        return np.asarray(mask.ravel())

    def cut(self, ends: Floats) -> Tally:
        """Return the table of its number's cells, without groups: up to each of the ends."""
        number = self.measured
        assert number is not None
        evaluate, inner = number.evaluate, ends[1:-1]

        def cells(columns: Columns) -> Floats:
            values = np.asarray(evaluate(columns))
            return np.where(np.isnan(values), np.nan, np.searchsorted(inner, values))

        return Tally((Category(number.code, tuple(ends[1:].tolist()), cells),))

    def place(self, columns: Columns) -> Placed:
        """Find the cell and the position of each row."""
        codes = [factor.evaluate(columns) for factor in self.factors]
        number, is_within = self.measured, not self.beyond
        fractions = None if number is None else positions(number, columns, is_within=is_within)
        values = [*codes, *([] if fractions is None else [fractions])]
        missing = reduce(np.logical_or, map(np.isnan, values))
        flat = np.zeros(len(missing), dtype=np.intp)
        for code, size in zip(codes, self.shape, strict=True):
            flat = flat * size + np.where(missing, 0.0, code).astype(np.intp)
        flat[missing] = -1
        return Placed(flat, fractions)


# From ``breaks=`` to the bins of a number: how many, or their ends, as users write them.


EXAMPLES = {
    "breaks": "breaks=20 or breaks=[0, 10, 20]",
    "cuts": "cuts=20 or cuts={'age': [0, 10, 20]}",
}


def binned(
    number: Real, breaks: object, option: str = "breaks"
) -> tuple[Category, tuple[float, ...]]:
    """Return the bins of a number as levels, and their ends; ArgumentError for invalid breaks.

    `option` is the argument that errors name.
    """
    edges = _ends(breaks, number, option)
    names = functions.interval_names(edges)
    if functions.by_whole_numbers(number):
        edges = _whole_ends(breaks, edges, number, option)
        names = functions.whole_names(edges, date=number.date)
    return Category(number.code, names, functions.in_bins(number, np.array(edges))), edges


def _whole_ends(
    breaks: object, edges: tuple[float, ...], number: Real, option: str
) -> tuple[float, ...]:
    """Move ends between whole numbers, each of which is in one bin."""
    if isinstance(breaks, int | np.integer):
        return functions.equal_parts(number, int(breaks))
    shifted = functions.beside(edges)
    if any(not low < high for low, high in pairwise(shifted)):
        raise ArgumentError(
            f"{option}={shorten(repr(list(edges)))}: {shorten(number.code)!r} is integer-valued, "
            "and one bin contains no integer; write ends that are farther apart"
        )
    return shifted


def _ends(breaks: object, number: Real, option: str = "breaks") -> tuple[float, ...]:
    if isinstance(breaks, int | np.integer) and not isinstance(breaks, bool):
        if not 2 <= breaks <= MAX_CELLS:
            raise ArgumentError(
                f"{option}={breaks}: expected a number of bins from 2 to {MAX_CELLS:,}, "
                "or their ends"
            )
        if not number.lower < number.upper:
            raise ArgumentError(
                f"{option}={breaks}: the declared range of {shorten(number.code)!r} is the "
                f"point {number.lower:g}; write the ends of the bins"
            )
        return tuple(np.linspace(number.lower, number.upper, int(breaks) + 1).tolist())
    if not lists_values(breaks):
        example = EXAMPLES[option]
        raise ArgumentError(
            f"{option}={quoted(breaks)}: expected a number of bins or their ends, chosen without "
            f"the rows; write {example}"
        )
    edges = tuple(_end(edge, number, option) for edge in breaks)
    listed = shorten(repr(list(edges)))
    if len(edges) < 3 or any(not low < high for low, high in pairwise(edges)):
        raise ArgumentError(f"{option}={listed}: expected three ends or more, increasing")
    if edges[0] < number.lower or edges[-1] > number.upper:
        raise ArgumentError(
            f"{option}={listed}: they reach outside the declared range of "
            f"{shorten(number.code)!r}, {_text(number.lower, number)} to "
            f"{_text(number.upper, number)}; rows are clipped to that"
        )
    return edges


def _end(edge: object, number: Real, option: str) -> float:
    """Return one end, of days as a day since 1970-01-01."""
    if not number.date:
        return finite(option, edge)
    day = day_of(edge)
    if math.isnan(day):
        raise ArgumentError(
            f"{option}= holds {quoted(edge)}: {shorten(number.code)!r} is a date; write days, such "
            f'as "{_text(number.lower, number)}", or a number of bins'
        )
    return day


def _text(end: float, number: Real) -> str:
    return text_of_day(end) if number.date else f"{end:.10g}"


# The margins that a formula asks for, each term one.


@dataclass(frozen=True)
class Margins:
    """The factors of a formula in order of first mention, and its terms as their positions."""

    text: str
    codebook: Codebook
    factors: tuple[Category, ...]
    terms: tuple[tuple[int, ...], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Levels of each factor, with one more for what is missing or unlisted."""
        return tuple(len(factor.levels) + 1 for factor in self.factors)


def margins(formula: str, codebook: Codebook | None) -> Margins:
    """Compile the factors of a formula and the margins of its terms.

    >>> import dpmodels as dp
    >>> cb = dp.codebook(sex=["F", "M"], region=["n", "s", "w"], drug=["no", "yes"])
    >>> spec = margins("~ sex*region + region:drug", cb)
    >>> [factor.code for factor in spec.factors], spec.terms
    (['sex', 'region', 'drug'], ((0,), (1,), (0, 1), (1, 2)))
    """
    parsed, book = known_formula(formula, codebook)
    text = shorten(parsed.text)
    if parsed.response:
        raise FormulaError(
            f"formula {text!r} has a left side, which margins do not have; write '~ a*b' for the "
            "margins of a, of b and of both"
        )
    if not parsed.predictors:
        raise FormulaError(f"formula {text!r} names no variable to count; write '~ a*b + b:c'")
    codes = parsed.codes
    factors = tuple(
        _require_levels(as_category(compile_factor(code, book), code)) for code in codes
    )
    terms = tuple(tuple(sorted(map(codes.index, term))) for term in parsed.predictors)
    result = Margins(parsed.text, used_codebook(codes, book), factors, terms)
    sizes = result.sizes
    counts = [math.prod(sizes[i] for i in term) for term in result.terms]
    largest = max(counts)
    if largest > MAX_CELLS:
        term = result.terms[counts.index(largest)]
        names = ":".join(result.factors[i].code for i in term)
        raise FormulaError(
            f"{shorten(names)!r} has {largest:,} cells, with one level of each variable for "
            f"missing values; at most {MAX_CELLS:,} are counted. Write margins of fewer variables"
        )
    if sum(counts) > MAX_CELLS:
        raise FormulaError(
            f"formula {shorten(result.text)!r} asks for {len(counts):,} margins of {sum(counts):,} "
            f"cells in all; at most {MAX_CELLS:,} are counted. Write fewer margins"
        )
    return result


def with_missing(factor: Category) -> Category:
    """Return a factor with one level more, for what is missing or unlisted."""
    evaluate, size = factor.evaluate, len(factor.levels)

    def codes(columns: Columns) -> Floats:
        return np.nan_to_num(np.asarray(evaluate(columns), dtype=np.float64), nan=size)

    return Category(factor.code, (*factor.levels, MISSING), codes)


def _require_levels(factor: Category) -> Category:
    if len(factor.levels) < 2:
        raise FormulaError(
            f"{shorten(factor.code)!r} has one level and no information; leave it out"
        )
    return factor


# Choices: values of a whole number that has a cell for each, and cells of a table.
MOST_VALUES, MOST_CELLS = 20, 10_000


@dataclass(frozen=True)
class Crossed:
    """The terms of an equation with their factors as categories, and the response."""

    terms: Design
    factors: tuple[Category, ...]
    response: Category

    @property
    def cells(self) -> int:
        """Combinations of the levels of all factors and of the response."""
        return math.prod(len(factor.levels) for factor in (*self.factors, self.response))

    @property
    def tally(self) -> Tally:
        """The table, the response varying fastest; FormulaError if it has too many cells."""
        if self.cells > MOST_CELLS:
            raise FormulaError(
                f"{shorten(self.terms.formula)!r} has {self.cells:,} combinations of levels with "
                f'those of the response; mechanism="counts" takes {MOST_CELLS:,}: name fewer '
                "terms, merge levels, or leave mechanism= out"
            )
        return Tally((*self.factors, self.response))

    @property
    def rows(self) -> Floats:
        """The coded terms of each combination of levels, shape (combinations, columns)."""
        return coded_levels(self.terms.blocks, self.factors)


def coded_levels(blocks: Iterable[Block], factors: Sequence[Category]) -> Floats:
    """Return the columns of blocks at each combination of the levels of their factors.

    Shape (combinations, columns).
    """
    sizes = tuple(len(factor.levels) for factor in factors)
    positions = np.indices(sizes, np.float64).reshape(len(sizes), math.prod(sizes))
    codes = {factor.code: place for factor, place in zip(factors, positions, strict=True)}
    by_position = (
        replace(block, factors=tuple(map(_of_position, block.factors))) for block in blocks
    )
    columns = [column for block in by_position for column in block.coded(codes)]
    return np.reshape(columns, (len(columns), math.prod(sizes))).T


def crossed(equation: TwoSided) -> Crossed | str:
    """Return the table of an equation, or the text of a term that has no levels to count.

    A whole number of at most 20 values has them.

    >>> import dpmodels as dp
    >>> from dpmodels.formula.response import two_sided
    >>> cb = dp.codebook(y=["no", "yes"], sex=["F", "M"], age=(0, 99), child=dp.Integer(0, 3))
    >>> table = crossed(two_sided("y ~ sex + child", cb))
    >>> table.cells, table.rows.shape, crossed(two_sided("y ~ sex + age", cb))
    (16, (8, 2), 'age')
    """
    used = [factor for block in equation.terms.blocks for factor in block.factors]
    categories = {factor.code: _as_levels(factor) for factor in used}
    response = equation.response.blocks[0].factors[0]
    without = [code for code, category in categories.items() if category is None]
    if without or not isinstance(response, Category):
        return [*without, response.code][0]
    return Crossed(equation.terms, tuple(filter(None, categories.values())), response)


def _as_levels(factor: Factor) -> Category | None:
    """Return a factor as a category, None for numbers of many values."""
    if not isinstance(factor, Real) or not factor.step:
        return factor if isinstance(factor, Category) else None
    low, step, n_steps = (
        factor.lower,
        factor.step,
        round((factor.upper - factor.lower) / factor.step),
    )

    def positions(columns: Columns) -> Floats:
        return np.clip(np.rint((factor.evaluate(columns) - low) / step), 0, n_steps)

    levels = tuple((low + step * np.arange(n_steps + 1)).tolist())
    return Category(factor.code, levels, positions) if n_steps < MOST_VALUES else None


def _of_position(factor: Factor) -> Factor:
    """Return a factor that reads the position of its level, under its code."""
    code = factor.code
    if not isinstance(factor, Real):
        return replace(factor, evaluate=lambda columns: columns[code])
    low, step = factor.lower, factor.step
    return replace(factor, variable=None, evaluate=lambda columns: low + step * columns[code])
