"""A small gateway in this process, with a clock without ticks."""

import time
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import Pipe
from threading import Thread

import uvicorn

from dpmodels.codebook import Codebook
from dpmodels.errors import LedgerError
from dpmodels.gateway.schedule import CLAIM, Worker
from dpmodels.gateway.server import application
from dpmodels.gateway.settings import gate_of
from dpmodels.privacy import Ledger, PureEvent

ROWS = 400


def write_table(folder, name="visits"):
    """A CSV file of public rows, and its codebook."""
    lines = [f"{20 + i % 50},{i % 7},{'FM'[i % 2]}" for i in range(ROWS)]
    (folder / f"{name}.csv").write_text("\n".join(["age,wage,sex", *lines]) + "\n")
    plain = {"age": {"range": [0, 100]}, "wage": {"range": [0, 10]}, "sex": {"levels": ["F", "M"]}}
    Codebook.from_dict(plain).save(folder / f"{name}.json", overwrite=True)


def gate(folder, *, analysts=("ann", "bob"), amount=1.0, tick=0.0, server=None, **table):
    """Settings of one table with a purse for each analyst, and a curator."""
    write_table(folder)
    plain = {
        "gate": {"folder": "gate", "tick_seconds": tick, **(server or {})},
        "tables": {
            "visits": {
                "data": "visits.csv",
                "codebook": "visits.json",
                "eps": 2.0,
                "purses": dict.fromkeys(analysts, amount),
                **table,
            }
        },
        "analysts": {**{name: {} for name in analysts}, "eve": {"curator": True}},
    }
    return gate_of(plain, folder)


class _Threaded:
    """A thread in the place of a process, which ends with its connection."""

    def __init__(self, target, connection):
        self._thread, self._connection = Thread(target=target, daemon=True), connection
        self._thread.start()

    def is_alive(self):
        return self._thread.is_alive()

    def kill(self):
        # The thread may close it at the same time.
        with suppress(OSError):
            self._connection.close()

    def join(self, timeout=None):
        pass


def in_thread(settings, path):
    """Start the scripted worker in this process."""
    close, distant = Pipe()
    process = _Threaded(partial(scripted, settings, path, distant), distant)
    return Worker(process, close, close.recv())


def scripted(settings, path, connection):
    """A worker that charges as the real one does, and fails where the condition says so."""
    ledger = Ledger.open(path)
    connection.send(ROWS)
    with suppress(EOFError, OSError):
        while True:
            outcome = _scripted(connection.recv(), ledger)
            if outcome is None:
                connection.close()
                return
            connection.send(outcome)


def _scripted(job, ledger):
    words = job["request"]["options"]
    condition = words.get("subset", "")
    purse = ledger.purse(job["purse"], claims=((CLAIM, job["id"]),))
    try:
        purse.charge([PureEvent(words["eps"])], adjacency="replace")
    except LedgerError as error:
        return "refused", {"error": "LedgerError", "message": str(error)}
    if "age > 41" in condition:
        time.sleep(2)
    if "age > 42" in condition:
        return None
    if "age > 43" in condition:
        return "failed", {}
    with open(job["path"], "wb") as file:
        file.write(job["id"].encode())
    return "answered", {}


@contextmanager
def serving(service):
    """Serve on a free port of this machine; yield the address."""
    config = uvicorn.Config(application(service), port=0, log_config=None, http="h11", ws="none")
    server = uvicorn.Server(config)
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    (port,) = {socket.getsockname()[1] for server in server.servers for socket in server.sockets}
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        service.stop()
