"""Whether the records of a gateway are complete: its ledgers, its audit log, and its answers."""

from __future__ import annotations

from contextlib import closing

from dpmodels.errors import LedgerError, quoted
from dpmodels.gateway.settings import Gate
from dpmodels.gateway.state import ANSWERED, State
from dpmodels.gateway.worker import charged_jobs
from dpmodels.privacy import Ledger


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
