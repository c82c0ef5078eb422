"""Opening a ledger's file: made if there is none, else held against what is asked for."""

import os

from dpmodels.arguments import between
from dpmodels.errors import FrameError, LedgerError
from dpmodels.privacy.budget import Guarantee
from dpmodels.privacy.filters import Filter, asked_filter
from dpmodels.privacy.ledger_file import LedgerFile, create, ledger_path
from dpmodels.privacy.lines import opened, opening
from dpmodels.privacy.neighbours import Adjacency
from dpmodels.privacy.refusal import require_same
from dpmodels.typing import AnyPath


def open_store(
    path: AnyPath,
    *,
    guarantee: Guarantee | None,
    relation: Adjacency | None,
    pure: float | None,
    rule: str | None,
    timeout: float,
) -> tuple[LedgerFile, Filter, Adjacency]:
    """Open a file, or make it.

    Parameters
    ----------
    path : path
        Of the file.
    guarantee, relation, pure, rule
        What is asked for, None where nothing is.
    timeout : float
        Seconds to wait for other processes.

    Returns
    -------
    store, filter, neighbours
        As the file has them.

    Raises
    ------
    LedgerError
        If there is no file and no guarantee, or the file has other terms.
    """
    place = ledger_path(path)
    between("timeout", timeout, 0, 1e5, " of seconds; write timeout=30")
    if not os.path.exists(place):
        if guarantee is None:
            raise LedgerError(
                f"{str(path)!r} is not there: to open a new ledger write its budget, "
                "dp.Ledger.open(path, eps=2.0, delta=1e-6)"
            )
        own = asked_filter(guarantee, pure or 0.0, rule)
        _make(LedgerFile(place, timeout), own, relation or Adjacency("replace"))
    store = LedgerFile(place, float(timeout))
    with store.reading() as chain:
        own, neighbours = opened(next(chain.lines()), store.place)
    require_same(
        store.place,
        {
            "the guarantee": (own.guarantee, guarantee),
            "adjacency": (neighbours, relation),
            "pure": (own.pure, pure),
            "rule": (own.kind, rule),
        },
    )
    return store, own, neighbours


def _make(store: LedgerFile, own: Filter, relation: Adjacency) -> None:
    """Make the file, unless another process has just made it."""
    try:
        create(store.path, opening(own, relation))
    except FrameError as error:
        if not os.path.exists(store.path):
            why = str(error).partition(", and nothing")[0]
            raise LedgerError(f"the ledger {store.place} cannot be made: {why}") from None
