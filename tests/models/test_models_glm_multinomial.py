"""dp_glm of a category of several levels: what it finds, offers, refuses and leaves open."""

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from scipy.stats import chi2

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError, FormulaError, NotAvailable
from dpmodels.results.classifiers import MultinomialResult
from dpmodels.results.estimate_table import COLUMNS
from dpmodels.results.glm import GLMResult
from tests.mines import Mine

LEVELS = ["low", "mid", "top"]
BOOK = dp.codebook(
    y=LEVELS,
    never=["low", "void", "mid", "top"],
    sex=["F", "M"],
    a=(-2, 2),
    g=[f"g{i}" for i in range(40)],
    many=[f"l{i}" for i in range(40)],
)
TRUTH = np.array([[0.0, 0.0, 0.0], [-0.4, 0.7, 0.5], [0.2, -0.3, -0.6]])
WORDS = {"codebook": BOOK, "eps": 8.0, "delta": 1e-6, "family": "multinomial"}


def table(rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    a, sex = rng.uniform(-2, 2, rows), rng.choice(["F", "M"], rows)
    chances = softmax(TRUTH @ np.vstack([np.ones(rows), sex == "M", a]), axis=0)
    place = (rng.random(rows) > np.cumsum(chances, axis=0)).sum(axis=0)
    y = np.array(LEVELS)[np.minimum(place, 2)]
    return {"a": a, "sex": sex, "y": y, "never": y}


@cache
def fitted(formula="y ~ sex + a", seed=0, **words):
    with dp.simulation(seed=seed):
        return dp.dp_glm(formula, table(seed=seed), **{**WORDS, **words})


@pytest.mark.expensive
def test_errors_have_the_covariance_that_is_told():
    """Of 5 fits of 5 tables, six coefficients each; both ends at a false alarm of 5e-7."""
    squares = 0.0
    for seed in range(5):
        fit = fitted(seed=seed)
        assert fit.identified.all(axis=None)
        off = fit.params.to_numpy().T.ravel() - TRUTH[1:].ravel()
        squares += float(off @ np.linalg.solve(fit.cov_params().to_numpy(), off))
    assert chi2.ppf(5e-7, 30) < squares < chi2.isf(5e-7, 30)


def test_frames_are_by_term_and_level_against_the_first():
    fit = fitted()
    assert isinstance(fit, MultinomialResult)
    assert fit.params.columns.tolist() == LEVELS[1:]
    assert fit.params.index.tolist() == ["Intercept", "sex[T.M]", "a"]
    tidy = fit.tidy()
    assert tidy.columns[:3].tolist() == ["y_level", "term", "estimate"]
    rows = tidy.set_index(["y_level", "term"])
    assert rows.loc[("top", "a"), "estimate"] == fit.params.loc["a", "top"]
    assert rows.loc[("mid", "sex[T.M]"), "std_error"] == fit.bse.loc["sex[T.M]", "mid"]
    total, noise = fit.conf_int(), fit.noise_int()
    assert (total["lower"] <= noise["lower"]).all()
    assert (noise["upper"] <= total["upper"]).all()
    width = np.diff(total.loc[("top", "a")].to_numpy())[0] / 2
    np.testing.assert_allclose(width, 1.96 * fit.bse.loc["a", "top"], rtol=1e-3)
    np.testing.assert_allclose(
        np.sqrt(np.diag(fit.cov_params())), fit.bse.to_numpy().T.ravel(), rtol=1e-9
    )
    assert (fit.pvalues.loc["a"] < 1e-3).all()
    assert fit.classes == tuple(LEVELS)


def test_probabilities_are_of_all_levels():
    fit = fitted()
    public = pd.DataFrame({"a": [0.5, np.nan, -2.0], "sex": ["M", "F", "F"]})
    predictions = fit.predict(public)
    assert predictions.columns.tolist() == LEVELS
    rows = np.array([[1.0, 1.0, 0.5], [1.0, 0.0, -2.0]])
    linear = np.hstack([np.zeros((2, 1)), rows @ fit.params.to_numpy()])
    np.testing.assert_allclose(predictions.iloc[[0, 2]], softmax(linear, axis=1), rtol=1e-9)
    assert predictions.iloc[1].isna().all()
    assert fit.decision_function(public).columns.tolist() == LEVELS[1:]


def test_what_is_saved_comes_back(tmp_path):
    fit = fitted()
    fit.save(tmp_path / "fit.nc")
    again = dp.load(tmp_path / "fit.nc")
    assert isinstance(again, MultinomialResult)
    assert str(again.summary()) == str(fit.summary())
    public = pd.DataFrame({"a": [0.5], "sex": ["M"]})
    pd.testing.assert_frame_equal(again.predict(public), fit.predict(public))
    pd.testing.assert_frame_equal(again.conf_int(0.9), fit.conf_int(0.9))


def test_two_levels_are_the_binomial_fit():
    fits = [fitted("sex ~ a", family=family) for family in ("multinomial", "binomial")]
    assert all(isinstance(fit, GLMResult) for fit in fits)
    assert fits[0].params.tolist() == fits[1].params.tolist()


def test_a_level_that_no_row_has_leaves_the_others():
    fit = fitted("never ~ sex")
    is_identified = fit.identified
    assert is_identified[["mid", "top"]].all(axis=None)
    assert not is_identified["void"].any()
    assert "not identified" in str(fit.summary())
    # 6 standard errors: a chance of 2e-9 each.
    off = fit.params[["mid", "top"]].iloc[0] - fitted("y ~ sex").params.iloc[0]
    assert (off.abs() < 6 * np.sqrt(2) * fit.bse[["mid", "top"]].iloc[0]).all()


def test_levels_that_a_term_separates_are_no_error():
    rows = table()
    rows["y"] = np.where(rows["a"] > 0.5, "top", np.where(rows["a"] > -0.5, "mid", "low"))
    with dp.simulation(seed=2), warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = dp.dp_glm("y ~ a", rows, **WORDS)
        assert np.isfinite(fit.params).all(axis=None)
        assert str(fit.summary())
    assert fit.params.loc["a", "top"] > fit.params.loc["a", "mid"]


def test_terms_are_tested_for_all_levels_at_once():
    fit = fitted()
    table = fit.anova().tidy().set_index("term")
    assert table["df"].tolist() == [2, 2]
    estimates = fit.params.loc["a"].to_numpy()
    covariance = fit.cov_params().xs("a", level="term").xs("a", axis=1, level="term").to_numpy()
    np.testing.assert_allclose(
        table.loc["a", "statistic"], estimates @ np.linalg.solve(covariance, estimates)
    )
    assert (table["p_value"] < 1e-6).all()
    assert fit.anova(typ=3).tidy()["statistic"].notna().all()
    assert not fitted("never ~ sex").anova().tidy()["identified"].any()
    assert "Tests of terms" in str(fit.anova().summary())


def test_relative_risk_ratios_are_exponentials():
    plain, ratios = fitted().tidy(), fitted().tidy(exponentiate=True)
    names = ["estimate", "conf_low", "conf_high"]
    np.testing.assert_allclose(ratios[names], np.exp(plain[names]))
    assert ratios["std_error"].equals(plain["std_error"])


def test_rows_that_no_bound_shortens_are_not_said_to_be_shrunk():
    assert "shrunk" not in str(fitted("y ~ sex").summary())


def test_levels_stand_side_by_side_as_columns():
    fit = fitted()
    table = dp.etable([fit], exponentiate=True).tidy()
    estimates_by_level = table[table["term"] == "a"].set_index("component")["estimate"]
    np.testing.assert_allclose(
        estimates_by_level[LEVELS[1:]], np.exp(fit.params.loc["a"]), rtol=1e-12
    )


def test_what_is_of_one_equation_says_what_there_is_instead():
    fit = fitted()
    for name in ("t_test", "wald_test", "margins", "emmeans", "ratios", "augment"):
        with pytest.raises(
            NotAvailable, match=rf"{name} is not available .*anova\(\) tests each term"
        ):
            getattr(fit, name)


def test_without_inference_there_are_coefficients_alone():
    fit = fitted(inference=False)
    assert np.abs(fit.params.to_numpy().T - TRUTH[1:]).max() < 1
    with pytest.raises(NotAvailable, match="inference=True"):
        fit.conf_int()
    assert fit.tidy().columns.tolist() == ["y_level", "term", *COLUMNS]
    assert fit.tidy()["std_error"].isna().all()
    assert "mid against low" in str(fit.summary())


def test_a_panel_for_each_level_and_a_picture():
    fit = fitted()
    text = str(fit.summary())
    assert text.index("mid against low") < text.index("top against low")
    ax = fit.plot(exponentiate=True)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["sex[T.M]", "a"]
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert set(LEVELS[1:]) <= set(texts)
    with pytest.raises(ArgumentError, match="no terms"):
        fitted("y ~ 1").plot()


def test_it_protects_persons_at_their_price():
    rows = table(600) | {"id": np.repeat(np.arange(200), 3)}
    with dp.simulation(seed=1):
        fits = [
            dp.dp_glm(
                *("y ~ sex", rows),
                person="id",
                rows=limit,
                mechanism="gradients",
                **WORDS | {"eps": 80.0},
            )
            for limit in (1, 3)
        ]
    assert fits[1].release.gradient_sd > 2.5 * fits[0].release.gradient_sd
    assert fits[1].release.curvature.person == "id"


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("formula", "words", "error", "match"),
    [
        ("a ~ sex", {}, FormulaError, "levels"),
        ("y ~ a", {"family": "binomial"}, FormulaError, 'family="multinomial"'),
        ("y ~ a", {"delta": 0.0}, BudgetError, "delta"),
        ("y ~ a", {"family": "logit"}, ArgumentError, "links are logit and log, and least squares"),
        ("y ~ a", {"clip": 2.0}, ArgumentError, "poisson"),
        ("y ~ a", {"ridge": 2.0}, ArgumentError, "ridge"),
        ("y ~ a", {"mechanism": "objective"}, ArgumentError, "gradients"),
        ("C(y, Sum) ~ a", {}, FormulaError, "contrast"),
        ("many ~ g", {}, FormulaError, "1,600"),
    ],
)
def test_what_is_refused_before_a_row_is_read(formula, words, error, match):
    mines = {name: Mine() for name in BOOK}
    with pytest.raises(error, match=match):
        dp.dp_glm(formula, mines, **{**WORDS, **words})


def test_power_says_which_family_it_does_not_know():
    with pytest.raises(ArgumentError, match='family="multinomial"'):
        dp.power("y ~ a", verb="glm", n=2000, effect=1.0, **WORDS)
