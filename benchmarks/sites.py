"""Rows at several sites: time, bytes sent and captured energy by protocol.

    python benchmarks/sites.py [--repeats 5] [--skip-time]

Time and bytes: 100 sites of 1,000 rows, 200 columns, in one process; wall clock
and CPU, numbers that a site sends (D R of 50 columns for the root, D (D + 1)/2
for a matrix, and the number of complete rows) and their bytes. Energy: 10 sites
of 2,000 rows, 200 columns, 50 components, falling eigenvalues, delta 10^-5,
second moments about zero; shares of the non-private energy of all rows, mean
over repetitions, and their ratio to pooled. Sums without a trusted aggregator
with one colluder, and with none.
"""

import argparse
import time

import numpy as np

import dpmodels as dp

COLUMNS, COMPONENTS = 200, 50
NAMES = [f"x{i}" for i in range(COLUMNS)]
BOOK = dp.codebook.uniform(NAMES, (-1, 1))
PROTOCOLS = {
    "pooled": "pooled",
    "cape, t = 0": dp.sites.Cape(0),
    "cape, t = 1": dp.sites.Cape(1),
    "secure_sum, t = 0": dp.sites.SecureSum(0),
    "secure_sum, t = 1": dp.sites.SecureSum(1),
    "dpdispca, R = K": dp.sites.DPdisPCA(COMPONENTS),
    "full": "full",
    "local": "local",
}


def rows(count, rng):
    """Rows of norm 1 at most with eigenvalues that fall as 1/i."""
    sds = 1 / np.sqrt(np.arange(1, COLUMNS + 1))
    columns = rng.normal(size=(count, COLUMNS)) * sds
    return columns / np.maximum(np.linalg.norm(columns, axis=1, keepdims=True), 1)


def fitted(sites, protocol, **words):
    options = {"codebook": BOOK, "scale": None, "center": False, "row_norm": 1.0}
    if protocol in ("pooled", "local"):
        options["mechanism"] = "gauss"
    tables = {name: dict(zip(NAMES, site_rows.T, strict=True)) for name, site_rows in sites.items()}
    return dp.dp_pca("~ .", sites=tables, protocol=protocol, ncomp=COMPONENTS, **options, **words)


def timed():
    rng = np.random.default_rng(1)
    sites = {f"s{k}": rows(1000, rng) for k in range(100)}
    print(f"{'protocol':20}{'seconds':>9}{'CPU':>7}{'numbers a site':>16}{'bytes':>10}")
    for name, protocol in PROTOCOLS.items():
        started, worked = time.perf_counter(), time.process_time()
        fit = fitted(sites, protocol, eps=1.0, delta=1e-5)
        np.asarray(fit.loadings)
        seconds, cpu = time.perf_counter() - started, time.process_time() - worked
        sent = fit.release.shared
        print(f"{name:20}{seconds:9.1f}{cpu:7.1f}{sent.numbers:16,}{sent.size:10,}", flush=True)


def energies(repeats):
    rng = np.random.default_rng(2)
    sites = {f"s{k}": rows(2000, rng) for k in range(10)}
    joined = np.concatenate(list(sites.values()))
    second = joined.T @ joined
    best = np.linalg.eigvalsh(second)[-COMPONENTS:].sum()
    grid = (0.1, 0.3, 1.0, 3.0, 10.0)
    print(f"\n{'share of energy':20}" + "".join(f"{f'eps={eps}':>10}" for eps in grid))
    errors = {}
    for name, protocol in PROTOCOLS.items():
        shares = []
        for eps in grid:
            runs = []
            for _ in range(repeats):
                frame = np.asarray(fitted(sites, protocol, eps=eps, delta=1e-5).loadings)
                runs.append(float(np.trace(frame.T @ second @ frame)) / best)
            shares.append(float(np.mean(runs)))
        errors[name] = np.array(shares)
        print(f"{name:20}" + "".join(f"{share:10.4f}" for share in shares), flush=True)
    print("\nratio to pooled")
    for name in [name for name in errors if name != "pooled"]:
        ratios = errors[name] / errors["pooled"]
        print(f"{name:20}" + "".join(f"{ratio:10.4f}" for ratio in ratios))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--skip-time", action="store_true")
    args = parser.parse_args()
    if not args.skip_time:
        timed()
    energies(args.repeats)


if __name__ == "__main__":
    main()
