"""Columns of a table as levels: categories as they are, numbers in cells."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, cast

import numpy as np

from dpmodels.arguments import lists_values
from dpmodels.codebook import Codebook
from dpmodels.errors import (
    ArgumentError,
    FormulaError,
    UnknownVariable,
    did_you_mean,
    quoted,
    shorten,
)
from dpmodels.formula.coding import Factor, known_formula, used_codebook
from dpmodels.formula.expression import as_category, compile_factor
from dpmodels.formula.functions import (
    by_whole_numbers,
    in_bins,
    interval_names,
    starts_of_parts,
    whole_names,
)
from dpmodels.formula.parse import parsed_formula, quote, variables_in
from dpmodels.formula.tally import MAX_CELLS, Margins, binned
from dpmodels.formula.values import Category, Column, Real, Varying
from dpmodels.postprocess.graphical.histograms import FineCells, Histogram
from dpmodels.postprocess.graphical.values import (
    CellValues,
    tail_cells,
    uncertain_cells,
    values_of_histogram,
    values_of_levels,
)
from dpmodels.typing import Floats

# How many fine cells a number may have, the most that fit: choices.
SIZES = (128, 96, 64, 48, 32, 24)
# Halvings of the range by which half of the cells lie, and some at bounds other than 0: a choice.
OCTAVES = 16
# The closest edges, in widths of the range: a choice.
CLOSEST = 1e-9


def fine_edges(
    number: Real, most: int, declared: Sequence[float] = (), *, finer: bool = False
) -> tuple[float, ...]:
    """Return the edges of at most about `most` cells of a number, `declared` ones among them.

    With `finer` cells of equal width are divided by three and the others by two.

    Whole numbers have a cell each if they are few. Else edges are equally far apart, or parts of
    octaves from 0 and octaves from both bounds: where bounds are too wide, cells are still narrow
    where the rows are.

    >>> age = Real("age", 0.0, 4.0, lambda columns: columns["age"], step=1.0)
    >>> fine_edges(age, 24)
    (-0.5, 0.5, 1.5, 2.5, 3.5, 4.5)
    >>> wage = Real("wage", 0.0, 1e6, lambda columns: columns["wage"])
    >>> len(fine_edges(wage, 64)), round(fine_edges(wage, 64)[1])
    (59, 15)
    """
    is_whole = by_whole_numbers(number)
    low, high = number.lower, number.upper
    if declared:
        low, high = declared[0] + is_whole / 2, declared[-1] - is_whole / 2
    if is_whole and high - low < most * (1 + finer):
        edges = np.arange(low, high + 1) - 0.5
    else:
        # Edges by equal widths, and by octaves from 0 and from both bounds.
        zero = min(max(0.0, low), high)
        sides = [side for side in (high - zero, low - zero) if side]
        n_parts = most // (2 * len(sides))
        per_octave = max(1, n_parts // OCTAVES) * (1 + finer)
        fractions = 2.0 ** -(np.arange(1, n_parts * (1 + finer) + 1) / per_octave)
        octaves = (high - low) * 2.0 ** -np.arange(1.0, min(most // 8, OCTAVES) + 1)
        bounds = [(bound, sign) for bound, sign in ((low, 1), (high, -1)) if bound != zero]
        parts = [zero + side * fractions for side in sides]
        parts += [bound + sign * octaves for bound, sign in bounds]
        n_equal = (most - n_parts * len(sides) - len(bounds) * len(octaves)) * (1 + 2 * finer)
        edges = np.concatenate([[zero], np.linspace(low, high, n_equal + 1), *parts])
    if is_whole:
        edges = np.floor(np.clip(edges, low, high)) + 0.5
        edges = np.concatenate([[low - 0.5], edges[edges < high], [high + 0.5]])
    edges = np.unique(np.concatenate([edges, declared]))
    apart = np.diff(edges, prepend=-math.inf) > CLOSEST * (high - low)
    return tuple(edges[apart | np.isin(edges, declared)].tolist())


def in_cells(number: Real, edges: tuple[float, ...]) -> Category:
    """Return the cells of a number as levels; all but the first are open below."""
    is_whole = by_whole_numbers(number)
    names = whole_names(edges, date=number.date) if is_whole else interval_names(edges)
    return Category(number.code, names, in_bins(number, np.array(edges)))


# Levels of one column whose pairs are counted, and fine cells of all tables: choices.
MOST_LEVELS, MOST_FINE = 500, 2_000_000


@dataclass(frozen=True)
class CutColumn:
    """A column as levels; of a number in cells `edges` has their ends, else it is empty."""

    name: str  # Of the variable, or the text of an expression
    category: Category
    number: Real | None = None
    edges: tuple[float, ...] = ()
    is_declared: bool = True  # Whether its cells are public
    fine: FineCells | None = None  # Those whose counts are released
    histogram: Histogram | None = None  # These counts, once they are

    @cached_property
    def cells(self) -> CellValues:
        """What a number is within its cells: released, or its middle; a category its position."""
        if self.histogram is not None:
            return values_of_histogram(self.histogram)
        edges = np.array(self.edges)
        levels = (edges[:-1] + edges[1:]) / 2 if self.edges else np.arange(len(self.levels))
        return values_of_levels(levels.astype(np.float64))

    @cached_property
    def values(self) -> Floats:
        """The mean at each level, nan at the last, that of missing values."""
        return np.append(self.cells.means(self.cells.points), np.nan)

    @cached_property
    def uncertain_cells(self) -> tuple[int, ...]:
        """The cells whose rows beyond the range may be farther away than estimates allow for."""
        return () if self.histogram is None else uncertain_cells(self.histogram)

    @cached_property
    def tail_cells(self) -> tuple[int, ...]:
        """The cells of which some rows may be beyond the released range."""
        return () if self.histogram is None else tail_cells(self.histogram)

    @property
    def counted(self) -> Category:
        """The levels that rows are counted by: fine cells where there are some."""
        if self.number is None or not self.fine:
            return self.category
        return in_cells(self.number, self.fine.edges)

    def released(self, counts: Floats, sd: float, ends: tuple[int, ...]) -> CutColumn:
        """Return the column with the counts of its fine cells, and its coarse cells."""
        assert self.number is not None
        assert self.fine is not None
        fine = np.array(self.fine.edges)
        edges = tuple(fine[list(ends)].tolist())
        step = 1.0 if by_whole_numbers(self.number) else 0.0
        histogram = Histogram(fine, counts, sd, ends, step=step, groups=self.fine.sparse)
        category = self.category if self.is_declared else in_cells(self.number, edges)
        return replace(self, category=category, edges=edges, histogram=histogram)

    def with_rows(self, rows: Floats, sd: float) -> CutColumn:
        """Return the column with the released rows of its coarse cells, and their noise sd."""
        if self.histogram is None:
            return self
        return replace(self, histogram=replace(self.histogram, rows=rows, rows_sd=sd))

    def with_light_tails(self) -> CutColumn:
        """Return the column with tails whose laws go by the counts before them."""
        if self.histogram is None:
            return self
        return replace(self, histogram=replace(self.histogram, is_light=True))

    @property
    def levels(self) -> tuple[Any, ...]:
        """The levels as printed."""
        return self.category.levels


def cut_columns(
    formula: str, codebook: Codebook | None, cuts: object
) -> tuple[Margins, tuple[CutColumn, ...]]:
    """Compile a formula of columns, each by itself; the layout has no terms yet.

    >>> import dpmodels as dp
    >>> book = dp.codebook(age=(0, 100), sex=["F", "M"])
    >>> layout, columns = cut_columns("~ .", book, {"age": 5})
    >>> layout.sizes, columns[0].values.tolist()[:2]
    ((6, 3), [10.0, 30.0])
    """
    parsed, book = known_formula(formula, codebook)
    text = shorten(parsed.text)
    if parsed.response:
        raise FormulaError(
            f"formula {text!r} has a left side, which a synthetic table does not have; write '~ .'"
        )
    products = [term for term in parsed.predictors if len(term) > 1]
    if products:
        raise FormulaError(
            f"formula {text!r} has the product {shorten(':'.join(products[0]))!r}; name columns "
            "alone, '~ a + b', and products in structure="
        )
    codes = tuple(code for (code,) in parsed.predictors)
    if len(codes) < 2:
        raise FormulaError(
            f"formula {text!r} names {len(codes)} column; a synthetic table has two or more. For "
            "one column write dp_hist or dp_table"
        )
    cells = _cells(cuts, codes)
    columns = tuple(_column(compile_factor(code, book), code, cells) for code in codes)
    categories = tuple(column.category for column in columns)
    return Margins(parsed.text, used_codebook(codes, book), categories, ()), columns


def all_pairs(layout: Margins) -> tuple[tuple[int, ...], ...]:
    """Return the terms of all pairs of columns, which are counted before they are listed."""
    sizes = layout.sizes
    n_cells = (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2
    check_cells(math.comb(len(sizes), 2), n_cells)
    return tuple(combinations(range(len(sizes)), 2))


def check_cells(n_tables: int, n_cells: int) -> None:
    """Refuse tables of more cells than are counted at once."""
    if n_cells > MAX_CELLS:
        raise FormulaError(
            f"the {n_tables:,} tables of these columns have {n_cells:,} cells; at most "
            f"{MAX_CELLS:,} are counted. Write smaller cuts=, fewer columns, or structure="
        )


def plain_cuts(cuts: Mapping[str, object]) -> tuple[tuple[object, ...], ...]:
    """Return cells by column as a request keeps them, ``(("age", 0, 30, 60), ("k", 8))``."""
    return tuple(
        (name, *ends) if lists_values(ends) else (name, ends) for name, ends in cuts.items()
    )


def _cells(cuts: object, codes: tuple[str, ...]) -> Mapping[str, object]:
    """Return the cells of each column, a number or their ends; ``""`` is any other column."""
    if isinstance(cuts, int | np.integer) and not isinstance(cuts, bool):
        return {"": int(cuts)}
    pairs: object = tuple(cuts.items()) if isinstance(cuts, Mapping) else cuts
    if not lists_values(pairs) or not all(isinstance(pair, tuple | list) for pair in pairs):
        raise ArgumentError(
            f"cuts={quoted(cuts)}: expected a number of cells, or cells by column; write cuts=10 "
            "or cuts={'age': [0, 30, 60, 100], 'income': 8}"
        )
    cells: dict[str, object] = {"": 10}
    for name, *listed in (cast("list[object]", pair) for pair in pairs):
        ends = listed[0] if len(listed) == 1 else listed
        code = quote(str(name))
        if code not in codes:
            raise ArgumentError(
                f"cuts= names {quoted(name)}, which is not a column of the formula"
                f"{did_you_mean(str(name), codes)}; name columns of the formula only"
            )
        cells[code] = ends
    return cells


def _column(value: Varying, code: str, cells: Mapping[str, object]) -> CutColumn:
    if isinstance(value, Real) and value.variable is None and not value.date:
        raise FormulaError(
            f"{shorten(code)!r} is computed from numbers; a synthetic table has columns of the "
            f"data: name them, or write cut({shorten(code)}, [...])"
        )
    number = value if isinstance(value, Real) else None
    cut = cells.get(code, cells[""])
    if number is not None:
        _require_few(code, _n_cells(number, cut))
    category, edges = (
        (as_category(value, code), ()) if number is None else binned(number, cut, "cuts")
    )
    size = len(category.levels)
    if size < 2:
        raise FormulaError(f"{shorten(code)!r} has one level and no information; leave it out")
    _require_few(code, size)
    variables = variables_in(code)
    name = variables[0] if quote(variables[0]) == code else code
    return CutColumn(name, category, number, tuple(map(float, edges)), lists_values(cut))


def _n_cells(number: Real, cut: object) -> int:
    """Return how many cells a number would have, 0 where their ends are listed."""
    if not isinstance(cut, int | np.integer):
        return 0
    is_in_parts = cut >= 2 and by_whole_numbers(number)
    return len(starts_of_parts(number, int(cut))) if is_in_parts else int(cut)


def _require_few(code: str, size: int) -> None:
    if size > MOST_LEVELS:
        raise FormulaError(
            f"{shorten(code)!r} has {size:,} levels; a synthetic table takes at most "
            f"{MOST_LEVELS}. Use dp_levels for the frequent ones, merge levels, or use fewer cells"
        )


def with_fine_cells(
    columns: tuple[CutColumn, ...], terms: tuple[tuple[int, ...], ...]
) -> tuple[CutColumn, ...]:
    """Return columns with fine cells for numbers, as many as fit into the tables of some terms.

    Numbers whose cells have one whole number each need none.
    """
    refined = columns
    for most, finer in ((SIZES[0], True), *((most, False) for most in SIZES)):
        refined = tuple(_refined(i, column, most, finer) for i, column in enumerate(columns))
        sizes = [len(column.counted.levels) + 1 for column in refined]
        if sum(math.prod(sizes[i] for i in term) for term in terms) <= MOST_FINE:
            return refined
    return columns


def _refined(variable: int, column: CutColumn, most: int, finer: bool) -> CutColumn:
    if column.number is None:
        return column
    declared = column.edges if column.is_declared else ()
    sparse = fine_edges(column.number, most, declared)
    if len(sparse) <= len(column.edges):
        return column
    edges = fine_edges(column.number, most, declared, finer=True) if finer else sparse
    nearest = {int(np.abs(np.array(edges) - edge).argmin()) for edge in sparse}
    ends = tuple(map(edges.index, declared))
    fine = FineCells(variable, edges, len(column.levels), ends, tuple(sorted(nearest)))
    return replace(column, fine=fine)


def structure_terms(structure: str, layout: Margins) -> tuple[tuple[int, ...], ...]:
    """Return the margins that a structure names, with the columns that it does not mention."""
    codes = [factor.code for factor in layout.factors]
    parsed = parsed_formula(structure, codes)
    unknown = [code for term in parsed.predictors for code in term if code not in codes]
    if unknown or parsed.response or not parsed.predictors:
        what = "has no terms on its right-hand side"
        if unknown:
            what = f"names {unknown[0]!r}{did_you_mean(unknown[0], codes)}"
        raise FormulaError(
            f"structure={quoted(structure)} {what}; write products of the columns of the formula, "
            f"such as '~ {shorten(':'.join(codes[:2]))}'"
        )
    terms = {tuple(sorted(map(codes.index, term))) for term in parsed.predictors}
    joined = {i for term in terms for i in term}
    return tuple(sorted(terms | {(i,) for i in range(len(codes)) if i not in joined}))


def on_levels(factor: Factor, columns: tuple[CutColumn, ...]) -> tuple[Factor, tuple[int, ...]]:
    """Return a factor that reads the values of columns by name, and the columns that it reads.

    FormulaError if it reads one that the table does not have.
    """
    names = [column.name for column in columns]
    if factor.code in names and isinstance(factor, Category):
        return replace(factor, evaluate=Column(factor.code)), (names.index(factor.code),)
    is_bare = isinstance(factor, Real) and (factor.variable is not None or factor.date)
    variables = (factor.code,) if is_bare else variables_in(factor.code)
    unknown = next((name for name in variables if name not in names), None)
    if unknown is not None:
        raise FormulaError(
            f"{shorten(unknown)!r} is not a column of the synthetic table, which has "
            f"{shorten(', '.join(names))}"
        )
    return factor, tuple(map(names.index, variables))


@contextmanager
def naming(columns: tuple[CutColumn, ...]) -> Iterator[None]:
    """Refuse an unknown variable by naming the columns of the table, which cannot be extended."""
    try:
        yield
    except UnknownVariable as error:
        listed = shorten(", ".join(column.name for column in columns))
        raise UnknownVariable(
            f"{shorten(error.name)!r} is not a column of the synthetic table, which has {listed}",
            error.name,
        ) from None
