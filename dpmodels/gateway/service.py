"""What a gateway does for analysts and curators, apart from HTTP."""

from __future__ import annotations

import json
import secrets
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

from dpmodels.codebook import Codebook
from dpmodels.disclosures.verb import disclosure
from dpmodels.errors import ArgumentError, GatewayError, LedgerError, NotAvailable, PrivacyError
from dpmodels.gateway.calls import PublicTable, call_of_sent, read_plan, read_sent, request_key
from dpmodels.gateway.oidc import read_provider
from dpmodels.gateway.schedule import Clock, Starter, TableQueue, charged_jobs
from dpmodels.gateway.settings import Gate
from dpmodels.gateway.state import ANSWERED, FAILED, HELD, QUEUED, REFUSED, WAITING, Job, State
from dpmodels.models.release import all_verbs
from dpmodels.privacy import Ledger
from dpmodels.privacy.ledger_head import locked
from dpmodels.sessions.shares import predicted, whole_of
from dpmodels.typing import Plain

if TYPE_CHECKING:
    import pandas as pd

_N_SIMULATED: Final = 1_000
_MOST_WAITING: Final = 100  # Of an analyst in a table, where others wait too
_PREDICTION_SECONDS: Final = 10.0
_NO_ANSWER: Final = (
    "the job has no answer: it failed or ran out of time. What it charged stays spent; the purse "
    "shows it"
)
_ENDS: Final = tuple(f"job {state}" for state in (ANSWERED, REFUSED, FAILED))
# Of a charge: who and where, and when it was made and released, before or after its public time.
_HIDDEN: Final = ("user", "host", "hash", "version", "time", "state", "digest")


