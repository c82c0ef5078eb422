"""Histograms of 4,096 bins: sums from the first bin on, coverage of ranges, and what is chosen.

    python benchmarks/ranges.py [prefix] [gaussian] [between] [auto]
        [--shape costs INCOME] [--runs 40] [--quick]

- prefix: the error of all sums from the first bin on, |W x - y| / (bins * rows), at eps = 0.1 with
  a row more or fewer. Beside the unbiased counts of each mechanism what the whole ones have as a
  multiple of theirs, and the largest that is asked: for tree that of a prototype of it by least
  squares, for partition 1.1 times a prototype's, on those shapes for which one was run. `even` is
  the total alone, spread evenly: what an error should be below.
- gaussian: the same at rho = 0.005, and the root mean square of sums as a multiple of the least
  that any unbiased factorisation has, by the nuclear norm of running totals. The bound is for the
  noise of the sums alone; whole counts may be below it where rows are few.
- between: the share of 100 random ranges whose 95 % noise intervals hold the number in these rows,
  over all runs, and of the ranges the worst; the same for conf_int and the population's share.
- auto: the noise sd of the mean range by the exact law of each mechanism, over random ranges, and
  of a bin; which has the least, and which is chosen.

Shapes are those that DPBench made of public tables, where they are found in $DPMODELS_DATA or
../shared/data, and simulated ones; rows are drawn anew in each run, and mechanisms are compared on
the same rows. Numbers after +- are Monte-Carlo standard errors.
"""

import argparse
import math
import os
from pathlib import Path
from zlib import crc32

import numpy as np

import dpmodels as dp
from dpmodels.postprocess.ordered import within
from dpmodels.privacy import ZCDP, ApproxDP, PureDP

CELLS = 4096
SCALES = (1_000, 100_000)
EPS, RHO = 0.1, 0.005
PURE = ("flat", "tree", "wavelet", "partition")
GAUSSIAN = ("flat", "factorisation", "tree", "wavelet", "partition")
LAWFUL = {"pure": ("flat", "tree", "wavelet"), "gaussian": GAUSSIAN[:-1]}
# Of prototypes, by the scale: (tree, partition); of a tree it depends on no shape, but for runs.
TREE = {1_000: 2.3e-3, 100_000: 2.2e-5}
ASKED = {
    ("ADULTFRANK", 1_000): (2.3e-3, 1.0e-3),
    ("ADULTFRANK", 100_000): (2.2e-5, 2.1e-5),
    ("HEPTH", 1_000): (2.4e-3, 9.8e-4),
    ("HEPTH", 100_000): (2.8e-5, 2.5e-5),
    ("INCOME", 100_000): (2.2e-5, 1.7e-5),
    ("costs", 1_000): (2.3e-3, 5.1e-4),
    ("costs", 100_000): (2.2e-5, 1.7e-5),
}


def costs():
    """Return a shape as costs have it: many small ones, a long tail, three cells of four empty."""
    rng = np.random.default_rng(5)
    at = np.arange(CELLS) + 0.5
    density = np.exp(-((np.log(at / 60) / 1.1) ** 2) / 2) / at
    rows = rng.multinomial(9_415, density / density.sum())
    return rows / rows.sum()


def all_shapes():
    shapes_used = dp.shapes.standard(CELLS) | {"costs": costs()}
    place = Path(os.environ.get("DPMODELS_DATA", "../shared/data")) / "dpbench_1d.npz"
    if place.exists():
        with np.load(place) as tables:
            shapes_used |= {name: tables[name] / tables[name].sum() for name in tables.files}
    return shapes_used


def fitted(counts, mechanism, seed, **words):
    cells = len(counts)
    rows = {"x": np.repeat(np.arange(cells) + 0.5, counts)}
    book = dp.codebook(x=(0, cells))
    words = {"adjacency": "add-remove"} | words
    with dp.simulation(seed=seed):
        return dp.dp_hist("~ x", rows, codebook=book, breaks=cells, mechanism=mechanism, **words)


