"""What a release of a synthetic table determines: released tables, the graph and its model."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np

from dpmodels.codebook import Codebook
from dpmodels.digest import release_digest
from dpmodels.entry_point import deferred
from dpmodels.errors import ArgumentError, FrameError, SyntheticWarning
from dpmodels.formula.cut_columns import CutColumn
from dpmodels.formula.expression import as_category, compile_factor
from dpmodels.formula.functions import beside, by_whole_numbers
from dpmodels.formula.parse import quote, variables_in
from dpmodels.formula.tally import binned, with_missing
from dpmodels.formula.values import Binned, Columns, Real
from dpmodels.inference.ratios import DETECTION_SDS
from dpmodels.noise import Entropy
from dpmodels.noise.entropy import derived
from dpmodels.postprocess.graphical.fit import fit_model
from dpmodels.postprocess.graphical.measurements import Residuals, combined, rounds_of
from dpmodels.postprocess.graphical.model import GraphicalModel
from dpmodels.postprocess.graphical.shrinkage import shrunk
from dpmodels.postprocess.graphical.structure import (
    JunctionTree,
    choose_structure,
    structure_of,
)
from dpmodels.postprocess.residuals import Term
from dpmodels.released import GraphRelease, MarginsRelease
from dpmodels.results.call import DescribedCall
from dpmodels.results.margin import ReleasedMargins
from dpmodels.results.public_rows import bounds


@dataclass(frozen=True, eq=False)
class SyntheticSource:
    """Released margins with their columns; the model is computed when it is first needed.

    `joined` are the products of a structure that was declared after the release.
    """

    call: DescribedCall
    release: GraphRelease | MarginsRelease
    columns: tuple[CutColumn, ...]
    joined: tuple[Term, ...] = ()

    @property
    def margins(self) -> tuple[Term, ...]:
        """The margins that were released, of all rounds."""
        if isinstance(self.release, MarginsRelease):
            return ReleasedMargins(self.call, self.release).terms
        return tuple(term for terms in self.release.margins for term in terms)

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """The columns as a formula names them."""
        return tuple(column.category.code for column in self.columns)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Levels of each column, with one more for what is missing or unlisted."""
        return tuple(len(column.levels) + 1 for column in self.columns)

    @cached_property
    def released(self) -> Residuals:
        """The released components, both rounds combined."""
        if isinstance(self.release, MarginsRelease):
            return ReleasedMargins(self.call, self.release).residuals
        first, *later = rounds_of(self.release, self.sizes)
        return combined(first, later[0]) if later else first

    @property
    def is_chosen(self) -> bool:
        """Whether the graph is chosen from the release, and not declared."""
        has_rounds = isinstance(self.release, MarginsRelease) or len(self.release.margins) > 1
        return not self.joined and has_rounds

    @cached_property
    def tree(self) -> JunctionTree:
        """The cliques of the graph."""
        if self.joined:
            return structure_of(self.joined, self.sizes)
        if isinstance(self.release, MarginsRelease):
            return choose_structure(self.released)
        return structure_of(self.release.margins[-1], self.sizes)

    @cached_property
    def model(self) -> GraphicalModel:
        """The fitted graphical model."""
        return fit_model(self.released, self.tree)

    def has_missing(self, place: int) -> bool:
        """Whether missing values of a column are detected above the noise."""
        sd = math.sqrt(self.released.cell_variance((place,)))
        return float(self.released.table((place,))[-1]) > max(DETECTION_SDS * sd, 0.5)

    def complete(self, model: GraphicalModel) -> GraphicalModel:
        """Return a model given that columns without detected missing values have none."""
        tables = [table.copy() for table in model.tables]
        for clique, table in zip(model.tree.cliques, tables, strict=True):
            for axis, place in enumerate(clique):
                if not self.has_missing(place):
                    np.moveaxis(table, axis, 0)[-1] = 0.0
        return replace(model, tables=tuple(tables))

    def model_near(self, public: object) -> GraphicalModel:
        """Return the model of the released tables, shrunk towards those of public rows."""
        if SyntheticWarning.KEY in getattr(public, "attrs", {}):
            raise ArgumentError(
                "public= has rows of a synthetic table, which may have the noise of this release: "
                "expected public rows that do not depend on it"
            )
        book = self.call.codebook
        read = cast(Columns, deferred["public rows"]()(book, public))
        columns = {name: np.clip(values, *bounds(book, name)) for name, values in read.items()}
        codes = [with_missing(column.category).evaluate(columns) for column in self.columns]
        if not len(codes[0]):
            raise ArgumentError("public= has no rows: expected public rows, or leave it out")
        released = shrunk(self.released, [code.astype(np.intp) for code in codes])
        return fit_model(released, choose_structure(released) if self.is_chosen else self.tree)

    def named(self, term: Term) -> str:
        """Return a term as a formula writes it."""
        return ":".join(self.codes[i] for i in term)

    def random_words(self, purpose: str, number: int) -> Entropy:
        """Return random words that the release determines: drawing discloses nothing further."""
        return derived(f"{purpose} {release_digest(self.release)}".encode(), number)


