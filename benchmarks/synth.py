"""Synthetic tables from released margins: errors beside independent columns and peers, and time.

    python benchmarks/synth.py [adult] [simulated] [sizes] [penalty] [peers] [--runs 3]

Errors are mean total variation distances of margins of 1, 2 and 3 columns between synthetic and
real rows, with add-remove neighbours and as many synthetic rows as real ones; missing values are a
level. Everything runs inside `dp.simulation`.

- adult: 13 columns of the shared table, numbers in 3 to 10 cells; beside independent columns from
  the same release, and real rows resampled.
- simulated: mixtures, chains, coded surveys and independent columns, of 3,000 to 100,000 rows.
- sizes: CPU seconds of 40 columns with 6 levels and of 100 with 10, 50,000 rows each, counting
  rows included.
- penalty: the error of three-way margins by the penalty over that of the best, on simulated tables;
  the rule of `dpmodels.postprocess.graphical.fit.strength` is tuned by it.
- peers: MST and AIM of dpmm on the same rows of Adult, where the environment variable
  DPMODELS_DPMM names a Python interpreter that has dpmm.
"""

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

import dpmodels as dp
from dpmodels.mechanisms import Graph
from dpmodels.mechanisms.protocol import MarginFacts
from dpmodels.noise import source
from dpmodels.postprocess.graphical.fit import fit_model, strength
from dpmodels.postprocess.graphical.measurements import combined, rounds_of
from dpmodels.postprocess.graphical.sampling import sample
from dpmodels.postprocess.graphical.structure import structure_of
from dpmodels.privacy import ZCDP, adjacency
from dpmodels.statistics import Statistic

DATA = Path(os.environ.get("DPMODELS_DATA", "../shared/data"))
MOST_MARGINS = 400

PEER = """
import sys, time
import pandas as pd
from dpmm.models.base.mechanisms.cdp2adp import cdp_eps
from dpmm.pipelines import AIMPipeline, MSTPipeline
path, kind, rho, target = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
rows = pd.read_csv(path)
make = {"mst": MSTPipeline, "aim": AIMPipeline}[kind]
start = time.process_time()
pipeline = make(epsilon=cdp_eps(rho, 1e-9), delta=1e-9, disable_processing=True, n_jobs=1)
pipeline.fit(rows, domain={name: int(rows[name].max()) + 1 for name in rows})
pipeline.generate(n_records=len(rows)).to_csv(target, index=False)
print(time.process_time() - start)
"""


def adult():
    rows = pd.read_parquet(DATA / "adult.parquet")
    cuts = {
        "age": [0, 20, 25, 30, 35, 40, 45, 50, 55, 65, 100],
        "capital_gain": [-1, 0, 5_000, 10_000, 200_000],
        "capital_loss": [-1, 0, 1_800, 10_000],
        "hours_per_week": [0, 20, 30, 39, 40, 45, 50, 60, 100],
    }
    columns = {name: pd.cut(rows[name], edges, labels=False) for name, edges in cuts.items()}
    kinds = "workclass education marital_status occupation relationship race sex native_country"
    for name in [*kinds.split(), "income"]:
        codes = rows[name].cat.codes
        columns[name] = codes.where(codes >= 0, codes.max() + 1)
    return with_sizes(pd.DataFrame(columns).to_numpy(np.int64))


def with_sizes(codes):
    """Add one level to each column, for what is missing."""
    return codes, tuple((codes.max(axis=0) + 2).tolist())


def mixture(n_rows, levels, classes, rng):
    of = rng.choice(classes, n_rows, p=rng.dirichlet(np.ones(classes)))
    columns = []
    for n_levels in levels:
        base = rng.dirichlet(np.full(n_levels, 0.7))
        running = np.cumsum(rng.dirichlet(2 * n_levels * base + 0.02, classes), axis=1)
        above = running[of] < rng.random(n_rows)[:, None]
        columns.append(np.minimum(above.sum(axis=1), n_levels - 1))
    return with_sizes(np.column_stack(columns))


def chain(n_rows, levels, correlation, rng):
    scores = [rng.normal(size=n_rows)]
    for _ in levels[1:]:
        parent = scores[rng.integers(max(0, len(scores) - 3), len(scores))]
        slope = correlation * rng.uniform(0.3, 1)
        scores.append(slope * parent + math.sqrt(1 - slope**2) * rng.normal(size=n_rows))
    cuts = [np.cumsum(rng.dirichlet(np.full(n_levels, 2.0)))[:-1] for n_levels in levels]
    pairs = zip(scores, cuts, strict=True)
    return with_sizes(np.column_stack([np.searchsorted(np.quantile(z, c), z) for z, c in pairs]))


def survey(n_rows, levels, noise, rng):
    """Columns that are functions of two earlier ones, but for some of the rows."""
    columns = []
    for n_levels in levels:
        shares = rng.dirichlet(np.ones(n_levels))
        fresh = rng.choice(n_levels, n_rows, p=shares)
        if len(columns) > 1:
            first, second = rng.choice(len(columns), 2, replace=False)
            sizes = (levels[first], levels[second])
            value = rng.choice(n_levels, sizes, p=shares)[columns[first], columns[second]]
            fresh = np.where(rng.random(n_rows) < noise * rng.uniform(0.1, 1), fresh, value)
        columns.append(fresh)
    return with_sizes(np.column_stack(columns))


def independent(n_rows, levels, rng):
    return with_sizes(np.column_stack([rng.integers(0, n_levels, n_rows) for n_levels in levels]))


