"""Contrasts and one-way tests of released means."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.oneway import anova_oneway

import dpmodels as dp
from dpmodels.errors import NotAvailable

BOOK = dp.codebook(y=(-8, 8), g=["a", "b", "c"])
RNG = np.random.default_rng(4)
ROWS = pd.DataFrame({"g": RNG.choice(["a", "b", "c"], 900, p=[0.5, 0.3, 0.2])})
ROWS["y"] = (ROWS["g"] == "b") * 0.3 + RNG.normal(size=900) * (1 + (ROWS["g"] == "c"))


@pytest.fixture(scope="module")
def fit():
    with dp.simulation(seed=1):
        return dp.dp_mean("y ~ g", ROWS, codebook=BOOK, eps=1e7, mechanism="geometric")


def test_pairs_are_welchs_without_noise(fit):
    table = fit.contrasts(adjust="none").tidy().set_index("contrast")
    for first, second in ("ab", "ac", "bc"):
        x, y = (ROWS.loc[ROWS["g"] == group, "y"] for group in (first, second))
        reference = stats.ttest_ind(x, y, equal_var=False)
        row = table.loc[f"{first} - {second}"]
        # Sums are made of whole counts.
        assert row["statistic"] == pytest.approx(reference.statistic, rel=1e-2)
        assert row["p_value"] == pytest.approx(reference.pvalue, rel=2e-2)
        ends = reference.confidence_interval(0.95)
        assert [row["conf_low"], row["conf_high"]] == pytest.approx(list(ends), abs=1e-3)


def test_all_pairs_hold_together_and_a_pair_of_two_is_the_t_test(fit):
    alone, simultaneous = fit.contrasts(adjust="none").tidy(), fit.contrasts().tidy()
    assert (simultaneous["p_value"] >= alone["p_value"]).all()
    assert (simultaneous["conf_low"] < alone["conf_low"]).all()
    two = ROWS[ROWS["g"] != "c"]
    words = {"codebook": dp.codebook(y=(-8, 8), g=["a", "b"]), "eps": 1.0, "mechanism": "geometric"}
    with dp.simulation(seed=2):
        means = dp.dp_mean("y ~ g", two, **words)
    with dp.simulation(seed=2):
        test = dp.dp_ttest("y ~ g", two, **words)
    row = means.contrasts().tidy().iloc[0]
    assert row["p_value"] == pytest.approx(test.pvalue)
    assert row["conf_low"] == pytest.approx(test.conf_int()["lower"].item())
    # In units of the response, not of its range.
    assert row["std_error"] == pytest.approx(test.bse)


def test_titles_name_what_is_compared_and_its_unit(fit):
    assert fit.contrasts().title == "Contrasts of y: differences of means"
    book = BOOK | {"y": dp.Numeric(-8, 8, unit="mm")}
    with dp.simulation(seed=1):
        in_mm = dp.dp_mean("y ~ g", ROWS, codebook=book, eps=10.0)
    assert in_mm.contrasts().title == "Contrasts of y: differences of means (mm)"


def test_one_way_is_welchs_without_noise(fit):
    reference = anova_oneway(ROWS["y"], ROWS["g"], use_var="unequal", welch_correction=True)
    row = fit.anova().tidy().iloc[0]
    assert row["statistic"] == pytest.approx(reference.statistic, rel=1e-3)
    assert row["p_value"] == pytest.approx(reference.pvalue, rel=1e-2)
    assert "Welch" in str(fit.anova().summary())


def test_what_is_lost_or_alone_is_said():
    with dp.simulation(seed=1):
        lost = dp.dp_mean("y ~ g", ROWS[:30], codebook=BOOK, eps=0.02, mechanism="geometric")
        alone = dp.dp_mean("~ y", ROWS, codebook=BOOK, eps=1.0, mechanism="geometric")
    assert lost.contrasts().tidy()["estimate"].isna().all()
    assert "not identified" in str(lost.contrasts().summary())
    assert "Not tested: fewer than two groups" in str(lost.anova().summary())
    for ask in (alone.contrasts, alone.anova):
        with pytest.raises(NotAvailable, match="y ~ group"):
            ask()


def test_noise_has_more_df_than_rows_and_the_table_says_so():
    with dp.simulation(seed=2):
        noisy = dp.dp_mean("y ~ g", ROWS, codebook=BOOK, eps=0.2, mechanism="geometric").anova()
    df = float(noisy.tidy()["df_resid"].iloc[0])
    assert df > len(ROWS)
    text = noisy.summary().as_text()
    assert f" {df:,.0f} " in text
    assert "df may exceed the number of rows" in " ".join(text.split())
