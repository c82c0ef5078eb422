"""From terms to coded columns: names, public ranges and row norms, without data.

Redundancy rules, contrast matrices and column names are patsy's, run on the codebook's levels
alone. Every block of columns has a finite set of points whose convex hull contains each coded
row, so bounds on row norms are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpmodels.codebook import Codebook
from dpmodels.errors import CodebookError, FormulaError, shorten
from dpmodels.formula.expression import as_category, check_removed, compile_factor
from dpmodels.formula.parse import ParsedFormula, Term, parsed_formula, variables_in
from dpmodels.formula.values import Basis, Category, Columns, Real, Truth
from dpmodels.typing import Floats
from dpmodels.variables import Numeric

if TYPE_CHECKING:
    from patsy.design_info import DesignInfo

# Choices: columns of a second moment, and hull points, that fit in memory.
MAX_COLUMNS = 5_000
MAX_POINTS = 4_000_000

Factor = Real | Category | Basis

# The name of the constant column in patsy and in results.
_CONSTANT = "Intercept"


@dataclass(frozen=True)
class Block:
    """The columns of one term, coded together.

    Names are in patsy's style; the first factor varies fastest over the columns; a contrast matrix
    of shape (levels, columns) belongs to each categorical factor. `term` are the factors of the
    term as written; a part of its coding may lack some of them.
    """

    names: tuple[str, ...]
    factors: tuple[Factor, ...]
    contrasts: tuple[Floats | None, ...]
    term: tuple[str, ...]

    @cached_property
    def points(self) -> Floats:
        """Points, shape (points, columns), whose hull contains every row."""
        sets = [_extremes(*pair) for pair in zip(self.factors, self.contrasts, strict=True)]
        _check_points(math.prod(map(len, sets)) * len(self.names), self.names[0])
        return reduce(_products, sets).reshape(-1, len(self.names))

    @cached_property
    def lower(self) -> Floats:
        """Public lower bounds, shape (columns,)."""
        return np.asarray(self.points.min(axis=0))

    @cached_property
    def upper(self) -> Floats:
        """Public upper bounds, shape (columns,)."""
        return np.asarray(self.points.max(axis=0))

    def coded(self, columns: Columns, *, clip_numbers: bool = True) -> Sequence[Floats]:
        """Return the coded columns, each of shape (rows,), clipped to their ranges.

        Without `clip_numbers` a column of numbers as they are read is that array itself.
        """
        match self.factors:
            case (Real(variable=str() as name, lower=lower, upper=upper),):
                return [np.clip(columns[name], lower, upper) if clip_numbers else columns[name]]
        parts = [
            _coded(factor, contrast, columns)
            for factor, contrast in zip(self.factors, self.contrasts, strict=True)
        ]
        product = parts[0]
        for part in parts[1:]:
            products = part[:, None, :] * product[None, :, :]
            product = products.reshape(len(part) * len(product), products.shape[-1])
        return list(np.clip(product, self.lower[:, None], self.upper[:, None]))


def _extremes(factor: Factor, contrast: Floats | None) -> Floats:
    match factor:
        case Real():
            return np.array([[factor.lower], [factor.upper]])
        case Basis():
            return factor.vertices
    assert contrast is not None
    return contrast


def _products(left: Floats, right: Floats) -> Floats:
    pairs = right[None, :, :, None] * left[:, None, None, :]
    return pairs.reshape(len(left) * len(right), -1)


def _coded(factor: Factor, contrast: Floats | None, columns: Columns) -> Floats:
    values = factor.evaluate(columns)
    match factor:
        case Real():
            return np.atleast_1d(values)[None, :]
        case Basis():
            return values
    assert contrast is not None
    missing = np.isnan(values)
    coded = contrast[np.where(missing, 0, values).astype(np.intp)].T
    return np.where(missing, np.nan, coded) if missing.any() else coded


@dataclass(frozen=True)
class Design:
    """The coded columns of one side of a formula; public facts only.

    `codebook` declares the variables that are used, `names` are the coded columns without the
    intercept, `lower` and `upper` their public ranges, shape (columns,).
    """

    formula: str
    codebook: Codebook
    names: tuple[str, ...]
    lower: Floats
    upper: Floats
    blocks: tuple[Block, ...] = field(repr=False)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the codebook variables the design reads."""
        return tuple(self.codebook)

    @cached_property
    def plain(self) -> tuple[str, ...]:
        """The variables that the columns are, as they are read; none where one is coded."""
        factors = [block.factors for block in self.blocks]
        names = [
            factor.variable
            for (factor, *others) in factors
            if isinstance(factor, Real) and factor.variable and not others
        ]
        return tuple(names) if len(names) == len(factors) else ()

    def coded(self, columns: Columns, *, clip_numbers: bool = True) -> list[Floats]:
        """Return coded columns, each of shape (rows,).

        Each cell lies in ``[lower, upper]``, or without `clip_numbers` may be that of a number
        beyond it; a row in which a factor is missing has at least one NaN.
        """
        return [
            column
            for block in self.blocks
            for column in block.coded(columns, clip_numbers=clip_numbers)
        ]

    def evaluate(self, columns: Columns, out: Floats) -> None:
        """Write coded rows into ``out``, shape (columns, rows)."""
        for line, column in zip(out, self.coded(columns), strict=True):
            line[:] = column


