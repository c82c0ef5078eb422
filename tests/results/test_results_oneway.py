"""The aov table of released moments, beside statsmodels' of the same rows."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy.stats import kstest
from statsmodels.stats.anova import anova_lm

import dpmodels as dp
from dpmodels.errors import FormulaError

BOOK = dp.codebook(y=(0, 100), g=["a", "b", "c", "d"], x=(0, 1))


def table(rng, rows=3_000, apart=1.0):
    g = rng.choice(["a", "b", "c", "d"], rows, p=[0.4, 0.3, 0.2, 0.1])
    y = np.clip(rng.normal(50, 10, rows) + apart * (g == "b"), 0, 100)
    return pd.DataFrame({"y": y, "g": g, "x": rng.uniform(0, 1, rows)})


def moments(rows, seed=1, **budget):
    with dp.simulation(seed=seed):
        return dp.dp_moments("~ .", rows, codebook=BOOK, **{"eps": 1e15, "delta": 1e-6} | budget)


def test_a_huge_budget_gives_the_classical_table():
    rows = table(np.random.default_rng(1))
    reference = anova_lm(smf.ols("y ~ g", rows).fit())
    result = moments(rows).aov("y ~ g").tidy()
    for name, reference_name in (("df", "df"), ("sumsq", "sum_sq"), ("meansq", "mean_sq")):
        assert result[name].to_numpy() == pytest.approx(
            reference[reference_name].to_numpy(), rel=1e-5
        )
    assert result["statistic"][0] == pytest.approx(reference["F"].iloc[0], rel=1e-5)
    assert result["p_value"][0] == pytest.approx(reference["PR(>F)"].iloc[0], rel=1e-4)
    assert result["term"].tolist() == ["g", "Residuals"]


@pytest.mark.product
def test_p_values_are_uniform_where_the_means_are_equal():
    rng = np.random.default_rng(2)
    releases = [moments(table(rng, 1_500, 0.0), seed, eps=2.0) for seed in range(40)]
    pvalues = [release.aov("y ~ g").tidy()["p_value"][0] for release in releases]
    # A false alarm at 1e-6, were they exactly uniform.
    assert kstest(pvalues, "uniform").pvalue > 1e-6


@pytest.mark.product
def test_sums_of_squares_are_as_far_off_as_their_noise():
    rows = table(np.random.default_rng(3), 4_000, 10.0)
    exact = moments(rows).aov("y ~ g").tidy()["sumsq"].to_numpy()
    tables = [moments(rows, seed, eps=2.0).aov("y ~ g").tidy() for seed in range(40)]
    z = np.array([(table["sumsq"] - exact) / table["noise_sd"] for table in tables])
    # Of 40 squares of normal deviates the mean is in [0.25, 2.3] but at 1e-6.
    assert ((z**2).mean(axis=0) > 0.25).all()
    assert ((z**2).mean(axis=0) < 2.3).all()


def test_the_table_prints_as_rs_and_says_what_is_lost():
    rows = table(np.random.default_rng(1), 300)
    assert "Residuals" in str(moments(rows).aov("y ~ g").summary())
    lost = moments(rows, eps=0.01).aov("y ~ g")
    assert "not identified" in str(lost.summary())
    assert lost.tidy()["p_value"].isna().all()


@pytest.mark.guarding
@pytest.mark.parametrize("formula", ["y ~ g + x", "y ~ 0 + x", "y ~ 1", "y ~ q"])
def test_refusals(formula):
    with pytest.raises(FormulaError, match=r"expected one term|was not released"):
        moments(table(np.random.default_rng(1), 50)).aov(formula)
