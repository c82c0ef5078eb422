"""What every source of rows offers: its column names, then blocks of columns."""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from numpy.typing import NDArray

from dpmodels.frames.kind import Kind

Chunk = Mapping[str, NDArray[Any]]


class RowSource(Protocol):
    """A table whose rows can be read in consecutive blocks.

    Attributes
    ----------
    names : tuple of str
        The column names, in the order of the table; a name that the table holds
        twice is listed twice.
    nrows : int or None
        The number of rows, or None where only reading them would tell (CSV files
        and iterables). It may be private: it is for the reader, not for display.
    rereadable : bool
        Whether `chunks` may be called again, for the same rows.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in the order of the table."""
        ...

    @property
    def nrows(self) -> int | None:
        """The number of rows, or None where only reading them would tell."""
        ...

    @property
    def rereadable(self) -> bool:
        """Whether `chunks` may be called again, for the same rows."""
        ...

    def kind(self, name: str) -> Kind:
        """Tell what the column of that name can hold by its type, without a look at a cell.

        Only what the container states counts. Files of text, and iterables, of which a
        table may be a single row, state nothing: their columns can hold anything. So can
        the column of several files if that of one of them can.
        """
        ...

    def chunks(self, wanted: tuple[str, ...], rows: int) -> Iterator[Chunk]:
        """Blocks of at most `rows` consecutive rows.

        Parameters
        ----------
        wanted : tuple of str
            The columns to read. With an empty tuple the blocks are empty mappings
            and tell nothing, not even how many rows there are.
        rows : int
            The largest number of rows in a block, at least 1.

        Returns
        -------
        iterator of mapping of str to ndarray
            Name to a 1-D array of any dtype; within a block all have one length.
            The arrays may be views of the user's data: never write to them.

        Raises
        ------
        FrameError
            At the call, before a row is read, where a wanted column is missing or
            is there twice.
        """
        ...
