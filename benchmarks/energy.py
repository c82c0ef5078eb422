"""Captured energy of private principal subspaces on the tables of the papers.

    DPMODELS_DATA=../shared/data python benchmarks/energy.py [--repeats 10]

kddcup99 (116 columns, 4 components) and census (513 columns, 8 components) of
Chaudhuri, Sarwate and Sinha (2012), rows on the unit sphere, second moments
about zero, alpha = 0.1; simulated rows of the same shape where the data folder
does not hold them. Shares of the non-private energy, mean over repetitions and
its standard error; ppca under both neighbourhoods beside what theory says is
lost, k (d - k) / (n alpha), half of it for add-remove.
"""

import argparse
import math
import os
from pathlib import Path

import numpy as np

import dpmodels as dp
from dpmodels.datasets.papers import paper_table
from dpmodels.design import private_design
from dpmodels.mechanisms import PPCA, AnalyzeGauss, Facts, Gauss, ModSulq, Random
from dpmodels.noise import source
from dpmodels.privacy import ApproxDP, PureDP, adjacency
from dpmodels.released import SubspaceRelease

BESIDE = Path(__file__).parents[2] / "shared" / "data"
ALPHA = 0.1
SIZES = {
    "kddcup99": (2_000, 10_000, 50_000, 200_000, 494_021),
    "census": (5_000, 20_000, 80_000, 199_523),
}
METHODS = {
    "ppca": (PPCA(), PureDP(ALPHA), "replace"),
    "ppca a/r": (PPCA(), PureDP(ALPHA), "add-remove"),
    "gauss 1e-6": (Gauss(), ApproxDP(ALPHA, 1e-6), "replace"),
    "analyze_gauss": (AnalyzeGauss(), ApproxDP(ALPHA, 1e-6), "replace"),
    "mod_sulq .01": (ModSulq(), ApproxDP(ALPHA, 0.01), "replace"),
    "random": (Random(), PureDP(ALPHA), "replace"),
}


def frame(release, components):
    if isinstance(release, SubspaceRelease):
        return release.frame
    return np.linalg.eigh(release.second)[1][:, -components:]


def shares(design, truth, components, repeats):
    """Share of the non-private energy in each run of each method."""
    top = np.linalg.eigvalsh(truth)[-components:].sum()
    measured, found = {}, {}
    for name, (strategy, guarantee, relation) in METHODS.items():
        facts = Facts(len(truth), adjacency(relation), False, components)
        plan = strategy.plan(facts, guarantee)
        if plan.lattice not in measured:
            measured[plan.lattice] = strategy.measure(design, plan)
        runs = []
        with dp.simulation(seed=1):
            for _ in range(repeats):
                vectors = frame(
                    strategy.release(measured[plan.lattice], plan, source()), components
                )
                runs.append(float(np.trace(vectors.T @ truth @ vectors)) / top)
        found[name] = np.array(runs)
    return top, found


def report(name, folder, repeats):
    table = paper_table(name, folder=folder)
    k, d = table.components, table.rows.shape[1]
    unit = table.rows / np.linalg.norm(table.rows, axis=1, keepdims=True)
    print(f"\n{table.name}, {d} columns, {k} components")
    print(
        f"{'rows':>9s}{'energy':>8s}{'  predicted ppca, a/r':>22s}"
        + "".join(f"{method:>16s}" for method in METHODS)
    )
    for rows in SIZES[name]:
        columns = {key: column[:rows] for key, column in table.columns.items()}
        design = private_design(
            "~ .", columns, table.codebook, center=False, scale=None, row_norm="unit"
        )
        top, found = shares(design, unit[:rows].T @ unit[:rows] / rows, k, repeats)
        lost = k * (d - k) / (rows * ALPHA) / top
        cells = "".join(
            f"{own.mean():9.4f} ±{own.std(ddof=1) / math.sqrt(repeats):.4f}"
            for own in found.values()
        )
        print(f"{rows:9,d}{top:8.4f}{1 - lost:13.4f}{1 - lost / 2:9.4f}{cells}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--tables", nargs="*", default=list(SIZES))
    words = parser.parse_args()
    folder = os.environ.get("DPMODELS_DATA", BESIDE)
    for name in words.tables:
        report(name, folder, words.repeats)


if __name__ == "__main__":
    main()
