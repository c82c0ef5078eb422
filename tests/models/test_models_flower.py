"""Sites over a network: Flower's handlers called directly, and real processes on loopback."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError, FrameError
from dpmodels.sites.message import read_message

os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
os.environ["FLWR_DISABLE_UPDATE_CHECK"] = "1"
app = pytest.importorskip("flwr.app", reason='Flower is missing: pip install "dpmodels[flower]"')

ROOT = Path(__file__).parents[2]
CB = dp.codebook(a=(0, 1), b=(0, 1))
BUDGET = {"codebook": CB, "budget": dp.ZCDP(0.5)}
SITES = ("A", "B")
SEEDS = {"A": 11, "B": 12}
SECONDS = 240.0


def ledger_of(site, folder):
    return dp.Ledger.open(folder / f"{site}.ledger", budget=dp.ZCDP(0.5), new=True)


def rows(site):
    rng = np.random.default_rng(ord(site))
    return {"a": rng.uniform(0, 1, 80), "b": rng.uniform(0, 1, 80)}


@pytest.fixture
def grid(monkeypatch):
    """Flower's way to apps in this process, which are called at once."""
    identity = pytest.importorskip("flwr.supercore.task_identity").TaskIdentity
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(identity, name, 1)

    class Grid:
        def __init__(self):
            self.apps, self.replies = {}, {}

        def get_node_ids(self):
            return list(self.apps)

        def push_messages(self, messages):
            for message in messages:
                message.metadata.__dict__["_message_id"] = message.object_id
                try:
                    reply = self.apps[message.metadata.dst_node_id](message, None)
                except ValueError as error:
                    reply = app.Message(app.Error(1, str(error)), reply_to=message)
                self.replies[message.object_id] = reply
            return [message.object_id for message in messages]

        def pull_messages(self, numbers):
            return [self.replies.pop(number) for number in numbers]

    return Grid()


def test_the_handlers_make_one_release(grid, tmp_path):
    for node, site in enumerate(SITES):
        key = tmp_path / f"{site}.key"
        dp.site_key(site, key)
        words = {"session": "s", "protocol": "secure_sum", "key": key, "sites": SITES, **BUDGET}
        words["ledger"] = ledger_of(site, tmp_path)
        path = tmp_path / f"{site}.json"
        grid.apps[node] = dp.flower.client_app("~ a + b", rows(site), path, site=site, **words)
    fits = []
    words = {"session": "s", "done": fits.append}
    server = dp.flower.server_app(SITES, folder=tmp_path / "letters", **words)
    server(grid, None)
    files = sorted((tmp_path / "letters").iterdir())
    assert [file.name for file in files] == ["A.json", "B.json"]
    assert np.array_equal(fits[0].release.second, dp.combine(files).release.second)
    with pytest.raises(FrameError, match="site 'A' refuses: it has answered session 's' already"):
        dp.flower.server_app(SITES, folder=tmp_path / "again", **words)(grid, None)


@pytest.mark.product
def test_the_handlers_exchange_rounds(grid, tmp_path):
    for node, site in enumerate(SITES):
        key, folder = tmp_path / f"{site}.key", tmp_path / site
        folder.mkdir()
        dp.site_key(site, key)
        words = {"session": "s", "protocol": "secure_sum", "key": key, "sites": SITES, **BUDGET}
        words["ledger"] = ledger_of(site, tmp_path)
        grid.apps[node] = dp.flower.client_app("~ a + b", rows(site), folder, site=site, **words)
    fits = []
    server = dp.flower.server_app(SITES, folder=tmp_path / "letters", session="s", done=fits.append)
    server(grid, None)
    assert fits[0].release.info.name == "rounds"
    assert fits[0].release.rows == 160
    for site in SITES:
        ledger = dp.Ledger.open(tmp_path / f"{site}.ledger")
        assert ledger.unfinished() == ()
        assert len(list((tmp_path / site).glob("message-*"))) == 8


THREE = ("A", "B", "C")
QUORUM = dp.sites.SecureSum(colluders=0, dropouts=1)


@pytest.mark.product
def test_the_handlers_end_a_round_without_a_site(grid, tmp_path):
    calls = []
    for node, site in enumerate(THREE):
        folder = tmp_path / site
        folder.mkdir()
        words = {"session": "s", "protocol": QUORUM, "key": tmp_path / f"{site}.key", **BUDGET}
        dp.site_key(site, words["key"])
        words |= {"sites": THREE, "ledger": ledger_of(site, tmp_path)}
        grid.apps[node] = dp.flower.client_app("~ a + b", rows(site), folder, site=site, **words)
    answering = grid.apps[2]

    def away(message, context):
        calls.append(message)
        if len(calls) in (4, 6):
            raise ValueError("no connection")
        return answering(message, context)

    grid.apps[2], fits = away, []
    server = dp.flower.server_app(THREE, folder=tmp_path / "letters", session="s", done=fits.append)
    server(grid, None)
    assert "(some without 'C')" in fits[0].release.shared.sees
    assert fits[0].release.rows == 240


