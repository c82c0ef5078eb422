"""Processes that are killed at any moment: no charge is lost, and no file is half there."""

import json
import os
import random
import shutil
import signal
import time
from collections import Counter
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from itertools import count

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import LedgerError
from dpmodels.privacy import Ledger
from dpmodels.sites.message import read_message

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

BOOK = dp.codebook(y=(0, 1))
ROWS = {"y": np.linspace(0, 1, 20)}
TOGETHER = 4
EACH = dp.ZCDP(2.0**-10)
AGREED = {"codebook": BOOK, "verb": "mean", "budget": EACH, "protocol": "secure_sum"}


def asks(ledger, folder, acknowledged):
    """Ask, acknowledge each charge as soon as it is made, save what comes out; without end.

    Every other release is a site's part of a joint one, with a key of its own.
    """
    charge = Ledger.charge

    def told(*words, **options):
        entry = charge(*words, **options)
        os.write(acknowledged, f"{entry.number} {entry.hash}\n".encode())
        return entry

    Ledger.charge = told
    for number in count():
        path_of_writer = folder / f"{os.getpid()}-{number}"
        with suppress(LedgerError):
            if number % 2:
                fit = dp.dp_mean("~ y", ROWS, codebook=BOOK, budget=EACH, ledger=ledger)
                fit.save(path_of_writer.with_suffix(".nc"))
            else:
                letter(path_of_writer, ledger)


def letter(value, ledger):
    """Write a site's letter, masked by a new key."""
    key = value.with_suffix(".key")
    cards = [dp.site_key("A", key), value.parent / "B.key.card"]
    words = {"site": "A", "session": value.name, "key": key, "cards": cards, "ledger": ledger}
    dp.site_release("~ y", ROWS, value.with_suffix(".json"), **words, **AGREED)


def killed(ledger, folder, write, limit):
    """Let some processes ask together, and kill each at a moment of its own."""
    children = []
    for _ in range(TOGETHER):
        child = os.fork()
        if child == 0:
            try:
                asks(ledger, folder, write)
            finally:
                os._exit(1)
        children.append(child)
    ends = sorted((random.uniform(0, limit), child) for child in children)
    started, statuses = time.monotonic(), []
    for end, child in ends:
        time.sleep(max(started + end - time.monotonic(), 0))
        os.kill(child, signal.SIGKILL)
        statuses.append(os.waitpid(child, 0)[1])
    return statuses


def copies_and_hashes(path, copy):
    """Copy and hash the ledger and its lock file, without end."""
    while True:
        for file in (path, path.with_name(f"{path.name}.lock")):
            sha256(shutil.copyfile(file, copy).read_bytes())


@contextmanager
def copied_meanwhile(path):
    """Let another process copy and hash the ledger as long as the block lasts."""
    child = os.fork()
    if child == 0:
        try:
            copies_and_hashes(path, path.with_name("copy"))
        finally:
            os._exit(1)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
    assert status == signal.SIGKILL  # It copied to the end


def survives(folder, kills, limit):
    """Kill so many, and look at what they leave; the budget is for some of what they ask."""
    path = folder / "study.ledger"
    budget = EACH.rho * kills * 4
    shared = Ledger.open(path, budget=dp.ZCDP(budget), new=True)
    # What is imported on the way is imported here, so that the children lose no time on it.
    dp.dp_mean("~ y", ROWS, codebook=BOOK, budget=EACH).save(folder / "first.nc")
    dp.site_key("B", folder / "B.key")
    letter(folder / "first", Ledger.open(folder / "first.ledger", budget=EACH, new=True))
    output = b""
    with copied_meanwhile(path):
        for _ in range(kills // TOGETHER):
            read, write = os.pipe()
            statuses = killed(shared, folder, write, limit)
            os.close(write)
            with closing(os.fdopen(read, "rb")) as pipe:
                output += pipe.read()
            assert statuses == [signal.SIGKILL] * TOGETHER
    ledger = Ledger.open(path)
    ledger.verify()
    register = ledger.register()
    recorded = {(entry.number, entry.hash) for entry in ledger.entries}
    acknowledged = {(int(a), b) for a, b in (line.split() for line in output.decode().splitlines())}
    assert acknowledged <= recorded
    assert ledger.spent.amount == pytest.approx(EACH.rho * len(recorded), rel=1e-6)
    assert ledger.spent.amount <= budget * (1 + 1e-12)
    letters = sorted(folder.glob("*-*.json"))
    digests = set(register["digest"])
    for file in letters:
        read_message(file)
        assert json.loads(file.read_text())["sha256"] in digests
        assert file.with_suffix(".key.used").exists()
        assert "private" not in file.with_suffix(".key").read_text()
    files = sorted(folder.glob("*-*.nc"))
    for file in files:
        assert dp.load(file).call.ledger
    states = Counter(register["state"])
    assert states["released"] >= len(files) + len(letters)
    assert states["released"] + states["charged"] == len(register)
    counts = {"files": len(files), "letters": len(letters), **states}
    return {"charges": len(recorded), "acknowledged": len(acknowledged), **counts}


@pytest.mark.product
def test_processes_killed_at_any_moment_lose_no_charge(tmp_path):
    left = survives(tmp_path, 40, 0.1)
    assert left["acknowledged"] > 0


@pytest.mark.slow
def test_a_thousand_killed_processes_lose_no_charge(tmp_path, reduced):
    left = survives(tmp_path, 200 if reduced else 1000, 0.15)
    assert left["files"] > 0
    assert left["letters"] > 0
    print(left)
