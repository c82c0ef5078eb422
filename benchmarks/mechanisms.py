"""Seconds of each mechanism from the exact moments on, in units of one eigendecomposition.

    DPMODELS_DATA=../shared/data python benchmarks/mechanisms.py [--repeats 5]

60,000 rows of 784 columns (MNIST, or simulated rows of its shape), zCDP with
rho = 0.1; the release with what its estimate takes. Then one exact draw of a
direction after the eigendecomposition, and eight directions of 513 columns.
"""

import argparse
import os
import statistics
import time
from pathlib import Path

import numpy as np

import dpmodels as dp
from dpmodels.datasets.papers import paper_table
from dpmodels.design import private_design
from dpmodels.mechanisms import PPCA, Adaptive, Facts, Gauss, Projection, Separate, Shells
from dpmodels.noise import secure
from dpmodels.noise.bingham_frames import bingham_from_eigen
from dpmodels.postprocess import denoise
from dpmodels.privacy import adjacency

BESIDE = Path(__file__).parents[2] / "shared" / "data"


def median(function, repeats):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def whole(strategy, exact, plan):
    """Release, and denoise where the mechanism leaves that to the result."""
    release = strategy.release(exact, plan, secure())
    if isinstance(strategy, Gauss):
        denoise(release.second, release.noise.off)


def covariance(table, repeats):
    images = table.rows / 28
    columns = dict(zip(table.columns, images.T, strict=True))
    book = dp.codebook.uniform(list(columns), (0, 1 / 28))
    design = private_design("~ .", columns, book, center=False, scale=None, row_norm=1.0)
    facts = Facts(images.shape[1], adjacency("replace"), centred=False)
    second = images.T @ images
    unit = median(lambda: np.linalg.eigh(second), repeats)
    print(f"one numpy.linalg.eigh of {len(second)} columns: 1")
    for strategy in (Gauss(), Separate(), Projection(), Shells(), Adaptive(), Adaptive(None)):
        plan = strategy.plan(facts, dp.ZCDP(0.1))
        exact = strategy.measure(design, plan)
        seconds = median(lambda s=strategy, e=exact, p=plan: whole(s, e, p), repeats)
        print(f"{strategy!r:30s}{seconds / unit:8.2f}", flush=True)
    values, vectors = np.linalg.eigh(second)
    seconds = median(lambda: bingham_from_eigen(values / 10, vectors, secure()), 20)
    print(f"one exact direction, {1e3 * seconds:.1f} ms: {seconds / unit:.3f}", flush=True)


def subspace():
    table = paper_table("census", rows=20_000, folder=os.environ.get("DPMODELS_DATA", BESIDE))
    design = private_design(
        "~ .", table.columns, table.codebook, center=False, scale=None, row_norm="unit"
    )
    facts = Facts(513, adjacency("replace"), centred=False, components=8)
    plan = PPCA().plan(facts, dp.PureDP(0.1))
    exact = PPCA().measure(design, plan)
    seconds = median(lambda: PPCA().release(exact, plan, secure()), 1)
    print(f"ppca, 8 directions of 513 columns: {seconds:.1f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    words = parser.parse_args()
    table = paper_table("mnist", folder=os.environ.get("DPMODELS_DATA", BESIDE))
    covariance(table, words.repeats)
    subspace()


if __name__ == "__main__":
    main()
