"""Where the lines of a ledger are kept, whichever place that is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from dpmodels.privacy.lines import Line

Claim = tuple[str, str]


class Chain(Protocol):
    """The lines as one reader or writer has them, while nobody else writes."""

    def last(self) -> Line:
        """Return the last line."""
        ...

    def lines(self) -> Iterator[Line]:
        """Return all lines, first to last."""
        ...

    def of(self, charge: int) -> list[Line]:
        """Return the lines about a charge, first to last."""
        ...

    def before(self, charge: int) -> Line:
        """Return the line before that of a charge."""
        ...

    def free(self, charge: int) -> None:
        """Take back what a charge has claimed."""
        ...

    def check(self) -> None:
        """Refuse a damaged place."""
        ...

    def claims(self) -> set[tuple[str, str, int]]:
        """Return what is claimed, by which charge."""
        ...

    def append(self, line: Line, charge: int, claims: tuple[Claim, ...] = ()) -> None:
        """Add a line about a charge, and what it claims for itself alone."""
        ...


class Store(Protocol):
    """Keeps a chain of lines."""

    @property
    def place(self) -> str:
        """Name of the file; empty in memory."""
        ...

    def reading(self) -> AbstractContextManager[Chain]:
        """Read the chain as it is at one moment."""
        ...

    def writing(self) -> AbstractContextManager[Chain]:
        """Write to the chain, alone; what was added is kept when it ends without an error."""
        ...
