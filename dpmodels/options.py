"""What is said once for all calls: a codebook, the neighbours and a ledger."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from os import PathLike
from types import TracebackType
from typing import Any, Final

from dpmodels.errors import ArgumentError, said
from dpmodels.privacy import Adjacency, AdjacencyName, Ledger, adjacency, check_ledger


@dataclass(frozen=True)
class Chosen:
    """What verbs take where a call does not say it; None where nothing was chosen."""

    codebook: Any = None
    adjacency: Adjacency | None = None
    ledger: Ledger | None = None


_chosen: Final[ContextVar[Chosen | None]] = ContextVar("dpmodels.options", default=None)
_AS_IT_IS: Final[Any] = object()


def chosen() -> Chosen:
    """Return what was chosen in this thread or task."""
    return _chosen.get() or Chosen()


def ledger_of(given: Ledger | None) -> Ledger | None:
    """Return the ledger that a call charges: the one it names, else the chosen one."""
    check_ledger(given)
    return chosen().ledger if given is None else given


class options:  # noqa: N801
    """Say once what calls would repeat; printed, it shows what is chosen now.

    It holds from the call on, in the thread or task that makes it; as a context manager, until the
    block ends. What a call says itself goes before it, and so does a codebook that travels with the
    table.

    Parameters
    ----------
    codebook : Codebook, Draft, dict or path, optional
        As for the verbs; None takes the choice back.
    adjacency : {"replace", "add-remove"}, optional
        As for the verbs; None takes the choice back.
    ledger : Ledger, optional
        Charged by each call that names none; None takes the choice back.

    Raises
    ------
    ArgumentError
        If one of them is nothing that a verb takes.

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

    def __init__(
        self,
        *,
        codebook: Any = _AS_IT_IS,
        adjacency: AdjacencyName | Adjacency | None = _AS_IT_IS,
        ledger: Ledger | None = _AS_IT_IS,
    ) -> None:
        given = {"codebook": codebook, "adjacency": adjacency, "ledger": ledger}
        words = {name: own for name, own in given.items() if own is not _AS_IT_IS}
        self._before = chosen()
        _chosen.set(replace(self._before, **_checked(words)))

    @staticmethod
    def reset() -> None:
        """Take all choices back."""
        _chosen.set(None)

    def __enter__(self) -> options:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _chosen.set(self._before)

    def __repr__(self) -> str:
        now = chosen()
        shown = {
            "codebook": _shown(now.codebook),
            "adjacency": now.adjacency.describe() if now.adjacency else "none",
            "ledger": "none" if now.ledger is None else repr(now.ledger).splitlines()[0],
        }
        return "\n".join(f"{own.name:<11}{shown[own.name]}" for own in fields(Chosen))


def _checked(words: dict[str, Any]) -> dict[str, Any]:
    book = words.get("codebook")
    if not isinstance(book, Mapping | str | PathLike | None):
        raise ArgumentError(
            f"codebook={said(book)}: expected a dp.codebook, a dict of declarations, the path of a "
            "JSON file, or None"
        )
    check_ledger(words.get("ledger"))
    if words.get("adjacency") is not None:
        words["adjacency"] = adjacency(words["adjacency"])
    return words


def _shown(book: Any) -> str:
    if isinstance(book, Mapping):
        return f"{len(book):,} variable{'s' * (len(book) != 1)}"
    return "none" if book is None else str(book)