def constant_combination(blocks: Sequence[Block]) -> Floats | None:
    """Return coefficients by which columns add to 1 in every row, shape (columns,), if any do.

    Those of a factor that has a column for each of its levels.
    """
    start, size = 0, sum(len(block.names) for block in blocks)
    for block in blocks:
        columns = slice(start, start := start + len(block.names))
        if all(isinstance(factor, Category) for factor in block.factors):
            sums = np.linalg.lstsq(block.points, np.ones(len(block.points)), rcond=None)[0]
            if np.allclose(block.points @ sums, 1.0, rtol=0.0, atol=1e-12):
                combination = np.zeros(size)
                combination[columns] = sums
                return combination
    return None


def of_blocks(formula: str, book: Codebook, blocks: tuple[Block, ...]) -> Design:
    """Return blocks of columns as one design."""
    empty = [np.empty(0)]
    return Design(
        formula,
        book,
        tuple(name for block in blocks for name in block.names),
        np.concatenate([*empty, *(block.lower for block in blocks)]),
        np.concatenate([*empty, *(block.upper for block in blocks)]),
        blocks,
    )


def used_codebook(codes: Iterable[str], book: Codebook) -> Codebook:
    """Return the declarations that factors read, in the order of the codebook."""
    used = {name for code in codes for name in variables_in(code)}
    return book.select(name for name in book if name in used)


def design(formula: str, codebook: Codebook | None) -> Design:
    """Build the coded design of a one-sided formula from the codebook alone.

    The intercept decides the coding of categories and is not a column of the design.

    >>> import dpmodels as dp
    >>> from dpmodels.formula import design
    >>> cb = dp.codebook(age=(0, 100), sex=["F", "M"])
    >>> design("~ age * sex", cb).names
    ('sex[T.M]', 'age', 'age:sex[T.M]')
    """
    book = checked_codebook(codebook)
    parsed = parsed_formula(formula, book)
    if parsed.response:
        left = ":".join(parsed.response[0])
        raise FormulaError(
            f"formula has a response, {shorten(left)!r}; this verb takes a right-hand side only: "
            "write '~ a + b'"
        )
    if not parsed.predictors:
        raise FormulaError("formula has no terms besides the intercept; name at least one variable")
    check_removed(parsed, book)
    blocks = code_terms(parsed, book)
    return of_blocks(parsed.text, used_codebook(parsed.codes, book), blocks)


def checked_codebook(codebook: object) -> Codebook:
    """Return the codebook, or say how to write one."""
    if isinstance(codebook, Codebook):
        return codebook
    raise CodebookError(
        f"codebook= is {type(codebook).__name__}; expected a dp.codebook with the public bounds "
        'or levels of each variable, for example dp.codebook(age=(0, 100), sex=["F", "M"])'
    )


def known_formula(formula: str, codebook: object) -> tuple[ParsedFormula, Codebook]:
    """Split a formula into terms, all of them of a codebook; return both."""
    book = checked_codebook(codebook)
    parsed = parsed_formula(formula, book)
    check_removed(parsed, book)
    return parsed, book


def code_terms(parsed: ParsedFormula, book: Codebook) -> tuple[Block, ...]:
    """Code the predictors of a parsed formula, in patsy's order."""
    import patsy

    codes = parsed.codes
    if _CONSTANT in codes:
        raise FormulaError(
            f"the variable {_CONSTANT!r} would be taken for the constant of a model: give it "
            "another name in the data and in the codebook"
        )
    factors = {code: _Prototype(code, book) for code in codes}
    _check_sizes(parsed.predictors, {code: factors[code].value for code in codes})
    terms = [patsy.Term([factors[code] for code in term]) for term in parsed.predictors]
    if parsed.intercept:
        terms.insert(0, patsy.Term([]))
    info = patsy.design_matrix_builders([terms], lambda: iter([None]), 0)[0]
    _check_columns(len(info.column_names) - parsed.intercept)
    bases = [code for code, factor in factors.items() if isinstance(factor.value, Basis)]
    names = info.column_names
    if bases:
        names = [_numbered_from_one(name, bases) for name in names]
    return tuple(_blocks(info, names))


