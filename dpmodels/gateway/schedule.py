"""Workers that run jobs, when they run, and when their outcomes are handed out.

Each table has a public schedule: a job that is accepted at t starts at max(t, the public end of the
job before it) and ends at most its time limit later, which follows from its plan. Its outcome is
handed out at the next multiple of the tick, or says then that there is no answer. A job starts, and
is charged, at its public start, however early the job before it ended: what is left of a purse
changes then. So what an analyst can time is a function of requests, plans and the clock.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import queue
import sqlite3
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Lock, Thread
from typing import Final

from dpmodels.codebook import Codebook
from dpmodels.errors import BudgetError, DPModelsError, FrameError, LedgerError, quoted
from dpmodels.gateway.calls import Sent, call_of_sent
from dpmodels.gateway.settings import Gate, TableSettings
from dpmodels.gateway.state import ANSWERED, FAILED, REFUSED, Job, State
from dpmodels.models.assumed_rows import assumed_rows
from dpmodels.models.release import all_verbs
from dpmodels.privacy import Ledger
from dpmodels.sessions.session import Session
from dpmodels.typing import Plain

# A worker: a process that opens one table, and runs one job after the other.
#
# It charges the ledger under a claim of the job, so that no job is charged twice, and writes the
# answer to a file. Errors before the charge are reported if they are about budgets; of all others
# nothing leaves the process but that there is no answer.

CLAIM: Final = "job"
_UNREADABLE: Final = "the table cannot be read at present. Nothing was charged"


def run_worker(settings: TableSettings, ledger_path: Path, connection: Connection) -> None:
    """Answer jobs until the connection is closed."""
    _isolate(settings.memory_gib)
    warnings.simplefilter("ignore")
    try:
        book = Codebook.load(settings.codebook)
        ledger = Ledger.open(ledger_path)
        # Import what jobs need, by a release from simulated rows, so that the first is not slower.
        all_verbs()
        with suppress(DPModelsError), TemporaryDirectory() as folder:
            session = Session(assumed_rows(book).rows(100), book, eps=1.0, delta=1e-6)
            session.moments("~ .", eps=1.0).save(Path(folder) / "moments.nc")
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


def _terms(settings: TableSettings) -> dict[str, Plain]:
    return {name: getattr(settings, name) for name in ("adjacency", "person", "rows", "csv")}


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
        charged = dict[str, str]()
        for table in gate.tables:
            if gate.ledger_path(table).exists():
                ledger = Ledger.open(gate.ledger_path(table))
                ledger.verify()
                charged |= dict.fromkeys(charged_jobs(ledger), table)
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


_START_SECONDS: Final = 120.0
_GUARD_SECONDS: Final = 0.25  # From the end of a job to its public time


class Clock:
    """The public clock: seconds since 1970 at the start, and monotonic from there on.

    It starts at the machine's time, or at the latest time of an earlier run if that is later.
    """

    def __init__(self, tick_seconds: float, earliest: float = 0.0) -> None:
        self.tick_seconds = tick_seconds
        self._offset = max(time.time(), earliest) - time.monotonic()

    def now(self) -> float:
        """Return the time."""
        return time.monotonic() + self._offset

    def latest(self) -> float:
        """Return the time for tokens, which expire even if the machine's clock is set back."""
        return max(self.now(), time.time())

    def tick_after(self, at: float) -> float:
        """Return the first multiple of the tick that is not before a time."""
        tick = self.tick_seconds
        return math.ceil(at / tick) * tick if tick else at


