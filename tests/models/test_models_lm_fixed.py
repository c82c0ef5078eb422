"""Fixed effects of ``dp_lm``: the release of indicators, shown as fixest shows it."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

import dpmodels as dp
from dpmodels.errors import BudgetWarning, FormulaError, NotAvailable

FIRMS = [f"f{number:02}" for number in range(6)]
BOOK = dp.codebook(x=(-4, 4), y=(-9, 9), z=["u", "v"], firm=FIRMS, year=["1", "2", "3"])
WORDS = {"codebook": BOOK, "eps": 1.0, "delta": 1e-6}


def table(rows=6_000):
    rng = np.random.default_rng(3)
    firm, year = rng.integers(0, len(FIRMS), rows), rng.integers(0, 3, rows)
    effect = np.linspace(-1, 1, len(FIRMS))[firm]
    x, z = (rng.normal(size=rows) + effect).clip(-4, 4), rng.choice(["u", "v"], rows)
    y = x + 0.5 * (z == "v") + effect + 0.2 * year + rng.normal(size=rows)
    firms, years = np.array(FIRMS)[firm], np.array(["1", "2", "3"])[year]
    return pd.DataFrame({"x": x, "z": z, "y": y.clip(-9, 9), "firm": firms, "year": years})


ROWS = table()
NEW = {"x": [0.0, 1.0], "z": ["u", "v"], "firm": ["f01", "f05"]}


def fitted(formula, **more):
    with dp.simulation(seed=1):
        return dp.dp_lm(formula, ROWS, **{**WORDS, **more})


@pytest.fixture(scope="module")
def fits():
    return {
        "fixed": fitted("y ~ x + z | firm"),
        "plain": fitted("y ~ x + z + firm"),
        "both": fitted("y ~ x + z | firm + year"),
    }


def test_numbers_are_those_of_indicators_bit_for_bit(fits):
    fixed, plain = fits["fixed"], fits["plain"]
    terms = ["z[T.v]", "x"]
    assert fixed.params.index.tolist() == terms
    for name in ("params", "bse", "bse_noise", "bse_sampling", "tvalues", "pvalues", "identified"):
        pd.testing.assert_series_equal(
            getattr(fixed, name), getattr(plain, name)[terms], check_exact=True
        )
    for name in ("conf_int", "noise_int", "noise"):
        pd.testing.assert_frame_equal(
            getattr(fixed, name)(), getattr(plain, name)().loc[terms], check_exact=True
        )
    pd.testing.assert_frame_equal(fixed.cov_params(), plain.cov_params().loc[terms, terms])
    pd.testing.assert_series_equal(fixed.predict(NEW), plain.predict(NEW), check_exact=True)
    pd.testing.assert_frame_equal(fixed.get_prediction(NEW), plain.get_prediction(NEW))
    assert fixed.tidy()["term"].tolist() == terms
    assert (fixed.rsquared, fixed.scale, fixed.df_resid) == (
        plain.rsquared,
        plain.scale,
        plain.df_resid,
    )


def test_the_table_counts_levels_and_leaves_them_out(fits):
    text = str(fits["both"].summary())
    flat = " ".join(text.split())
    assert "y ~ x + z | firm + year" in text
    assert "firm (6 levels)" in flat
    assert "year (3 levels)" in flat
    assert "2 model" in text
    assert "(all slopes 0)" in text
    assert "[T.f01]" not in text
    assert "Intercept" not in text
    assert repr(fits["both"]).startswith("<LMResult 'y ~ x + z | firm + year': 2 coefficients")


def test_fixed_effects_are_those_of_levels(fits):
    plain, joint = fits["plain"], fits["both"]
    effects = fits["fixed"].fixed_effects().tidy()
    assert effects["level"].tolist() == FIRMS
    firms = [0.0, *plain.params[[f"firm[T.{name}]" for name in FIRMS[1:]]]]
    assert effects["estimate"].to_numpy() == pytest.approx(
        plain.params["Intercept"] + np.array(firms)
    )
    assert np.isfinite(effects[["std_error", "conf_low", "conf_high"]]).all(axis=None)
    two = joint.fixed_effects(0.9)
    assert two.tidy()["factor"].tolist() == ["firm"] * 6 + ["year"] * 2
    assert two.tidy()["level"].tolist()[-2:] == ["2", "3"]
    assert "90% conf." in str(two.summary())
    with pytest.raises(NotAvailable, match="has none"):
        plain.fixed_effects()


def test_without_noise_they_are_statsmodels():
    fit = fitted("y ~ x + z | firm + C(year)", eps=1e8, codebook=BOOK | {"year": ["1", "2", "3"]})
    plain = smf.ols("y ~ x + z + firm + year", ROWS).fit()
    assert fit.params.to_numpy() == pytest.approx(plain.params[["z[T.v]", "x"]], rel=1e-3)
    assert fit.bse.to_numpy() == pytest.approx(plain.bse[["z[T.v]", "x"]], rel=1e-2)


def test_tests_and_means_know_all_terms(fits):
    fit, plain = fits["fixed"], fits["plain"]
    assert fit.anova().tidy()["term"].tolist() == plain.anova().tidy()["term"].tolist()
    assert fit.wald_test("firm")["df"] == 5
    assert fit.t_test("x = 1")["estimate"].iloc[0] == fit.params["x"]
    means = fit.emmeans("z")
    assert "Averaged with equal weights over: firm." in means.notes
    pd.testing.assert_frame_equal(means.tidy(), plain.emmeans("z").tidy())
    assert fit.margins(NEW).tidy()["term"].tolist() == ["x", "z"]
    pytest.importorskip("matplotlib")
    names = [tick.get_text() for tick in fit.plot().get_yticklabels()]
    assert names == ["z[T.v]", "x"]


def test_columns_of_a_table_say_whose_effects_are_absorbed(fits):
    text = dp.etable([fits["fixed"], fits["both"], fits["plain"]], drop=["firm", "Intercept"])
    lines = {line[:20].strip(): line[20:].split() for line in text.as_text().splitlines()}
    assert lines["Fixed effects: firm"] == ["Yes", "Yes", "No"]
    assert lines["Fixed effects: year"] == ["No", "Yes", "No"]
    assert "Fixed effects" not in dp.etable([fits["plain"]]).as_text()


def test_they_are_kept_by_files_sessions_and_joint_moments(fits, tmp_path):
    fit = fits["both"]
    fit.save(tmp_path / "fit.nc")
    for again in (dp.load(tmp_path / "fit.nc"), pickle.loads(pickle.dumps(fit))):
        assert str(again.summary()) == str(fit.summary())
        pd.testing.assert_frame_equal(again.fixed_effects().tidy(), fit.fixed_effects().tidy())
    with dp.simulation(seed=1):
        study = dp.session(ROWS, codebook=BOOK, budget=dp.ApproxDP(2.0, 1e-5))
        assert study.lm("y ~ x | firm", eps=1.0, delta=1e-6).params.index.tolist() == ["x"]
        joint = dp.dp_moments("~ y + x + firm", ROWS, **WORDS).lm("y ~ x | firm")
    assert joint.params.index.tolist() == ["x"]
    assert len(joint.fixed_effects().tidy()) == 6


@pytest.mark.guarding
@pytest.mark.parametrize("formula", ["y ~ x | region", "y ~ x | y", "y ~ x + firm | firm"])
def test_refusals_come_before_the_charge(formula):
    ledger = dp.Ledger(eps=2.0, delta=1e-5)
    with pytest.raises(FormulaError):
        dp.dp_lm(formula, ROWS, ledger=ledger, **WORDS)
    assert not len(ledger.register())


def test_penalties_are_of_terms_alone(fits):
    for path in (fits["fixed"].ridge_path, fits["fixed"].lasso_path):
        with pytest.raises(NotAvailable, match=r"write '\+ firm'"):
            path()


@pytest.mark.slow
def test_power_is_of_the_slopes():
    words = {"codebook": BOOK, "n": 6_000, "eps": 3.0, "delta": 1e-6}
    with dp.simulation(seed=1):
        plan = dp.power("y ~ x + z | firm", effect={"x": 0.4}, **words)
    assert plan.table["term"].tolist() == ["z[T.v]", "x"]


def test_other_verbs_do_not_take_them():
    with pytest.raises(FormulaError, match="fixed effects for dp_lm"):
        dp.dp_glm("z ~ x | firm", ROWS, **WORDS)


@pytest.mark.parametrize("mechanism", ["scores", "moments"])
def test_more_levels_than_the_budget_carries_are_warned_of(mechanism):
    firms = [f"f{number:03}" for number in range(60)]
    rng = np.random.default_rng(1)
    rows = {"x": rng.normal(size=8_000), "y": rng.normal(size=8_000)}
    rows["firm"] = rng.choice(firms, 8_000)
    words = {**WORDS, "codebook": BOOK | {"firm": firms}, "mechanism": mechanism}
    with pytest.warns(BudgetWarning) as warned:
        dp.dp_lm("y ~ x | firm", rows, **words)
    assert "slopes beside firm, with 61 columns in all" in str(warned[0].message)
    assert "up to about" in str(warned[0].message)
    few = {**rows, "firm": [firms[number % 6] for number in range(8_000)]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dp.dp_lm("y ~ x | firm", few, **{**words, "codebook": BOOK})
