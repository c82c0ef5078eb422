"""What is prediction of regressions, held against simulated releases.

    python benchmarks/prediction.py [--repeats 3]

Of compare_mechanisms: the error of the automatic choice over that of the best, the median and the
worst of five shapes of rows, and how long a call takes with a thousand times as many rows, in units
of the first. Of warnings: how many calls are warned of whose releases have standard errors in nine
runs of ten or more, and in one of ten or fewer, by shape.
"""

import argparse
import itertools
import statistics
import time
import warnings

import numpy as np

import dpmodels as dp
from dpmodels.errors import BudgetWarning

VERBS = {"gaussian": dp.dp_lm, "binomial": dp.dp_glm}
ONES = {"gaussian": "moments", "binomial": "objective"}


def book(columns, family):
    response = (0, 100) if family == "gaussian" else ["no", "yes"]
    return dp.codebook(y=response, **{f"x{number}": (0, 10) for number in range(columns)})


def automatic(family, repeats):
    print(f"\n{family}: auto over best, median and worst shape")
    for columns, n in itertools.product((3, 10), (1_000, 10_000, 100_000, 1_000_000)):
        cells = []
        for eps, delta in itertools.product((0.3, 1.0, 3.0), (0.0, 1e-6)):
            words = {"codebook": book(columns, family), "n": n, "eps": eps, "delta": delta}
            made = dp.compare_mechanisms("y ~ .", family=family, repeats=repeats, **words)
            cells.append(f"{made.behind.median():6.2f}{made.behind.max():6.2f}")
        print(f"{columns:3d} columns, n = {n:9,d}: " + " |".join(cells), flush=True)


def seconds(family):
    def taken(n):
        begun = time.perf_counter()
        words = {"codebook": book(5, family), "n": n, "eps": 1.0, "delta": 1e-6, "repeats": 1}
        dp.compare_mechanisms("y ~ .", family=family, **words)
        return time.perf_counter() - begun

    taken(10_000)
    pairs = [(taken(10_000), taken(10_000_000)) for _ in range(5)]
    few, many = map(statistics.median, zip(*pairs, strict=True))
    print(f"{family}: {few:.2f} s at n = 10,000; at a thousand times as many {many / few:.2f}")


def warned(family, columns, n, eps, delta):
    """Whether a call on so many rows, none of which matters, warns."""
    cells = {name: [0.0] * n for name in book(columns, family)} | (
        {"y": ["no"] * n} if family == "binomial" else {}
    )
    words = {"codebook": book(columns, family), "eps": eps, "delta": delta}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", BudgetWarning)
        VERBS[family]("y ~ .", cells, mechanism=ONES[family], **words)
    return bool(told)


def calibration(family, repeats):
    found = {}
    budgets = itertools.product(np.geomspace(0.03, 30, 9).tolist(), (0.0, 1e-6))
    for columns, (eps, delta), n in itertools.product((1, 4, 8), list(budgets), (1_000, 10_000)):
        words = {"codebook": book(columns, family), "n": n, "eps": eps, "delta": delta}
        words |= {"family": family, "mechanisms": [ONES[family]], "repeats": max(repeats, 2)}
        spoke = warned(family, columns, n, eps, delta)
        for line in dp.compare_mechanisms("y ~ .", **words).by_shape.to_dict("records"):
            found.setdefault(line["shape"], []).append((spoke, line["identified"]))
    print(f"\n{family}: share of calls warned of, of those with and without standard errors")
    for shape, lines in found.items():
        fine = [spoke for spoke, there in lines if there >= 0.9]
        none = [spoke for spoke, there in lines if there <= 0.1]
        shares = (f"{np.mean(own):6.2f} of {len(own):3d}" for own in (fine, none))
        print(f"{shape:10s}{'  '.join(shares)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    for family in VERBS:
        seconds(family)
    for family in VERBS:
        calibration(family, repeats)
    for family in VERBS:
        automatic(family, repeats)


if __name__ == "__main__":
    main()
