"""Predicted against measured standard errors of every verb, and plans against the clock.

Predicted is the ``total`` of a plan of the one call; measured the standard deviation of the same
figures, over tables drawn from the guess and released once each, or their root mean square error
where a plan predicts that. Their ratio is the median over a call's figures.
``python benchmarks/plan.py --draws 60`` prints it by verb and shape.
"""

import argparse
import time
import warnings

import numpy as np
import pandas as pd

import dpmodels as dp
from dpmodels.models.assumed_rows import assumed_rows
from dpmodels.planning.noise_curve import World, figures, released, simulate_call
from dpmodels.privacy import adjacency

BOOK = dp.codebook(
    age=(18, 90),
    wage=(0, 80),
    visits=dp.Integer(0, 40),
    sex=["F", "M"],
    edu=["a", "b", "c"],
    week=dp.Integer(1, 4),
)
CALLS = {
    "mean": dp.call.mean("wage ~ sex"),
    "var": dp.call.var("wage ~ sex"),
    "ttest": dp.call.ttest("wage ~ sex"),
    "lm": dp.call.lm("wage ~ age + edu"),
    "lm HC": dp.call.lm("wage ~ age + edu", vcov="HC"),
    "glm": dp.call.glm("sex ~ age + wage"),
    "svm": dp.call.svm("sex ~ age + wage"),
    "table": dp.call.table("~ sex + edu"),
    "hist": dp.call.hist("~ wage"),
    "hist 100": dp.call.hist("~ wage", breaks=100),
    "plane": dp.call.hist("~ wage + age", breaks=(6, 6)),
    "margins": dp.call.margins("~ sex*edu"),
    "summary": dp.call.summary("age + edu ~ sex"),
    "quantile": dp.call.quantile("wage ~ sex"),
    "select": dp.call.select("~ edu", k=1, values=True),
    "series": dp.call.series("~ (wage > 30)", time="week"),
    "cov": dp.call.cov("~ age + wage + visits"),
    "moments": dp.call.moments("~ age + wage + visits"),
    "pca": dp.call.pca("~ age + wage + visits"),
    "levels": dp.call.levels("~ edu", delta=1e-8),
    "bounds": dp.call.bounds("~ wage + age"),
}
SHAPES = ("normal", "skewed", "zeros", "tails", "narrow")


def ratio(name, call, shape, rows, eps, draws):
    """Return predicted over measured, and how often figures were identified."""
    world = World(assumed_rows(BOOK, shape), BOOK, adjacency("replace"), rows, None)
    simulated = simulate_call(call, world, lambda amount: dp.ApproxDP(amount, 1e-6))
    release = simulated.at(eps, 20)
    predicted = np.hypot(release.noise, simulated.sampling)
    values = []
    for draw in range(draws):
        fit = released(call, world.terms(1_000 + draw), dp.ApproxDP(eps, 1e-6), 1, seed=draw)[0]
        values.append(figures(fit)["value"].reindex(simulated.exact.index).to_numpy())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        truth = (
            simulated.exact["value"].to_numpy()
            if simulated.compared
            else np.nanmean(values, axis=0)
        )
        off = np.stack(values) - truth
        measured = np.sqrt(np.nanmean(off**2, axis=0)) / world.thinner
        ratios = predicted / measured
    sound = np.isfinite(ratios) & (measured > 0)
    middle = float(np.median(ratios[sound])) if sound.any() else np.nan
    return middle, float(release.chance.mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--rows", type=int, nargs="+", default=[5_000])
    parser.add_argument("--eps", type=float, nargs="+", default=[1.0])
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES))
    parser.add_argument("--calls", nargs="+", default=list(CALLS))
    args = parser.parse_args()
    for rows in args.rows:
        for eps in args.eps:
            lines = {}
            for name in args.calls:
                ratios_by_shape = {
                    s: ratio(name, CALLS[name], s, rows, eps, args.draws) for s in args.shapes
                }
                lines[name] = {
                    s: f"{r:.2f} ({100 * c:.0f}%)" for s, (r, c) in ratios_by_shape.items()
                }
                print(name, lines[name], flush=True)
            print(f"\nPredicted over measured (identified), n = {rows:,}, eps = {eps:g}")
            print(pd.DataFrame(lines).T.to_string(), flush=True)
    start = time.process_time()
    dp.plan(list(CALLS.values())[:10], codebook=BOOK, n=100_000, eps=4.0, delta=1e-6)
    print(f"\nA plan of ten calls, n = 100,000: {time.process_time() - start:.1f} s of CPU")


if __name__ == "__main__":
    main()
