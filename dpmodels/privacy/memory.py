"""The lines of a ledger in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from dpmodels.errors import LedgerError, PrivacyError
from dpmodels.privacy.lines import Chain, Claim, Line


class Memory:
    """Lines in the memory of one process."""

    place = ""

    def __init__(self, opening: Line) -> None:
        self._lines = [opening]
        self._about: dict[int, list[Line]] = {}
        self._before: dict[int, Line] = {}
        self._claims: dict[Claim, int] = {}
        self._lock = Lock()
        self._process = os.getpid()

    @contextmanager
    def reading(self) -> Iterator[Chain]:
        """Read the append-only chain."""
        yield self

    @contextmanager
    def writing(self) -> Iterator[Chain]:
        """Write to the chain, one thread at a time.

        A `PrivacyError` in a process forked after the ledger was opened.
        """
        if os.getpid() != self._process:
            raise PrivacyError(
                "this process is a copy of the one that opened the ledger, and each copy would "
                "spend the whole budget: open a file that all share, "
                "dp.Ledger.open('study.ledger', eps=..., delta=..., new=True)"
            )
        with self._lock:
            yield self

    def last(self) -> Line:
        """Return the last line."""
        return self._lines[-1]

    def lines(self) -> Iterator[Line]:
        """Return all lines, first to last."""
        return iter(tuple(self._lines))

    def of(self, charge: int) -> list[Line]:
        """Return the lines about a charge, first to last."""
        return self._about.get(charge, [])

    def before(self, charge: int) -> Line:
        """Return the line before that of a charge."""
        return self._before[charge]

    def free(self, charge: int) -> None:
        """Release the claims of a charge."""
        self._claims = {claim: holder for claim, holder in self._claims.items() if holder != charge}

    def check(self) -> None:
        """Do nothing: memory is assumed intact."""

    def claims(self) -> set[tuple[str, str, int]]:
        """Return the claims with their charges."""
        return {(*claim, charge) for claim, charge in self._claims.items()}

    def append(self, line: Line, charge: int, claims: tuple[Claim, ...] = ()) -> None:
        """Add a line about a charge, and its exclusive claims."""
        repeated = self._claims.keys() & set(claims)
        if repeated:
            raise LedgerError(claimed(*sorted(repeated)[0]))
        # The line first: if interrupted here, the charge is spent and its number is used.
        self._before.setdefault(charge, self._lines[-1])
        self._lines.append(line)
        self._about.setdefault(charge, []).append(line)
        self._claims.update(dict.fromkeys(claims, charge))


def claimed(kind: str, value: str) -> str:
    """Return the message that refuses a repeated claim."""
    return (
        f"the {kind} {value[:60]!r} was used for an earlier charge of this ledger, and may be used "
        f"only once; take a new {kind}. Nothing was charged"
    )