def sums_error(estimates, counts):
    """Return |W e| / (cells * rows) for sums from the first cell on."""
    return float(np.linalg.norm(np.cumsum(estimates - counts))) / (len(counts) * counts.sum())


def errors(name, shares, scale, mechanisms, budget, runs):
    """Return errors by run and mechanism, unbiased and whole, and of the even spread."""
    own = crc32(f"{name} {scale} {sorted(budget)}".encode())
    rng = np.random.default_rng(own)
    unbiased, combined, even = [], [], []
    for seed in range(own, own + runs):
        counts = rng.multinomial(scale, shares)
        fits = [fitted(counts, name, seed, **budget) for name in mechanisms]
        unbiased.append([sums_error(fit.released.to_numpy(), counts) for fit in fits])
        combined.append([sums_error(fit.counts.to_numpy(), counts) for fit in fits])
        even.append(sums_error(np.full(len(counts), scale / len(counts)), counts))
    return np.array(unbiased), np.array(combined), float(np.mean(even))


def shown(values):
    """Return a mean and its Monte-Carlo error."""
    return f"{values.mean():.2e} +-{values.std(ddof=1) / math.sqrt(len(values)):.0e}"


def ratio(numerator, denominator):
    """Return the ratio of means over the same runs, and its Monte-Carlo error."""
    share = numerator.mean() / denominator.mean()
    spread = (
        (numerator - share * denominator).std(ddof=1)
        / math.sqrt(len(numerator))
        / denominator.mean()
    )
    return f"{share:.3f} +-{spread:.3f}"


def prefix(runs, shapes):
    print(f"\nSums from the first of {CELLS:,} bins on, eps = {EPS:g}, {runs} runs")
    print(f"{'':24s}{'even':>9s}" + "".join(f"{name:>18s}{'whole':>15s}" for name in PURE))
    for name, shares in shapes.items():
        for scale in SCALES:
            unbiased, combined, even = errors(name, shares, scale, PURE, {"eps": EPS}, runs)
            line = "".join(
                f"{shown(plain):>18s}{ratio(together, plain):>15s}"
                for plain, together in zip(unbiased.T, combined.T, strict=True)
            )
            tree, partition = ASKED.get((name, scale), (TREE[scale], math.nan))
            requirement = f"   tree {tree:.1e}, partition {1.1 * partition:.2e}"
            print(f"{name:13s}{scale:>10,} {even:9.1e}{line}{requirement}", flush=True)


def least(cells):
    """Return the least root mean square of running totals by noise of variance 1/(2 rho)."""
    k = np.arange(1, cells + 1)
    singular = 1 / (2 * np.sin((2 * k - 1) * math.pi / (2 * (2 * cells + 1))))
    return singular.sum() / cells / math.sqrt(2 * RHO)


def gaussian(runs, shapes):
    print(f"\nThe same at rho = {RHO:g}, and the root mean square over the least there is")
    print(f"{'':23s}" + "".join(f"{name:>18s}{'whole':>15s}{'least':>7s}" for name in GAUSSIAN))
    for name, shares in shapes.items():
        for scale in SCALES:
            unbiased, combined, _ = errors(
                name, shares, scale, GAUSSIAN, {"budget": ZCDP(RHO)}, runs
            )
            bound = least(CELLS) / math.sqrt(CELLS) / scale
            line = "".join(
                f"{shown(plain):>18s}{ratio(together, plain):>15s}"
                f"{math.sqrt(np.mean(plain**2)) / bound:7.3f}"
                for plain, together in zip(unbiased.T, combined.T, strict=True)
            )
            print(f"{name:13s}{scale:>10,}{line}", flush=True)


def covered(hits):
    """Return the share of all hits, its error by runs, and the worst range's."""
    rates = hits.mean(axis=1)
    spread = rates.std(ddof=1) / math.sqrt(len(rates))
    return f"{hits.mean():.4f} +-{spread:.4f} (worst {hits.mean(axis=0).min():.3f})"


