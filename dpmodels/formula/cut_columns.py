"""Columns of a table as levels: categories as they are, numbers in public cells."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, cast

import numpy as np

from dpmodels.arguments import lists_values
from dpmodels.codebook import Codebook
from dpmodels.errors import ArgumentError, FormulaError, did_you_mean, quoted, shorten
from dpmodels.formula.coding import Factor, checked_codebook
from dpmodels.formula.expression import as_category, check_removed, compile_factor
from dpmodels.formula.parse import ParsedFormula, parsed_formula, quote, variables_in
from dpmodels.formula.tally import MAX_CELLS, Margins, binned
from dpmodels.formula.values import Category, Column, Real, Varying
from dpmodels.typing import Floats

# Levels of one column whose pairs are counted: a choice.
MOST_LEVELS = 500


@dataclass(frozen=True)
class CutColumn:
    """A column as levels; of a number in cells `edges` has their ends, else it is empty."""

    name: str  # Of the variable, or the text of an expression
    category: Category
    number: Real | None = None
    edges: tuple[float, ...] = ()

    @property
    def values(self) -> Floats:
        """What a formula reads at each level, nan at the last, that of missing values.

        A number is the middle of its cell, a category the position of its level.
        """
        edges = np.array(self.edges)
        levels = (edges[:-1] + edges[1:]) / 2 if self.edges else np.arange(len(self.levels))
        return np.append(levels.astype(np.float64), np.nan)

    @property
    def levels(self) -> tuple[Any, ...]:
        """The levels as printed."""
        return self.category.levels


def cut_columns(
    formula: str, codebook: Codebook | None, cuts: object
) -> tuple[Margins, tuple[CutColumn, ...]]:
    """Compile a formula of columns, each by itself, and the margins of all pairs of them.

    >>> import dpmodels as dp
    >>> book = dp.codebook(age=(0, 100), sex=["F", "M"])
    >>> layout, columns = cut_columns("~ .", book, {"age": 5})
    >>> layout.sizes, layout.terms, columns[0].values.tolist()[:2]
    ((6, 3), ((0, 1),), [10.0, 30.0])
    """
    book = checked_codebook(codebook)
    parsed = parsed_formula(formula, book)
    check_removed(parsed, book)
    codes = _codes(parsed)
    cells = _cells(cuts, codes)
    columns = tuple(_column(compile_factor(code, book), code, cells) for code in codes)
    used = {name for code in codes for name in variables_in(code)}
    layout = Margins(
        parsed.text,
        book.select(name for name in book if name in used),
        tuple(column.category for column in columns),
        tuple(combinations(range(len(columns)), 2)),
    )
    return layout, columns


def check_pairs(layout: Margins) -> None:
    """Refuse tables of more cells than are counted at once."""
    sizes = layout.sizes
    n_cells = sum(math.prod(sizes[i] for i in term) for term in layout.terms)
    if n_cells > MAX_CELLS:
        raise FormulaError(
            f"the {len(layout.terms):,} tables of these columns have {n_cells:,} cells; at most "
            f"{MAX_CELLS:,} are counted. Write smaller cuts=, fewer columns, or structure="
        )


def _codes(parsed: ParsedFormula) -> tuple[str, ...]:
    """Return the columns that a formula names."""
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
    return codes


def plain_cuts(cuts: Mapping[str, Any]) -> tuple[tuple[object, ...], ...]:
    """Return cells by column as a request keeps them, ``(("age", 0, 30, 60), ("k", 8))``."""
    return tuple(
        (name, *ends) if lists_values(ends) else (name, ends) for name, ends in cuts.items()
    )


def _cells(cuts: object, codes: tuple[str, ...]) -> Mapping[str, object]:
    """Return the cells of each column, a number or their ends; ``""`` is any other column."""
    if isinstance(cuts, int | np.integer) and not isinstance(cuts, bool):
        return {"": int(cuts)}
    pairs: Any = tuple(cuts.items()) if isinstance(cuts, Mapping) else cuts
    if not lists_values(pairs) or not all(isinstance(pair, tuple | list) for pair in pairs):
        raise ArgumentError(
            f"cuts={quoted(cuts)}: expected a number of cells, or cells by column; write cuts=10 "
            "or cuts={'age': [0, 30, 60, 100], 'income': 8}"
        )
    cells: dict[str, object] = {"": 10}
    for name, *listed in (cast("list[Any]", pair) for pair in pairs):
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
    category, edges = (
        (as_category(value, code), ())
        if number is None
        else binned(number, cells.get(code, cells[""]))
    )
    size = len(category.levels)
    if size < 2:
        raise FormulaError(f"{shorten(code)!r} has one level and no information; leave it out")
    if size > MOST_LEVELS:
        raise FormulaError(
            f"{shorten(code)!r} has {size:,} levels; a synthetic table takes at most "
            f"{MOST_LEVELS}. Use dp_levels for the frequent ones, merge levels, or use fewer cells"
        )
    variables = variables_in(code)
    name = variables[0] if quote(variables[0]) == code else code
    return CutColumn(name, category, number, tuple(map(float, edges)))


def structure_terms(structure: str, layout: Margins) -> tuple[tuple[int, ...], ...]:
    """Return the margins that a structure names, with the columns that it does not mention."""
    codes = [factor.code for factor in layout.factors]
    parsed = parsed_formula(structure, codes)
    unknown = [code for term in parsed.predictors for code in term if code not in codes]
    if unknown or parsed.response or not parsed.predictors:
        what = f"names {unknown[0]!r}" if unknown else "has no terms on its right-hand side"
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
    variables = variables_in(factor.code)
    unknown = next((name for name in variables if name not in names), None)
    if unknown is not None:
        raise FormulaError(
            f"{shorten(unknown)!r} is not a column of the synthetic table, which has "
            f"{shorten(', '.join(names))}"
        )
    return factor, tuple(map(names.index, variables))
