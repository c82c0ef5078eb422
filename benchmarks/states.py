"""States that depend on each other: scales of quilts, and what printed intervals hold.

    python benchmarks/states.py [--runs 400] [--only scales covered]

Scales: of symmetric chains of two states and 1,000 times, from the stationary
law and from any, as a share of what group privacy of the series asks for.

Covered: series of a chain of three states, one of them rare; `noise` is the
share of noise intervals that hold the exact counts, `conf` that of confidence
intervals that hold the long-run shares, both at 95 %; `missing` is the share of
times without a row.
"""

import argparse

import numpy as np
import pandas as pd

import dpmodels as dp

STAYS, EPS, STEPS = (0.5, 0.6, 0.8, 0.9, 0.95), (0.2, 1.0, 5.0), 1_000
STATES = ["rest", "walk", "run"]
MOVES = [[0.90, 0.09, 0.01], [0.10, 0.85, 0.05], [0.05, 0.15, 0.80]]
# Persons, times, eps, and the share of times that are missing.
CELLS = ((1, 1_000, 1.0, 0.0), (5, 600, 2.0, 0.0), (40, 150, 1.0, 0.3), (200, 60, 0.5, 0.0))


def scales():
    print(f"{'stay':>5} {'first law':>11} " + " ".join(f"eps={eps:<13g}" for eps in EPS))
    for initial in ("stationary", "any"):
        for stay in STAYS:
            chain = dp.markov_chain([0, 1], stay=stay, initial=initial)
            cells = []
            for eps in EPS:
                scale = dp.Pufferfish(eps, chain).active(STEPS).scale
                cells.append(f"{scale:8.3g} {scale * eps / STEPS:8.2%}")
            print(f"{stay:>5} {initial:>11} " + " ".join(cells))


def walked(persons, steps, rng):
    start = dp.markov_chain(STATES, MOVES).stationary
    ends = np.cumsum(MOVES, axis=1)
    series = [rng.choice(3, persons, p=start)]
    for _ in range(steps - 1):
        series.append((rng.random(persons)[:, None] > ends[series[-1]]).sum(axis=1))
    return np.array(series).T


def covered(runs):
    chain, rng = dp.markov_chain(STATES, MOVES), np.random.default_rng(1)
    print(f"{'persons':>8} {'times':>6} {'eps':>4} {'missing':>8} {'noise':>7} {'conf':>7}")
    for persons, steps, eps, missing in CELLS:
        book = dp.codebook(activity=STATES, minute=dp.Integer(0, steps - 1))
        budget, is_covered = dp.Pufferfish(eps, chain), []
        for _ in range(runs):
            states = walked(persons, steps, rng).ravel()
            is_kept = rng.random(states.size) >= missing
            rows = pd.DataFrame(
                {
                    "id": np.repeat(np.arange(persons), steps),
                    "minute": np.tile(np.arange(steps), persons),
                    "activity": np.array(STATES)[states],
                }
            )[is_kept]
            words = {"codebook": book, "time": "minute", "person": "id", "budget": budget}
            fit = dp.dp_table("~ activity", rows, **words)
            exact = np.bincount(states[is_kept], minlength=3)
            pairs = ((fit.noise_int(), exact), (fit.conf_int(), chain.stationary))
            is_covered.append([((e["lower"] <= t) & (t <= e["upper"])).mean() for e, t in pairs])
        noise, conf = np.mean(is_covered, axis=0)
        print(f"{persons:>8} {steps:>6} {eps:>4} {missing:>8} {noise:>7.3f} {conf:>7.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--only", nargs="+", default=["scales", "covered"])
    args = parser.parse_args()
    if "scales" in args.only:
        scales()
    if "covered" in args.only:
        covered(args.runs)


if __name__ == "__main__":
    main()
