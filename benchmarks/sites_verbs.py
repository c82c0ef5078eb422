"""Verbs on rows of several sites beside one table: standard errors, time and bytes.

    python benchmarks/sites_verbs.py [--repeats 5] [--cases even,wide] [--verbs lm] [--skip-time]
    python benchmarks/sites_verbs.py --coverage 100

Cases: rows with bounds of six standard deviations (`even`), lognormal columns (`skewed`), a factor
of eight levels beside the columns (`factors`), bounds ten times as wide (`wide`), and sites whose
rows are 100 : 1 (`unequal`). 60,000 rows in all, 3 or 10 sites, zCDP of the Gaussian noise of
eps = 1, delta = 1e-6, without counts of clipped values. Each number is the mean standard error of
the coefficients over that of one table, its median over repeats; of tables of moments without
standard errors the noise sd. Coverage: the share of 95 % intervals of all terms that hold the value
of the law, over both numbers of colluders and 10 sites.

Time: `rounds` of 100 columns by 10 sites in one process beside one table, the CPU of the masks of a
site for all rounds, and the bytes that each site sends.

Coverage alone, by verb: the share of 95 % noise intervals that hold the value of the same rows
without noise, and of confidence intervals that hold the value of the law, both computed at a huge
budget, the second from 30 times as many rows. Three sites, alike or 100 : 1, and one colluder.
dp_svm has no intervals. Those of dp_cov allow for rows beyond the released ball, and those of
dp_survfit for any order of times within an interval: both cover more than 95 %.
"""

import argparse
import itertools
import time
import warnings

import numpy as np
import pandas as pd

import dpmodels as dp
from dpmodels.privacy import gaussian_multiplier
from dpmodels.sites.key_file import PairStream

N = 60_000
BUDGET = dp.ZCDP(0.5 / gaussian_multiplier(dp.ApproxDP(1.0, 1e-6)) ** 2)
CASES = ("even", "skewed", "factors", "wide", "unequal")
CALLS = {
    "cov": (dp.dp_cov, "~ x + w", {}),
    "mean": (dp.dp_mean, "y ~ g", {}),
    "var": (dp.dp_var, "~ y", {}),
    "ttest": (dp.dp_ttest, "~ y", {}),
    "summary": (dp.dp_summary, "~ y + g", {}),
    "lm": (dp.dp_lm, "y ~ x + w", {}),
    "lm HC": (dp.dp_lm, "y ~ x + w", {"vcov": "HC"}),
    "poisson": (dp.dp_glm, "k ~ x", {"family": "poisson"}),
    "logit": (dp.dp_glm, "b ~ x", {"mechanism": "gradients"}),
    "margins": (dp.dp_margins, "~ g * b", {}),
    "survfit": (dp.dp_survfit, "Surv(t, b) ~ 1", {"mechanism": "gaussian", "breaks": 20}),
    "select": (dp.dp_select, "~ g", {"k": 2}),
    "fdr": (dp.dp_fdr, "x + w + y ~ b", {}),
}


def rows(n, case, rng):
    levels = list("abcdefgh") if case == "factors" else list("abc")
    x, w = rng.normal(size=n), rng.normal(size=n)
    if case == "skewed":
        w = np.exp(0.8 * w)
    g = rng.choice(levels, n)
    y = 1 + 0.5 * x + 0.3 * w + 0.4 * (g == "b") + rng.normal(size=n)
    b = np.where(x + rng.logistic(size=n) > 0, "yes", "no")
    k, t = rng.poisson(np.exp(0.2 + 0.3 * x)), rng.exponential(3, n)
    return pd.DataFrame({"x": x, "w": w, "y": y, "g": g, "b": b, "k": k, "t": t})


def book(case):
    times = 10 if case == "wide" else 1
    wide = dict.fromkeys("xwy", (-6 * times, 6 * times))
    if case == "skewed":
        wide |= {"w": (0, 60), "y": (-10, 30)}
    levels = list("abcdefgh") if case == "factors" else list("abc")
    variables = {"g": levels, "b": ["no", "yes"], "k": (0, 20 * times), "t": (0, 30 * times)}
    return wide | variables


