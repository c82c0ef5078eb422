"""The result of a regression: its words, tests, tables, storage and refusals."""

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from matplotlib.figure import Figure
from scipy import stats

import dpmodels as dp
from dpmodels.errors import ArgumentError, FormulaError, NotAvailable, OutsideWarning

pytestmark = pytest.mark.kernels

BOOK = dp.codebook(wage=(0, 100), educ=(0, 20), exper=(0, 50), sex=["F", "M"], w=(0, 2))
FORMULA = "wage ~ educ + exper + sex"
HUGE = {"eps": 1e9, "delta": 1e-6}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    educ, exper = rng.uniform(0, 20, 6_000), rng.uniform(0, 50, 6_000)
    sex = rng.choice(["F", "M"], 6_000)
    wage = 10 + 2 * educ + 0.3 * exper + 3 * (sex == "M") + 5 * rng.normal(size=6_000)
    weights = rng.uniform(0, 2, 6_000)
    return {"wage": wage, "educ": educ, "exper": exper, "sex": sex, "w": weights}


def made(table, formula=FORMULA, **words):
    with dp.simulation(seed=3):
        return dp.dp_lm(formula, table, codebook=BOOK, **({"eps": 1.0, "delta": 1e-6} | words))


@pytest.fixture(scope="module")
def exact(table):
    return made(table, **HUGE)


@pytest.fixture(scope="module")
def fit(table):
    return made(table)


@pytest.fixture(scope="module")
def lost(table):
    return made({name: column[:60] for name, column in table.items()})


@pytest.fixture(scope="module")
def plain(table):
    return smf.ols(FORMULA, pd.DataFrame(table)).fit()


# ---- words -----------------------------------------------------------------------------


def test_variances_add_up(fit):
    parts = fit.bse_noise.to_numpy() ** 2 + fit.bse_sampling.to_numpy() ** 2
    assert fit.bse.to_numpy() ** 2 == pytest.approx(parts)
    assert np.diag(fit.cov_params()) == pytest.approx(fit.bse.to_numpy() ** 2)
    assert fit.tvalues.to_numpy() == pytest.approx((fit.params / fit.bse).to_numpy())


def test_levels(fit):
    narrow, wide = fit.conf_int(0.5), fit.conf_int(level=0.99)
    assert (wide["lower"] < narrow["lower"]).all()
    assert (fit.noise_int(0.5)["upper"] < narrow["upper"]).all()
    for bad in (1.0, 0.0, 95, "0.95", None):
        with pytest.raises(ArgumentError, match="level="):
            fit.conf_int(bad)
        with pytest.raises(ArgumentError, match="level="):
            fit.noise_int(bad)


def test_confidence_intervals_hold_noise_intervals(fit, lost):
    for value in (fit, lost):
        conf, noise = value.conf_int(), value.noise_int()
        assert (conf["lower"] <= noise["lower"]).all()
        assert (conf["upper"] >= noise["upper"]).all()


def test_tables(fit):
    tidy = fit.tidy()
    assert tidy["term"].tolist() == ["Intercept", "sex[T.M]", "educ", "exper"]
    assert {"estimate", "std_error", "conf_low", "noise_low", "identified"} < set(tidy)
    facts = fit.glance().iloc[0]
    assert facts["r_squared"] == fit.rsquared
    assert facts["nobs"] == fit.nobs
    assert facts["statistic"] == fit.wald_test(np.eye(4)[1:])["statistic"]
    assert list(fit.noise()) == [
        "estimate",
        "noise_sd",
        "sampling_sd",
        "lower",
        "upper",
        "identified",
    ]


def test_the_summary_has_statsmodels_columns_and_the_noise(fit):
    summary = fit.summary(notes="all")
    text = summary.as_text()
    words = ("Dep. variable", "R-squared", "Adj. R-squared", "Wald chi2", "Prob (chi2)", "noise sd")
    for word in (*words, "coef", "std err", "P>|z|", "95% conf.", "SIMULATION", "X'y"):
        assert word in text, word
    assert "<table" in summary.as_html()
    assert "tabular" in summary.as_latex()
    assert "|" in summary.as_markdown()
    assert repr(fit).startswith("<LMResult 'wage ~ educ + exper + sex': 4 coefficients")