def test_messages_that_are_none_of_ours(grid, tmp_path):
    words = {"session": "s", "protocol": "full", **BUDGET}
    site = dp.flower.client_app("~ a", rows("A"), tmp_path / "a", site="A", **words)
    for records in (
        {},
        {"dpmodels": app.ConfigRecord({"json": "["})},
        {"dpmodels": app.ConfigRecord({"json": "[]"})},
    ):
        message = app.Message(app.RecordDict(records), 1, "query.letter")
        loads = json.loads(site(message, None).content["dpmodels"]["json"])
        assert "session is 's'" in loads["refusal"]
    message = app.Message(app.RecordDict(), 1, "train")
    with pytest.raises(ValueError, match="No train function"):
        site(message, None)
    grid.apps = {1: lambda message, context: site(app.Message(app.RecordDict(), 1, "train"), None)}
    server = dp.flower.server_app(["A"], session="s", folder=tmp_path / "letters")
    with pytest.raises(FrameError, match=r"site 'A' did not answer \(a node: No train function"):
        server(grid, None)


def test_arguments_that_make_no_sense(tmp_path):
    for sites, session in (((), "s"), ("AB", "s"), (["A", "A"], "s"), (["A", ""], "s")):
        with pytest.raises(ArgumentError, match="names of all sites"):
            dp.flower.server_app(sites, session=session, folder=tmp_path)
    with pytest.raises(ArgumentError, match="session=None"):
        dp.flower.server_app(SITES, session=None, folder=tmp_path)
    words = {"site": "A", "session": "s", "protocol": "full", **BUDGET}
    for change, error, message in [
        ({"verb": "svd"}, ArgumentError, "verb='svd'"),
        ({"protocol": "pooled"}, ArgumentError, "protocol='pooled'"),
        ({"sites": "AB"}, ArgumentError, "names of all sites"),
        (
            {"protocol": "cape", "key": tmp_path / "k", "sites": SITES},
            ArgumentError,
            "needs ledger=",
        ),
        ({"budget": None}, BudgetError, "eps"),
    ]:
        with pytest.raises(error, match=message):
            dp.flower.client_app("~ a", "rows.csv", tmp_path / "a", **words | change)


PROJECT = """
[project]
name = "joint-release"
version = "1.0.0"
description = "One release of several sites"
license = "MIT"
[tool.flwr.app]
publisher = "aggregator"
[tool.flwr.app.components]
serverapp = "server_app:app"
clientapp = "client_app:app"
"""
CLIENT = """
import site_terms
app = site_terms.app
"""
# One app of Flower's for several sessions, each of which has an app of its own.
TERMS = """
import json
from pathlib import Path
import numpy as np
from flwr.clientapp import ClientApp
import dpmodels as dp

SITE, FOLDER, SEED = {site!r}, Path({folder!r}), {seed!r}
CB = dp.codebook(a=(0, 1), b=(0, 1))
agreed = dict(site=SITE, codebook=CB, budget=dp.ZCDP(0.5))
rows = FOLDER / "rows.csv"
ledger = dp.Ledger.open(FOLDER / "site.ledger", budget=dp.ZCDP(0.5), new=True)
keys = dict(key=FOLDER / "site.key", sites=["A", "B"], ledger=ledger)
other = "~ a" if SITE == "B" else "~ a + b"

def one(session, formula, **words):
    path = FOLDER / (session + ".json")
    return dp.flower.client_app(formula, rows, path, session=session, **agreed, **words)

apps = dict(
    noisy=one("noisy", "~ a + b", protocol="full"),
    masked=one("masked", "~ a + b", protocol="secure_sum", **keys),
    unlike=one("unlike", other, protocol="full"),
)

def reply(message, context):
    session = json.loads(message.content["dpmodels"]["json"])["session"]
    with dp.simulation(seed=SEED):
        return apps[session](message, context)

app = ClientApp()
for question in ("terms", "letter"):
    app.query(question)(reply)
"""
SERVER = """
import json
from pathlib import Path
from flwr.serverapp import ServerApp
import dpmodels as dp

FOLDER = Path({folder!r})
app = ServerApp()

@app.main()
def main(grid, context):
    said = []
    for place, session in enumerate({sessions!r}):
        folder = FOLDER / str(place)
        one = dp.flower.server_app(["A", "B"], session=session, folder=folder, timeout={seconds})
        try:
            one(grid, context)
            said.append("")
        except Exception as error:
            said.append(type(error).__name__ + ": " + str(error))
    partial = FOLDER / "said.partial"
    partial.write_text(json.dumps(said))
    partial.rename(FOLDER / "said.json")
"""
CONNECTION = """
[superlink]
default = "here"
[superlink.here]
address = "127.0.0.1:{port}"
insecure = true
"""


