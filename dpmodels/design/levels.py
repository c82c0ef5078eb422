"""Columns whose levels nobody declared, on their way to counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NoReturn, TypeVar

from numpy.typing import NDArray

from dpmodels.codebook import Codebook
from dpmodels.design.columns import read_rows
from dpmodels.errors import FrameError, PrivacyError
from dpmodels.frames import RowSource, no_rows, open_rows, progress, require
from dpmodels.frames.dask_rows import DaskRows
from dpmodels.frames.protocol import Holds

Answer = TypeVar("Answer")


class PrivateLevels:
    """Columns of text or whole numbers; shows their names only."""

    __slots__ = ("_source", "codebook", "formula", "variables")

    def __init__(self, formula: str, variables: tuple[str, ...], source: RowSource) -> None:
        self.formula = formula
        self.variables = variables
        self.codebook = Codebook()
        self._source = source

    def __repr__(self) -> str:
        return f"<PrivateLevels {self.formula!r}, rows not shown>"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("rows to be counted cannot be pickled or copied")

    @property
    def scattered(self) -> DaskRows | None:
        """The rows where they lie with the workers of a cluster, None where they can be read."""
        return self._source if isinstance(self._source, DaskRows) else None

    @property
    def recipe(self) -> Callable[[RowSource], PrivateLevels]:
        """How to bind other rows alike; made of public facts, so it may be sent anywhere."""
        return partial(PrivateLevels, self.formula, self.variables)

    @property
    def facts(self) -> dict[str, str]:
        """What is public of the columns, as texts that can be compared."""
        return {"formula": self.formula, "variables": repr(list(self.variables))}

    @property
    def nrows(self) -> int | None:
        """Number of rows, None where only reading them would tell; it may be private."""
        return self._source.nrows

    def bind(self, data: object) -> PrivateLevels:
        """Return a user's rows bound alike, of which none is read.

        Raises
        ------
        FrameError
            From the data, their column names, and types that hold neither numbers nor text.
        """
        source = open_rows(data)
        require(source, self.variables)
        for name in self.variables:
            kind = source.kind(name)
            if kind.holds is Holds.NOTHING:
                raise FrameError(
                    f"column {name!r} is of type {kind.name}, which holds neither numbers nor "
                    "text: make a column of text of it, one text for each level"
                )
        return self.recipe(source)

    def blocks(
        self, function: Callable[[tuple[NDArray[Any], ...]], Answer], *, count_public: bool
    ) -> Iterator[tuple[Answer, int]]:
        """Apply a function to raw columns, in the order of `variables`, block by block.

        What it returned and how many rows it saw come back; `count_public` says whether progress
        may show how many there are.
        """
        chunks = progress(
            self._source.chunks(self.variables, read_rows(len(self.variables))),
            total=self._source.nrows if count_public else None,
            label="reading rows",
        )
        for chunk in chunks:
            columns = tuple(chunk[name] for name in self.variables)
            yield function(columns), len(columns[0])


def unbound_levels(formula: str, variables: tuple[str, ...]) -> PrivateLevels:
    """Return the columns of no rows, to which those of any holder are bound."""
    return PrivateLevels(formula, variables, no_rows(variables))