def columns_of(call: DescribedCall) -> tuple[CutColumn, ...]:
    """Return the variables of released margins as columns of a table; numbers have their cells."""
    columns: list[CutColumn] = []
    for code in dict.fromkeys(factor for table in call.tables for factor in table.factors):
        column = _column(code, call.codebook)
        if column.name in [before.name for before in columns]:
            column = CutColumn(code, as_category(compile_factor(code, call.codebook), code))
        columns.append(column)
    return tuple(columns)


def _column(code: str, book: Codebook) -> CutColumn:
    """Return a factor of a margin; one of whole numbers, or cut at public breaks, as a number."""
    value, name = compile_factor(code, book), variables_in(code)[0]
    if isinstance(value, Real) and by_whole_numbers(value):
        category, edges = binned(value, round(value.upper - value.lower) + 1)
        return CutColumn(name, category, value, edges)
    category, number = as_category(value, code), compile_factor(quote(name), book)
    cells = category.evaluate
    if isinstance(number, Real) and isinstance(cells, Binned) and cells.number == number.evaluate:
        edges = beside(cells.breaks) if by_whole_numbers(number) else cells.breaks
        return CutColumn(name, replace(category, code=number.code), number, edges)
    return CutColumn(name if quote(name) == code else code, category)


def released_columns(
    columns: tuple[CutColumn, ...], release: GraphRelease
) -> tuple[CutColumn, ...]:
    """Return columns with released counts of fine cells, and the coarse cells that follow.

    FrameError if a release from a file has others.
    """
    histograms = getattr(release, "histograms", None)
    ends = getattr(release, "cells", None) or ()
    sd = getattr(release, "histogram_sd", None)
    n_sparse = sum(len(column.sparse) for column in columns)
    if histograms is not None and histograms.shape == (n_sparse,):
        columns = tuple(column.of_few_rows for column in columns)
    numbers = [column for column in columns if column.fine]
    n_counts = sum(len(column.fine) for column in numbers)
    if histograms is None or sd is None or histograms.shape != (n_counts,):
        raise FrameError(f"array 'histograms': expected {n_counts:,} counts, and their noise")
    if len(ends) != len(numbers) or not all(map(_are_ends, numbers, ends)):
        raise FrameError("release.cells: expected edges of cells of each number, increasing")
    sections = np.split(histograms, np.cumsum([len(column.fine) for column in numbers])[:-1])
    by_number = iter(zip(sections, ends, strict=True))
    result = []
    for column in columns:
        if column.fine:
            counts, of_number = next(by_number)
            column = column.released(counts[:-1], sd, of_number)
        result.append(column)
    return tuple(result)


def _are_ends(column: CutColumn, ends: tuple[int, ...]) -> bool:
    whole = list(ends) == sorted(set(ends)) and len(ends) > 1
    outer = whole and (ends[0], ends[-1]) == (0, len(column.fine) - 1)
    return outer and (not column.is_declared or ends == column.ends)
