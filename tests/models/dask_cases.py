"""Rows for tests of Dask, and what is asked of them."""

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.design import private_design
from dpmodels.errors import FrameError
from dpmodels.noise.lattice import Lattice
from dpmodels.statistics import moments

dask = pytest.importorskip("dask", reason='Dask is not installed: pip install "dpmodels[dask]"')
dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
distributed = pytest.importorskip("distributed", reason="distributed is not installed")

SECRET = "quokka-93117"
BOOK = dp.codebook(age=(0, 100), wage=(0, 50), sex=["F", "M"], w=(0, 2), note=[SECRET, "b"])
N, PARTS = 1501, 23


def _rows():
    rng = np.random.default_rng(5)
    sex = rng.choice(np.array(["F", "M", None], object), N, p=[0.5, 0.4, 0.1])
    age = np.where(rng.random(N) < 0.1, np.nan, rng.uniform(-10, 110, N))
    wage = rng.uniform(0, 60, N)
    w = rng.uniform(0, 2.5, N)
    return pd.DataFrame({"age": age, "wage": wage, "sex": sex, "w": w, "note": [SECRET] * N})


FRAME = _rows()
WORDS = {"codebook": BOOK, "eps": 2.0}
VERBS = {
    "dp_pca": lambda data: dp.dp_pca("~ age + log(wage + 1) + sex", data, delta=1e-6, **WORDS),
    "dp_pca, pure": lambda data: dp.dp_pca("~ age * sex", data, **WORDS),
    "dp_cov": lambda data: dp.dp_cov("~ age + wage + sex", data, delta=1e-6, **WORDS),
    "dp_cov, adaptive": lambda data: dp.dp_cov(
        "~ age + wage", data, delta=1e-6, mechanism="adaptive", **WORDS
    ),
    "dp_moments": lambda data: dp.dp_moments("~ bs(age, knots=[50])", data, delta=1e-6, **WORDS),
    "dp_lm": lambda data: dp.dp_lm("wage ~ age + sex", data, delta=1e-6, **WORDS),
    "dp_mean": lambda data: dp.dp_mean("wage ~ sex", data, **WORDS),
    "dp_var": lambda data: dp.dp_var("wage ~ 1", data, **WORDS),
    "dp_hist": lambda data: dp.dp_hist("~ wage", data, **WORDS),
    "dp_table": lambda data: dp.dp_table("~ sex + cut(age, [0, 30, 100])", data, **WORDS),
    "dp_quantile": lambda data: dp.dp_quantile("wage ~ 1", data, **WORDS),
    "add-remove": lambda data: dp.dp_table("~ sex", data, adjacency="add-remove", **WORDS),
}


def scattered(parts=PARTS, frame=FRAME):
    return dd.from_pandas(frame, npartitions=parts, sort=False)


def simulated(verb, data):
    with dp.simulation(seed=7):
        return VERBS[verb](data).summary().as_text()


def moments_of(data, **words):
    design = private_design("~ age * sex + sqrt(wage)", data, BOOK, **words)
    columns = len(design.public.names)
    return moments(design, Lattice(20, columns), count_public=True)


def assert_same(one, other):
    assert one.cross()[0].tolist() == other.cross()[0].tolist()
    assert one.cross()[1] == other.cross()[1]
    assert one.fingerprint == other.fingerprint


def refused(data, says):
    """Ask for a mean and give the ledger, after the error that has to come."""
    ledger = dp.Ledger(eps=2.0)
    with pytest.raises(FrameError, match=says) as caught:
        dp.dp_mean("age ~ 1", data, codebook=BOOK, eps=1.0, ledger=ledger)
    assert SECRET not in str(caught.value)
    return ledger.describe(), caught.value
