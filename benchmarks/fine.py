"""Time and peak memory of histograms of very many bins, in a line and in a plane.

    python benchmarks/fine.py [--rows 1000000] [--quick]

Each release is made in a process of its own, with all that is made of it afterwards: the whole and
the unbiased counts, sums over a thousand ranges, the distribution function and quantiles; of the
plane sums over ten rectangles. Printed are seconds, the peak resident memory, and what is asked;
first those of the rows alone. Rows are heavy-tailed, most bins empty.
"""

import argparse
import resource
import subprocess
import sys
import time

import numpy as np

import dpmodels as dp

KINDS = {
    "rows alone": ("", None, None),
    "tree": ("~ x", 1_000_000, 10),
    "wavelet": ("~ x", 1_000_000, 10),
    "partition": ("~ x", 1_000_000, 10),
    "flat": ("~ x", 1_000_000, 10),
    "grid": ("~ x + y", (2_048, 2_048), 60),
}
QUICK = ("rows alone", "tree", "grid")
MOST_MB = 2_000


def one(kind, count):
    """Make one release and what is read from it; print seconds and MB."""
    rng = np.random.default_rng(1)
    rows = {name: np.minimum(rng.pareto(1.5, count), 100.0) for name in "xy"}
    formula, breaks, _ = KINDS[kind]
    began = released = time.perf_counter()
    if formula:
        book = dp.codebook(x=(0, 100), y=(0, 100))
        fit = dp.dp_hist(formula, rows, codebook=book, eps=1.0, breaks=breaks, mechanism=kind)
        released = time.perf_counter()
        total = int(fit.counts.sum())
        assert abs(total - fit.released.sum()) < max(0.1 * count, 10_000)
        ends = np.sort(rng.uniform(0, 100, (2, 1_000)), axis=0)
        if kind == "grid":
            fit.between(tuple(ends[:, :10]), (np.zeros(10), np.full(10, 50.0)))
        else:
            fit.between(*ends)
            fit.cdf()
            fit.quantile([0.1, 0.5, 0.9])
        str(fit.summary())
    done = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(released - began, done - began, peak)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--quick", action="store_true", help="tree and grid alone")
    parser.add_argument("--kind", choices=KINDS, help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.kind:
        one(words.kind, words.rows)
        return
    print(f"{words.rows:,} rows")
    print(f"{'':12s}{'release s':>12s}{'with all s':>12s}{'peak MB':>10s}   asked")
    for kind in QUICK if words.quick else KINDS:
        call = [sys.executable, __file__, "--rows", str(words.rows), "--kind", kind]
        output = subprocess.run(call, check=True, capture_output=True, text=True).stdout.split()
        first, all_of, peak = map(float, output)
        limit = KINDS[kind][2]
        requirement = f"<= {limit} s, {MOST_MB:,} MB" if limit else ""
        print(f"{kind:12s}{first:12.2f}{all_of:12.2f}{peak:10,.0f}   {requirement}", flush=True)


if __name__ == "__main__":
    main()
