"""Settings for all calls: codebook, neighbours, persons, ledger, rows of CSV files.

A plain call sets values for the whole process, so that a thread of a pool, a task or a later cell
of a notebook finds them. A ``with`` block sets them on top of that for the thread or task that
enters it; a thread or task that entered none takes the settings of the open blocks. Where several
threads have entered blocks of their own it cannot know which of them applies, and is refused: a
call that fell back to no ledger would release without a charge.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, fields
from os import PathLike
from threading import RLock
from types import TracebackType
from typing import Any, Final, Literal

from dpmodels.arguments import boolean, checked_keywords
from dpmodels.column_roles import checked_person
from dpmodels.errors import ArgumentError, quoted
from dpmodels.privacy import Adjacency, AdjacencyName, Ledger, adjacency, check_ledger, protecting


@dataclass(frozen=True)
class Settings:
    """Defaults of the arguments of verbs; None if nothing was set."""

    codebook: Any = None
    adjacency: Adjacency | None = None
    person: str | None = None
    rows: int | Literal["mean"] | None = None
    ledger: Ledger | None = None
    csv: Literal["records", "lines"] | None = None
    clipping: bool | None = None


@dataclass(eq=False)
class _Layer:
    values: dict[str, Any]


_lock = RLock()
_process: Final = _Layer({})
_open_blocks: Final[list[tuple[_Layer, ...]]] = []
_entered: Final[ContextVar[tuple[_Layer, ...]]] = ContextVar("dpmodels.options", default=())
_UNSET: Final[Any] = object()


def _renew_lock() -> None:
    global _lock
    _lock = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def current_settings() -> Settings:
    """Return the settings for calls of this thread or task."""
    with _lock:
        blocks = _entered.get()  # Outermost first
        if not blocks and _open_blocks:
            blocks = max(_open_blocks, key=len)
            if any(block not in blocks for opened in _open_blocks for block in opened):
                raise ArgumentError(
                    "several threads or tasks have set dp.options in with blocks, and this one in "
                    "none: write ledger=, codebook= and adjacency= in the call, or enter a block "
                    "here"
                )
        values: dict[str, Any] = {}
        for layer in (_process, *blocks):
            values |= layer.values
    return Settings(**values)


def ledger_of(ledger: Ledger | None) -> Ledger | None:
    """Return the ledger that a call charges: the one it names, else the chosen one."""
    check_ledger(ledger)
    return current_settings().ledger if ledger is None else ledger


class options:  # noqa: N801
    """Set defaults for arguments of calls; printed, it shows the current settings.

    It applies from the call on, in all threads and tasks of the process; as a context manager,
    until the block ends. Arguments of a call come first. A codebook attached to a table has to
    agree with the one set here.

    Parameters
    ----------
    codebook : Codebook, Draft, dict or path, optional
        As for the verbs; None resets it.
    adjacency : {"replace", "add-remove"}, optional
        As for the verbs; None resets it.
    person, rows : optional
        As for the verbs; None resets it.
    ledger : Ledger, optional
        Charged by each call without ledger=; None resets it.
    csv : {"records", "lines"}, optional
        What a row of a CSV file is, as for the verbs; None resets it.
    clipping : bool, optional
        Whether releases count, with noise, the values that lie beyond the declared
        bounds, which raises their own noise by 2 %, where the counts tell enough.
        None, like True, resets it.

    Raises
    ------
    ArgumentError, CodebookError
        If a value is not one that a verb takes.

    Notes
    -----
    Inside a ``with`` block, threads that the block starts use its settings too. A thread that
    entered no block, while several others did, is refused before a row is read.

    Examples
    --------
    >>> import dpmodels as dp
    >>> with dp.options(codebook={"age": (0, 100)}, adjacency="add-remove"):
    ...     print(dp.options())
    codebook   1 variable
    adjacency  add or remove one row
    ledger     none
    >>> dp.options.reset()
    >>> print(dp.options())
    codebook   none
    adjacency  none
    ledger     none
    """

    @checked_keywords("dp.options")
    def __init__(
        self,
        *,
        codebook: object = _UNSET,
        adjacency: AdjacencyName | Adjacency | None = _UNSET,
        person: str | None = _UNSET,
        rows: int | Literal["mean"] | None = _UNSET,
        ledger: Ledger | None = _UNSET,
        csv: Literal["records", "lines"] | None = _UNSET,
        clipping: bool | None = _UNSET,
    ) -> None:
        settings = {"codebook": codebook, "adjacency": adjacency, "person": person}
        settings |= {"rows": rows, "ledger": ledger, "csv": csv, "clipping": clipping}
        self._values = _checked({name: v for name, v in settings.items() if v is not _UNSET})
        with _lock:
            self._layer = (_process, *_entered.get())[-1]
            self._before = dict(self._layer.values)
            self._layer.values.update(self._values)

    @staticmethod
    def reset() -> None:
        """Reset all settings."""
        with _lock:
            for layer in (_process, *_entered.get()):
                layer.values.clear()

    def __enter__(self) -> options:
        with _lock:
            for name, value in self._values.items():
                if self._layer.values.get(name) is value:
                    self._layer.values.pop(name)
                    if name in self._before:
                        self._layer.values[name] = self._before[name]
            self._outer = _entered.get()
            self._blocks = (*self._outer, _Layer(dict(self._values)))
            _open_blocks.append(self._blocks)
            _entered.set(self._blocks)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with _lock:
            _open_blocks[:] = [blocks for blocks in _open_blocks if blocks is not self._blocks]
            _entered.set(self._outer)

    def __repr__(self) -> str:
        now = current_settings()
        texts = {
            "codebook": _codebook_text(now.codebook),
            "adjacency": now.adjacency.describe() if now.adjacency else "none",
            "person": now.person,
            "rows": now.rows,
            "ledger": "none" if now.ledger is None else repr(now.ledger).splitlines()[0],
            "csv": now.csv,
            "clipping": None if now.clipping is None else str(now.clipping),
        }
        names = [field.name for field in fields(Settings) if texts[field.name] is not None]
        return "\n".join(f"{name:<11}{texts[name]}" for name in names)


def _checked(values: dict[str, Any]) -> dict[str, object]:
    book = values.get("codebook")
    if not isinstance(book, Mapping | str | PathLike | None):
        raise ArgumentError(
            f"codebook={quoted(book)}: expected a dp.codebook, a dict of declarations, the path of "
            "a JSON file, or None"
        )
    check_ledger(values.get("ledger"))
    if values.get("adjacency") is not None:
        values["adjacency"] = adjacency(values["adjacency"])
    person, rows = checked_person(values.get("person")), values.get("rows")
    if person is not None or rows is not None:
        protecting("replace", rows, person)
    if values.get("csv") not in (None, "records", "lines"):
        raise ArgumentError(f'csv={quoted(values["csv"])}: expected "records", "lines" or None')
    if values.get("clipping") is not None:
        boolean("clipping", values["clipping"])
    return values


def _codebook_text(book: object) -> str:
    if isinstance(book, Mapping):
        return f"{len(book):,} variable{'s' * (len(book) != 1)}"
    return "none" if book is None else str(book)
