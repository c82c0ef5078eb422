"""A ledger's charges: in memory, and in a file beside the least that SQLite itself needs.

Run as ``python benchmarks/ledger.py``. Wanted: 10,000 charges of distinct budgets within 20 s in
memory, the last no dearer than the first; 100 charges a second and more in a file. The figures are
ratios of medians taken in turns in one run; seconds are printed for the two wants alone.
"""

import os
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from dpmodels.privacy import Event, GaussianEvent, Ledger, PureEvent

CHARGES = 10_000
WRITTEN = 300
END = 500
PLAIN = "INSERT INTO lines VALUES (?, ?)"


def event(number: int) -> Event:
    """Return a budget that no other charge has."""
    if number % 2:
        return PureEvent(0.1 + number * 1e-5)
    return GaussianEvent(5 + number * 1e-4)


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def in_memory() -> None:
    ledger = Ledger(eps=1e6, delta=1e-6)
    spent = [
        seconds(lambda own=number: ledger.charge([event(own)], adjacency="replace"))
        for number in range(CHARGES)
    ]
    growth = median(spent[-END:]) / median(spent[:END])
    print(f"in memory   {CHARGES:,} charges in {sum(spent):.1f} s; last to first {growth:.2f}")


def in_a_file(folder: Path) -> None:
    ledger = Ledger.open(folder / "study.ledger", eps=1e6, delta=1e-6, new=True)
    plain = sqlite3.connect(folder / "plain.db", isolation_level=None)
    plain.executescript("PRAGMA synchronous=EXTRA; CREATE TABLE lines (line INTEGER, text TEXT);")
    synced = os.open(folder / "plain.txt", os.O_WRONLY | os.O_CREAT)
    ours, theirs, least = [], [], []
    for number in range(WRITTEN):
        ours.append(seconds(lambda own=number: ledger.charge([event(own)], adjacency="replace")))
        theirs.append(
            seconds(
                lambda own=number: plain.execute("INSERT INTO lines VALUES (?, 'a line')", (own,))
            )
        )
        os.write(synced, b"a line")
        least.append(seconds(lambda: os.fsync(synced)))
    os.close(synced)
    plain.close()
    print(
        f"in a file   {1 / median(ours):.0f} charges a second; median {median(ours) * 1e3:.2f} ms"
    )
    print(f"            to one bare line of SQLite {median(ours) / median(theirs):.2f}")
    print(f"            to one sync of a file      {median(ours) / median(least):.2f}")
    print(f"            verify {WRITTEN} lines     {seconds(ledger.verify) * 1e3:.0f} ms")


if __name__ == "__main__":
    in_memory()
    with tempfile.TemporaryDirectory() as name:
        in_a_file(Path(name))