def free_ports(count):
    """Ports that were free a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    for value in sockets:
        value.bind(("127.0.0.1", 0))
    ports = [socket.getsockname()[1] for socket in sockets]
    for value in sockets:
        value.close()
    return ports


class Processes:
    """Flower's processes, each with those that it starts in a group of its own."""

    def __init__(self, folder):
        self.folder, self.started = folder, []
        self.bin = Path(sys.executable).parent
        self.environment = {
            **os.environ,
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "FLWR_HOME": str(folder / "home"),
            "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.2",
            "OPENBLAS_NUM_THREADS": "1",
        }

    def start(self, name, *command, path=()):
        text = os.pathsep.join(map(str, [*path, ROOT]))
        with (self.folder / f"{name}.log").open("w") as log:
            process = subprocess.Popen(
                [str(self.bin / command[0]), *command[1:]],
                env={**self.environment, "PYTHONPATH": text},
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.started.append(process)
        return process

    def logs(self):
        return "\n".join(
            f"== {log.name}\n{log.read_text('utf-8', 'replace')[-3000:]}"
            for log in sorted(self.folder.glob("*.log"))
        )

    def wait(self, done, until):
        """Wait until `done`, unless one of Flower's services ends."""
        while not done():
            ended = [value.args for value in self.started if value.poll() not in (None, 0)]
            if ended or time.monotonic() > until:
                pytest.fail(f"ended: {ended or 'none, out of time'}\n{self.logs()}")
            time.sleep(0.2)

    def stop(self):
        for process in reversed(self.started):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        until = time.monotonic() + 5
        for process in self.started:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(until - time.monotonic(), 0.1))
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)


@pytest.fixture
def processes(tmp_path):
    started = Processes(tmp_path)
    if not (started.bin / "flower-superlink").exists():
        pytest.skip("Flower's commands are not beside this Python")
    try:
        yield started
    finally:
        started.stop()


