"""dp_lm: what it refuses, what no row can make it do, and that it is least squares."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

import dpmodels as dp
from dpmodels.errors import (
    ArgumentError,
    BudgetError,
    CodebookError,
    FormulaError,
    FrameError,
    LedgerError,
    NotAvailable,
)
from tests.mines import Mine

pytestmark = pytest.mark.kernels

BOOK = dp.codebook(
    y=(0, 10), x=(-1, 1), z=(0, 5), g=["a", "b", "c"], s=["F", "M"], w=(0, 4), v=(-1, 1)
)
USUAL = {"eps": 1.0, "delta": 1e-6}
HUGE = {"eps": 1e9, "delta": 1e-6}
FORMULA = "y ~ x + z + g"
MINES = {name: Mine() for name in BOOK}


def table(rows=4_000, seed=0):
    rng = np.random.default_rng(seed)
    x, z, g = rng.uniform(-1, 1, rows), rng.uniform(0, 5, rows), rng.choice(list("abc"), rows)
    y = 4 + 1.5 * x - 0.4 * z + 0.8 * (g == "c") + 0.7 * rng.normal(size=rows)
    return {
        **{"x": x, "z": z, "g": g, "y": np.clip(y, 0, 10), "w": rng.uniform(0, 4, rows)},
        **{"s": rng.choice(["F", "M"], rows), "v": rng.uniform(-1, 1, rows)},
    }


def fit(formula=FORMULA, data=None, **words):
    return dp.dp_lm(formula, table() if data is None else data, codebook=BOOK, **(USUAL | words))


# ---- what is refused, before a row is read --------------------------------------------


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("formula", "words", "error", "match"),
    [
        ("income ~ x", {}, CodebookError, "'income' is not in the codebook"),
        ("y ~ income", {}, CodebookError, "'income' is not in the codebook"),
        ("~ x", {}, FormulaError, "has no response"),
        ("y ~ x + y", {}, FormulaError, "is the response and a term"),
        ("y + z ~ x", {}, FormulaError, "is not one variable"),
        ("g ~ x", {}, FormulaError, "category of 3 levels"),
        ("y ~ 0", {}, FormulaError, "nothing on its right-hand side"),
        ("y ~ x", {"weights": "v"}, CodebookError, "weights must not be negative"),
        ("y ~ x", {"weights": "g"}, CodebookError, "weights must not be negative"),
        ("y ~ x", {"weights": "q"}, CodebookError, "'q' is not in the codebook"),
        ("y ~ x", {"weights": 1.0}, ArgumentError, "name of a variable"),
        ("y ~ x", {"row_norm": "unit"}, ArgumentError, "expected a number"),
        ("y ~ x", {"row_norm": -1.0}, ArgumentError, "row_norm"),
        ("y ~ x", {"mechanism": "gaus"}, ArgumentError, "mechanism"),
        ("y ~ x", {"mechanism": dp.mechanisms.AnalyzeGauss()}, ArgumentError, '"moments"'),
        ("y ~ x", {"mechanism": "adassp", "delta": 0.0}, BudgetError, "delta"),
        ("y ~ x", {"adjacency": "swap"}, ArgumentError, "adjacency"),
        ("y ~ x", {"ledger": 3}, ArgumentError, "ledger"),
        ("y ~ x", {"eps": 0.0}, BudgetError, "eps"),
        ("y ~ x", {"data": {"x": Mine()}}, FrameError, "'y'"),
    ],
)
def test_refusals_come_before_a_row_is_read(formula, words, error, match):
    words = {"data": MINES} | words
    ledger = dp.Ledger(eps=10, delta=1e-3)
    with pytest.raises(error, match=match) as raised:
        fit(formula, **({"ledger": ledger} | words))
    assert ledger.entries == ()
    assert raised.value.__cause__ is None


def test_the_ledger_refuses_before_a_row_is_read():
    with pytest.raises(LedgerError):
        fit(data=MINES, ledger=dp.Ledger(eps=0.5, delta=1e-6))
    ledger = dp.Ledger(eps=1.5, delta=1e-6)
    assert "1" in fit(ledger=ledger).summary().as_text()
    assert len(ledger.entries) == 1


# ---- it is least squares --------------------------------------------------------------


@pytest.mark.parametrize(
    "formula",
    [
        "y ~ x + z + g",
        "y ~ 0 + x + z",
        "y ~ x - 1",
        "y ~ 1",
        "log(y + 1) ~ x * s",
        "y ~ x + I(z**2)",
    ],
)
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_a_huge_budget_gives_ordinary_least_squares(formula, adjacency):
    data = table()
    result = fit(formula, data, adjacency=adjacency, **HUGE)
    plain = smf.ols(formula.replace("log(", "np.log("), pd.DataFrame(data)).fit()
    order = [name.replace("log(", "np.log(") for name in result.params.index]
    order = [name.replace("I(z**2)", "I(z ** 2)") for name in order]
    np.testing.assert_allclose(result.params, plain.params[order], atol=1e-3)
    np.testing.assert_allclose(result.bse, plain.bse[order], rtol=1e-3)
    np.testing.assert_allclose(result.pvalues, plain.pvalues[order], atol=1e-2)
    assert result.scale == pytest.approx(plain.scale, rel=1e-3)
    assert result.rsquared == pytest.approx(plain.rsquared, abs=1e-3)
    assert result.rsquared_adj == pytest.approx(plain.rsquared_adj, abs=1e-3)
    assert (result.nobs, result.df_resid) == pytest.approx((plain.nobs, plain.df_resid), rel=1e-4)
    assert result.df_model == plain.df_model


def test_small_integers_do_not_overflow_in_a_formula():
    ages = np.random.default_rng(1).integers(18, 94, 2_000)
    book, params = dp.codebook(age=(18, 93), y=(0, 10)), {}
    for kind in ("int8", "float64"):
        rows = {"age": ages.astype(kind), "y": 1 + 0.2 * ages - 0.002 * ages**2}
        with dp.simulation(seed=1):
            params[kind] = dp.dp_lm("y ~ age + I(age**2)", rows, codebook=book, **HUGE).params
    assert params["int8"].equals(params["float64"])
    assert params["int8"].iloc[2] == pytest.approx(-0.002, abs=1e-6)


def test_weights_are_those_of_weighted_least_squares():
    data = table()
    result = fit(data=data, weights="w", **HUGE)
    plain = smf.wls(FORMULA, pd.DataFrame(data), weights=data["w"]).fit()
    order = list(result.params.index)
    np.testing.assert_allclose(result.params, plain.params[order], atol=1e-3)
    np.testing.assert_allclose(result.bse, plain.bse[order], rtol=1e-3)
    assert result.scale == pytest.approx(plain.scale, rel=1e-3)
    assert result.rsquared == pytest.approx(plain.rsquared, abs=1e-3)


def test_adassp_is_least_squares_where_the_terms_are_strong():
    data = table()
    strong = fit("y ~ x + z", data, mechanism="adassp", **HUGE)
    plain = fit("y ~ x + z", data, **HUGE)
    np.testing.assert_allclose(strong.params, plain.params, atol=1e-3)
    assert strong.release.info.name == "adassp"


def test_two_levels_are_a_response():
    result = fit("s ~ x", **HUGE)
    plain = np.polyfit(table()["x"], table()["s"] == "M", 1)
    np.testing.assert_allclose(result.params, plain[::-1], atol=1e-3)
    assert result.params.name == "params"
    assert result.linear.response == "s[T.M]"


# ---- no row makes an exception or a warning -------------------------------------------

WHOLE = table(600)
ODD = {
    "collinear": {"z": 2.5 + 2.5 * WHOLE["x"]},
    "constant": {"z": np.full(600, 1.3)},
    "an empty group": {"g": np.where(WHOLE["g"] == "c", "a", WHOLE["g"])},
    "outside its bounds": {"y": WHOLE["y"] * 1e6},
    "infinite": {"x": np.full(600, np.inf)},
    "missing": {"y": np.full(600, np.nan)},
    "unlisted": {"g": np.full(600, "q")},
    "two rows": {name: column[:2] for name, column in WHOLE.items()},
    "one row": {name: column[:1] for name, column in WHOLE.items()},
    "no rows": {name: column[:0] for name, column in WHOLE.items()},
}
WAYS = [
    *({"eps": eps, "delta": delta} for eps in (1e-9, 1e9) for delta in (1e-6, 0.0)),
    {"eps": 1.0, "delta": 1e-6, "weights": "w", "adjacency": "add-remove"},
    {"eps": 1e9, "delta": 1e-6, "mechanism": "adassp", "adjacency": "add-remove"},
]


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("words", WAYS, ids=str)
def test_odd_rows_make_tables_and_nothing_else(kind, words):
    with warnings.catch_warnings(), dp.simulation(seed=5):
        warnings.simplefilter("error")
        result = fit("y ~ x + z", WHOLE | ODD[kind], **words)
        text = result.summary().as_text()
        tidy, panel, facts = result.tidy(), result.noise(), result.glance()
    assert len(tidy) == len(panel) == 3
    assert np.isfinite(result.params).all()
    # A number that noise alone made is shown nowhere.
    values = result.identified.to_numpy()
    assert np.isinf(result.bse_noise.to_numpy()[~values]).all()
    assert ("not identified" in text) == (not values.all())
    assert 0 <= facts["nidentified"][0] <= 3


@pytest.mark.parametrize("kind", ["collinear", "constant", "two rows", "missing"])
@pytest.mark.parametrize("eps", [1.0, 1e9])
def test_what_rows_do_not_tell_is_not_identified(kind, eps):
    with dp.simulation(seed=8):
        result = fit("y ~ x + z", WHOLE | ODD[kind], eps=eps)
        assert not result.identified["z"]
        assert not np.isfinite(result.conf_int().loc["z"]).any()
        with pytest.raises(NotAvailable, match="not all coefficients are identified"):
            result.cov_params()


def test_what_other_columns_tell_is_identified_beside_a_constant_one():
    with dp.simulation(seed=8):
        result = fit("y ~ x + z", WHOLE | ODD["constant"], **HUGE)
    assert result.identified["x"]
    plain = np.polyfit(WHOLE["x"], WHOLE["y"], 1)[0]
    assert result.params["x"] == pytest.approx(plain, abs=1e-3)


def test_many_terms_that_noise_hides_are_said_to_be_so():
    rng = np.random.default_rng(0)
    names = [f"c{j}" for j in range(30)]
    data = dict(zip(names, rng.uniform(0, 1, (30, 200)), strict=True)) | {"y": rng.random(200)}
    book = dp.codebook.uniform([*names, "y"], (0, 1))
    fit = dp.dp_lm("y ~ .", data, codebook=book, **USUAL)
    assert not fit.identified.any()
    assert np.abs(fit.params.to_numpy()).max() < 1e4


# ---- intervals ------------------------------------------------------------------------


@pytest.mark.product
@pytest.mark.parametrize("words", [USUAL, {"eps": 2.0, "delta": 0.0}], ids=["gauss", "laplace"])
def test_intervals_cover_what_they_are_for(words):
    truth, hits, repeats = np.array([4.0, 1.5, -0.4]), np.zeros((2, 3)), 80
    with dp.simulation(seed=4):
        for seed in range(repeats):
            rng = np.random.default_rng(seed)
            x, z = rng.uniform(-1, 1, 3_000), rng.uniform(0, 5, 3_000)
            y = 4 + 1.5 * x - 0.4 * z + 0.7 * rng.normal(size=3_000)
            plain = np.linalg.lstsq(np.column_stack([np.ones(3_000), x, z]), y, rcond=None)[0]
            result = fit("y ~ x + z", {"x": x, "z": z, "y": y}, **words)
            for i, (ends, aim) in enumerate(
                ((result.noise_int(), plain), (result.conf_int(), truth))
            ):
                low, high = ends.to_numpy().T
                hits[i] += (low <= aim) & (aim <= high) & np.isfinite(high)
    # Six counts at 0.94 or more: one below 61 of 80 has probability 1e-7.
    assert hits.min() >= 61


def test_pure_guarantees_say_what_law_their_intervals_take():
    text = fit(delta=0.0).summary().as_text()
    assert "Laplace noise is approximated by normal noise" in " ".join(text.split())
    assert "Laplace" not in fit().summary().as_text()
    assert math.isclose(fit(delta=0.0).release.guarantee.eps, 1.0)
