"""Frobenius errors of denoised Gaussian releases beside the published mechanisms.

    DPMODELS_DATA=../shared/data python benchmarks/denoise.py [--repeats 10]

Second moments of the grids of "Differentially Private Covariance Revisited"
(Dong, Liang and Yi 2022): their Zipf synthetic, and MNIST where the data folder
holds mnist.npz. Neighbours replace one row, so the sensitivity is √2/rows.

- zero: the zero matrix.
- gauss: equal noise on and above the diagonal, then the nearest feasible matrix.
- separate: half the budget on the eigenvalues, half on a gauss release that
  gives the eigenvectors.
- psd, spiked, invariant, auto: one release in isometric coordinates, denoised.
- best: the same release and eigenvectors with the (unknown) best eigenvalues.
"""

import argparse
import math
import os
from pathlib import Path

import numpy as np

from dpmodels.postprocess.denoise import RULES, denoise_values, nearest_psd, psd_values

BESIDE = Path(__file__).parents[2] / "shared" / "data"
NAMES = ("zero", "gauss", "separate", "psd", "spiked", "invariant", "auto", "best")
PUBLISHED = ("zero", "gauss", "separate")
TRACE_CAP = 1.0


def zipf(columns, rows=50_000, power=3.0, bins=4):
    """Return the synthetic rows: correlated normals whose norms follow a Zipf law."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(rows, columns)) @ rng.uniform(size=(columns, columns))
    table -= table.mean(axis=0)
    weights = np.arange(1.0, bins + 1) ** -power
    norms = 2.0 ** (rng.choice(bins, rows, p=weights / weights.sum()) + 1 - bins)
    return table * (norms / np.linalg.norm(table, axis=1))[:, None]


def mnist(path, rows):
    with np.load(path) as data:
        table = data["x_train"][:rows].reshape(rows, -1)
    return table.astype(np.float32) / np.float32(255 * 28)


def symmetric(size, off, diagonal, rng):
    """Return symmetric normal noise of given standard deviations."""
    upper = np.triu(rng.normal(scale=off, size=(size, size)), 1)
    return upper + upper.T + np.diag(rng.normal(scale=diagonal, size=size))


def errors(second, rows, rho, rng):
    """Return the error of each method in one run."""
    size, sigma = len(second), 1 / (rows * math.sqrt(rho))
    truth = np.linalg.eigvalsh(second)
    square = float(truth @ truth)

    projected = nearest_psd(second + symmetric(size, sigma, sigma, rng), TRACE_CAP)
    wide = sigma * math.sqrt(2)
    _, vectors = np.linalg.eigh(second + symmetric(size, wide, wide, rng))
    bought = psd_values(truth + rng.normal(scale=wide, size=size), TRACE_CAP)
    errors = {
        "zero": math.sqrt(square),
        "gauss": np.linalg.norm(projected - second),
        "separate": np.linalg.norm((vectors * bought) @ vectors.T - second),
    }

    off = sigma / math.sqrt(2)
    values, vectors = np.linalg.eigh(second + symmetric(size, off, sigma, rng))
    along = ((second @ vectors) * vectors).sum(axis=0)
    candidates = {rule: denoise_values(values, off, rule, TRACE_CAP) for rule in RULES}
    for name, shrunk in {**candidates, "best": along}.items():
        errors[name] = math.sqrt(max(square - 2 * shrunk @ along + shrunk @ shrunk, 0.0))
    return [errors[name] for name in NAMES]


def report(title, table, budgets, repeats):
    second = np.asarray(table.T @ table, dtype=float) / len(table)
    for rho in budgets:
        rng = np.random.default_rng(1)
        runs = np.array([errors(second, len(table), rho, rng) for _ in range(repeats)])
        mean = dict(zip(NAMES, runs.mean(axis=0), strict=True))
        ratio = mean["auto"] / min(mean[name] for name in PUBLISHED)
        gap = runs[:, NAMES.index("auto")] - np.minimum(
            runs[:, NAMES.index("spiked")], runs[:, NAMES.index("invariant")]
        )
        spread = gap.std(ddof=1) / math.sqrt(repeats) if repeats > 1 else math.nan
        cells = "".join(f"{mean[name]:10.5f}" for name in NAMES)
        print(
            f"{title:>12s}{rho:6g}{cells}{ratio:8.2f}{gap.mean():10.5f} ±{spread:.5f}", flush=True
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--columns", type=int, nargs="*", default=[10, 50, 200, 800])
    words = parser.parse_args()
    heads = "".join(f"{name:>10s}" for name in NAMES)
    print(f"{'':>12s}{'rho':>6s}{heads}{'ratio':>8s}   auto - min(spiked, invariant)")
    for columns in words.columns:
        report(f"zipf {columns}", zipf(columns), (0.01, 0.1, 1.0), words.repeats)
    images = Path(os.environ.get("DPMODELS_DATA", BESIDE)) / "mnist.npz"
    if not images.exists():
        print(f"no MNIST: set DPMODELS_DATA to a folder that holds {images.name}")
        return
    for rows in (6_000, 60_000):
        report(f"mnist {rows}", mnist(images, rows), (0.01, 0.1, 1.0, 10.0), words.repeats)


if __name__ == "__main__":
    main()
