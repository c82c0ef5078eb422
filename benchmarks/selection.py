"""The commonest levels by every mechanism, and by what they are compared with: rows that are lost.

    python benchmarks/selection.py [levels] [columns] [gain] [speed] [--runs 200] [--quick]

- levels: rows of the true first k less those of the k that were named, on average, at eps = 1 with
  a row replaced, as a multiple of the exponential mechanism's (peeling), nan where that lost none;
  and what "auto" takes.
  Beside the package's mechanisms in floating point, for comparison alone: `max` takes the largest
  of counts with Laplace noise once for each name, `one_shot` the k largest with Laplace noise of
  scale 2 k/eps (Qiao, Su and Zhang 2021), `joint` draws the whole list by the exponential mechanism
  on its worst place (Gillenwater, Joseph, Munoz and Ribero 2022).
- columns: the share of the k largest correlations that are named, of columns that fill their
  bounds and of columns that do not.
- gain: how often a copy of a named column is named too, how many of the columns the response is
  made of are named, and the share that the released fit takes off of what least squares on as
  many true columns does; by correlation and by gain, of columns of several shapes.
- speed: seconds for 10**6 declared cells, and for 1,000 columns of 10**5 rows.

Numbers after +- are Monte-Carlo standard errors.
"""

import argparse
import time

import numpy as np
from numpy.random import default_rng

import dpmodels as dp

