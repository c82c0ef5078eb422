"""dp_glm from counts of cells: its release, estimates, choice, refusals and what follows a fit."""

import pickle
import warnings
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from statsmodels.miscmodels.ordinal_model import OrderedModel

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError, FormulaError, NotAvailable
from dpmodels.mechanisms.choose import two_digits
from dpmodels.models.glm import glm_spec
from dpmodels.privacy import PureDP
from dpmodels.request import requested
from dpmodels.results.tabulated import CountedGLM, CountedMultinomial, OrdinalResult

LEVELS = ["low", "mid", "top"]
BOOK = dp.codebook(
    y=dp.Categorical(LEVELS, ordered=True),
    won=["no", "yes"],
    sex=["F", "M"],
    region=["n", "s", "w"],
    kid=dp.Integer(0, 1),
    size=dp.Integer(1, 9),
    age=(0, 100),
    plain=["a", "b", "c"],
    **{f"g{i}": [f"l{j}" for j in range(12)] for i in range(4)},
)
FORMULA = "y ~ sex + region + kid"
KINDS = {"binomial": CountedGLM, "multinomial": CountedMultinomial, "ordinal": OrdinalResult}


def table(rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    columns = {
        "sex": rng.choice(["F", "M"], rows),
        "region": rng.choice(["n", "s", "w"], rows),
        "kid": rng.integers(0, 2, rows),
    }
    latent = 0.6 * (columns["sex"] == "M") + 0.3 * columns["kid"] + rng.logistic(size=rows)
    y = np.array(LEVELS)[(latent > -0.5).astype(int) + (latent > 1)]
    return pd.DataFrame({**columns, "y": y, "won": np.where(latent > 0, "yes", "no")})


def fit_of(family, eps=1.0, rows=None, **words):
    formula = FORMULA.replace("y", "won", 1) if family == "binomial" else FORMULA
    data = table() if rows is None else rows
    words = {"family": family, "codebook": BOOK, "eps": eps} | words
    if "most" in words:
        words["rows"] = words.pop("most")
    with dp.simulation(seed=words.pop("seed", 0)):
        return dp.dp_glm(words.pop("formula", formula), data, **words)


@cache
def fitted(family):
    return fit_of(family)


@cache
def exact(family):
    return fit_of(family, eps=1e7)


def regressors():
    rows = table()
    dummies = pd.get_dummies(rows[["sex", "region"]]).astype(float)
    return dummies[["sex_M", "region_s", "region_w"]].assign(kid=rows["kid"].astype(float)), rows


def test_neighbours_counts_of_neighbours_differ_by_one_row():
    """All tables of two rows and all rows that replace one, missing cells among them."""
    cells = list(product(["F", "M", None], ["no", "yes", None]))
    guarantee = PureDP(1.0)
    words = {"family": "binomial", "clip": None, "ridge": None, "scale": "range", "row_norm": None}
    way = glm_spec(requested("glm", "won ~ sex", BOOK, None, 0.0, guarantee, None, **words))
    strategy, _ = way.choose("counts", ())
    plan = strategy.plan(way.facts, guarantee)
    assert plan.facts.parts == 5

    def counted(*rows):
        sexes, wins = zip(*rows, strict=True)
        bound = way.private.bind({"sex": list(sexes), "won": list(wins)})
        return strategy.measure(bound, plan).cross()[0] / plan.units_per_row

    first = cells[0]
    of = {cell: counted(first, cell) for cell in cells}
    assert all(counts.sum() == 2 for counts in of.values())
    moves = [np.abs(of[a] - of[b]).sum() for a in cells for b in cells]
    assert set(moves) == {0.0, 2.0}
    assert np.isclose(plan.scale / plan.units_per_row, 2.0)
    assert [event.multiplier * event.count for event in plan.events] == [pytest.approx(4.0)]


@pytest.mark.parametrize(
    ("family", "formula", "counts"),
    [("binomial", "won ~ sex + region", 6 / 2), ("multinomial", "y ~ sex + region", 6 * 2)],
)
def test_auto_compares_the_noise_of_the_score(family, formula, counts):
    """Of two levels that of half a count a combination, else of all levels but one."""
    guarantee = dp.ApproxDP(1.0, 1e-6)
    words = {"clip": None, "ridge": None, "scale": "range", "row_norm": None, "family": family}
    request = requested("glm", formula, BOOK, None, 0.0, guarantee, None, **words)
    spec = glm_spec(request)
    choice = spec.choose("auto", guarantee)
    noise_sd = choice.strategy.plan(spec.facts, guarantee).noise_sd
    assert f"an sd of {two_digits(noise_sd * counts**0.5)};" in choice.reason


def test_ordinal_is_that_of_statsmodels():
    design, rows = regressors()
    codes = pd.Categorical(rows["y"], LEVELS).codes
    model = OrderedModel(codes, design.to_numpy(), distr="logit")
    reference = model.fit(method="bfgs", disp=0, maxiter=500, gtol=1e-9)
    fit = exact("ordinal")
    np.testing.assert_allclose(fit.slopes, reference.params[:4], atol=1e-6)
    thresholds = model.transform_threshold_params(reference.params)[1:-1]
    np.testing.assert_allclose(fit.thresholds, thresholds, atol=1e-6)
    assert fit.thresholds.index.tolist() == ["low|mid", "mid|top"]
    np.testing.assert_allclose(fit.predict(rows[:5]), reference.predict(design[:5]), atol=1e-6)


@pytest.mark.parametrize("family", ["binomial", "multinomial"])
def test_estimates_and_robust_errors_are_those_of_statsmodels(family):
    design, rows = regressors()
    if family == "binomial":
        model = sm.Logit((rows["won"] == "yes").astype(float), sm.add_constant(design))
    else:
        codes = pd.Categorical(rows["y"], LEVELS).codes
        model = sm.MNLogit(codes, sm.add_constant(design))
    reference, fit = model.fit(disp=0, cov_type="HC0"), exact(family)
    np.testing.assert_allclose(fit.params, reference.params, atol=1e-6)
    np.testing.assert_allclose(fit.bse, reference.bse, atol=1e-6)


def test_effects_of_a_number_are_those_of_statsmodels():
    design, rows = regressors()
    codes = pd.Categorical(rows["y"], LEVELS).codes
    reference = sm.MNLogit(codes, sm.add_constant(design)).fit(disp=0, cov_type="HC0")
    effects = exact("multinomial").margins(rows, "kid").table
    np.testing.assert_allclose(effects["estimate"], reference.get_margeff().margeff[-1], atol=1e-6)


@pytest.mark.parametrize("family", KINDS)
def test_what_follows_a_fit(family, tmp_path):
    fit, public = fitted(family), {"sex": ["M", "F"], "region": ["n", "s"], "kid": [1, 0]}
    assert type(fit) is KINDS[family]
    assert fit.release.info.name == "geometric"
    fit.save(tmp_path / "fit.nc")
    for again in (dp.load(tmp_path / "fit.nc"), pickle.loads(pickle.dumps(fit))):
        assert type(again) is type(fit)
        assert str(again.summary(notes="all")) == str(fit.summary(notes="all"))
    shares = np.asarray(fit.predict(public))
    assert ((shares > 0) & (shares < 1)).all()
    assert family == "binomial" or np.allclose(shares.sum(axis=1), 1)
    table = fit.margins(public).table
    assert table["estimate"].notna().all()
    if family != "binomial":
        sums = table.groupby(["term", "contrast"])["estimate"].sum()
        assert np.allclose(sums, 0, atol=1e-9)
        prediction = fit.get_prediction(public)
        assert prediction.index.names == ["row", "y_level"]
        assert (prediction["mean_ci_lower"] < prediction["mean"]).all()
    assert fit.t_test("sex")["p_value"].notna().all()
    assert fit.wald_test("region")["df"] == 2 * (2 if family == "multinomial" else 1)
    for value in (fit.anova(), fit.emmeans("sex"), fit.contrasts("region")):
        assert value.table.notna().all(axis=None)
    assert "kid" in str(dp.etable(fit))
    fit.plot()
    noise, full = fit.noise_int(), fit.conf_int()
    assert ((full["lower"] < noise["lower"]) & (noise["upper"] < full["upper"])).all()


@pytest.mark.parametrize("family", ["binomial", "multinomial", "ordinal"])
def test_contrasts_are_checked_alike(family):
    fit = fitted(family)
    for words, match in (
        ({"adjust": "hom"}, r"adjust='hom' \(did you mean 'holm'"),
        ({"exponentiate": 3}, "exponentiate=3: expected True or False"),
        ({"at": {"sex": "F"}}, "compares two levels or more"),
    ):
        with pytest.raises(ArgumentError, match=match):
            fit.contrasts("sex", **words)


def test_titles_by_level_name_the_scale_and_notes_the_adjustment():
    fit = fitted("multinomial")
    means = fit.emmeans("sex", at={"region": "n"})
    assert means.title == "Estimated marginal means of y (probability of each level)"
    assert means.facts == (("At", "region = n, kid = 0.5 (middle of its range)"),)
    pairs = fit.contrasts("region", at={"sex": "F"})
    reference = fit.classes[0]
    assert pairs.title == f"Contrasts of y: differences of log odds against {reference}"
    assert pairs.facts == (("At", "sex = F, kid = 0.5 (middle of its range)"),)
    text = " ".join(str(pairs).split())
    assert "3 pairs for each level of y: p-values by Holm's method" in text
    ratios = fit.contrasts("region", exponentiate=True, adjust="sidak")
    assert ratios.title == f"Contrasts of y: odds ratios against {reference}"
    assert "3 pairs for each level of y: p-values and intervals by Sidak's" in str(ratios)
    assert "pairs" not in str(fit.contrasts("sex"))
    latent = fitted("ordinal")
    assert latent.emmeans("sex").title.endswith("of the latent response (log odds)")
    assert latent.contrasts("sex").title.endswith("differences of means (log odds)")


def test_a_level_without_rows_leaves_the_others():
    rows = table()
    rows = rows[rows["region"] != "w"]
    for family in KINDS:
        fit = fit_of(family, rows=rows)
        is_identified = fit.tidy().set_index("term")["identified"]
        assert not is_identified["region[T.w]"].any()
        assert is_identified.drop("region[T.w]").all()
        public = {"sex": ["M", "M"], "region": ["n", "w"], "kid": [1, 1]}
        assert np.isnan(np.asarray(fit.predict(public), float)).reshape(2, -1).any(axis=1)[1]
        assert "not identified" in str(fit.summary())


def test_a_response_level_without_rows_leaves_the_others():
    rows = table()
    fit = fit_of("multinomial", rows=rows[rows["y"] != "top"])
    assert fit.identified["mid"].all()
    assert not fit.identified["top"].any()
    ordinal = fit_of("ordinal", rows=rows[rows["y"] != "top"])
    assert ordinal.identified.drop("mid|top").all()
    assert not ordinal.identified["mid|top"]


def test_of_noise_alone_nothing_is_identified():
    fit = fit_of("multinomial", eps=0.001, rows=table(50))
    assert not fit.identified.any(axis=None)
    assert "noise hides" in fit.why_not
    assert "not identified" in str(dp.etable(fit)) + str(fit.summary())
    with pytest.raises(NotAvailable, match="not identified"):
        fit.conf_int()


@pytest.mark.product
@pytest.mark.parametrize("family", KINDS)
def test_hostile_counts_make_no_error_and_no_warning(family):
    fit = fitted(family)
    values, sd = fit.release.values, fit.release.noise_sd
    signs = np.resize([1.0, -1.0], len(values))
    vectors = (0 * values, -values, values * 1e14, values * 1e-200, signs, signs * 1e9)
    for vector, factor in product((*vectors, 3000 * np.eye(len(values))[0]), (1e-14, 1.0, 1e14)):
        hostile = replace(fit, release=replace(fit.release, values=vector, noise_sd=sd * factor))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            text = str(hostile.summary())
            with suppress(NotAvailable):
                hostile.tidy()
                hostile.predict({"sex": ["M"], "region": ["n"], "kid": [1]})
                hostile.anova()
        assert "nan" not in text


@pytest.mark.product
def test_what_auto_takes():
    words = {"codebook": BOOK, "eps": 1.0, "family": "binomial"}
    rows = table(400)
    assert dp.dp_glm("won ~ sex", rows, **words).release.info.name == "geometric"
    spent = dp.ZCDP(0.1)
    quiet = dp.dp_glm("won ~ sex", rows, codebook=BOOK, budget=spent)
    assert quiet.release.info.name == "gaussian"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dp.errors.BudgetWarning)
        rows["age"] = 50.0
        for formula, options in (("won ~ sex + age", {}), ("won ~ sex", {"ridge": 10.0})):
            assert dp.dp_glm(formula, rows, **words, **options).release.info.name == "objective"