class TableQueue:
    """The jobs of one table, its public schedule, and its workers."""

    def __init__(
        self,
        name: str,
        settings: TableSettings,
        ledger_path: Path,
        state: State,
        clock: Clock,
        start: Starter | None = None,
    ) -> None:
        self.name, self.settings, self.clock = name, settings, clock
        self.n_rows: int | None = None
        self._ledger_path, self._state = ledger_path, state
        self._start = start or started_process
        self._jobs: queue.Queue[Job | None] = queue.Queue()
        self._public_ends = [clock.now()] * settings.workers
        self._ends: dict[str, float] = {}
        self._lock, self._stopping = Lock(), Event()
        self._threads: list[Thread] = []

    def start(self) -> None:
        """Start the workers; a FrameError if the table cannot be opened."""
        for _ in range(self.settings.workers):
            worker = self._started()
            if worker is None:
                raise FrameError(f"the table {self.name!r} cannot be opened: see its settings")
            self.n_rows = worker.n_rows
            self._threads.append(Thread(target=self._run, args=(worker,), daemon=True))
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the workers."""
        self._stopping.set()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(timeout=10)

    def public_at(self, job: Job) -> float:
        """Take a job's place in the public schedule; return when its outcome is public."""
        with self._lock:
            slot = self._public_ends.index(min(self._public_ends))
            end = max(self.clock.now(), self._public_ends[slot]) + job.limit_seconds
            self._public_ends[slot] = self._ends[job.id] = end
            return self.clock.tick_after(end)

    def withdraw(self, job: Job) -> None:
        """Give back the place of a job that was not stored, if it is the last one."""
        with self._lock:
            end = self._ends.pop(job.id)
            slot = self._public_ends.index(end)
            self._public_ends[slot] = end - job.limit_seconds

    def put(self, job: Job) -> None:
        """Add a job whose public time was set."""
        self._jobs.put(job)

    def _started(self) -> Worker | None:
        with suppress(OSError):  # Too many processes or files: the next job tries again
            return self._start(self.settings, self._ledger_path)
        return None

    def _run(self, worker: Worker | None) -> None:
        while not self._stopping.is_set():
            job = self._jobs.get()
            if job is None:
                break
            if worker is None or not worker.alive:
                worker = self._started()
            end = self._ends.pop(job.id)
            if self._stops_before(end - job.limit_seconds):
                break
            finished = worker is not None and self._run_one(worker, job, end)
            if not finished:
                self._record(job, FAILED)
                if worker is not None:
                    worker.end()
                worker = None if self._stopping.is_set() else self._started()
        if worker is not None:
            worker.end()

    def _stops_before(self, at: float) -> bool:
        """Wait for a public time; whether the gateway stops before it."""
        if not self.clock.tick_seconds:
            return False
        return self._stopping.wait(max(at - self.clock.now(), 0.0))

    def _run_one(self, worker: Worker, job: Job, end: float) -> bool:
        """Run a job; return whether the worker reported an outcome in time.

        It is stored at a public time too, since a write delays requests that come with it.
        """
        path, deadline = self._state.answer_path(job.id), self.clock.now() + job.limit_seconds
        if self.clock.tick_seconds:
            deadline = min(end, job.public_at - _GUARD_SECONDS)
        sent = {"id": job.id, "purse": job.purse, "path": str(path), "request": dict(job.request)}
        outcome = worker.ask(sent, deadline - self.clock.now())
        self._stops_before(deadline)  # A worker that died looks like one that was ended
        if outcome is None:
            return False
        state, error = outcome
        self._record(job, state, error=error)
        return True

    def _record(self, job: Job, state: str, **changes: object) -> None:
        """Record an outcome, public at once without ticks; again while the disk is full."""
        while True:
            public_at = {} if self.clock.tick_seconds else {"public_at": self.clock.now()}
            try:
                self._state.set_job(job.id, state, **changes, **public_at)
                return
            except (sqlite3.Error, LedgerError):
                if self._stopping.wait(1.0):
                    return


class Worker:
    """A process with one table, and the public number of its rows."""

    def __init__(self, process: BaseProcess, connection: Connection, n_rows: int | None) -> None:
        self._process, self._connection, self.n_rows = process, connection, n_rows

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.is_alive()

    def ask(self, job: Mapping[str, Plain], seconds: float) -> tuple[str, dict[str, str]] | None:
        """Send a job and wait for its outcome, None if it does not come in time."""
        with suppress(EOFError, OSError):
            self._connection.send(job)
            if self._connection.poll(max(seconds, 0.0)):
                outcome: tuple[str, dict[str, str]] = self._connection.recv()
                return outcome
        return None

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join(timeout=5)
        self._connection.close()


Starter = Callable[[TableSettings, Path], Worker | None]


def started_process(
    settings: TableSettings,
    path: Path,
    run: Callable[[TableSettings, Path, Connection], None] = run_worker,
) -> Worker | None:
    """Start a process, and wait until its table is open; None if it cannot be opened."""
    context = multiprocessing.get_context("spawn")
    parent_end, worker_end = context.Pipe()
    process = context.Process(target=run, args=(settings, path, worker_end), daemon=True)
    process.start()
    worker_end.close()
    with suppress(EOFError, OSError):
        if parent_end.poll(_START_SECONDS):
            return Worker(process, parent_end, parent_end.recv())
    process.kill()
    return None