def _blocks(info: DesignInfo, names: Iterable[str]) -> Iterator[Block]:
    following = iter(names)
    for term, subterms in info.term_codings.items():
        term_codes = tuple(factor.name() for factor in term.factors)
        for subterm in subterms:
            column_names = tuple(islice(following, subterm.num_columns))
            contrasts = tuple(
                np.asarray(subterm.contrast_matrices[factor].matrix, dtype=np.float64)
                if factor in subterm.contrast_matrices
                else None
                for factor in subterm.factors
            )
            values = tuple(factor.value for factor in subterm.factors)
            if values:
                yield Block(column_names, values, contrasts, term_codes)


def _numbered_from_one(name: str, bases: Sequence[str]) -> str:
    """Return a column's name with the functions of a basis numbered as in R: ``poly(x, 2)1``."""
    for code in bases:
        head, bracket, rest = name.partition(f"{code}[")
        number, closing, tail = rest.partition("]")
        name = f"{head}{code}{int(number) + 1}{tail}" if closing else f"{head}{bracket}{rest}"
    return name


def _check_sizes(terms: tuple[Term, ...], factors: dict[str, Factor]) -> None:
    columns = 0
    for term in terms:
        shapes = [_smallest_shape(factors[code]) for code in term]
        n_columns = math.prod(columns for _, columns in shapes)
        _check_points(math.prod(points for points, _ in shapes) * n_columns, ":".join(term))
        columns += n_columns
    _check_columns(columns)


def _smallest_shape(factor: Factor) -> tuple[int, int]:
    match factor:
        case Real():
            return 2, 1
        case Basis(vertices=vertices):
            return vertices.shape[0], vertices.shape[1]
    return len(factor.levels), len(factor.levels) - 1


def _check_points(size: int, text: str) -> None:
    if size > MAX_POINTS:
        raise FormulaError(
            f"{shorten(text)!r} has too many combinations of levels; use fewer levels or fewer "
            "factors"
        )


def _check_columns(count: int) -> None:
    if count > MAX_COLUMNS:
        raise FormulaError(
            f"formula codes to {count:,} columns; at most {MAX_COLUMNS:,} are supported. Use "
            "fewer levels or fewer interactions"
        )


class _Prototype:
    """A patsy factor that shows patsy the codebook's levels in place of data."""

    origin = None

    def __init__(self, code: str, book: Codebook) -> None:
        value = compile_factor(code, book)
        self._code = code
        self.value = as_category(value, code) if isinstance(value, Truth) else value

    def name(self) -> str:
        return self._code

    def memorize_passes_needed(self, state: dict[str, object], env: object) -> int:
        return 0

    def eval(self, state: dict[str, object], data: object) -> object:
        from patsy.categorical import C as patsy_category  # noqa: N811

        match self.value:
            case Category(levels=levels, contrast=contrast):
                return patsy_category(pd.Series(levels, dtype=object), contrast, list(levels))
            case Basis(vertices=vertices):
                return np.zeros((2, vertices.shape[1]))
        return np.zeros(2)


# Public rows as columns of a design, as written, and clipped like the rows of a fit.


@dataclass(frozen=True, eq=False)
class RowCoder:
    """Codes public rows as columns of a design; stores no rows."""

    design: Design
    # Of a table: its columns as they are written, and whether misread cells are an error.
    parts: Callable[[object, bool], Iterator[Columns]]
    table: Callable[[object], pd.DataFrame]  # all cells of it
    known: RowCoder | None = None  # of an offset, one column

    def __call__(self, data: object) -> Floats:
        """Return coded rows, shape (columns, rows), nan if incomplete, clipped to public ranges."""
        blocks = [np.empty((len(self.design.names), 0))]
        parts = self.parts(data, False)
        blocks += [self.coded(on_steps(self.design.codebook, columns)) for columns in parts]
        return np.concatenate(blocks, axis=1)

    def read(self, data: object, *, require_read: bool = False) -> Columns:
        """Return columns as they are written: numbers, days and level codes, nan if missing."""
        parts = list(self.parts(data, require_read))
        return {
            name: np.concatenate([np.empty(0), *(part[name] for part in parts)])
            for name in self.design.variables
        }

    def offset(self, columns: Columns) -> Floats:
        """Return the offset of rows, shape (rows,): 0 if the formula has no offset."""
        if self.known is None:
            return np.zeros(len(next(iter(columns.values()))))
        return np.asarray(self.known.coded(columns)[0])

    def coded(self, columns: Columns) -> Floats:
        """Code columns, shape (columns, rows), nan if incomplete, clipped to their ranges."""
        coded = np.empty((len(self.design.names), len(next(iter(columns.values())))))
        self.design.evaluate(columns, coded)
        coded[:, np.isnan(coded).any(axis=0)] = np.nan
        return coded


