"""Expected standard errors and power against simulation of the verbs on rows of their own.

``python benchmarks/power.py [runs] [shape] [verb ...]``: for each of five verbs, numbers of rows,
eps and both kinds of guarantee, `dp.power` solves for the effect of power 0.7, or takes one if no
effect has that power, and says what to expect; then the verb is called on independently drawn rows
that have the effect. Printed are the ratio of standard errors, predicted over the median measured,
both powers, and how often each term was identified; at the end how many cells are within 10 % and
0.03, less what so many runs leave open.
"""

from __future__ import annotations

import sys
import time
from itertools import product

import numpy as np
from scipy.special import expit

import dpmodels as dp
from dpmodels.errors import ArgumentError, NotAvailable
from dpmodels.models.assumed_rows import assumed_rows

BOOK = dp.codebook(
    wage=(0, 80), age=(18, 80), sex=["F", "M"], edu=["low", "mid", "high"], smoker=["no", "yes"]
)
CALLS = {
    "mean": ("wage ~ sex", {"F": 2.0, "M": 2.0}),
    "ttest": ("wage ~ sex", 3.0),
    "table": ("~ sex + edu", 0.1),
    "lm": ("wage ~ age + sex", {"age": 0.2, "sex[T.M]": 4.0}),
    "glm": ("smoker ~ age + sex", {"age": 0.03, "sex[T.M]": 0.7}),
}
ALPHA, TARGET, SLACK = 0.05, 0.7, 3.0


def drawn(verb, shape, n, effect, rng):
    """Rows with the effect, independent of those that a plan is made from."""
    rows = assumed_rows(BOOK, shape).rows(n, int(rng.integers(1, 2**31)))
    large = assumed_rows(BOOK, shape).block(4096)
    male = (rows["sex"] == "M").to_numpy(float)
    if verb == "ttest":
        rows["wage"] = np.clip(rows["wage"] + (0.5 - male) * effect, 0, 80)
    if verb == "table":
        scores = np.outer([-1, 1], np.array([-1, 0, 1]) * np.sqrt(1.5))
        cell = rng.choice(6, size=n, p=((1 + effect * scores) / 6).ravel())
        rows["sex"] = np.array(["F", "M"])[cell // 3]
        rows["edu"] = np.array(["low", "mid", "high"])[cell % 3]
    if verb in ("lm", "glm"):
        slopes = np.array([effect["age"], effect["sex[T.M]"]])
        centre = np.array([large["age"].mean(), 0.5])
        explained = slopes @ (np.stack([rows["age"], male]) - centre[:, None])
        if verb == "lm":
            variance, mean = large["wage"].var(), large["wage"].mean()
            left = variance - slopes**2 @ [large["age"].var(), 0.25]
            response = mean + explained + np.sqrt(left / variance) * (rows["wage"] - mean)
            rows["wage"] = np.clip(response, 0, 80)
        else:
            rows["smoker"] = np.where(rng.random(n) < expit(explained), "yes", "no")
    return rows


def measured(verb, shape, n, words, effect, terms, runs):
    """Median standard errors, rejections and identified shares by term, of separate releases."""
    formula, _ = CALLS[verb]
    truth = float(assumed_rows(BOOK, shape).block(4096)["wage"].mean())
    errors, rejected, is_reported = [], [], []
    for run in range(runs):
        seed = [run, n, round(1_000 * words["eps"]), words["delta"] > 0]
        rng = np.random.default_rng(seed)
        rows = drawn(verb, shape, n, effect, rng)
        call = getattr(dp, f"dp_{verb}")
        with dp.simulation(seed=int(rng.integers(2**62))):
            fit = call(formula, rows, codebook=BOOK, **words)
        if verb == "table":
            test = fit.chi2_test()
            errors.append([np.nan])
            rejected.append([test.pvalue <= ALPHA])
            is_reported.append([np.isfinite(test.pvalue)])
            continue
        if verb == "mean":
            ends = fit.conf_int()
            null = truth - np.array([effect[term] for term in terms])
            errors.append(fit.bse.to_numpy())
            rejected.append((ends["lower"] > null) | (ends["upper"] < null))
            is_reported.append(np.isfinite(fit.params.to_numpy()))
            continue
        try:
            errors.append(np.ravel(fit.bse)[-len(terms) :])
            chance = np.ravel(fit.pvalue if verb == "ttest" else fit.pvalues)[-len(terms) :]
        except NotAvailable:
            errors.append(np.full(len(terms), np.nan))
            chance = np.full(len(terms), np.nan)
        rejected.append(chance <= ALPHA)
        is_reported.append(np.isfinite(chance))
    errors, is_reported = np.array(errors, float), np.array(is_reported)
    finite = np.where(is_reported & np.isfinite(errors), errors, np.nan)
    middle = [
        np.median(column[~np.isnan(column)])
        if is_reported.any() and (~np.isnan(column)).any()
        else np.nan
        for column in finite.T
    ]
    return np.array(middle), np.mean(rejected, axis=0), is_reported.mean(axis=0)


def cell(verb, shape, n, words, runs):
    """One line a tested term."""
    formula, usual = CALLS[verb]
    common = {"verb": verb, "codebook": BOOK, "shape": shape, "n": n, **words}
    try:
        found = dp.power(formula, power=TARGET, **common)
        effects = found.table.dropna(subset="power").set_index("term")["effect"].to_dict()
        if set(effects) < set(usual if isinstance(usual, dict) else []):
            raise ArgumentError("one of the terms is seldom identified")
        effect = effects if isinstance(usual, dict) else next(iter(effects.values()))
    except ArgumentError:
        effect = usual
    start = time.process_time()
    plan = dp.power(formula, effect=effect, **common).table
    seconds = time.process_time() - start
    plan = plan.dropna(subset="power").set_index("term")
    se, power, reported = measured(verb, shape, n, words, effect, list(plan.index), runs)
    for at, (term, line) in enumerate(plan.iterrows()):
        yield term, line, se[at], power[at], reported[at], seconds


def main() -> None:
    """Print the grid."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    shape = sys.argv[2] if len(sys.argv) > 2 else "normal"
    verbs = sys.argv[3:] or list(CALLS)
    print(
        f"shape {shape}, {runs} runs a cell; power measured has a standard error of up to "
        f"{0.5 / np.sqrt(runs):.3f}"
    )
    print("verb   n       eps  delta  term        se ratio  power  measured  told  measured  cpu s")
    ratios, away = [], []
    for verb, n, eps, delta in product(verbs, (1_000, 10_000, 100_000), (0.3, 1, 3), (0, 1e-6)):
        for term, line, se, power, reported, seconds in cell(
            verb, shape, n, {"eps": eps, "delta": delta}, runs
        ):
            ratio = line["std_error"] / se
            print(
                f"{verb:6} {n:<7} {eps:<4} {delta:<6} {term:12} {ratio:7.3f}  "
                f"{line['power']:6.3f}  {power:6.3f}    {line['identified']:4.2f}  {reported:4.2f}"
                f"    {seconds:5.2f}",
                flush=True,
            )
            ratios.append(ratio)
            away.append(abs(line["power"] - power) - SLACK * np.sqrt(power * (1 - power) / runs))
    ratios = np.array(ratios)
    finite = ratios[np.isfinite(ratios)]
    print(
        f"standard errors within 10 %: {np.mean(np.abs(finite - 1) <= 0.1):.0%} of {len(finite)}; "
        f"powers within 0.03 and {SLACK:g} standard errors: {np.mean(np.array(away) <= 0.03):.0%} "
        f"of {len(away)}"
    )


if __name__ == "__main__":
    main()
