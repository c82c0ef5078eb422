"""A worker: a process that opens one table, and runs one job after the other.

It charges the ledger under a claim of the job, so that no job is charged twice, and writes the
answer to a file. Errors before the charge are reported if they are about budgets; of all others
nothing leaves the process but that there is no answer.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from contextlib import closing, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from dpmodels.codebook import Codebook
from dpmodels.errors import BudgetError, DPModelsError, LedgerError, quoted
from dpmodels.gateway.calls import Sent, call_of_sent
from dpmodels.gateway.settings import Gate, TableSettings
from dpmodels.gateway.state import ANSWERED, FAILED, REFUSED, State
from dpmodels.models.assumed_rows import assumed_rows
from dpmodels.models.replay import all_verbs
from dpmodels.privacy import Ledger
from dpmodels.sessions.session import Session
from dpmodels.typing import Plain

CLAIM: Final = "job"
_UNREADABLE: Final = "the table cannot be read at present. Nothing was charged"


def run_worker(settings: TableSettings, ledger_path: Path, connection: Connection) -> None:
    """Answer jobs until the connection is closed."""
    _isolate(settings.memory_gib)
    warnings.simplefilter("ignore")
    try:
        book = Codebook.load(settings.codebook)
        ledger = Ledger.open(ledger_path)
        _load_verbs(book)
        session = Session(settings.source(), book, ledger=ledger, **_terms(settings))
        is_public = ledger.adjacency.person is None
        connection.send(session.n_rows if is_public else None)
        while True:
            job = connection.recv()
            connection.send(_outcome(job, settings, book, ledger))
    except (EOFError, OSError, KeyboardInterrupt):
        return
    except DPModelsError:
        connection.close()


def _load_verbs(book: Codebook) -> None:
    """Import what jobs need, by a release from simulated rows, so that the first is not slower."""
    all_verbs()
    with suppress(DPModelsError), TemporaryDirectory() as folder:
        session = Session(assumed_rows(book).rows(100), book, eps=1.0, delta=1e-6)
        session.moments("~ .", eps=1.0).save(Path(folder) / "moments.nc")


def _terms(settings: TableSettings) -> dict[str, Plain]:
    return {
        "adjacency": settings.adjacency,
        "person": settings.person,
        "rows": settings.rows,
        "csv": settings.csv,
    }


def _isolate(memory_gib: float) -> None:
    """Limit memory, write no core, and silence the output."""
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)
    if sys.platform == "win32":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit = int(memory_gib * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _outcome(
    job: Mapping[str, Plain], settings: TableSettings, book: Codebook, ledger: Ledger
) -> tuple[str, dict[str, str]]:
    """Run a job; return its state, and an error if nothing was charged."""
    claim = (CLAIM, job["id"])
    purse = ledger.purse(job["purse"], claims=(claim,))
    try:
        session = Session(settings.source(), book, ledger=purse, **_terms(settings))
        fit = session.make(call_of_sent(Sent(**job["request"])))
        fit.save(job["path"])
    except Exception as error:
        if job["id"] in charged_jobs(purse):
            return FAILED, {}
        if isinstance(error, LedgerError | BudgetError):
            return REFUSED, {"error": type(error).__name__, "message": str(error)}
        return REFUSED, {"error": "FrameError", "message": _UNREADABLE}
    return ANSWERED, {}


def charged_jobs(ledger: Ledger) -> set[str]:
    """Return the identifiers of the jobs that were charged; reads the whole ledger."""
    claims = (claim for entry in ledger.entries for claim in entry.claims)
    return {identifier for kind, identifier in claims if kind == CLAIM}


def verified(gate: Gate, noted: str = "") -> str:
    """Verify the records of a gateway, running or not; a LedgerError names the first fault.

    `noted` is a line of the audit log that an earlier verification printed, "12:5f0c...".
    """
    with closing(State(gate.folder)) as state:
        # Jobs are read before their charges, and these before the log, since the server may run.
        answered = [
            job for job in state.jobs() if job.state == ANSWERED and job.table in gate.tables
        ]
        charged = _charged(gate)
        log, hashes = state.audit(), state.hashes()
    accepted = {line["job"] for line in log if line["action"] == "job accepted"}
    for job, table in charged.items():
        if job not in accepted:
            raise LedgerError(
                f"the ledger of {table!r} has a charge of job {job}, and the audit log has no "
                "such job: lines were removed, or gate.db is not that of this ledger"
            )
    for entry in answered:
        if entry.id not in charged:
            raise LedgerError(f"job {entry.id} has an answer, and {entry.table!r} no charge for it")
    if noted and noted not in hashes:
        raise LedgerError(
            f"the audit log has no line {quoted(noted)}, which was noted: the log was replaced"
        )
    return (
        f"verified: charges {len(charged):,}, answers {len(answered):,}, lines of the audit log "
        f"{len(log):,}. The last line is {hashes[-1] if hashes else 'missing'}"
    )


def _charged(gate: Gate) -> dict[str, str]:
    """Verify the ledgers; return the tables of the jobs that they charged."""
    charged = dict[str, str]()
    for table in gate.tables:
        if gate.ledger_path(table).exists():
            ledger = Ledger.open(gate.ledger_path(table))
            ledger.verify()
            charged |= dict.fromkeys(charged_jobs(ledger), table)
    return charged