OWN = ("peeling", "permute_and_flip", "noisy_counts")
SHAPES = {
    "zipf": lambda m: 1 / np.arange(1, m + 1),
    "even": lambda m: np.linspace(1.2, 0.8, m),
    "steep": lambda m: 0.8 ** np.arange(m),
    "zeros": lambda m: np.where(np.arange(m) < m // 10 + 2, 1.0 + np.arange(m)[::-1] / m, 0.0),
}


def largest_each(counts, k, eps, rng):
    """Take the largest count with fresh Laplace noise, k times."""
    left, selected = counts.astype(float), []
    for _ in range(k):
        selected.append(int((left + rng.laplace(0, 2 * k / eps, len(left))).argmax()))
        left[selected[-1]] = -np.inf
    return selected


def one_shot(counts, k, eps, rng):
    """Take the k largest of counts with Laplace noise."""
    return np.argsort(-(counts + rng.laplace(0, 2 * k / eps, len(counts))))[:k]


def joint(counts, k, eps, rng):
    """Draw a list by the exponential mechanism on the largest loss of a place."""
    order = np.argsort(-counts)
    c = counts[order].astype(float)
    # Losses are told apart by fractions that no count has.
    losses = c[:k, None] - c[None, :] + (k - np.arange(k))[:, None] / (2 * k)
    losses = np.maximum(losses, (k - np.arange(k))[:, None] / (2 * k))
    flat = np.argsort(losses, axis=None)
    within, logs = np.zeros(k, dtype=int), []
    for place in flat:
        i = place // len(c)
        within[i] += 1
        free = within - np.arange(k)
        rest = np.delete(free, i)
        count = np.log(rest).sum() if (free > 0).all() else -np.inf
        logs.append(count - eps * np.floor(losses.flat[place]) / 2)
    pick = flat[int((np.array(logs) + rng.gumbel(size=len(logs))).argmax())]
    loss, cell = losses.flat[pick], divmod(int(pick), len(c))
    selected = []
    for i in range(k):
        allowed = [j for j in np.flatnonzero(losses[i] <= loss) if j not in {*selected, cell[1]}]
        selected.append(cell[1] if i == cell[0] else int(rng.choice(allowed)))
    return order[selected]


def levels(runs):
    """Print the rows that are lost."""
    print(f"{'shape':8}{'m':>6}{'k':>4}  {'peeling, rows':>16}", end="")
    names = (*OWN[1:], "max", "one_shot", "joint")
    print("".join(f"{name:>18}" for name in names), "  auto")
    for shape, law in SHAPES.items():
        for m, k in ((20, 1), (20, 5), (100, 1), (100, 10)):
            rng = default_rng(m)
            share = law(m) / law(m).sum()
            counts = rng.multinomial(2_000, share)
            errors = {name: [] for name in (*OWN, "max", "one_shot", "joint")}
            best = np.sort(counts)[-k:].sum()
            levels = [str(level) for level in range(m)]
            words = {"codebook": dp.codebook(g=levels), "eps": 1.0, "k": k, "values": False}
            rows = {"g": np.repeat(levels, counts)}
            peers = {"max": largest_each, "one_shot": one_shot, "joint": joint}
            with dp.simulation(seed=m + k):
                for _ in range(runs):
                    for name in OWN:
                        fit = dp.dp_select("~ g", rows, mechanism=name, **words)
                        errors[name].append(best - counts[list(fit.release.places)].sum())
                    for name, peer in peers.items():
                        errors[name].append(best - counts[list(peer(counts, k, 1.0, rng))].sum())
                auto = dp.dp_select("~ g", rows, **words).release.info.name
            base, se = (
                np.mean(errors["peeling"]),
                np.std(errors["peeling"]) / runs**0.5,
            )
            print(f"{shape:8}{m:6}{k:4}  {base:8.1f} +- {se:4.1f}", end="")
            for name in names:
                ratio = np.mean(errors[name]) / max(base, 1e-9)
                print(
                    f"{ratio:11.2f} +- {np.std(errors[name]) / runs**0.5 / max(base, 1e-9):3.2f}",
                    end="",
                )
            print("  ", auto)


def columns(runs):
    """Print the share of the largest correlations that are named."""
    print(f"\n{'columns':28}{'n':>8}{'eps':>6}   named of 5")
    for what in ("filling their bounds", "in a part of them", "rare truths among them"):
        for n, eps in ((10_000, 1.0), (100_000, 1.0)):
            rng, m = default_rng(1), 30
            x = rng.normal(size=(n, m)).clip(-3, 3)
            widths = np.where(np.arange(m) % 2, 12.0, 3.0) if what == "in a part of them" else 3.0
            bounds = np.broadcast_to(widths, (m,)).copy()
            if what == "rare truths among them":
                x[:, ::3] = rng.random((n, 10)) < 0.05
            slopes = np.concatenate([[1.0, 0.8, 0.6, 0.5, 0.4], np.zeros(m - 5)])
            y = (x @ slopes + rng.normal(size=n)).clip(-8, 8)
            truth = set(np.argsort(-np.abs(np.corrcoef(x.T, y)[-1, :-1]))[:5])
            names = [f"x{i}" for i in range(m)]
            book = dp.codebook(
                y=(-8, 8), **{name: (-w, w) for name, w in zip(names, bounds, strict=True)}
            )
            rows = {"y": y, **dict(zip(names, x.T, strict=True))}
            with dp.simulation(seed=2):
                hits = [
                    len(
                        truth
                        & set(
                            dp.dp_select(
                                "y ~ .", rows, codebook=book, k=5, eps=eps, delta=1e-6
                            ).release.places
                        )
                    )
                    for _ in range(runs)
                ]
            print(f"{what:28}{n:8,}{eps:6}   {np.mean(hits):.2f} +- {np.std(hits) / runs**0.5:.2f}")


COLUMNS = {
    "normal": lambda rng, n: rng.normal(size=n).clip(-4, 4),
    "skewed": lambda rng, n: rng.lognormal(size=n).clip(-20, 20),
    "whole, mostly 0": lambda rng, n: rng.poisson(0.4, n).clip(0, 10).astype(float),
    "dummies": lambda rng, n: (rng.random(n) < 0.3).astype(float),
    "heavy tails": lambda rng, n: rng.standard_t(3, n).clip(-15, 15),
    "bounds too wide": lambda rng, n: rng.normal(size=n).clip(-20, 20),
}
ENDS = {"skewed": (0, 20), "whole, mostly 0": (0, 10), "dummies": (0, 1), "heavy tails": (-15, 15)}
ENDS["bounds too wide"] = (-20, 20)


def gain(runs):
    """Print what is named where columns have copies."""
    print(f"\n{'copies':18}{'n':>8}{'score':>13}   both     true of 3   R2 of the best")
    for (shape, law), n in (
        (variable, n) for variable in COLUMNS.items() for n in (20_000, 200_000)
    ):
        rng, m = default_rng(5), 12
        x = np.column_stack([law(rng, n) for _ in range(m)])
        low, high = ENDS.get(shape, (-4, 4))
        # The second column is the first but for one row in twenty.
        x[:, 1] = np.where(rng.random(n) < 0.05, x[:, 1], x[:, 0])
        signal = (x[:, [0, 2, 3]] - x[:, [0, 2, 3]].mean(axis=0)) / x[:, 0].std() @ [1.0, 0.6, -0.5]
        y = (signal + rng.normal(size=n)).clip(-6, 6)
        best = np.corrcoef(signal, y)[0, 1] ** 2
        names = [f"x{i}" for i in range(m)]
        book = dp.codebook.uniform(names, (low, high)) | dp.codebook(y=(-6, 6))
        rows = {"y": y, **dict(zip(names, x.T, strict=True))}
        for score in ("correlation", "gain"):
            words = {"codebook": book, "k": 3, "eps": 1.0, "delta": 1e-6, "score": score}
            with dp.simulation(seed=6):
                fits = [dp.dp_select("y ~ .", rows, **words) for _ in range(runs)]
            rate = np.mean([{"x0", "x1"} <= set(fit.selected) for fit in fits])
            true = np.mean(
                [
                    ("x0" in f.selected or "x1" in f.selected) + len({"x2", "x3"} & set(f.selected))
                    for f in fits
                ]
            )
            print(f"{shape:18}{n:8,}{score:>13}{rate:7.2f}{true:14.2f}", end="")
            if score == "gain":
                fractions = [fit.cumulative()["r_squared"].iloc[-1] / best for fit in fits]
                print(f"{np.mean(fractions):12.2f} +- {np.std(fractions) / runs**0.5:.2f}", end="")
            print()


def speed():
    """Print seconds of large selections."""
    levels = [str(level) for level in range(1_000)]
    rng = default_rng(3)
    rows = {name: rng.choice(levels, 10_000) for name in "ab"}
    book = dp.codebook(a=levels, b=levels)
    for name in OWN:
        start = time.perf_counter()
        dp.dp_select("~ a:b", rows, codebook=book, k=10, eps=1.0, mechanism=name)
        print(f"\n10**6 cells, {name}: {time.perf_counter() - start:.1f} s", end="")
    x = {f"x{i}": rng.normal(size=100_000) for i in range(1_000)}
    book = dp.codebook.uniform([*x, "y"], (-4, 4))
    start = time.perf_counter()
    dp.dp_select("y ~ .", {**x, "y": x["x0"]}, codebook=book, k=5, eps=1.0, delta=1e-6)
    print(f"\n1,000 columns of 10**5 rows: {time.perf_counter() - start:.1f} s")


def main():
    """Run what is asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=["levels", "columns", "gain", "speed"])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    runs = 10 if args.quick else args.runs
    if "levels" in args.what:
        levels(runs)
    if "columns" in args.what:
        columns(max(runs // 10, 5))
    if "gain" in args.what:
        gain(max(runs // 10, 5))
    if "speed" in args.what:
        speed()


if __name__ == "__main__":
    main()
