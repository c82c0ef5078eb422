"""Data of which no cell fits the codebook: an honest table, and never a crash."""

import numpy as np
import pytest

import dpmodels as dp

BOOK = dp.codebook(y=(0, 1), x=(0, 1), z=(0, 1), g=["a", "b"])
N = 2_000
ROWS = {name: ["??"] * N for name in BOOK}


def fitted(verb, formula):
    with dp.simulation(seed=3):
        return verb(formula, ROWS, codebook=BOOK, eps=1.0, delta=1e-6)


@pytest.mark.parametrize(
    ("verb", "formula"),
    [(dp.dp_mean, "y ~ g"), (dp.dp_mean, "y"), (dp.dp_quantile, "~ x"), (dp.dp_lm, "y ~ x + z")],
)
def test_nothing_is_reported_of_rows_that_all_miss_the_codebook(verb, formula):
    fit = fitted(verb, formula)
    table = fit.tidy()
    assert not table["identified"].fillna(False).any()
    lengths = (table["conf_high"] - table["conf_low"]).dropna()
    assert (lengths >= 1).all(), "no interval is shorter than the declared range"
    text = str(fit)
    assert "too few rows" in text or "not identified" in text


def test_components_are_marked_as_noise():
    fit = fitted(dp.dp_pca, "~ x + y + z")
    assert "No component is above it" in str(fit)
    assert np.isnan(fit.tidy()["conf_low"]).all()