def simulated_tables():
    rng = np.random.default_rng(0)
    return {
        "mixture, 100,000 rows": mixture(100_000, rng.integers(2, 16, 12), 6, rng),
        "mixture, 5,000 rows": mixture(5_000, rng.integers(2, 16, 12), 6, rng),
        "chain, 40,000 rows": chain(40_000, rng.integers(2, 12, 14), 0.9, rng),
        "survey, 20,000 rows": survey(20_000, rng.integers(2, 10, 16), 0.6, rng),
        "independent, 10,000 rows": independent(10_000, rng.integers(2, 8, 10), rng),
        "chain of 40, 9,822 rows": chain(9_822, [6] * 40, 0.8, rng),
    }


def counts(codes, sizes, term):
    flat = np.ravel_multi_index([codes[:, i] for i in term], [sizes[i] for i in term])
    return np.bincount(flat, minlength=math.prod(sizes[i] for i in term))


def released(codes, sizes, rho):
    pairs = tuple(combinations(range(len(sizes)), 2))
    facts = MarginFacts(sizes, pairs, adjacency("add-remove"))
    exact = np.concatenate([counts(codes, sizes, term) for term in facts.largest])
    plan = Graph().plan(facts, ZCDP(rho))
    release = Graph().release(
        Statistic("margins", exact.astype(object), len(codes)), plan, source()
    )
    return combined(*rounds_of(release, sizes)), structure_of(release.margins[-1], sizes)


def errors(codes, other, sizes):
    found = []
    for k in (1, 2, 3):
        terms = list(combinations(range(len(sizes)), k))
        terms = terms[:: 1 + len(terms) // MOST_MARGINS]
        apart = [
            np.abs(
                counts(codes, sizes, term) / len(codes) - counts(other, sizes, term) / len(other)
            )
            for term in terms
        ]
        found.append(float(np.mean([0.5 * cells.sum() for cells in apart])))
    return np.array(found)


def line(name, found, *rest):
    print(f"{name:34s}", *(f"{error:7.4f}" for error in found), *rest, flush=True)


def compare(name, codes, sizes, runs, budgets):
    for rho in budgets:
        ours, alone, seconds, edges = [], [], [], []
        for seed in range(runs):
            with dp.simulation(seed=seed):
                start = time.process_time()
                both, tree = released(codes, sizes, rho)
                rows = sample(fit_model(both, tree), len(codes), source())
                seconds.append(time.process_time() - start)
                plain = sample(fit_model(both, structure_of([], sizes)), len(codes), source())
            ours.append(errors(codes, rows, sizes))
            alone.append(errors(codes, plain, sizes))
            edges.append(len(tree.edges))
        line(f"{name}, rho {rho:g}", np.mean(ours, axis=0), f"{np.mean(seconds):6.1f} s CPU")
        line("  independent columns", np.mean(alone, axis=0), f"{np.mean(edges):6.1f} edges")


def run_adult(runs):
    codes, sizes = adult()
    compare("Adult", codes, sizes, runs, (0.2, 0.02, 0.002))
    again = codes[np.random.default_rng(0).integers(0, len(codes), len(codes))]
    line("  rows resampled", errors(codes, again, sizes))


def run_simulated(runs):
    for name, (codes, sizes) in simulated_tables().items():
        compare(name, codes, sizes, runs, (0.02, 0.002))


def run_sizes(runs):
    rng = np.random.default_rng(1)
    for columns, levels in ((40, 6), (100, 10)):
        codes, sizes = chain(50_000, [levels] * columns, 0.8, rng)
        compare(f"{columns} columns of {levels} levels", codes, sizes, 1, (0.02,))


def run_penalty(runs):
    factors = (0.1, 0.3, 1.0, 3.0, 10.0)
    print("three-way error by penalty over the rule's:", *factors)
    for name, (codes, sizes) in simulated_tables().items():
        for rho in (0.2, 0.02, 0.002):
            with dp.simulation(seed=1):
                both, tree = released(codes, sizes, rho)
                rule = strength(both, tree)
                fits = [fit_model(both, tree, penalty=rule * factor) for factor in factors]
                rows = [sample(model, len(codes), source()) for model in fits]
            line(f"{name}, rho {rho:g}", [errors(codes, other, sizes)[2] for other in rows])


def run_peers(runs):
    python = os.environ.get("DPMODELS_DPMM")
    if python is None:
        print("peers: DPMODELS_DPMM is not set")
        return
    codes, sizes = adult()
    with tempfile.TemporaryDirectory() as folder:
        path, target = Path(folder) / "rows.csv", Path(folder) / "synthetic.csv"
        names = [f"v{i}" for i in range(len(sizes))]
        pd.DataFrame(codes, columns=names).to_csv(path, index=False)
        for kind in ("mst", "aim"):
            for rho in (0.02, 0.002):
                words = [python, "-c", PEER, str(path), kind, str(rho), str(target)]
                answer = subprocess.run(words, capture_output=True, text=True, check=False)
                if answer.returncode:
                    print(f"{kind} of dpmm, rho {rho:g}: {answer.stderr.strip().splitlines()[-1]}")
                    continue
                other = pd.read_csv(target)[names].fillna(0).to_numpy(np.int64)
                found = errors(codes, np.clip(other, 0, np.array(sizes) - 1), sizes)
                seconds = float(answer.stdout.split()[-1])
                line(f"{kind} of dpmm, rho {rho:g}", found, f"{seconds:6.1f} s CPU")


PARTS = {
    "adult": run_adult,
    "simulated": run_simulated,
    "sizes": run_sizes,
    "penalty": run_penalty,
    "peers": run_peers,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    print(f"{'errors of margins of':34s}", *(f"{k:7d}" for k in (1, 2, 3)), "columns")
    for part in options.parts or PARTS:
        PARTS[part](options.runs)


if __name__ == "__main__":
    sys.exit(main())
