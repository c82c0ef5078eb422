"""A ledger's charges: in memory, and in a file beside the least that SQLite itself needs.

Run as ``python benchmarks/ledger.py``. Wanted: 10,000 charges of distinct budgets within 20 s in
memory, the last as cheap as the first; 100 charges a second and more in a file. The figures are
ratios of medians taken in turns in one run; seconds are printed for the two wants alone.

Bills of two regressions of eps = .5 and a histogram of eps = 1 in all six orders, of a ledger of
eps = 3 and delta = 1e-6, by the rule of `Ledger` and by "steps": wanted equal, and at most 1.30
with the noise that ``"auto"`` chooses in a session. What "steps" costs Gaussian releases alone.
"""

import itertools
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

import dpmodels as dp
from dpmodels.privacy import ApproxDP, Event, GaussianEvent, Ledger, PureEvent, gaussian_multiplier

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


def in_memory(rule: str | None = None) -> None:
    ledger = Ledger(eps=1e6, delta=1e-6, rule=rule)
    spent = [
        seconds(lambda amount=number: ledger.charge([event(amount)], adjacency="replace"))
        for number in range(CHARGES)
    ]
    growth = median(spent[-END:]) / median(spent[:END])
    print(
        f"in memory   {rule or 'default'}: {CHARGES:,} charges in {sum(spent):.1f} s; "
        f"last to first {growth:.2f}"
    )


def in_a_file(folder: Path) -> None:
    ledger = Ledger.open(folder / "study.ledger", eps=1e6, delta=1e-6, new=True)
    plain = sqlite3.connect(folder / "plain.db", isolation_level=None)
    plain.executescript("PRAGMA synchronous=EXTRA; CREATE TABLE lines (line INTEGER, text TEXT);")
    synced = os.open(folder / "plain.txt", os.O_WRONLY | os.O_CREAT)
    ours, reference, smallest = [], [], []
    for number in range(WRITTEN):
        ours.append(
            seconds(lambda amount=number: ledger.charge([event(amount)], adjacency="replace"))
        )
        reference.append(
            seconds(
                lambda amount=number: plain.execute(
                    "INSERT INTO lines VALUES (?, 'a line')", (amount,)
                )
            )
        )
        os.write(synced, b"a line")
        smallest.append(seconds(lambda: os.fsync(synced)))
    os.close(synced)
    plain.close()
    print(
        f"in a file   {1 / median(ours):.0f} charges a second; median {median(ours) * 1e3:.2f} ms"
    )
    print(f"            to one bare line of SQLite {median(ours) / median(reference):.2f}")
    print(f"            to one sync of a file      {median(ours) / median(smallest):.2f}")
    print(f"            verify {WRITTEN} lines     {seconds(ledger.verify) * 1e3:.0f} ms")


def at_1000_releases(rule: str | None) -> None:
    """Print the time of a charge of two kinds of noise after a thousand of each."""
    ledger = Ledger(eps=1e3, delta=1e-6, rule=rule)
    for number in range(1000):
        ledger.charge([event(number)], adjacency="replace")
    spent = [
        seconds(lambda amount=number: ledger.charge([event(amount)], adjacency="replace"))
        for number in range(1000, 1200)
    ]
    print(f"at 1,000    {rule or 'default'}: {median(spent) * 1e3:.2f} ms a charge")


def gaussian(eps: float) -> GaussianEvent:
    return GaussianEvent(gaussian_multiplier(ApproxDP(eps, 1e-6)))


def bills() -> None:
    """Print the least and the largest bill of three releases over their orders."""
    for name, third in (("geometric", PureEvent(1.0)), ("gaussian", gaussian(1.0))):
        for rule in (None, "steps"):
            amounts = []
            for order in itertools.permutations([gaussian(0.5), gaussian(0.5), third]):
                ledger = Ledger(3.0, 1e-6, rule=rule)
                for released in order:
                    ledger.charge([released], adjacency="replace")
                amounts.append(ledger.spent.amount)
            spread = f"{min(amounts):.3f} to {max(amounts):.3f}"
            print(f"six orders  {name} histogram, {rule or 'default'}: {spread}")


def session_bills() -> None:
    """Print the bills of a session's calls, whose noise is chosen."""
    rng, n_rows = np.random.default_rng(1), 2000
    rows = {
        "x": rng.uniform(0, 100, n_rows),
        "y": rng.uniform(0, 80, n_rows),
        "z": rng.integers(0, 2, n_rows).astype(float),
    }
    codebook = dp.codebook(x=(0, 100), y=(0, 80), z=(0, 1))
    calls = (("lm", "y ~ x", 0.5), ("glm", "z ~ x", 0.5), ("hist", "~ x", 1.0))
    amounts = []
    for order in itertools.permutations(calls):
        session = dp.session(rows, codebook, eps=3.0, delta=1e-6)
        for verb, formula, eps in order:
            getattr(session, verb)(formula, eps=eps)
        amounts.append(session.spent.amount)
    print(f"six orders  session: {min(amounts):.4f} to {max(amounts):.4f}")


def of_gaussian_noise_alone() -> None:
    for eps in (0.2, 1.0, 5.0):
        costs = []
        for rule in (None, "steps"):
            ledger = Ledger(2 * eps, 1e-6, rule=rule)
            ledger.charge([gaussian(eps / 2)], adjacency="replace")
            ledger.charge([gaussian(eps / 2)], adjacency="replace")
            costs.append(ledger.spent.amount)
        print(f"gaussian    two of eps = {eps / 2:g}: {costs[1] / costs[0] - 1:+.2%} by steps")


if __name__ == "__main__":
    bills()
    session_bills()
    of_gaussian_noise_alone()
    for chosen in (None, "steps"):
        at_1000_releases(chosen)
        in_memory(chosen)
    with tempfile.TemporaryDirectory() as name:
        in_a_file(Path(name))
