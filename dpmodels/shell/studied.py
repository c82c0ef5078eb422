"""A study made: all of it checked and priced, then each release once, saved before the next."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from glob import glob
from pathlib import Path
from typing import Any, Final

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError, DPModelsError, FrameError, LedgerError
from dpmodels.sessions.call import Call
from dpmodels.shell.outputs import tell
from dpmodels.shell.record import FILE, Record, asked_of, done
from dpmodels.shell.study import Asked, Study, read_study
from dpmodels.shell.written import planned_files, write_study
from dpmodels.writing import require_target

_READ: Final = ("data", "codebook")


def run_study(path: str, again: Collection[str]) -> int:
    """Make a study; `again` names releases to be paid for once more."""
    study = read_study(path)
    names = [asked.name for asked in study.releases]
    strange = [name for name in again if name not in names]
    if strange:
        raise ArgumentError(f"--again {strange[0]}: expected one of {', '.join(names)}")
    study.tried()
    _require_folder(study)
    with alone(study.out):
        return _made(study, again)


def _made(study: Study, again: Collection[str]) -> int:
    """Ask for what is not there yet, and write all files."""
    tried = study.tried()
    charged = len(tried.ledger.entries)
    record, fits = done(study, tried, again)
    record = _require_files(study, record)
    todo = in_order(study, fits)
    if todo:
        priced = priced_of(tried, todo)
        tell(priced.summary())
        require_fits(priced, todo)
    for name in fits:
        tell(f"{name}: released already, not asked again")
    session = study.session(study.ledger)
    _require_alone(session, charged)
    fits |= _released(study, session, todo, record.write(), charged)
    ordered = {asked.name: fits[asked.name] for asked in study.releases}
    files = write_study(study, ordered, session)
    tell(f"{files[-1]}: all tables and pictures; beside it {len(files) - 1:,} files of them")
    return 0


def in_order(study: Study, fits: Mapping[str, object]) -> list[Asked]:
    """Return what is to be asked: first what says its budget, then what shares the rest."""
    left = [asked for asked in study.releases if asked.name not in fits]
    return sorted(left, key=lambda asked: asked.call.silent)


def priced_of(session: dp.session, todo: Sequence[Asked]) -> Any:
    """Price what is to be asked; nothing is charged, and no row is read."""
    silent = sum(asked.call.silent for asked in todo)
    if silent:
        session.split(silent)
    calls = [asked.call for asked in todo]
    try:
        return session.plan(calls)
    except DPModelsError:
        for place, asked in enumerate(todo):
            _require_price(session, calls[: place + 1], asked.name)
        raise


def _require_price(session: dp.session, calls: list[Call], name: str) -> None:
    """Refuse a call that has no price, by the name of its release."""
    try:
        session.plan(calls)
    except DPModelsError as error:
        error.args = (f"release {name!r}: {error}",)
        raise


def require_fits(priced: Any, todo: Sequence[Asked]) -> None:
    """Refuse a study that its budget does not pay for."""
    lacking = [asked.name for asked, one in zip(todo, priced.calls, strict=True) if not one.fits]
    if lacking:
        raise BudgetError(
            f"the budget does not pay for {', '.join(lacking)}: lower the budgets of releases, or "
            "leave some out; nothing was read or charged"
        )


def _require_folder(study: Study) -> None:
    """Make the folder of what is written, where it can be made."""
    try:
        study.out.mkdir(exist_ok=True)
    except OSError as error:
        raise FrameError(
            f"out = {str(study.out)!r} cannot be made ({type(error).__name__}): make the folder "
            "that it lies in, or write another one"
        ) from None


def _require_files(study: Study, record: Record) -> Record:
    """Refuse files that cannot be written, or that another hand wrote; note those to be written."""
    read = [str(study.path), *(study.said[name] for name in _READ if name in study.said)]
    never = [path for given in read for path in (given, *glob(given, recursive=True))]
    files = tuple(planned_files(study))
    try:
        if not study.ledger.exists():
            require_target(study.ledger, never=never)
        for name in (FILE, *files):
            own = name in (FILE, *record.files)
            require_target(study.out / name, overwrite=own, never=[*never, study.ledger])
    except FrameError as error:
        raise FrameError(f"{error}; or write another out = in [study]") from None
    return replace(record, files=tuple(dict.fromkeys((*record.files, *files))))


def _require_alone(session: dp.session, charged: int) -> None:
    """Refuse to go on where somebody else charges the ledger, who may be making the same study."""
    if len(session.ledger.entries) != charged:
        raise LedgerError(
            f"{session.ledger.place} was charged by another process meanwhile: run the study once "
            "more; what was released is in its folder, and is not asked again"
        )


def _released(
    study: Study, session: dp.session, todo: Sequence[Asked], record: Record, charged: int
) -> dict[str, object]:
    """Ask for what is left, and save each result before the next is asked for."""
    fits: dict[str, object] = {}
    silent = sum(asked.call.silent for asked in todo)
    if silent:
        session.split(silent)
    for asked in todo:
        words = asked_of(study, asked, session.codebook)
        _require_alone(session, charged)
        fit = session.make(asked.call)
        charged += 1
        fit.save(study.out / f"{asked.name}.nc", overwrite=True)
        record = record.with_release(asked, words, fit)
        fits[asked.name] = fit
        tell(f"{asked.name}: {session.ledger.describe()}")
    return fits


# One process at a time in a folder, where the system has locks for that.

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder; the lock ends with the process, however that ends."""
    with ExitStack() as held:
        if fcntl is not None:
            with suppress(OSError):  # A file system without locks
                _lock(folder, held)
        yield


def _lock(folder: Path, held: ExitStack) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    held.callback(os.close, descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise LedgerError(
            f"another process makes a study in {str(folder)!r}: run this one when it has ended; "
            "nothing was charged here"
        ) from None
