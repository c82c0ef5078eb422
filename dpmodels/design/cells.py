"""Rows on their way into tables: which cell each falls in, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import NoReturn, TypeVar

from dpmodels.codebook import Codebook
from dpmodels.design.columns import converted, declared_facts, read_rows
from dpmodels.errors import FrameError, PrivacyError
from dpmodels.formula.tally import Placed, Tally
from dpmodels.frames import RowSource, no_rows, open_rows, progress, require_declared
from dpmodels.frames.dask_rows import DaskRows

# Sums over so many rows of integers up to 2**40 are exact in float64.
BLOCK_ROWS = 8192

Answer = TypeVar("Answer")


class PrivateCells:
    """Rows to be counted; shows public facts only."""

    __slots__ = ("_source", "codebook", "formula", "tallies")

    def __init__(
        self, formula: str, codebook: Codebook, tallies: tuple[Tally, ...], source: RowSource
    ) -> None:
        self.formula = formula
        self.codebook = codebook
        self.tallies = tallies
        self._source = source

    def __repr__(self) -> str:
        return f"<PrivateCells {self.formula!r}, rows not shown>"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("rows to be counted cannot be pickled or copied")

    @property
    def scattered(self) -> DaskRows | None:
        """The rows where they lie with the workers of a cluster, None where they can be read."""
        return self._source if isinstance(self._source, DaskRows) else None

    @property
    def recipe(self) -> Callable[[RowSource], PrivateCells]:
        """How to bind other rows alike; made of public facts, so it may be sent anywhere."""
        return partial(PrivateCells, self.formula, self.codebook, self.tallies)

    def bind(self, data: object) -> PrivateCells:
        """Return a user's rows bound alike, of which none is read.

        Raises
        ------
        FrameError
            From the data and their column names.
        """
        source = open_rows(data)
        require_declared(source, self.codebook)
        return self.recipe(source)

    @property
    def nrows(self) -> int | None:
        """Number of rows, None where only reading them would tell; it may be private."""
        return self._source.nrows

    @property
    def rereadable(self) -> bool:
        """Whether the rows can be read here several times."""
        return self.scattered is None and self._source.rereadable

    def require_passes(self) -> None:
        """Refuse rows that can be read only once, before one is read: a FrameError."""
        if not self.rereadable:
            raise FrameError(
                "the mechanism reads the rows several times, and a Dask DataFrame or an iterable "
                "of tables is read once: write mechanism='geometric' or 'gaussian', or write the "
                "rows to one Parquet file and give its path"
            )

    def held(self, lower: float, upper: float) -> PrivateCells:
        """Return the same rows, every measured number held in a released range instead."""
        tallies = tuple(
            replace(own, measured=own.measured and replace(own.measured, lower=lower, upper=upper))
            for own in self.tallies
        )
        return PrivateCells(self.formula, self.codebook, tallies, self._source)

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns that are read."""
        return tuple(self.codebook)

    @property
    def facts(self) -> dict[str, str]:
        """What is public of the rows and their tables, as texts that can be compared."""
        return {**declared_facts(self.formula, self.codebook), **_table_facts(self.tallies)}

    def blocks(
        self, function: Callable[[tuple[Placed, ...]], Answer], *, count_public: bool
    ) -> Iterator[tuple[Answer, int]]:
        """Apply a function to where the rows fall, block by block.

        The function takes one :class:`Placed` a tally, of at most 8192 rows; what it returned and
        how many rows it saw come back. `count_public` says whether progress may show how many
        there are.
        """
        wanted = self.variables
        chunks = progress(
            self._source.chunks(wanted, read_rows(len(wanted))),
            total=self._source.nrows if count_public else None,
            label="reading rows",
        )
        for chunk in chunks:
            columns = converted(self.codebook, chunk)
            for at in range(0, len(next(iter(columns.values()))), BLOCK_ROWS):
                part = {name: own[at : at + BLOCK_ROWS] for name, own in columns.items()}
                rows = len(next(iter(part.values())))
                yield function(tuple(tally.place(part) for tally in self.tallies)), rows


def private_cells(
    formula: str, data: object, codebook: Codebook, tallies: tuple[Tally, ...]
) -> PrivateCells:
    """Bind tables to data without reading a row.

    FrameError from the data and their column names.
    """
    return unbound_cells(formula, codebook, tallies).bind(data)


def unbound_cells(formula: str, codebook: Codebook, tallies: tuple[Tally, ...]) -> PrivateCells:
    """Return the tables of no rows, to which those of any holder are bound."""
    return PrivateCells(formula, codebook, tallies, no_rows(codebook))


def _table_facts(tallies: tuple[Tally, ...]) -> dict[str, str]:
    """State what rows are counted by."""
    facts = {}
    for number, tally in enumerate(tallies, start=1):
        factors = [f"{factor.code}: {list(factor.levels)!r}" for factor in tally.factors]
        own = tally.measured
        powers = [] if own is None else [f"{own.code} in {own.lower!r} to {own.upper!r}"]
        powers += [f"powers to {tally.degree}"] if tally.degree else []
        facts[f"table {number}"] = "; ".join([*factors, *powers])
    return facts
