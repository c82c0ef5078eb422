"""Rows and declarations that tests of generalised linear models share."""

import contextlib

import numpy as np
from scipy.special import expit

import dpmodels as dp
from dpmodels.errors import NotAvailable
from dpmodels.models.glm import dp_glm

BOOK = dp.codebook(
    a=(-1, 1),
    b=(0, 10),
    g=["u", "v", "w"],
    y=["no", "yes"],
    c=(0, 30),
    bit=[0, 1],
    t=["p", "q", "r"],
    d=(0, 9),
)
PURE = {"eps": 1.0}


def table(rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-1, 1, rows), rng.uniform(0, 10, rows)
    g = rng.choice(["u", "v", "w"], rows)
    linear = 0.3 + 1.2 * a - 0.2 * b + 0.8 * (g == "w")
    return {
        "a": a,
        "b": b,
        "g": g,
        "y": np.where(rng.random(rows) < expit(linear), "yes", "no"),
        "c": rng.poisson(np.exp(0.5 + 0.5 * a)).astype(float),
        "bit": (rng.random(rows) < expit(linear)).astype(int),
        "t": rng.choice(["p", "q", "r"], rows),
        "d": rng.integers(0, 10, rows),
    }


def fit(formula="y ~ a + b + g", data=None, **words):
    words = PURE | words if "budget" not in words else words
    return dp_glm(formula, table() if data is None else data, codebook=BOOK, **words)


def everything(result):
    """Every text a result gives."""
    summary = result.summary()
    frames = [result.tidy(), result.glance()]
    with contextlib.suppress(NotAvailable):
        frames += [result.conf_int(), result.noise_int(), result.cov_params()]
    return [
        *(summary.as_text(), summary.as_html(), summary.as_latex(), summary.as_markdown()),
        *(repr(result), repr(result.call), repr(result.release), result._repr_html_()),
        *(frame.to_csv() for frame in frames),
    ]
