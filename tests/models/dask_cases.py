"""Rows for tests of Dask, and what is asked of them."""

import numpy as np
import pandas as pd
import pytest
from verbs import forms

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
VERBS = forms("dask")


def scattered(parts=PARTS, frame=FRAME):
    return dd.from_pandas(frame, npartitions=parts, sort=False)


def simulated(verb, data):
    with dp.simulation(seed=7):
        return VERBS[verb].ask(data, codebook=BOOK).summary().as_text()


def moments_of(data, **words):
    design = private_design("~ age * sex + sqrt(wage)", data, BOOK, **words)
    columns = len(design.public.names)
    return moments(design, Lattice(20, columns))


def assert_same(first, second):
    assert first.cross()[0].tolist() == second.cross()[0].tolist()
    assert first.cross()[1] == second.cross()[1]
    assert first.fingerprint == second.fingerprint


def refused(data, says):
    """Ask for a mean and give the ledger, after the error that has to come."""
    ledger = dp.Ledger(eps=2.0)
    with pytest.raises(FrameError, match=says) as caught:
        dp.dp_mean("age ~ 1", data, codebook=BOOK, eps=1.0, ledger=ledger)
    assert SECRET not in str(caught.value)
    return ledger.describe(), caught.value
