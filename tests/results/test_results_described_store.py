"""Descriptions in files: what is read back prints the same and holds the same numbers."""

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.models.mean import dp_mean
from dpmodels.models.quantile import dp_quantile
from dpmodels.models.ttest import dp_ttest
from dpmodels.models.var import dp_var

BOOK = dp.codebook(
    y=dp.Numeric(-1, 1, unit="m", label="a height"),
    g=["p", "q"],
    grade=[1, 2, 3],
    seen=[False, True],
)
CASES = {
    "mean": (dp_mean, "y ~ g + grade", {"delta": 1e-6}),
    "mean of all": (dp_mean, "~ y", {}),
    "var": (dp_var, "y ~ seen", {"adjacency": "add-remove"}),
    "two samples": (dp_ttest, "y ~ seen", {"mu": 0.1}),
    "one sample": (dp_ttest, "~ I(y ** 2)", {"eps": None, "budget": dp.ZCDP(0.1)}),
    "quantile": (dp_quantile, "y ~ g", {"probs": [0, 0.5]}),
    "no interval": (dp_quantile, "~ y", {"level": None}),
    "lost": (dp_quantile, "y ~ grade", {"eps": 1e-6}),
}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(4)
    return {
        "y": rng.uniform(-1, 1, 600),
        "g": rng.choice(["p", "q"], 600),
        "grade": rng.choice([1, 2, 3], 600),
        "seen": rng.random(600) < 0.4,
    }


@pytest.mark.parametrize("case", CASES)
def test_what_is_read_back_is_the_same(case, table, tmp_path):
    verb, formula, words = CASES[case]
    words = (
        {"eps": 1.0, "ledger": dp.Ledger(budget=words["budget"])} | words
        if ("budget" in words)
        else {"eps": 1.0} | words
    )
    fit = verb(formula, table, codebook=BOOK, **words)
    fit.save(tmp_path / "fit.nc")
    again = dp.load(tmp_path / "fit.nc")
    assert type(again) is type(fit)
    assert again.call == fit.call
    for form in ("as_text", "as_html", "as_latex", "as_markdown"):
        assert getattr(again.summary(), form)() == getattr(fit.summary(), form)()
    pd.testing.assert_frame_equal(again.tidy(), fit.tidy())
    pd.testing.assert_frame_equal(again.glance(), fit.glance())


def test_what_is_read_back_may_be_asked_for_other_levels(table, tmp_path):
    fit = dp_mean("~ y", table, codebook=BOOK, eps=1.0)
    fit.save(tmp_path / "fit.nc")
    pd.testing.assert_frame_equal(dp.load(tmp_path / "fit.nc").conf_int(0.5), fit.conf_int(0.5))


def test_a_simulation_stays_one(table, tmp_path):
    with dp.simulation(seed=1):
        fit = dp_var("~ y", table, codebook=BOOK, eps=1.0)
    fit.save(tmp_path / "fit.nc")
    assert "SIMULATION" in str(dp.load(tmp_path / "fit.nc").summary())