def divided(table, sites, case):
    parts = np.ones(sites)
    parts[0] = 100 if case == "unequal" else 1
    edges = np.round(np.cumsum(parts / parts.sum())[:-1] * len(table)).astype(int)
    edges = [0, *edges, len(table)]
    pairs = itertools.pairwise(edges)
    return {f"s{at}": table.iloc[a:b].reset_index(drop=True) for at, (a, b) in enumerate(pairs)}


def measured(call, case, **data):
    verb, formula, words = call
    fit = verb(formula, codebook=book(case), budget=BUDGET, **data, **words)
    table = fit.tidy()
    for column in ("std_error", "noise_sd"):
        sizes = table[column].to_numpy(float) if column in table else np.array([np.nan])
        if np.isfinite(sizes).all():
            break
    return float(np.mean(sizes)), table


def covered(table, truth):
    """Return how many intervals hold the true value, and of how many."""
    if "conf_low" not in table or len(table) != len(truth):
        return 0, 0
    low, high = (table[name].to_numpy(float) for name in ("conf_low", "conf_high"))
    is_finite = np.isfinite(truth) & np.isfinite(low) & np.isfinite(high)
    return int(((low <= truth) & (truth <= high))[is_finite].sum()), int(is_finite.sum())


def compared(cases, repeats, verbs):
    designs = [("pooled", 3, "pooled")]
    designs += [(f"secure {s}, t = {t}", s, dp.sites.SecureSum(t)) for s in (3, 10) for t in (0, 1)]
    head = "".join(f"{name:>17}" for name, *_ in designs)
    print(f"{'case':9}{'verb':9}{'one':>10}{head}{'coverage':>15}")
    for case in cases:
        for name, call in CALLS.items():
            if verbs and name not in verbs:
                continue
            ones, ratios = [], {label: [] for label, *_ in designs}
            n_covered = np.zeros(2, dtype=int)
            for repeat in range(repeats):
                table = rows(N, case, np.random.default_rng([repeat, CASES.index(case)]))
                fit_of_one, _ = measured(call, case, data=table)
                ones.append(fit_of_one)
                for label, sites, protocol in designs:
                    parts = divided(table, sites, case)
                    size, tidy = measured(call, case, sites=parts, protocol=protocol)
                    ratios[label].append(size / fit_of_one)
                    if label.startswith("secure 10") and name in TRUE:
                        n_covered += covered(tidy, TRUE[name](case))
            cells = "".join(f"{np.median(ratios[label]):17.3f}" for label, *_ in designs)
            share = f"{n_covered[0] / n_covered[1]:.3f} ({n_covered[1]})" if n_covered[1] else "-"
            print(f"{case:9}{name:9}{np.median(ones):10.4g}{cells}{share:>15}", flush=True)


# Values of the law, in the order of the terms; cases with a factor shift the constant.
def _line(case):
    part = 0.4 / (8 if case == "factors" else 3)
    return np.array([1 + part, 0.5, 0.3])


TRUE = {
    "lm": _line,
    "lm HC": _line,
    "poisson": lambda case: np.array([0.2, 0.3]),
    "logit": lambda case: np.array([0.0, 1.0]),
}


# Coverage of every verb's intervals, by the verb itself at a budget without noise.
COVERED = {
    **{name: CALLS[name] for name in ("lm", "poisson", "mean", "cov", "summary", "margins")},
    "logit": (dp.dp_glm, "b ~ x", {}),
    "table": (dp.dp_table, "~ g * b", {}),
    "hist": (dp.dp_hist, "~ y", {}),
    "quantile": (dp.dp_quantile, "~ y", {}),
    "survfit": (dp.dp_survfit, "Surv(t, b) ~ 1", {"breaks": 20}),
}
EXACT, MANY = dp.ZCDP(1e9), 30