def between(runs, _):
    print(f"\n95 % intervals of 100 random ranges of {CELLS:,} bins, {runs} runs")
    rng = np.random.default_rng(3)
    starts, stops = np.sort(rng.choice(CELLS + 1, (2, 100), replace=False), axis=0)
    budgets = {"pure": {"eps": EPS}, "gaussian": {"budget": ZCDP(RHO)}}
    for shape in ("sparse", "smooth", "spiky", "heavy-tailed"):
        shares = dp.shapes.standard(CELLS)[shape]
        true = np.diff(np.append(0, np.cumsum(shares))[[starts, stops]], axis=0)[0]
        for neighbours in ("add-remove", "replace"):
            for law, names in LAWFUL.items():
                for name in names:
                    noise, population = [], []
                    first = crc32(f"{shape} {neighbours} {law} {name}".encode())
                    for seed in range(first, first + runs):
                        counts = rng.multinomial(20_000, shares)
                        words = budgets[law] | {"adjacency": neighbours}
                        estimates = fitted(counts, name, seed, **words).between(starts, stops)
                        exact = np.diff(np.append(0, np.cumsum(counts))[[starts, stops]], axis=0)[0]
                        noise.append(
                            (estimates.noise_low <= exact) & (exact <= estimates.noise_high)
                        )
                        population.append(
                            (estimates.conf_low <= true) & (true <= estimates.conf_high)
                        )
                    line = f"{covered(np.array(noise))}   {covered(np.array(population))}"
                    print(f"{shape:14s}{neighbours:12s}{law:10s}{name:15s}{line}", flush=True)


def noise_sds(cells, mechanism, **words):
    """Return the noise sd of the mean range, of 2,000 random ones, and of a bin."""
    fit = fitted(np.zeros(cells, dtype=int), mechanism, 0, **words)
    rng = np.random.default_rng(4)
    first, second = rng.integers(0, cells + 1, (2, 2_000))
    starts, stops = np.minimum(first, second), np.maximum(first, second)
    is_range = stops > starts
    ones = np.ones(is_range.sum())
    spread = within(fit.ordered, starts[is_range], stops[is_range], ones, 0 * ones)
    sd = fit.release.noise_sd
    return sd * math.sqrt(spread.squares.mean()), math.sqrt(np.mean(fit.noise_sd**2))


def auto(*_):
    print("\nNoise sd of the mean range, and of a bin")
    names = ("flat", "tree", "wavelet", "factorisation")
    print(f"{'':32s}" + "".join(f"{name:>20s}" for name in names) + "   least, chosen")
    for budget in (PureDP(EPS), ApproxDP(1.0, 1e-6), ZCDP(RHO)):
        for neighbours in ("add-remove", "replace"):
            for cells in (10, 40, 64, 256, 1_024, 4_096, 16_384, 32_768, 65_536):
                words = {"budget": budget, "adjacency": neighbours}
                last = 3 if isinstance(budget, PureDP) or cells > 32_768 else 4
                sds = {name: noise_sds(cells, name, **words) for name in names[:last]}
                chosen = fitted(np.zeros(cells, dtype=int), "auto", 0, **words).release.info.name
                chosen = "flat" if chosen in ("geometric", "gaussian") else chosen
                best = min(sds, key=lambda name: sds[name][0])
                over = sds[chosen][0] / sds[best][0]
                line = "".join(
                    f"{'{:10.1f} ({:7.1f})'.format(*sds[name]) if name in sds else '-':>20s}"
                    for name in names
                )
                about = f"{type(budget).__name__} {neighbours} {cells:,}"
                print(f"{about:32s}{line}   {best}, {chosen} ({over:.2f})", flush=True)


PARTS = {"prefix": prefix, "gaussian": gaussian, "between": between, "auto": auto}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="*", metavar="part", help=", ".join(PARTS))
    parser.add_argument("--shape", nargs="*", help="all, if none is named")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--quick", action="store_true", help="20 runs")
    words = parser.parse_args()
    shapes_known = all_shapes()
    shapes = {name: shapes_known[name] for name in words.shape or shapes_known}
    for part in words.part or PARTS:
        PARTS[part](20 if words.quick else words.runs, shapes)


if __name__ == "__main__":
    main()