def test_persons_pay_for_their_rows():
    rows = table(900).assign(id=np.arange(900) // 3)
    single, three = (fit_of("binomial", rows=rows, person="id", most=k) for k in (1, 3))
    assert three.release.noise_sd > 2.5 * single.release.noise_sd


def test_sites_release_what_one_table_does():
    rows = table()
    sites = {"a": rows[:1000], "b": rows[1000:]}
    with dp.simulation(seed=0):
        fit = dp.dp_glm(
            *("won ~ sex + region + kid",), sites=sites, protocol="pooled", codebook=BOOK, eps=1.0
        )
    np.testing.assert_array_equal(fit.release.values, fitted("binomial").release.values)


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("formula", "words", "error", "match"),
    [
        ("y ~ age", {"family": "ordinal"}, FormulaError, r"cut or compare it, as in cut\(age"),
        (
            "size ~ sex",
            {"family": "ordinal"},
            FormulaError,
            r"write C\(size\) if it is whole, or cut",
        ),
        ("won ~ age", {"mechanism": "counts"}, FormulaError, "or leave mechanism= out"),
        ("won ~ sex", {"mechanism": "counts", "ridge": 1.0}, ArgumentError, "leave ridge= out"),
        ("won ~ sex", {"mechanism": "counts", "row_norm": 1.0}, ArgumentError, "row_norm= out"),
        ("plain ~ sex", {"family": "ordinal"}, FormulaError, "ordered=True"),
        ("y ~ sex - 1", {"family": "ordinal"}, FormulaError, "thresholds"),
        ("y ~ sex", {"family": "ordinal", "mechanism": "gradients"}, ArgumentError, "counts"),
        ("won ~ g0 + g1 + g2 + g3", {"mechanism": "counts"}, FormulaError, "41,472 combinations"),
        ("plain ~ g0 + g1 + g2 + g3", {"family": "multinomial"}, BudgetError, "delta"),
    ],
)
def test_what_is_refused_before_the_charge(formula, words, error, match):
    rows = dict.fromkeys(BOOK, [None] * 3)
    ledger = dp.Ledger(eps=1.0)
    with pytest.raises(error, match=match):
        dp.dp_glm(formula, rows, codebook=BOOK, eps=1.0, ledger=ledger, **words)
    assert not ledger.entries