def estimates(call, table):
    """Return a verb's table of estimates without noise; rows with a level are counts."""
    verb, formula, words = call
    words = {name: word for name, word in words.items() if name != "mechanism"}
    return verb(formula, table, codebook=book("even"), budget=EXACT, **words).tidy()


def interval_coverage(runs, names):
    print(f"{'verb':10}{'sites':>10}{'noise_int':>12}{'conf_int':>12}{'of each':>10}")
    for name in names:
        call = COVERED[name]
        law = estimates(call, rows(N * MANY, "even", np.random.default_rng(10**6)))
        values = law["estimate"].to_numpy(float)
        if "proportion" in law:
            values = np.where(law["proportion"].notna(), values / MANY, values)
        if name == "survfit":  # The law's, whatever the order of times within an interval
            values = np.exp(-law["time"].to_numpy(float) / 6)
        for case in ("even", "unequal"):
            inside, number = np.zeros(2), np.zeros(2)
            for run in range(runs):
                table = rows(N, "even", np.random.default_rng([run, 77]))
                exact = estimates(call, table)["estimate"].to_numpy(float)
                parts = {"sites": divided(table, 3, case), "protocol": "secure_sum"}
                _, tidy = measured(call, "even", **parts)
                for at, (kind, truth) in enumerate((("noise", exact), ("conf", values))):
                    size = min(len(tidy), len(truth))  # Late times may have nobody at risk
                    ends = (tidy[f"{kind}_{end}"].to_numpy(float) for end in ("low", "high"))
                    (low, high), truth = (end[:size] for end in ends), truth[:size]
                    is_finite = np.isfinite(low) & np.isfinite(high) & np.isfinite(truth)
                    inside[at] += ((low <= truth) & (truth <= high))[is_finite].sum()
                    number[at] += is_finite.sum()
            with np.errstate(invalid="ignore"):
                cells = "".join(f"{share:12.3f}" for share in inside / number)
            print(f"{name:10}{case:>10}{cells}{int(number.max()):10}", flush=True)


def timed(columns=100, sites=10, n=2_000):
    rng = np.random.default_rng(1)
    names = [f"x{at}" for at in range(columns)]
    tables = {
        f"s{at}": dict(zip(names, rng.uniform(-1, 1, (columns, n)), strict=True))
        for at in range(sites)
    }
    words = {"codebook": dp.codebook.uniform(names, (-1, 1)), "budget": dp.ZCDP(0.5)}
    joined = {name: np.concatenate([table[name] for table in tables.values()]) for name in names}
    for label, data in (
        ("one table", {"data": joined}),
        ("secure_sum", {"sites": tables, "protocol": "secure_sum"}),
    ):
        started, worked = time.perf_counter(), time.process_time()
        fit = dp.dp_cov("~ .", mechanism="rounds", **data, **words)
        cpu, wall = time.process_time() - worked, time.perf_counter() - started
        print(f"{label:12}{wall:8.2f} s{cpu:8.2f} s CPU")
    sent = fit.release.shared
    print(f"sent by each site: {sent.numbers:,} numbers, {sent.size:,} bytes; {sent.sees}")
    started = time.process_time()
    for _ in range(sites - 1):
        PairStream(bytes(32)).words(2 * sent.numbers)
    print(f"masks of a site for all rounds: {time.process_time() - started:.3f} s CPU")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--skip-time", action="store_true")
    parser.add_argument("--coverage", type=int, default=0)
    parser.add_argument("--verbs", default="", help="by default all, such as lm,select")
    options = parser.parse_args()
    verbs = [name for name in options.verbs.split(",") if name]
    warnings.simplefilter("ignore")
    with dp.options(clipping=False), dp.simulation(seed=1):
        if options.coverage:
            interval_coverage(options.coverage, verbs or COVERED)
            return
        if not options.skip_time:
            timed()
        compared(options.cases.split(","), options.repeats, verbs)


if __name__ == "__main__":
    main()