def test_where_noise_wins_the_table_says_so(lost):
    text = lost.summary().as_text()
    assert "No coefficient is identified at this budget" in text
    assert "lost in noise" in text
    assert np.isinf(lost.bse.to_numpy()).all()
    # No cell of the coefficients' tables holds a number.
    cells = [line for line in text.splitlines() if line.startswith(("educ", "exper", "sex"))]
    assert cells
    assert all(line.split(maxsplit=1)[1].strip() == "not identified" for line in cells)
    with pytest.raises(NotAvailable, match="cov_params"):
        lost.get_prediction({"educ": [1.0], "exper": [1.0], "sex": ["F"]})


def test_weights_without_a_public_number_of_rows(table):
    fit = made(table, weights="w", adjacency="add-remove")
    assert np.isfinite(fit.noise_int()).all(axis=None)
    assert fit.tidy()["std_error"].isna().all()
    assert fit.noise()["sampling_sd"].isna().all()
    assert "Without the number of rows the residual variance" in " ".join(
        fit.summary().as_text().split()
    )
    for ask in (fit.conf_int, lambda: fit.bse, lambda: fit.wald_test("educ = 0")):
        with pytest.raises(NotAvailable, match="variance of the residuals"):
            ask()


# ---- tests -----------------------------------------------------------------------------

PAIRS = [
    "educ = 2, exper = 0.3",
    "educ = 2 * sex[T.M]",
    [[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -4.0]],
    ([[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]], [3.0, 2.0]),
]


@pytest.mark.parametrize("constraints", PAIRS, ids=str)
def test_tests_are_statsmodels_without_noise(exact, plain, constraints):
    reference = plain.wald_test(constraints, use_f=False, scalar=True)
    wald = exact.wald_test(constraints)
    assert wald["statistic"] == pytest.approx(float(reference.statistic), rel=1e-3, abs=1e-3)
    assert wald["df"] == reference.df_denom
    single, table = exact.t_test(constraints), plain.t_test(constraints)
    deviations = (table.conf_int()[:, 1] - table.conf_int()[:, 0]) / 2 / stats.t.ppf(0.975, 5_996)
    assert single["estimate"].to_numpy() == pytest.approx(table.effect, rel=1e-4)
    assert single["std_error"].to_numpy() == pytest.approx(deviations, rel=1e-3)
    assert single["statistic"].to_numpy() == pytest.approx(
        np.ravel(table.tvalue), rel=1e-3, abs=1e-3
    )
    assert single[["lower", "upper"]].to_numpy() == pytest.approx(table.conf_int(), rel=2e-3)


@pytest.mark.parametrize(
    ("constraints", "match"),
    [
        ("tenure = 0", "cannot be read"),
        ("educ = ", "cannot be read"),
        (np.eye(3), "shape"),
        ([[np.nan, 0, 0, 0]], "finite"),
        (np.zeros((1, 4)), "names no coefficient"),
        (np.empty((0, 4)), "shape"),
        (object(), "expected text"),
        ((np.eye(4), [1.0, 2.0]), "expected text"),
    ],
)
def test_constraints_that_are_none(fit, constraints, match):
    for test in (fit.t_test, fit.wald_test):
        with pytest.raises(ArgumentError, match=match):
            test(constraints)


def test_dependent_constraints_are_refused_together(fit):
    with pytest.raises(ArgumentError, match="linearly dependent"):
        fit.wald_test("educ = 0, 2 * educ = 0")
    hypotheses = fit.t_test("educ = 0, 2 * educ = sex[T.M]")
    assert hypotheses.index.tolist() == ["educ", "-sex[T.M] + 2*educ"]


# ---- new rows --------------------------------------------------------------------------

NEW = {"educ": [12.0, 16.0, np.nan], "exper": [10.0, 60.0, 1.0], "sex": ["F", "M", "F"]}


def test_predictions_are_the_manual_computation(fit):
    b = fit.params
    # A public row beyond the bounds is no row that the model was fitted to; on request it is held
    # in them like a private one.
    with pytest.warns(OutsideWarning, match=r"1 of 3 public rows .* \(exper: 1\)"):
        assert math.isnan(fit.predict(NEW)[1])
    mean = fit.predict(NEW, clip=True)
    assert mean[0] == pytest.approx(b["Intercept"] + 12 * b["educ"] + 10 * b["exper"])
    assert mean[1] == pytest.approx(
        b["Intercept"] + 16 * b["educ"] + 50 * b["exper"] + b["sex[T.M]"]
    )
    assert math.isnan(mean[2])
    assert mean.name == "wage"


