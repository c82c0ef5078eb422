"""Populations of the shapes that ordinary columns have, and rows drawn from them.

Five correlated columns of one shape, a response whose errors have one spread, one
whose errors grow with the first column, outcomes of a logistic law at stated rates,
a count and a group. Samples are drawn with replacement, so what a population says
is the truth that an interval has to hold.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit, ndtr
from scipy.stats import t as student

RATES = (0.02, 0.1, 0.5)
GROUPS = ["a", "b", "c", "d"]


class Population(NamedTuple):
    """Rows and a codebook of public bounds and levels."""

    rows: pd.DataFrame
    codebook: dict[str, object]

    def sample(self, count, seed):
        at = np.random.default_rng(seed).integers(len(self.rows), size=count)
        return self.rows.iloc[at].reset_index(drop=True)


def normal(z):
    return np.clip(z, -4, 4), (-4.0, 4.0)


def skewed(z):
    return np.minimum(np.exp(0.8 * z), 25.0), (0.0, 25.0)


def counts(z):
    """Whole numbers, more than half of them 0, up to 12."""
    share = ndtr(z)
    return np.minimum(np.floor(-4 * np.log1p(-np.maximum(share - 0.6, 0) / 0.4001)), 12), (0, 12)


def dummies(z):
    rates = np.array([0.5, 0.3, 0.1, 0.05, 0.02])[: z.shape[1]]
    return (ndtr(z) > 1 - rates).astype(float), (0, 1)


def heavy(z):
    """Student's t with 3 degrees of freedom, within 40."""
    return np.clip(student.ppf(ndtr(z), 3), -40, 40), (-40.0, 40.0)


SHAPES = {shape.__name__: shape for shape in (normal, skewed, counts, dummies, heavy)}


def population(shape, rows=1_000_000, seed=1):
    """Return the population of a shape: x1..x5, y, uneven, events and a count of x1..x5, g."""
    rng = np.random.default_rng(seed)
    z = np.sqrt(0.3) * rng.normal(size=(rows, 1)) + np.sqrt(0.7) * rng.normal(size=(rows, 5))
    values, (low, high) = SHAPES[shape](z)
    middle, sd = values.mean(axis=0), values.std(axis=0)
    standard = (values - middle) / sd
    line = standard @ np.array([0.5, -0.4, 0.3, 0.0, 0.2])
    frame = pd.DataFrame(values, columns=[f"x{at}" for at in range(1, 6)])
    error = rng.normal(size=rows)
    frame["y"] = np.clip(line + error, -8, 8)
    growing = 0.3 + np.minimum(np.abs(values[:, 0] - middle[0]) / sd[0], 4)
    frame["uneven"] = np.clip(line + growing * error, -8, 8)
    probabilities = 0.6 * np.clip(line, -3, 3)
    for rate in RATES:
        frame[f"event{round(100 * rate)}"] = (
            rng.uniform(size=rows) < expit(probabilities + _intercept(probabilities[:20_000], rate))
        ).astype(int)
    frame["visits"] = np.minimum(rng.poisson(np.exp(0.5 * probabilities)), 15)
    frame["g"] = np.array(GROUPS)[np.searchsorted([0.5, 0.8, 0.97], rng.uniform(size=rows))]
    frame.attrs["bounds"] = (low, high)
    events = {f"event{round(100 * rate)}": [0, 1] for rate in RATES}
    book = {f"x{at}": (low, high) for at in range(1, 6)}
    return Population(
        frame,
        book | {"y": (-8.0, 8.0), "uneven": (-8.0, 8.0), **events, "visits": (0, 15), "g": GROUPS},
    )


def _intercept(line, rate):
    """Return the intercept at which the mean probability is the rate."""
    low, high = -12.0, 12.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if expit(line + middle).mean() < rate else (low, middle)
    return low
