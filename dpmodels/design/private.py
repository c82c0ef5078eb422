"""The private design: a formula, its public scaling, and the rows behind them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmodels.arguments import boolean, option, real
from dpmodels.codebook import Codebook
from dpmodels.design.bound_rows import BoundRows
from dpmodels.design.cells import PrivateCells
from dpmodels.design.columns import Span, declared_facts, in_blocks
from dpmodels.design.parts import Part
from dpmodels.design.rows import Terms, rows_of
from dpmodels.design.sql import RowSums, summed, sums_of_rows
from dpmodels.errors import ArgumentError, quoted
from dpmodels.formula import Block, Design, design
from dpmodels.formula.tally import Tally
from dpmodels.frames.progress import one_of_many
from dpmodels.noise.lattice import (
    MAX_BITS,
    Lattice,
    empty_lines,
    lengths,
    multiply_columns,
    one_blas_thread,
    to_lattice,
)
from dpmodels.typing import Floats

# Rows are coded for several blocks at a time, so that threads wait less and columns are read in
# long runs; or fewer of many columns, so that a processor's cache holds their cells.
BLOCKS_A_TURN = 4
CELLS_A_TURN, FEWEST_A_TURN = 2**20, 512
# Parts in memory that threads take on before their answers are added up.
PARTS_AT_ONCE = 32

Answer = TypeVar("Answer")


@dataclass(frozen=True, eq=False, repr=False)
class PrivateDesign(BoundRows):
    """Rows bound to a design; its repr shows public facts only."""

    public: Design
    scaling: Scaling

    @property
    def facts(self) -> dict[str, str]:
        """Public facts about the rows on the lattice, as comparable texts."""
        declared = declared_facts(self.public.formula, self.codebook)
        scaled = self.scaling.facts(self.public.names)
        return {**declared, **scaled, **self.rows.terms.facts}

    @property
    def n_columns(self) -> int:
        """How many columns are read or coded, whichever are more."""
        return max(len(self.codebook), len(self.public.names))

    def counted(self, tally: Tally) -> PrivateCells:
        """Return the same rows, to be counted by the cells of a table."""
        return PrivateCells(self.rows, self.public.formula, (tally,))

    def recoded(self, public: Design, scaling: Scaling) -> PrivateDesign:
        """Return the same rows, coded by other columns of the same variables."""
        return PrivateDesign(self.rows, public, scaling)

    def require_passes(self) -> None:
        """Refuse rows that can be read only once, before one is read: a FrameError."""
        self.rows.require_passes()
        self.rows.keep(self.public, self.scaling)

    def blocks(
        self,
        function: Callable[..., Answer],
        lattice: Lattice,
        *,
        with_norms: bool = False,
    ) -> Iterator[tuple[Answer, int]]:
        """Apply a function to every block of rows on the lattice.

        The function takes integer rows, shape (columns + 1, rows) with at most
        ``lattice.block_rows`` rows. Line 0 is the lattice's radius where a row is complete, and 0,
        like all else in it, where it is not. A row's integers follow from it and public facts
        alone. Its results, multiplied by how often the rows count, are yielded in any order with
        that number of rows: up to 64 times the sum of a block, so beyond 2**53. The
        function takes the squared integer norms too, shape (rows,), `with_norms`.
        """

        def counted(part: Part) -> list[tuple[Answer, int]]:
            cache = part.integers if self._keeps_integers else None
            integers = None if cache is None else cache.on(lattice)
            squares = [np.empty(part.rows)] if with_norms else []
            if integers is None:
                augmented = self._augmented(part, lattice, *squares)
                if cache is not None:
                    cache.keep(lattice, augmented)

            def of_span(span: Span) -> Answer:
                if integers is None:
                    return function(*(array[..., span] for array in (augmented, *squares)))
                rows = integers[:, span]
                block = empty_lines(*rows.shape)
                block[:] = rows
                norms = [np.einsum("ij,ij->j", block[1:], block[1:]) for _ in squares]
                return function(block, *norms)

            return list(in_blocks(part, lattice.block_rows, of_span))

        for results in self._mapped(counted, lattice):
            yield from results

    def summed(self, lattice: Lattice) -> tuple[NDArray[np.object_], int, PrivateDesign] | None:
        """Let the database add up the products of rows on the lattice, where it does so exactly.

        Returns integers, shape (columns + 1, columns + 1), the number of rows they are of, and the
        rows that are still to be added; None, from public facts, where all are.
        """
        engine = self.rows.database
        if engine is None or (queries := self._queries(lattice)) is None:
            return None
        moments, n_rows, n_outside = summed(engine, queries, lattice)
        rest = self.rows.queried(queries.outside) if n_outside else rows_of(self.rows.terms)
        return moments, n_rows, self.of(rest)

    @property
    def is_summed(self) -> bool:
        """Whether a database adds up the products of rows, on the finest lattice."""
        return self._queries(Lattice(MAX_BITS, len(self.public.names))) is not None

    def _queries(self, lattice: Lattice) -> RowSums | None:
        engine, scaling = self.rows.database, self.scaling
        if engine is None or scaling.unit or type(self) is not PrivateDesign:
            return None
        factor = 1.0 / (scaling.scale * scaling.row_norm)
        return sums_of_rows(engine, self.public, factor, scaling.centre * factor, lattice)

    def by_person(
        self, function: Callable[[Floats], Answer], lattice: Lattice
    ) -> Iterator[tuple[Answer, Part]]:
        """Apply a function to parts of the rows, each row once, and yield the parts too.

        The function takes rows as for :meth:`blocks`; the part has their persons, and the places
        that each row takes.
        """
        return self._mapped(lambda part: (function(self._augmented(part, lattice)), part), lattice)

    def _mapped(self, function: Callable[[Part], Answer], lattice: Lattice) -> Iterator[Answer]:
        kept = None if self.rows.kept is None else self.rows.keep(self.public)
        with _threads() as mapped:
            if kept is not None and kept.parts is not None:
                # A thread takes longer to start than one part.
                turns = mapped if len(kept.parts) > 1 else map
                for at in range(0, len(kept.parts), PARTS_AT_ONCE):
                    yield from turns(function, kept.parts[at : at + PARTS_AT_ONCE])
                return
            counter = self.rows.counting
            pending = [reading for reading in (kept, counter) if reading is not None]
            for reading in pending:
                reading.start()
            for part in self.rows.parts():
                cuts = self._cuts(part._replace(counter=counter), lattice)
                turns = mapped if len(cuts) > 1 else map
                if kept is None or not kept.all_fit:
                    yield from turns(function, cuts)
                    continue
                for coded, answer in turns(partial(self._first, function), cuts):
                    kept.add(coded)
                    yield answer
            for reading in pending:
                reading.complete()

    def _cuts(self, part: Part, lattice: Lattice) -> list[Part]:
        size = max(CELLS_A_TURN // (len(self.public.names) + 1), FEWEST_A_TURN)
        turn = min(BLOCKS_A_TURN * lattice.block_rows, size)
        return [part.at(slice(at, at + turn)) for at in range(0, part.rows, turn)]

    @property
    def _beside(self) -> tuple[str, ...]:
        """The columns that are used beside the coded ones."""
        return ()

    def _first(self, function: Callable[[Part], Answer], part: Part) -> tuple[Part, Answer]:
        """Evaluate the formula for several passes, and apply the function of the first."""
        columns = {name: part.columns[name] for name in self._beside}
        part = part._replace(coded=list(map(np.ascontiguousarray, self._coded(part))))
        assert self.rows.kept is not None
        integers = self.rows.kept.integers(len(self.public.names) + 1)
        kept = Part(columns, None, part.places, part.persons, part.coded, integers=integers)
        return kept, function(part._replace(integers=integers))

    @property
    def _keeps_integers(self) -> bool:
        """Whether integers are those of the kept rows by their scaling, and nothing else."""
        kept = self.rows.kept
        return type(self) is PrivateDesign and kept is not None and kept.scaling is self.scaling

    def _coded(self, part: Part) -> Sequence[Floats]:
        """Return the coded columns, nan in rows that do not count; numbers as they are read."""
        if part.coded is not None:
            return part.coded
        coded = [part.columns[name] for name in self.public.plain]
        coded = coded or self.public.coded(part.columns, clip_numbers=False)
        if part.counted is None:
            return coded
        return [np.where(part.counted, column, np.nan) for column in coded]

    def _augmented(self, part: Part, lattice: Lattice, squares: Floats | None = None) -> Floats:
        augmented = empty_lines(len(self.public.names) + 1, part.rows)
        # Of each scaled column the smallest and the largest number; nan where that is not known.
        extremes = np.full((2, len(self.public.names)), np.nan)
        self._place(augmented, part, lattice, squares, extremes)
        if part.counter is not None:
            names = self.public.plain
            ends = part.counter.ends(names) * (self._factor * lattice.steps) if names else extremes
            beyond = (extremes[0] <= ends[0]).tolist(), (extremes[1] >= ends[1]).tolist()
            by_name = zip(names, zip(*beyond, strict=True), strict=False)
            part.counter.add(part.of_counted, dict(compress(by_name, ~np.isnan(extremes[0]))))
        return augmented

    @property
    def _factor(self) -> Floats:
        return np.asarray(1.0 / (self.scaling.scale * self.scaling.row_norm))

    def _place(
        self,
        augmented: Floats,
        part: Part,
        lattice: Lattice,
        squares: Floats | None,
        extremes: Floats,
    ) -> None:
        """Bring coded rows to the lattice, and say in line 0 which are complete."""
        coded, rows, factor = self._coded(part), augmented[1:], self._factor
        scaled: Floats | Sequence[Floats] = coded
        ends: Sequence[Floats] = (self.public.lower, self.public.upper)
        if self.scaling.unit:
            multiply_columns(coded, factor, rows, ends)
            # The largest entry first: its square may overflow or vanish.
            largest = np.abs(rows).max(axis=0, initial=0.0)
            rows /= np.where(largest > 0, largest, 1.0)
            norms = lengths(rows)
            rows /= np.where(norms > 0, norms, 1.0)
            scaled, factor, ends = rows, np.ones_like(factor), ()
        shift = self.scaling.centre * factor
        complete = to_lattice(scaled, factor, shift, lattice, rows, squares, ends, extremes)
        np.multiply(complete, lattice.radius, out=augmented[0])


def private_design(formula: str, data: object, codebook: Codebook, **options: Any) -> PrivateDesign:
    """Bind a formula to data without reading a row; options are those of :func:`scaling`.

    FormulaError, CodebookError, ArgumentError, FrameError from the formula, the codebook, the
    arguments and the column names.
    """
    return unbound_design(design(formula, codebook), **options).bind(data)


def unbound_design(
    public: Design,
    *,
    scale: str | None = "range",
    center: bool = True,
    row_norm: float | str | None = None,
) -> PrivateDesign:
    """Return the design without rows, to which data can be bound."""
    scaled = scaling(public, scale=scale, center=center, row_norm=row_norm)
    return PrivateDesign(rows_of(Terms(public.codebook)), public, scaled)


@contextmanager
def _threads() -> Iterator[Callable[..., Iterator[Any]]]:
    """Return a ``map`` on all cores, or on one if other parts of the table use the others."""
    if one_of_many():
        yield map
        return
    # The statistics are exact, so BLAS threads may be traded for ours.
    has_affinity = hasattr(os, "sched_getaffinity")
    n_cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    with one_blas_thread(), ThreadPoolExecutor(n_cores) as pool:
        yield pool.map if n_cores > 1 else map


# Public centre, public scale and radius of the ball that contains every row.

SCALES = ("range", "sd", None)
# Fourth powers of the radius, and rows divided by a column's scale, stay finite.
SHORTEST, LONGEST = 1e-60, 1e60
# Columns of a smaller half-range are not divided by it: their squares would overflow.
NARROWEST = 1e-150


@dataclass(frozen=True)
class Scaling:
    """How coded columns are brought into the ball: ``(x - centre) / scale``."""

    # Shape (columns,): a public point; zeros for the second moment about the origin.
    centre: Floats
    scale: Floats  # Shape (columns,): positive public divisors, in each column's unit
    row_norm: float  # Radius of the ball that every scaled row is clipped to
    worst_case: float  # The radius that follows from the codebook alone
    unit: bool = False  # Whether every scaled row is divided by its own norm; the radius is 1

    def distance_of(self, public: Scaling) -> float:
        """Return the distance from the centre of the farthest point of the codebook's ball."""
        away = np.linalg.norm((self.centre - public.centre) / public.scale)
        return public.row_norm + float(away)

    def facts(self, names: tuple[str, ...]) -> dict[str, str]:
        """State how coded columns are brought into the ball, as texts that can be compared."""
        columns_scaling = zip(names, self.centre.tolist(), self.scale.tolist(), strict=True)
        columns = {
            f"scaling of {name!r}": f"(x - {at!r}) / {by!r}" for name, at, by in columns_scaling
        }
        return {**columns, "row_norm": "unit" if self.unit else repr(float(self.row_norm))}