class Service:
    """The tables, the state and the clock of a running gateway.

    Parameters
    ----------
    gate : Gate
        The settings.
    start : function, optional
        Starts a worker: a process, unless a test gives another.
    """

    def __init__(self, gate: Gate, start: Starter | None = None) -> None:
        self.provider = None if gate.oidc is None else read_provider(gate.oidc)
        self.gate, self.state, self._alone = gate, State(gate.folder), ExitStack()
        self._predicting, self._accepting = Lock(), Lock()
        self._alone.enter_context(locked(gate.folder / "gate.db", 0.5))
        self.clock = Clock(gate.server.tick_seconds, self.state.latest)
        self.state.follow(self.clock.now, self.clock.tick_after)
        self.ledgers: dict[str, Ledger] = {}
        self.tables: dict[str, PublicTable] = {}
        self.queues: dict[str, TableQueue] = {}
        for name, settings in gate.tables.items():
            ledger = self.ledgers[name] = gate.open_ledger(name)
            path = gate.ledger_path(name)
            jobs = TableQueue(name, settings, path, self.state, self.clock, start)
            jobs.start()
            self.queues[name] = jobs
            book = Codebook.load(settings.codebook)
            csv = gate.folder / f"{name}.simulated.csv" if settings.is_csv else None
            self.tables[name] = PublicTable(name, book, ledger.adjacency, jobs.n_rows, csv)
            _ = self.tables[name].terms  # Simulated once, before threads need them
        self._purses = {
            (name, purse.name): ledger.purse(purse.name)
            for name, ledger in self.ledgers.items()
            for purse in ledger.purses
        }
        self.verbs = sorted(all_verbs())
        # Queue the jobs again that a stopped server left, unless they were charged.
        charged = {name: charged_jobs(ledger) for name, ledger in self.ledgers.items()}
        for job in self.state.jobs():
            table = self.gate.tables.get(job.table)
            waits = job.state == HELD and table is not None and table.approval
            if job.state not in (HELD, QUEUED) or waits:
                continue
            if self.state.answer_path(job.id).exists():
                self.state.set_job(job.id, ANSWERED)
            elif job.table not in charged or job.id in charged[job.table]:
                self.state.set_job(job.id, FAILED)
            else:
                self._queue(job)

    def stop(self) -> None:
        """End all workers, and close the state."""
        for jobs in self.queues.values():
            jobs.stop()
        self.state.close()
        self._alone.close()

    def _scheduled(self, job: Job) -> Job:
        return job._replace(state=QUEUED, public_at=self.queues[job.table].public_at(job))

    def _queue(self, job: Job) -> Job:
        queued = self._scheduled(job)
        self.state.set_job(job.id, QUEUED, public_at=queued.public_at)
        self.queues[job.table].put(queued)
        return queued

    def open_tables(self, analyst: str) -> list[str]:
        """Return the names of the tables in which an analyst has a purse."""
        name = self.gate.analysts[analyst].purse
        return [table for table in self.tables if name in self.gate.purses[table]]

    def purse(self, analyst: str, table: str) -> Ledger:
        """Return the ledger of an analyst's purse; NotAvailable without one."""
        name = self.gate.analysts[analyst].purse
        if table not in self.tables or name not in self.gate.purses[table]:
            raise NotAvailable(f"no table {table[:60]!r} is open to {analyst}")
        return self._purses[table, name]

    def require_curator(self, analyst: str) -> None:
        """Refuse whoever is not a curator."""
        if not self.gate.analysts[analyst].curator:
            raise PrivacyError("only a curator may do this")

    def ask(self, analyst: str, table: str, body: bytes) -> dict[str, Plain]:
        """Accept a request: check and price it, and queue a job."""
        purse, sent = self.purse(analyst, table), read_sent(body)
        name, settings = self.gate.analysts[analyst].purse, self.gate.tables[table]
        call = call_of_sent(sent)
        key = request_key(call, table, name, whole_of(purse))
        earlier = self.state.same_request(key)
        if earlier is not None:
            return self.described(earlier)
        price = self.tables[table].require_fit(call, purse)
        n_rows = self.tables[table].n_rows or settings.n_at_most
        seconds = price.seconds(settings.least_seconds, settings.seconds_per_million, n_rows)
        now, identifier = self.clock.now(), secrets.token_urlsafe(18)
        request = {"verb": sent.verb, "formula": sent.formula, "options": dict(sent.options)}
        job = Job(identifier, 0, analyst, name, table, key, request, HELD, seconds, now, now, {})
        return self.described(self._accepted(job))

    def _accepted(self, job: Job) -> Job:
        """Store a job and queue it, or return that of the same request, which came first."""
        with self._accepting:
            earlier = self.state.same_request(job.key)
            if earlier is not None:
                return earlier
            if self.state.is_stopped(job.table):
                raise LedgerError(f"the curator stopped {job.table!r}: nothing is accepted now")
            if self.state.waiting(job.analyst, job.table, self.clock.now()) >= _MOST_WAITING:
                raise GatewayError(
                    f"{_MOST_WAITING} of your requests wait: see their outcomes", 429
                )
            if self.gate.tables[job.table].approval:
                return self.state.add_job(job)
            jobs, queued = self.queues[job.table], self._scheduled(job)
            try:
                stored = self.state.add_job(queued)
            except BaseException:
                jobs.withdraw(queued)
                raise
            jobs.put(stored)
            return stored

    def described(self, job: Job) -> dict[str, Plain]:
        """Return what an analyst sees of a job."""
        now = self._shown(job)
        state = job.visible(now)
        plain: dict[str, object] = {
            "job": job.id,
            "table": job.table,
            "request": dict(job.request),
            "state": state,
            "seconds_left": round(max(job.public_at - now, 0.0), 3) if state == WAITING else 0.0,
        }
        if state == FAILED:
            plain["error"] = {"error": "LedgerError", "message": _NO_ANSWER}
        elif state == REFUSED:
            plain["error"] = dict(job.error)
        return plain

    def _shown(self, *jobs: Job) -> float:
        """Return the time, and store it if the outcome of a job is handed out now."""
        now = self.clock.now()
        if any(self.state.latest < job.public_at <= now for job in jobs):
            self.state.reach()
        return now

    def job(self, analyst: str, identifier: str) -> Job:
        """Return a job of the analyst's purse; curators see all."""
        job, settings = self.state.job(identifier), self.gate.analysts[analyst]
        if job is None or (job.purse != settings.purse and not settings.curator):
            raise NotAvailable("there is no such job")
        return job

    def answer(self, analyst: str, identifier: str) -> bytes:
        """Return the file of an answer; NotAvailable before it is public."""
        job = self.job(analyst, identifier)
        if job.visible(self._shown(job)) != ANSWERED:
            raise NotAvailable("the job has no answer yet, or none at all: see its state")
        return self.state.answer_path(identifier).read_bytes()

    def history(self, analyst: str) -> list[dict[str, object]]:
        """Return the jobs of the analyst's purse; a curator's are those of all."""
        settings = self.gate.analysts[analyst]
        return [
            self.described(job)
            for job in self.state.jobs(None if settings.curator else settings.purse)
        ]

    def approve(self, curator: str, identifier: str) -> dict[str, object]:
        """Queue a job that waits for approval."""
        self.require_curator(curator)
        with self._accepting:
            job = self.job(curator, identifier)
            if job.state != HELD:
                raise ArgumentError("the job does not wait for approval")
            self.state.log(curator, "job approved", job=identifier)
            return self.described(self._queue(job))

    def set_stopped(self, curator: str, table: str, *, stopped: bool) -> dict[str, Plain]:
        """Stop or resume a table."""
        self.require_curator(curator)
        if table not in self.tables:
            raise NotAvailable("there is no such table")
        self.state.stop(table, curator, stopped=stopped)
        return {"table": table, "stopped": stopped}

    def plan(self, analyst: str, table: str, body: bytes) -> dict[str, Plain]:
        """Price a request, or a list of them; nothing is charged, and no table is opened."""
        purse, sent = self.purse(analyst, table), read_plan(body)
        if isinstance(sent, list):
            return {"calls": self.tables[table].plan(map(call_of_sent, sent), purse)}
        price = self.tables[table].price(call_of_sent(sent), purse)
        texts = ("mechanism", "cost", "total", "fits")
        return {name: getattr(price, name) for name in texts}

    def predicted(self, analyst: str, table: str, body: bytes, n_rows: int) -> pd.DataFrame | None:
        """Predict the estimates of a request on assumed rows, one request after another."""
        purse, call = self.purse(analyst, table), call_of_sent(read_sent(body))
        if not self._predicting.acquire(timeout=_PREDICTION_SECONDS):
            raise GatewayError("other predictions are computed: try again, or assume no rows")
        try:
            return predicted(self.tables[table].priced(call, purse), n_rows)
        finally:
            self._predicting.release()

    def public(self, analyst: str, table: str) -> dict[str, Plain]:
        """Return the public facts of a table and the state of the purse."""
        purse, facts = self.purse(analyst, table), self.tables[table]
        return {
            "table": table,
            "codebook": facts.codebook.to_dict(),
            "adjacency": facts.adjacency.text,
            "n_rows": facts.n_rows,
            "tick_seconds": self.clock.tick_seconds,
            "verbs": self.verbs,
            **self._budgets(purse, table),
        }

    def ledger(self, analyst: str, table: str) -> dict[str, Plain]:
        """Return the charges of the analyst's purse."""
        purse = self.purse(analyst, table)
        register = purse.register().drop(columns=list(_HIDDEN)).reset_index(drop=True)
        charges = json.loads(register.to_json(orient="records"))
        return {**self._budgets(purse, table), "charges": charges}

    def _budgets(self, purse: Ledger, table: str) -> dict[str, object]:
        total = self.gate.tables[table].guarantee
        return {
            "guarantee": [type(purse.guarantee).__name__, asdict(purse.guarantee)],
            "purse": purse.guarantee.describe(),
            "spent": purse.spent.describe(),
            "left": purse.remaining.describe(),
            "table_total": total.describe(),
            "collusion": f"against analysts who cooperate the guarantee is {total.describe()}",
        }

    def simulated(self, analyst: str, table: str) -> dict[str, Plain]:
        """Return rows simulated from the codebook."""
        self.purse(analyst, table)
        frame = self.tables[table].simulated(_N_SIMULATED)
        plain: dict[str, Plain] = json.loads(frame.to_json(orient="split", date_format="iso"))
        return dict(zip(plain["columns"], zip(*plain["data"], strict=True), strict=True))

    def disclosure(self, curator: str, table: str) -> str:
        """Return the disclosure report of a table as HTML."""
        self.require_curator(curator)
        if table not in self.tables:
            raise NotAvailable("there is no such table")
        jobs = [job for job in self.state.jobs() if job.table == table]
        now = self._shown(*jobs)
        answers = [self.state.answer_path(job.id) for job in jobs if job.visible(now) == ANSWERED]
        sources: list[Ledger | Path] = [self.ledgers[table], *answers]
        return disclosure(sources, title=f"Disclosure report of {table}", pictures=False).as_html()

    def overview(self, curator: str) -> dict[str, object]:
        """Return tables, purses and the audit log for a curator."""
        self.require_curator(curator)
        return {
            "tables": {
                name: {
                    "spent": ledger.describe(),
                    "purses": {purse.name: purse.describe() for purse in ledger.purses},
                    "stopped": self.state.is_stopped(name),
                }
                for name, ledger in self.ledgers.items()
            },
            "audit": self._register(),
        }

    def _register(self) -> list[dict[str, Plain]]:
        """Return the audit log, in which jobs end when their outcome becomes public."""
        lines, log, jobs = [], self.state.audit(), self.state.jobs()
        ends, now = {job.id: job.public_at for job in jobs}, self._shown(*jobs)
        for line in log:
            end = ends[line["job"]] if line["action"] in _ENDS else 0.0
            if end <= now:
                lines.append({**line, "time": max(line["time"], end)})
        return sorted(lines, key=lambda line: float(line["time"]))
