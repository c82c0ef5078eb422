"""Coverage of 95 % intervals over simulated survey designs, and noise beside sampling error.

    python benchmarks/designs.py [--rows 20000] [--cv 0.5 1 1.5] [--icc 0.05 0.3] [--eps 1]
                                 [--protect rows psus] [--runs 200] [--hindsight]

A finite population of persons in clusters in strata is sampled in two stages: clusters by simple
random sampling within strata, then each person with probability 1/v, v an integer that is larger
where the response is smaller. Weights are the clusters' times v: integers with the coefficient of
variation --cv. The response has the correlation --icc within clusters.

A line is one cell and one estimand: coverage of `conf_int` of the population's value, of
`noise_int` of the weighted estimate of this sample, the fraction of runs with intervals, the
weighted estimate's standard deviation over samples, and the errors by noise and by the cap of the
weights in units of it. With --hindsight, the smallest root mean square of noise and bias over
fixed public caps, and how many times as large that of the bought cap is.
"""

import argparse
import warnings
from itertools import product

import numpy as np
import pandas as pd

import dpmodels as dp

BOUND = 50
STRATA = [f"s{number:02}" for number in range(20)]
FIRST_STAGE = 2  # One of so many clusters is drawn
MEAN_WEIGHT = 10
SIZE = 50  # Persons of a cluster on average
CAPS = (4, 8, 12, 16, 20, 26, 34, 42, 50)


class Population:
    """Persons in clusters in strata, with the values that a census would find."""

    def __init__(self, rows: int, cv: float, icc: float, seed: int) -> None:
        rng = np.random.default_rng(seed)
        n_clusters = MEAN_WEIGHT * rows // SIZE
        self.stratum = np.sort(rng.permutation(n_clusters) % len(STRATA))
        self.cluster = np.repeat(np.arange(n_clusters), rng.poisson(SIZE - 10, n_clusters) + 10)
        n = len(self.cluster)
        between, within = rng.normal(size=n_clusters)[self.cluster], rng.normal(size=n)
        residual = np.sqrt(icc) * between + np.sqrt(1 - icc) * within
        effect = np.linspace(-1, 1, len(STRATA))[self.stratum[self.cluster]]
        self.x = rng.uniform(0, 1, n)
        self.y = np.clip(50 + 10 * (residual + effect + self.x), 0, 120)
        # Lognormal weights in the sample are lognormal in the population too, and larger.
        spread = np.sqrt(np.log1p(cv**2))
        rough = -0.3 * residual + np.sqrt(1 - 0.3**2) * rng.normal(size=n)
        typical = np.log(MEAN_WEIGHT / FIRST_STAGE) + spread**2 / 2
        rounded = np.rint(np.exp(typical + spread * rough))
        self.within = np.clip(rounded, 1, BOUND // FIRST_STAGE).astype(int)
        self.mean, self.total = float(self.y.mean()), float(self.y.sum())
        terms = np.stack([np.ones(n), self.x], axis=1)
        self.slope = float(np.linalg.lstsq(terms, self.y, rcond=None)[0][1])

    def sample(self, seed: int) -> pd.DataFrame:
        """Draw clusters within strata, then persons within clusters."""
        rng = np.random.default_rng(seed)
        # Clusters are sorted by stratum: of a random order, the first half of each stratum.
        order = np.lexsort([rng.random(len(self.stratum)), self.stratum])
        rank = np.arange(len(order)) - np.searchsorted(self.stratum, self.stratum)
        size = np.bincount(self.stratum)[self.stratum]
        is_drawn = np.zeros(len(order), dtype=bool)
        is_drawn[order[rank < size // FIRST_STAGE]] = True
        is_sampled = is_drawn[self.cluster] & (rng.random(len(self.y)) * self.within < 1)
        cluster = self.cluster[is_sampled]
        return pd.DataFrame(
            {
                "y": self.y[is_sampled],
                "x": self.x[is_sampled],
                "stratum": np.array(STRATA)[self.stratum[cluster]],
                "cluster": cluster,
                "w": FIRST_STAGE * self.within[is_sampled],
            }
        )