def scaling(
    design: Design, *, scale: str | None, center: bool, row_norm: float | str | None
) -> Scaling:
    """Choose centre, scale and radius from public facts.

    `scale` is "range" (each column by its public half-range; "sd" does the same before release) or
    None; with `center` each block of columns is moved to the public point from which its rows are
    nearest; `row_norm` is a smaller radius than the codebook's worst case, or "unit" to divide
    each scaled row by its own norm, about the origin of the columns. ArgumentError if ``scale``,
    ``center`` or ``row_norm`` is invalid.
    """
    option("scale", scale, SCALES)
    boolean("center", center)
    unit = isinstance(row_norm, str) and row_norm == "unit"
    half = (design.upper - design.lower) / 2
    divisor = np.ones_like(half) if scale is None else np.where(half > NARROWEST, half, 1.0)
    centre, squares, start = np.zeros_like(half), 0.0, 0
    for block in design.blocks:
        columns = slice(start, start + len(block.names))
        centre[columns], radius = _nearest(block, divisor[columns], center and not unit)
        squares += radius * radius
        start = columns.stop
    if unit:
        return Scaling(centre, divisor, 1.0, 1.0, unit=True)
    # The outermost rounding of a square root and a sum of squares.
    worst = math.sqrt(squares) * (1 + 1e-12) or 1.0
    radius = worst if row_norm is None else min(real(row_norm), worst)
    if not SHORTEST <= radius <= LONGEST:
        raise ArgumentError(
            f"row_norm={quoted(row_norm)}: expected a number from {SHORTEST:g} to {LONGEST:g}, "
            'the longest scaled row that is not clipped; or "unit", to divide each row by its '
            f"norm; or None, if the codebook's worst case, {worst:.4g}, is in that range"
        )
    return Scaling(centre, divisor, radius, worst)


def _nearest(block: Block, divisor: Floats, free: bool) -> tuple[Floats, float]:
    """Return a public centre for a block and the scaled distance of its farthest row."""
    points = block.points / divisor
    candidates = [np.zeros(len(divisor))]
    if free:
        outer = points[points.any(axis=1)] if points.any() else points
        candidates += [(points.max(axis=0) + points.min(axis=0)) / 2]
        candidates += [points.mean(axis=0), outer.mean(axis=0)]
    with np.errstate(over="ignore"):
        radii = [
            float(np.sqrt(((points - candidate) ** 2).sum(axis=1)).max())
            for candidate in candidates
        ]
    best = int(np.argmin(radii))
    return candidates[best] * divisor, radii[best]