def test_predictions_have_statsmodels_intervals_without_noise(exact, plain):
    rows = pd.DataFrame({name: values[:1] for name, values in NEW.items()})
    reference = plain.get_prediction(rows).summary_frame()
    predictions = exact.get_prediction(rows)
    assert list(predictions) == list(reference)
    assert predictions.to_numpy() == pytest.approx(reference.to_numpy(), rel=2e-3)
    with pytest.raises(ArgumentError, match="level="):
        exact.get_prediction(rows, level=95)


def test_a_constant_alone_predicts_itself(table):
    fit = made(table, "wage ~ 1")
    with pytest.raises(NotAvailable, match="params"):
        fit.predict(NEW)
    with pytest.raises(ArgumentError, match="no terms"):
        fit.plot()
    assert math.isnan(fit.glance()["statistic"][0])
    assert fit.rsquared == 0


# ---- pictures, storage, refusals -------------------------------------------------------


def test_the_picture_shows_both_intervals(fit, lost):
    axes = fit.plot(standardize=None, ax=Figure().subplots())
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["sex[T.M]", "educ", "exper"]
    assert axes.get_xlabel() == "Coefficient (wage)"
    thin, thick = axes.collections[:2]
    assert thin.get_linewidth()[0] < thick.get_linewidth()[0]
    assert thin.get_segments()[1][:, 0] == pytest.approx(fit.conf_int().loc["educ"])
    assert thick.get_segments()[1][:, 0] == pytest.approx(fit.noise_int().loc["educ"])
    texts = [text.get_text() for text in lost.plot(ax=Figure().subplots()).texts]
    assert texts.count("not identified") == 3
    assert any("SIMULATION" in text for text in texts)


WAYS = [{}, {"weights": "w"}, {"mechanism": "adassp"}, {"delta": 0.0}, {"adjacency": "add-remove"}]


@pytest.mark.parametrize("words", WAYS, ids=str)
@pytest.mark.parametrize("formula", [FORMULA, "wage ~ 0 + educ", "wage ~ 1"])
def test_what_is_read_back_is_the_same(table, tmp_path, formula, words):
    fit = made(table, formula, **words)
    fit.save(tmp_path / "fit.nc")
    again = dp.load(tmp_path / "fit.nc")
    assert again.summary().as_text() == fit.summary().as_text()
    pd.testing.assert_frame_equal(again.tidy(), fit.tidy())
    if "educ" in formula:
        pd.testing.assert_series_equal(again.predict(NEW, clip=True), fit.predict(NEW, clip=True))


def test_refusals(fit):
    likelihood = ("aic", "bic", "deviance", "llr", "prsquared")
    for name in ("fittedvalues", "resid", "residuals", "coef", *likelihood):
        with pytest.raises(NotAvailable, match=name):
            getattr(fit, name)
        assert not hasattr(fit, name)
    for name, instead in {
        "coefficients": "called params here",
        "confint": r"called conf_int\(\) here",
        "vcov": r"called cov_params\(\) here",
        "update": "another release: write the formula in a call of its own",
        "step": "another release",
        "f_test": r"see wald_test\(\) and anova\(\)",
        "fvalue": "chi-square here",
        "f_pvalue": "chi-square here",
    }.items():
        with pytest.raises(NotAvailable, match=f"{name} .*{instead}"):
            getattr(fit, name)


def test_what_was_handed_out_changes_nothing(fit):
    before = fit.summary().as_text()
    for handed in (fit.conf_int(), fit.params, fit.cov_params()):
        handed.iloc[:] = 0.0
    assert fit.summary().as_text() == before


# ---- free of charge from joint moments -------------------------------------------------


@pytest.fixture(scope="module")
def joint(table):
    return dp.dp_moments("~ wage + educ + exper * sex", table, codebook=BOOK, **HUGE)