def on_steps(codebook: Codebook, columns: Columns) -> Columns:
    """Round numbers to the steps that they are declared in."""
    rounded = dict(columns)
    for name, values in columns.items():
        number = codebook[name]
        if isinstance(number, Numeric) and number.step:
            # Clip first: the quotient of a number far outside would overflow with a warning.
            above = np.clip(values, number.lower, number.upper) - number.lower
            rounded[name] = number.lower + number.step * np.rint(above / number.step)
    return rounded


# Which products of two coded columns are always 0, and which are always the same.
#
# A column is a *monomial of a cell* where it is an indicator of levels of its categories, times
# numbers: the dummies of treatment coding are, and their products with numbers and with each other.
# The product of two such columns is 0 where they name two levels of one category, and otherwise the
# monomial of the merged cell: two products of one cell and one monomial are the same function of a
# row. A column of another coding equals only itself.

Integers = NDArray[np.int_]
# No level of a category; of products, the function that is 0.
NONE = -1


@dataclass(frozen=True)
class Cells:
    """Coded columns as multiples of monomials of cells, the constant first.

    `levels`, shape (columns + 1, categories), is the level of each category that a column
    indicates; `numbers`, shape (columns + 1, numbers of a column), which numbers it multiplies, in
    order, 0 for none; `sizes` how many levels each category has; `factor`, shape (columns + 1,),
    the value of the column where monomial and indicator are 1.
    """

    levels: Integers
    numbers: Integers
    sizes: tuple[int, ...]
    factor: Floats

    def products(self, left: Integers, right: Integers) -> Integers:
        """Return which function of a row each product of two columns is, or :data:`NONE`.

        `left` and `right`, shape (products,), are columns, counted with the constant.
        """
        zero = np.zeros(len(left), dtype=bool)
        groups = np.zeros(len(left), dtype=np.int_)
        factors = np.sort(np.hstack([self.numbers[left], self.numbers[right]]), axis=1)
        for factor in factors.T:
            groups = _joint_codes(groups, factor)
        for level in self.levels.T:
            left_level, right_level = level[left], level[right]
            zero |= (left_level != right_level) & (left_level != NONE) & (right_level != NONE)
            groups = _joint_codes(groups, np.maximum(left_level, right_level) + 1)
        return np.where(zero, NONE, groups)


def _joint_codes(groups: Integers, values: Integers) -> Integers:
    """Return codes that are equal where both arrays are."""
    merged = groups * (int(values.max(initial=0)) + 1) + values
    return np.asarray(np.unique(merged, return_inverse=True)[1])


def cells(blocks: Sequence[Block]) -> Cells:
    """Read the columns of blocks as monomials of cells."""
    categories: dict[str, int] = {}
    numbers: dict[tuple[str, int], int] = {}
    levels: list[dict[int, int]] = [{}]
    atoms: list[list[int]] = [[]]
    scale = [1.0]
    for block in blocks:
        pairs = zip(block.factors, block.contrasts, strict=True)
        shape = [_extremes(*pair).shape[1] for pair in pairs]
        # The first factor varies fastest.
        positions = np.unravel_index(np.arange(len(block.names)), shape, order="F")
        for name, *columns in zip(
            block.names, *(position.tolist() for position in positions), strict=True
        ):
            cell, factor_numbers, value = {}, [], 1.0
            for factor, contrast, column in zip(
                block.factors, block.contrasts, columns, strict=True
            ):
                indicated = _indicated_level(contrast, column)
                if indicated is not None:
                    category = categories.setdefault(factor.code, len(categories))
                    cell[category] = indicated[0]
                    value *= indicated[1]
                else:
                    code = factor.code if contrast is None else f"{factor.code} in {name}"
                    factor_numbers.append(numbers.setdefault((code, column), len(numbers) + 1))
            levels.append(cell)
            atoms.append(factor_numbers)
            scale.append(value)
    table = np.full((len(levels), len(categories)), NONE)
    for row, cell in enumerate(levels):
        for category, level in cell.items():
            table[row, category] = level
    width = max(map(len, atoms))
    padded = np.array(
        [[0] * (width - len(factor_numbers)) + sorted(factor_numbers) for factor_numbers in atoms],
        dtype=np.int_,
    )
    sizes = {
        factor.code: len(factor.levels)
        for block in blocks
        for factor in block.factors
        if isinstance(factor, Category)
    }
    n_levels = tuple(sizes[code] for code in categories)
    return Cells(table, padded.reshape(len(atoms), width), n_levels, np.array(scale))


def _indicated_level(contrast: Floats | None, column: int) -> tuple[int, float] | None:
    """Return the one level that a column indicates and its value there, None for other columns."""
    if contrast is None:
        return None
    levels = np.flatnonzero(contrast[:, column])
    return (int(levels[0]), float(contrast[levels[0], column])) if len(levels) == 1 else None
