"""What a release of a synthetic table determines: released tables, the graph and its model.

The table of the columns of a formula: its cells, points in them, and what it assumes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np
from scipy.linalg import block_diag

from dpmodels.codebook import Codebook
from dpmodels.digest import release_digest
from dpmodels.errors import ArgumentError, FrameError, NotAvailable, SyntheticWarning, deferred
from dpmodels.formula.cut_columns import CutColumn
from dpmodels.formula.expression import as_category, compile_factor
from dpmodels.formula.functions import beside, by_whole_numbers
from dpmodels.formula.parse import quote, variables_in
from dpmodels.formula.tally import binned, with_missing
from dpmodels.formula.values import Binned, Columns, Real
from dpmodels.inference.cell_values import Nodes, ValueMoves, ValueNoise, no_noise
from dpmodels.inference.released_cells import MOST_CELLS, ReleasedCells
from dpmodels.noise import Entropy
from dpmodels.noise.entropy import derived
from dpmodels.postprocess.graphical.fit import fit_model
from dpmodels.postprocess.graphical.histograms import FineCells
from dpmodels.postprocess.graphical.measurements import Residuals, combined, rounds_of
from dpmodels.postprocess.graphical.model import GraphicalModel
from dpmodels.postprocess.graphical.selection import choose_structure
from dpmodels.postprocess.graphical.shrinkage import shrunk
from dpmodels.postprocess.graphical.structure import JunctionTree, structure_of
from dpmodels.postprocess.residuals import Term, cells
from dpmodels.postprocess.small_samples import DETECTION_SDS
from dpmodels.released import GraphRelease, MarginsRelease
from dpmodels.results.call import DescribedCall
from dpmodels.results.margin import ReleasedMargins
from dpmodels.results.public_rows import bounds
from dpmodels.typing import Floats, Integers

# Points within the cells of a table, two of a number: a choice.
MOST_POINTS = 400_000

# From values of columns by name at points, and the points, to scores, shape (points, k).
NodeScores = Callable[[Mapping[str, Floats], Nodes], Floats]

INDEPENDENCE = "conditional independence"
INTERACTION = "no interaction beyond the released tables"
HIDDEN_ROWS = "that rows hidden by noise lie near the others"


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
        return structure_of(self.release.margins[-1], self.sizes, most_cells=None)

    @cached_property
    def model(self) -> GraphicalModel:
        """The fitted graphical model."""
        return fit_model(self.released, self.tree)

    def has_missing(self, place: int) -> bool:
        """Whether missing values of a column are detected above the noise."""
        return self.released.has_missing(place)

    def has_uncertain_tail(self, place: int) -> bool:
        """Whether hidden rows of a column may be farther away than estimates allow for.

        By its own counts, or as the uncertain tail of another column has more of its tail's rows
        than independent columns would, so that hidden rows of both are the same.
        """
        column = self.columns[place]
        return bool(column.uncertain_cells) or any(
            self._meet(place, tail, other, cell)
            for tail in column.tail_cells
            for other, column_of in enumerate(self.columns)
            for cell in column_of.uncertain_cells
        )

    def _meet(self, place: int, cell: int, other: int, cell_of_other: int) -> bool:
        """Whether cells of two columns have more rows in common than independent ones, detected."""
        pair = (min(place, other), max(place, other))
        if pair not in self.released.tables:
            return False
        table = self.released.table(pair)
        table = table if place < other else table.T
        expected = table[cell].sum() * table[:, cell_of_other].sum() / self.released.n_rows
        sd = math.sqrt(self.released.cell_variance(pair))
        return float(table[cell, cell_of_other] - expected) > DETECTION_SDS * sd

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


@dataclass(frozen=True, eq=False)
class LevelGrid:
    """All cells of the table of some columns, and what formulas read in each."""

    fit: SyntheticSource
    term: Term

    @cached_property
    def table(self) -> ReleasedCells:
        """The model and the released margins of the table."""
        fit, size = self.fit, cells(self.term, self.fit.sizes)
        if size > MOST_CELLS:
            raise NotAvailable(
                f"the table of {fit.named(self.term)!r} has {size:,} cells; "
                f"estimates are made of at most {MOST_CELLS:,}: name fewer columns"
            )
        effect = fit.release.adjacency.design_effect
        return ReleasedCells(self.term, fit.model.table(self.term), fit.released, effect)

    @cached_property
    def codes(self) -> Integers:
        """The level of each column in each cell, shape (columns, cells)."""
        shape = tuple(self.fit.sizes[i] for i in self.term)
        return np.indices(shape).reshape(len(shape), -1)

    @cached_property
    def points(self) -> tuple[Mapping[str, Floats], Nodes]:
        """Values by name at the points of the table, shape (points,), and these points."""
        values, nodes = self._axes(MOST_POINTS)
        return self._by_name(values), nodes

    def _axes(self, most: float) -> tuple[list[Floats], Nodes]:
        """Return the points of each column, nan the last, and of the table; cells if above."""
        columns = [self.fit.columns[i] for i in self.term]
        nodes = [column.cells.nodes for column in columns]
        if math.prod(len(values) + 1 for values, _ in nodes) > most:
            nodes = [(column.values[:-1], np.eye(len(column.levels))) for column in columns]
        values = [np.append(points, np.nan) for points, _ in nodes]
        operators = tuple(block_diag(operator, np.eye(1)) for _, operator in nodes)
        shapes = [operator.shape for operator in operators]
        levels = (np.append(np.arange(n - 1) % (size - 1), size - 1) for n, size in shapes)
        return values, Nodes(operators, tuple(levels))

    def _by_name(self, values: Sequence[Floats]) -> Mapping[str, Floats]:
        axes = np.meshgrid(*values, indexing="ij")
        names = [self.fit.columns[i].name for i in self.term]
        return {name: axis.ravel() for name, axis in zip(names, axes, strict=True)}

    def moves(self, scores: NodeScores, k: int) -> ValueMoves:
        """Return how sums over rows of k scores move with the values of cells (Theorem 102)."""
        values, nodes = self._axes(MOST_POINTS)
        noise, none = no_noise(k), np.zeros((1, k))
        by_rows = np.zeros((self.codes.shape[1], k))
        by_points = np.zeros((*map(len, values), k))
        for axis, i in enumerate(self.term):
            if self.fit.columns[i].histogram is None:
                continue
            cells = self.fit.columns[i].cells
            is_read = (cells.weights != 0) | (cells.noise != 0) | (cells.at_end > 0)
            points, cell = values[axis][:-1], nodes.levels[axis][:-1]
            sums = np.zeros((3, len(is_read), k))
            weights, read = self._weights(axis), (cells.points[is_read], cells.cell[is_read])
            sums[:, is_read] = self._along(axis, *read, scores, weights)
            sums, bends = sums[:2], sums[2]
            noise = noise + ValueNoise.of(cells.by_sums(*sums), cells.largest)
            noise = noise + ValueNoise.of(cells.by_bends(bends))
            at_ends = np.append(cells.at_ends.by_sums(*sums), none, axis=0)
            by_rows += at_ends[self.codes[axis]]
            of_points = self._along(axis, points, cell, scores, weights[:2])
            moved = np.append(cells.at_points(sums, of_points, points, cell), none, axis=0)
            axes = tuple(j for j in range(len(values)) if j != axis)
            by_points += np.expand_dims(moved, axes)
        return noise, by_rows, by_points.reshape(-1, k)

    def _weights(self, axis: int) -> tuple[Floats, Floats, Floats]:
        """Return weights of cells: of a column's cell, of what changes with its number, of bends.

        By cell, of what other columns have there as the number grows by 1.
        """
        column = self.fit.columns[self.term[axis]].cells
        axes = tuple(j for j in range(len(self.term)) if j != axis)
        rows = self.table.model.sum(axis=axes)[:-1]
        return np.eye(len(rows)), column.slopes, column.bends * (column.rows / rows)

    def _along(
        self,
        axis: int,
        points: Floats,
        cell: Integers,
        scores: NodeScores,
        weights: Sequence[Floats],
    ) -> Floats:
        """Return sums of scores by point of a column, over weighted cells of rows.

        Shape (weights, points, k).
        """
        counts, size = self.table.model.ravel(), self.table.model.shape[axis]
        values, nodes = self._axes(MOST_POINTS * 2 * size / len(points))
        axes = tuple(j for j in range(len(values)) if j != axis)
        parts = []
        for part in np.array_split(
            np.arange(len(points)), math.ceil(len(counts) / size * len(points) / MOST_POINTS)
        ):
            values[axis] = points[part]
            at = [nodes.along(axis, np.pad(of[cell[part]], ((0, 0), (0, 1)))) for of in weights]
            by_point = scores(self._by_name(values), at[0])
            sums = [np.nan_to_num(of.spread(counts)[:, None] * by_point) for of in at]
            parts.append([of.reshape(*map(len, values), -1).sum(axis=axes) for of in sums])
        return np.concatenate(parts, axis=1)

    @cached_property
    def assumes(self) -> str:
        """What the model has to be right about for a function of all columns."""
        if any(set(self.term) <= set(part) for part in self.fit.released.tables):
            return ""
        return INTERACTION if self.fit.model.contains(self.term) else INDEPENDENCE

    @property
    def assumes_tails(self) -> str:
        """What is assumed of the rows beyond the released ranges."""
        return HIDDEN_ROWS * any(map(self.fit.has_uncertain_tail, self.term))


def grid_of(fit: SyntheticSource, places: Sequence[int]) -> LevelGrid:
    """Return the table of some columns."""
    return LevelGrid(fit, tuple(sorted(set(places))))


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
    numbers = _counted_cells(columns, histograms)
    n_counts = sum(len(number.edges) for number in numbers)
    if histograms is None or sd is None or histograms.shape != (n_counts,):
        raise FrameError(f"array 'histograms': expected {n_counts:,} counts, and their noise")
    if len(ends) != len(numbers) or not all(map(_are_ends, numbers, ends)):
        raise FrameError("release.cells: expected edges of cells of each number, increasing")
    sections = np.split(histograms, np.cumsum([len(number.edges) for number in numbers])[:-1])
    result = list(columns)
    for number, counts, of_number in zip(numbers, sections, ends, strict=True):
        column = replace(columns[number.variable], fine=number)
        result[number.variable] = column.released(counts[:-1], sd, of_number)
    return tuple(result)


def _counted_cells(columns: Iterable[CutColumn], histograms: Floats | None) -> list[FineCells]:
    """Return the fine cells of each number, those of few rows if so many counts were released."""
    numbers = [column.fine for column in columns if column.fine]
    few = [number.of_few_rows for number in numbers]
    n_counts = sum(len(number.sparse) for number in numbers)
    return few if histograms is not None and histograms.shape == (n_counts,) else numbers


def _are_ends(number: FineCells, ends: tuple[int, ...]) -> bool:
    whole = list(ends) == sorted(set(ends)) and len(ends) > 1
    outer = whole and (ends[0], ends[-1]) == (0, len(number.edges) - 1)
    return outer and (not number.ends or ends == number.ends)