def test_models_from_joint_moments(joint, plain, table):
    fit_of_joint = joint.lm(FORMULA)
    order = list(fit_of_joint.params.index)
    assert fit_of_joint.params.to_numpy() == pytest.approx(plain.params[order].to_numpy(), rel=1e-3)
    assert fit_of_joint.bse.to_numpy() == pytest.approx(plain.bse[order].to_numpy(), rel=1e-3)
    assert "at no further cost" in " ".join(fit_of_joint.summary().as_text().split())
    assert fit_of_joint.predict(NEW, clip=True)[0] == pytest.approx(
        float(plain.predict(pd.DataFrame(NEW))[0]), rel=1e-3
    )
    assert joint.lm("sex ~ educ").linear.response == "sex[T.M]"
    assert joint.lm("wage ~ 1").params["Intercept"] == pytest.approx(table["wage"].mean(), rel=1e-3)


@pytest.mark.parametrize(
    ("formula", "match"),
    [
        ("wage ~ w", "variable 'w' of .* was not released"),
        ("w ~ wage", "variable 'w' of .* was not released"),
        ("wage ~ I(educ ** 2)", r"column 'I\(educ \*\* 2\)' of .* add it to the formula"),
        ("wage ~ educ:sex", "add it to the formula of a new release with dp.dp_moments"),
        ("~ educ", "has no response"),
        ("wage ~ wage + educ", "is the response and a term"),
    ],
)
def test_columns_that_were_not_released_are_named(joint, formula, match):
    with pytest.raises(FormulaError, match=match):
        joint.lm(formula)


def test_a_category_of_many_levels_is_no_response(table):
    book = BOOK | {"region": ["n", "s", "w"]}
    rows = table | {"region": np.full(6_000, "n")}
    joint = dp.dp_moments("~ wage + region", rows, codebook=book, eps=1.0, delta=1e-6)
    with pytest.raises(FormulaError, match="category of 3 levels"):
        joint.lm("region ~ wage")


def test_a_residual_variance_that_is_lost_is_said_to_be_so():
    """A table of counts at 2,000 rows: in every fourth fit noise takes the variance below 0."""
    rng = np.random.default_rng(1)
    book = dp.codebook(y=(-8, 8), a=(0, 3), b=(0, 3))
    counts = rng.poisson(0.5, (2, 2_000)).clip(0, 3)
    rows = {"a": counts[0], "b": counts[1], "y": 0.5 * counts[0] + rng.normal(size=2_000)}
    is_lost_seen = set()
    for seed in range(8):
        with dp.simulation(seed=seed):
            words = {"codebook": book, "eps": 1.0, "delta": 1e-6, "mechanism": "moments"}
            fit = dp.dp_lm("y ~ a + b", rows, **words)
        value, sd = fit.linear.scale
        is_identified = value > 2 * sd
        assert fit.scale == value if is_identified else np.isnan(fit.scale)
        assert np.isnan(fit.rsquared) or fit.linear.rsquared[1] < 0.5
        if is_identified not in is_lost_seen:
            text = " ".join(str(fit.summary()).split())
            assert ("residual variance is lost in noise" in text) != is_identified
            below = "Residual sd: below" in text or "Residual sd: lost in noise" in text
            assert below != is_identified
        is_lost_seen.add(is_identified)
        if fit.identified.all():
            ahead = fit.get_prediction({"a": [1], "b": [0]})
            spread = (ahead.obs_ci_upper - ahead.mean_ci_upper).to_numpy()
            assert (spread > 0).all()
            limit = max(value, 0.0) + 2 * sd * (not is_identified)
            half = (ahead.obs_ci_upper - ahead["mean"]).to_numpy()
            assert (half >= 1.9599 * np.sqrt(limit)).all()
    assert is_lost_seen == {True, False}


@pytest.mark.parametrize("call", ["predict", "get_prediction", "augment"])
def test_no_public_row_has_no_prediction(table, call):
    fit = made(table, "wage ~ educ * sex + exper", **HUGE)
    result = getattr(fit, call)(pd.DataFrame(table)[:0])
    assert len(getattr(result, "summary_frame", lambda: result)()) == 0


def test_errors_of_derived_calls_say_what_to_write(table):
    constant = made(table, "wage ~ 1", **HUGE)
    with pytest.raises(ArgumentError, match=r"names of \['Intercept'\]$"):
        constant.wald_test("b")
    with pytest.raises(ArgumentError, match=r"write level=0.999999999$"):
        constant.conf_int(1e-9)
    with pytest.raises(ArgumentError, match=r"expected True, False or \{'age'"):
        dp.etable(constant, labels=3)
    with pytest.raises(NotAvailable, match="for Estimates; write its tables"):
        made(table, **HUGE).contrasts("sex").save("x.nc")