def answers(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def prepared(folder, sessions, port):
    """Write the aggregator's bundle, and what each site keeps to itself."""
    bundle, letters, home = folder / "bundle", folder / "letters", folder / "home"
    for value in (bundle, letters, home):
        value.mkdir()
    (home / "config.toml").write_text(CONNECTION.format(port=port))
    (bundle / "pyproject.toml").write_text(PROJECT)
    (bundle / "client_app.py").write_text(CLIENT)
    server = SERVER.format(folder=str(letters), sessions=sessions, seconds=SECONDS / 2)
    (bundle / "server_app.py").write_text(server)
    for site in SITES:
        folder_of_site = folder / site
        folder_of_site.mkdir()
        table = np.column_stack(list(rows(site).values()))
        np.savetxt(folder_of_site / "rows.csv", table, "%.17g", ",", header="a,b", comments="")
        dp.site_key(site, folder_of_site / "site.key")
        terms = TERMS.format(site=site, folder=str(folder_of_site), seed=SEEDS[site])
        (folder_of_site / "site_terms.py").write_text(terms)
    return bundle, letters


def in_process(folder, protocol, session):
    """The same release by way of files, with the same seeds."""
    folder = folder / session
    folder.mkdir(parents=True)
    keyed = protocol == "secure_sum"
    cards = [dp.site_key(site, folder / f"{site}.key") for site in SITES if keyed]
    files = [folder / f"{site}.json" for site in SITES]
    for site, file in zip(SITES, files, strict=True):
        key = {"key": folder / f"{site}.key", "cards": cards} if keyed else {}
        key |= {"ledger": ledger_of(site, folder)} if keyed else {}
        words = {"site": site, "session": session, "protocol": protocol, **BUDGET, **key}
        with dp.simulation(seed=SEEDS[site]):
            dp.site_release("~ a + b", folder.parents[1] / site / "rows.csv", file, **words)
    return files


PROTOCOLS = {"noisy": "full", "masked": "secure_sum"}


@pytest.mark.slow
def test_processes_on_loopback_give_the_same_integers(processes, tmp_path, reduced):
    until = time.monotonic() + SECONDS
    link, *ports = free_ports(3)
    agreed = ("masked",) if reduced else ("masked", "noisy")
    bundle, letters = prepared(tmp_path, (*agreed, "unlike", "masked"), link)
    address = f"127.0.0.1:{link}"
    options = ("--insecure", "--host", "127.0.0.1", "--port")
    alone = "--disable-runtime-dependency-installation"
    processes.start("superlink", "flower-superlink", *options, str(link), alone)
    for site, port in zip(SITES, ports, strict=True):
        words = ("flower-supernode", "--superlink", address, *options, str(port))
        processes.start(site, *words, path=[tmp_path / site])
    processes.wait(lambda: answers(link), until)
    processes.start("run", "flwr", "run", str(bundle), "here", path=[tmp_path / "A"])
    processes.wait((letters / "said.json").exists, until)
    *failed, unlike, again = json.loads((letters / "said.json").read_text())
    assert failed == [""] * len(agreed), processes.logs()
    assert "do not state the same: formula is ~ a and not ~ a + b" in unlike
    assert "refuses: it has answered session 'masked' already" in again
    assert len(list(letters.iterdir())) == len(agreed) + 1
    for place, session in enumerate(agreed):
        sent = [letters / str(place) / f"{site}.json" for site in SITES]
        in_one_process = in_process(tmp_path / "own", PROTOCOLS[session], session)
        if session == "noisy":
            for release, second in zip(sent, in_one_process, strict=True):
                assert read_message(release).values == read_message(second).values
        release, second = dp.combine(sent).release, dp.combine(in_one_process).release
        assert np.array_equal(release.second, second.second)
        assert release.shared == second.shared


QUORUM_TERMS = """
from pathlib import Path
import dpmodels as dp

SITE, FOLDER = {site!r}, Path({folder!r})
app = dp.flower.client_app(
    "~ a + b",
    FOLDER / "rows.csv",
    FOLDER / "study",
    site=SITE,
    session="q",
    verb="moments",
    protocol=dp.sites.SecureSum(colluders=0, dropouts=1),
    codebook=dp.codebook(a=(0, 1), b=(0, 1)),
    budget=dp.ZCDP(0.5),
    csv="records",
    key=FOLDER / "site.key",
    cards=[FOLDER.parent / site / "site.key.card" for site in "ABC"],
    ledger=dp.Ledger.open(FOLDER / "site.ledger", budget=dp.ZCDP(0.5), new=True),
)
"""
QUORUM_SERVER = """
from pathlib import Path
import dpmodels as dp

FOLDER = Path({folder!r})

def done(fit):
    (FOLDER / "partial").write_text(fit.release.shared.sees)
    (FOLDER / "partial").rename(FOLDER / "done")

words = dict(folder=FOLDER / "study", session="q", timeout={seconds}, patience=60.0)
app = dp.flower.server_app(["A", "B", "C"], done=done, **words)
"""


@pytest.mark.slow
def test_a_site_that_is_killed_ends_no_exchange_of_a_quorum(processes, tmp_path):
    """Of two rounds, the second of counts, it misses the second."""
    until = time.monotonic() + 2 * SECONDS
    link, *ports = free_ports(4)
    bundle, letters = prepared(tmp_path, (), link)
    server = QUORUM_SERVER.format(folder=str(letters), seconds=SECONDS)
    (bundle / "server_app.py").write_text(server)
    for site in THREE:
        folder_of_site = tmp_path / site
        (folder_of_site / "study").mkdir(parents=True)
        table = np.column_stack(list(rows(site).values()))
        np.savetxt(folder_of_site / "rows.csv", table, "%.17g", ",", header="a,b", comments="")
        if not (folder_of_site / "site.key").exists():
            dp.site_key(site, folder_of_site / "site.key")
        (folder_of_site / "site_terms.py").write_text(
            QUORUM_TERMS.format(site=site, folder=str(folder_of_site))
        )
    options = ("--insecure", "--host", "127.0.0.1", "--port")
    alone = "--disable-runtime-dependency-installation"
    processes.start("superlink", "flower-superlink", *options, str(link), alone)
    nodes = {}
    for site, port in zip(THREE, ports, strict=True):
        words = ("flower-supernode", "--superlink", f"127.0.0.1:{link}", *options, str(port))
        nodes[site] = processes.start(site, *words, path=[tmp_path / site])
    processes.wait(lambda: answers(link), until)
    processes.start("run", "flwr", "run", str(bundle), "here", path=[tmp_path / "A"])
    processes.wait((letters / "study" / "opening-1-C.json").exists, until)
    os.killpg(nodes["C"].pid, signal.SIGKILL)
    processes.started.remove(nodes["C"])
    nodes["C"].wait(10)
    processes.wait((letters / "done").exists, until)
    assert "(without 'C')" in (letters / "done").read_text()
    for site in THREE:
        ledger = dp.Ledger.open(tmp_path / site / "site.ledger")
        assert sum(bool(entry.events) for entry in ledger.entries) == 1
