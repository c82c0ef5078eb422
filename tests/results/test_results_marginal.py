"""Marginal effects, means and contrasts against statsmodels and by hand, from huge budgets."""

import numpy as np
import pandas as pd
import patsy
import pytest
import statsmodels.formula.api as smf
from scipy.special import expit
from scipy.stats import binom

import dpmodels as dp
from dpmodels.design import row_coder
from dpmodels.errors import ArgumentError, NotAvailable
from dpmodels.formula.parse import quote
from dpmodels.formula.response import two_sided
from dpmodels.inference.links import OF_FAMILY
from dpmodels.inference.sandwich import NormalLaw
from dpmodels.results.coefficient_model import predicted
from dpmodels.results.derived_table import Terms
from dpmodels.results.marginal_means import Fitted, contrasts, grid, margins

BOOK = dp.codebook(
    yes=["n", "y"], c=(0, 40), x=(0, 4), k=dp.Numeric(1, 3, step=1), g=["a", "b", "c"], y=(-9, 9)
)


def made(rows=3_000):
    rng = np.random.default_rng(5)
    data = pd.DataFrame(
        {
            "x": rng.uniform(0.1, 3.9, rows),
            "g": rng.choice(["a", "b", "c"], rows, p=[0.5, 0.3, 0.2]),
            "k": rng.integers(1, 4, rows),
        }
    )
    eta = -0.5 + 0.4 * data["x"] + 0.7 * (data["g"] == "b") - 0.2 * data["k"]
    data["event"] = (rng.uniform(size=rows) < expit(eta)).astype(float)
    data["c"] = rng.poisson(np.exp(eta)).clip(0, 40)
    return data.assign(yes=np.where(data["event"] == 1, "y", "n"), y=eta + rng.normal(size=rows))


ROWS = made()
MODELS = {"binomial": (smf.logit, "event"), "poisson": (smf.poisson, "c")}


def same_numbers(family, right):
    """A model with statsmodels' coefficients and covariance, and statsmodels' own."""
    verb, response = MODELS[family]
    plain = verb(f"{response} ~ {right}", ROWS).fit(disp=0)
    terms = two_sided(f"y ~ {right}", BOOK).terms
    names = ["Intercept", *terms.names]
    law = NormalLaw(
        tuple(names),
        plain.params[names].to_numpy(),
        plain.cov_params().loc[names, names].to_numpy(),
    )
    return Fitted(law, OF_FAMILY[family], Terms(terms, tuple(names)), row_coder(terms)), plain


@pytest.mark.parametrize("family", MODELS)
def test_margins_are_those_of_statsmodels(family):
    model, plain = same_numbers(family, "x + k")
    columns = model.coder.read(ROWS)
    effects = margins(model, columns, ["x", "k"], 0.95)
    reference = plain.get_margeff(at="overall").summary_frame()
    numbers = ["estimate", "std_error", "statistic", "p_value", "conf_low", "conf_high"]
    assert effects["contrast"].tolist() == ["dY/dX", "dY/dX"]
    assert effects[numbers].to_numpy() == pytest.approx(reference.to_numpy(), rel=1e-6, abs=1e-9)


@pytest.mark.product
def test_levels_and_bends_are_differences_and_slopes_of_predictions():
    """By numerical derivatives of the effects themselves, of terms that bend and interact."""
    right = "g * x + I(x ** 2) + C(k)"
    model, plain = same_numbers("binomial", right)
    columns = model.coder.read(ROWS)
    table = margins(model, columns, ["x", "g", "k"], 0.95).set_index(["term", "contrast"])

    step = 1e-6
    grids = ({"x": ROWS["x"] + step}, {"x": ROWS["x"] - step}, {"g": "c"}, {"g": "a"}, {"k": 3})
    designs = [plain_design(right, ROWS.assign(**grid)) for grid in (*grids, {"k": 1})]

    def effect(params):
        up, down, c, a, three, last_level = (expit(rows @ params).mean() for rows in designs)
        return np.array([(up - down) / (2 * step), c - a, three - last_level])

    params = plain.params.to_numpy()
    ones = 1e-5 * np.eye(len(params))
    slopes = np.array([(effect(params + e) - effect(params - e)) / 2e-5 for e in ones]).T
    keys = [("x", "dY/dX"), ("g", "c - a"), ("k", "3 - 1")]
    sds = np.sqrt(np.diagonal(slopes @ plain.cov_params().to_numpy() @ slopes.T))
    assert table.loc[keys, "estimate"].to_numpy() == pytest.approx(effect(params), rel=1e-6)
    assert table.loc[keys, "std_error"].to_numpy() == pytest.approx(sds, rel=1e-4)


def plain_design(right, rows):
    """Rows as patsy codes them, with the levels of all rows."""
    return np.asarray(patsy.dmatrix(patsy.dmatrix(right, ROWS).design_info, rows))


def test_means_are_predictions_of_a_grid_and_contrasts_their_differences():
    model, plain = same_numbers("binomial", "g * x + C(k)")
    cells = grid(model, "g", {"x": 1.0})
    new = pd.DataFrame([(g, 1.0, k) for g in "abc" for k in (1, 2, 3)], columns=["g", "x", "k"])
    rows = plain_design("g * x + C(k)", new).reshape(3, 3, -1).mean(axis=1)
    cov, params = plain.cov_params().to_numpy(), plain.params.to_numpy()
    eta, sds = rows @ params, np.sqrt(np.diagonal(rows @ cov @ rows.T))
    grid_means = predicted(model.law, model.link, cells.rows, 0.9)
    assert grid_means["mean"].to_numpy() == pytest.approx(expit(eta), rel=1e-9)
    assert grid_means["mean_se"].to_numpy() == pytest.approx(
        expit(eta) * expit(-eta) * sds, rel=1e-6
    )
    assert grid_means["mean_ci_upper"].to_numpy() == pytest.approx(
        expit(eta + 1.6448536 * sds), rel=1e-6
    )
    pairs = contrasts(model, cells, "bonferroni", 0.95)
    way = rows[0] - rows[2]
    assert pairs["contrast"].tolist() == ["a - b", "a - c", "b - c"]
    assert pairs["estimate"][1] == pytest.approx(way @ params, rel=1e-6)
    sd = np.sqrt(way @ cov @ way)
    assert pairs["std_error"][1] == pytest.approx(sd, rel=1e-6)
    assert pairs["conf_high"][1] == pytest.approx(way @ params + 2.3939798 * sd, rel=1e-6)


@pytest.fixture(scope="module")
def fits():
    options = {"codebook": BOOK, "eps": 1e8, "delta": 1e-6}
    with dp.simulation(seed=3):
        return {
            "lm": dp.dp_lm("y ~ g * x + C(k)", ROWS, **options),
            "glm": dp.dp_glm("yes ~ g + x", ROWS, **options),
        }


@pytest.mark.expensive
def test_fits_tell_what_statsmodels_does_without_noise(fits):
    plain = smf.ols("y ~ g * x + C(k)", ROWS).fit()
    new = pd.DataFrame({"g": ["a", "b", "c"], "x": 2.0, "k": 2})
    reference = [plain.predict(new.assign(k=k)) for k in (1, 2, 3)]
    table = fits["lm"].emmeans("g", at={"x": 2}).tidy()
    assert table["estimate"].to_numpy() == pytest.approx(np.mean(reference, axis=0), rel=1e-3)
    ahead = fits["glm"].get_prediction(new)
    logit = smf.logit("event ~ g + x", ROWS).fit(disp=0, cov_type="HC0")
    frame = logit.get_prediction(new).summary_frame()
    want = frame[["predicted", "se", "ci_lower", "ci_upper"]].to_numpy()
    assert ahead.to_numpy() == pytest.approx(want, rel=2e-2)
    margin = fits["glm"].margins(ROWS).tidy().set_index("contrast")
    effect = logit.get_margeff(dummy=True).summary_frame()
    assert margin.loc["dY/dX", "estimate"] == pytest.approx(effect.loc["x", "dy/dx"], rel=1e-3)
    assert margin.loc["dY/dX", "std_error"] == pytest.approx(effect.loc["x", "Std. Err."], rel=1e-2)


def test_ratios_are_exponentials_and_errors_stay(fits):
    fit = fits["glm"]
    plain, ratios = fit.tidy(), fit.tidy(exponentiate=True)
    for name in ("estimate", "conf_low", "noise_high"):
        np.testing.assert_allclose(ratios[name], np.exp(plain[name]))
    np.testing.assert_array_equal(ratios["std_error"], plain["std_error"])
    table = fit.ratios(0.9)
    assert table.tidy()["term"].tolist() == ["g[T.b]", "g[T.c]", "x"]
    np.testing.assert_allclose(table.tidy()["conf_low"], np.exp(fit.conf_int(0.9)["lower"][1:]))
    assert "Odds ratios" in str(table.summary())
    assert "90% conf." in str(table.summary())
    result = fit.contrasts("g", exponentiate=True).tidy()
    np.testing.assert_allclose(result["estimate"][0], 1 / ratios["estimate"][1])
    assert result["contrast"].tolist() == ["a / b", "a / c", "b / c"]
    assert "rate ratios" not in str(fit.contrasts("g").summary()).lower()


def test_tables_say_what_is_held_and_averaged(fits):
    text = " ".join(str(fits["lm"].emmeans("g").summary()).split())
    assert "At: x = 1.986 (released mean)" in text
    assert "Averaged with equal weights over: k." in text
    assert fits["glm"].emmeans("g").facts == (("At", "x = 2 (middle of its range)"),)
    assert fits["glm"].contrasts("g", at={"x": 1}).facts == (("At", "x = 1"),)
    text = " ".join(str(fits["lm"].contrasts(["g", "k"], adjust="sidak").summary()).split())
    assert "36 pairs: p-values and intervals by Sidak's method." in text
    assert fits["lm"].emmeans("C(k)").tidy()["k"].tolist() == [1, 2, 3]
    table = fits["lm"].emmeans("g:x", at={"x": [1, 3], "k": 2}).tidy()
    assert table[["g", "x"]].to_numpy().tolist()[:3] == [["a", 1], ["a", 3], ["b", 1]]


@pytest.mark.parametrize("name", ["a|b", "$x_1$", "q\"uo'te", "new\nline", " a ", "k" * 200])
def test_what_follows_is_of_variables_whatever_they_are_called(name):
    book = dp.codebook({name: dp.Integer(1, 3), "g:h": ["u", "v"], "y": (-9, 9)})
    rows = {name: [1, 2, 3, 1] * 300, "g:h": ["u", "v"] * 600, "y": [1.0, 2.0, 4.0, 1.5] * 300}
    result = quote(name)
    with dp.simulation(seed=1):
        plain = dp.dp_lm(f"y ~ {result} + Q('g:h')", rows, codebook=book, eps=100.0, delta=1e-6)
        fit = dp.dp_lm(f"y ~ C({result}) + Q('g:h')", rows, codebook=book, eps=100.0, delta=1e-6)
    assert plain.margins(rows).tidy()["contrast"].tolist() == ["dY/dX", "v - u"]
    assert plain.emmeans("g:h", at={name: 2}).tidy()["g:h"].tolist() == ["u", "v"]
    assert fit.emmeans(name).tidy()[name].tolist() == [1, 2, 3]
    assert len(fit.contrasts(result).tidy()) == 3


def test_a_probability_is_named_by_its_level_or_by_the_comparison(fits):
    with dp.simulation(seed=1):
        compared = dp.dp_glm("c > 0 ~ g", ROWS, codebook=BOOK, eps=1e8, delta=1e-6)
    titles = [fit.emmeans("g").title for fit in (compared, fits["glm"])]
    means = "Estimated marginal means of {} (probability)"
    assert titles == [means.format(heading) for heading in ("P(c > 0)", "P(y)")]


def test_titles_name_the_scale(fits):
    assert fits["glm"].contrasts("g").title == "Contrasts of P(y): differences of log odds"
    ratios = fits["glm"].contrasts("g", exponentiate=True)
    assert ratios.title == "Contrasts of P(y): odds ratios"
    book = BOOK | {"y": dp.Numeric(-9, 9, unit="mm")}
    with dp.simulation(seed=1):
        fit = dp.dp_lm("y ~ g", ROWS, codebook=book, eps=10.0, delta=1e-6)
    assert fit.emmeans("g").title == "Estimated marginal means of y (mm)"
    assert fit.contrasts("g").title == "Contrasts of y: differences of means (mm)"
    assert fit.margins({"g": ["a"]}).title == "Average marginal effects on y (mm)"


@pytest.mark.product
@pytest.mark.parametrize("mechanism", ["moments", "scores"])
def test_numbers_stand_at_their_means_as_in_emmeans(mechanism):
    """R's emmeans: the reference grid has the mean of each number, and all levels of factors."""
    rows, right = made(20_000), "g * x + C(k) + I(x ** 2)"
    plain = smf.ols(f"y ~ {right}", rows).fit()
    new = pd.DataFrame({"g": ["a", "b", "c"], "x": rows["x"].mean()})
    reference = np.mean([plain.predict(new.assign(k=k)) for k in (1, 2, 3)], axis=0)
    options = {"codebook": BOOK, "eps": 1e12, "delta": 1e-6, "mechanism": mechanism}
    with dp.simulation(seed=3):
        fit = dp.dp_lm(f"y ~ {right}", rows, **options)
    assert fit.emmeans("g").tidy()["estimate"].to_numpy() == pytest.approx(reference, abs=4e-6)


def test_numbers_without_a_released_mean_stand_at_the_middle():
    """No moments of a constant, too few rows to count, and a function of the number alone."""
    options = {"codebook": BOOK, "delta": 1e-6}
    with dp.simulation(seed=3):
        fits = [
            dp.dp_lm("y ~ 0 + g + x", ROWS, eps=50.0, **options),
            dp.dp_lm("y ~ g + exp(x)", ROWS, eps=50.0, **options),
        ]
        few = dp.dp_lm("y ~ g + x", ROWS[:20], eps=0.1, mechanism="moments", **options)
    for fit in fits:
        assert fit.emmeans("g").facts == (("At", "x = 2 (middle of its range)"),)
    assert few._means == {} or 0 <= few._means["x"] <= 4


def test_effects_of_steps_alone_are_not_asked_for():
    rows = {"x": [1.0, 2.0, 3.0] * 200, "y": [1.0, 2.0, 4.0] * 200}
    with dp.simulation(seed=1):
        fit = dp.dp_lm("y ~ cut(x, [0, 1.5, 4])", rows, codebook=BOOK, eps=100.0, delta=1e-6)
    with pytest.raises(NotAvailable, match="enter in steps"):
        fit.margins(rows)


def test_values_of_arrays_are_those_of_lists(fits):
    tables = [fits["lm"].emmeans("g", at={"x": value}).tidy() for value in (np.array(1.0), 1.0)]
    pd.testing.assert_frame_equal(*tables)


@pytest.mark.parametrize(
    ("ask", "match"),
    [
        (lambda fit: fit.emmeans(None), "expected names of variables"),
        (lambda fit: fit.margins(ROWS, 1), "expected names of variables"),
        (lambda fit: fit.t_test("x = 1e400"), "and finite values"),
        (lambda fit: fit.emmeans("x"), "is a number: give its values"),
        (lambda fit: fit.emmeans("z"), "not a variable of the terms"),
        (lambda fit: fit.emmeans("g", at={"x": 5}), "within the codebook, 0 to 4"),
        (lambda fit: fit.emmeans("g", at={"k": "d"}), "within the codebook"),
        (lambda fit: fit.emmeans("g", at=[1]), "expected a mapping"),
        (lambda fit: fit.emmeans(["g", "g"]), "each variable once"),
        (lambda fit: fit.contrasts("g", at={"g": "a"}), "two levels or more"),
        (lambda fit: fit.contrasts("g", adjust="tukey"), "adjust"),
        (lambda fit: fit.margins({"g": [None], "x": [1], "k": [1]}), "no complete row"),
        (lambda fit: fit.margins(ROWS, "z"), "not a variable of the terms"),
    ],
)
def test_what_cannot_be_asked_is_said(fits, ask, match):
    with pytest.raises(ArgumentError, match=match):
        ask(fits["lm"])


WEAK = dp.codebook(y=(-9, 9), yes=["n", "y"], x=(-4, 4), w=(-4, 4), g=["a", "b"])


def weak_rows(seed, rows=2_500):
    rng = np.random.default_rng(seed)
    x, w, noise = rng.normal(size=(3, rows))
    data = pd.DataFrame({"x": x.clip(-4, 4), "w": w.clip(-4, 4)})
    data["y"] = (0.4 * data["x"] - 0.5 * data["w"] + noise).clip(-9, 9)
    data["g"] = rng.choice(["a", "b"], rows)
    eta = 0.4 * x - 0.5 * (data["g"] == "b")
    return data.assign(yes=np.where(rng.uniform(size=rows) < expit(eta), "y", "n"))


def weak_moments(seed):
    """Moments that stand so little above their noise that intervals are searched for."""
    words = {"codebook": WEAK, "eps": 0.75, "delta": 1e-6, "mechanism": "moments"}
    return dp.dp_lm("y ~ x + w", weak_rows(seed), **words)


def ends_of(table, *names):
    return table[list(names)].to_numpy(dtype=float)


def same(actual, expected):
    """A search ends within a thousandth of a step."""
    np.testing.assert_allclose(actual, expected, atol=5e-3 * np.ptp(expected))


@pytest.mark.product
def test_where_intervals_are_searched_for_those_of_combinations_are_too():
    with dp.simulation(seed=1):
        fit = weak_moments(3)
    with dp.simulation(seed=3):
        logit = dp.dp_glm("yes ~ x + g", weak_rows(0), codebook=WEAK, eps=0.35, delta=1e-6)
    assert not fit.linear.full_law.clear
    assert not logit.sandwich.noise_law.clear
    ends = ends_of(fit.t_test("Intercept + 2 * x - w = 0, x = 0"), "lower", "upper")
    ahead = fit.get_prediction({"x": [2.0], "w": [-1.0]})
    same(ends_of(ahead, "mean_ci_lower", "mean_ci_upper")[0], ends[0])
    effect = fit.margins(weak_rows(9, 50), "x").tidy()
    same(ends_of(effect, "conf_low", "conf_high")[0], ends[1])
    same(ends[1], fit.conf_int().loc["x"])
    pair = fit.contrasts("x", at={"x": [1, -1]}).tidy()
    same(ends_of(pair, "conf_low", "conf_high")[0], 2 * ends[1])
    sums = ends_of(logit.t_test("Intercept + 2 * x + g[T.b] = 0"), "lower", "upper")
    mean = logit.emmeans("g", at={"x": 2}).tidy()
    same(ends_of(mean, "conf_low", "conf_high")[1], expit(sums[0]))


@pytest.mark.slow
def test_intervals_of_what_follows_cover_where_moments_are_weak():
    truth = {"predicted": 0.3, "a mean": 0.4, "x": 0.4}
    hits, fits = dict.fromkeys(truth, 0), 0
    new = weak_rows(9, 50)
    with dp.simulation(seed=8), dp.options(clipping=False):
        for seed in range(40):
            fit = weak_moments(seed)
            if not fit.identified.all():
                continue
            fits += 1
            ahead = fit.get_prediction({"x": [2.0], "w": [1.0]})
            ends = {
                "predicted": ends_of(ahead, "mean_ci_lower", "mean_ci_upper")[0],
                "a mean": ends_of(fit.emmeans("x", at={"x": 1}).tidy(), "conf_low", "conf_high")[0],
                "x": ends_of(fit.margins(new, "x").tidy(), "conf_low", "conf_high")[0],
            }
            for name, (low, high) in ends.items():
                hits[name] += low <= truth[name] <= high
    assert fits >= 20
    # Three counts at 0.95: each below its bound with probability 1e-7.
    for name, n_hits in hits.items():
        assert n_hits >= binom.ppf(1e-7, fits, 0.95), (name, n_hits, fits)


def test_effects_say_over_how_many_public_rows_they_are_averages(fits):
    new = {"g": ["a", "b", None], "x": [1.0, 2.0, 3.0]}
    assert "over 2 public rows of the 3 given" in fits["glm"].margins(new).summary().as_text()
    some = {"g": ["a", "b"], "x": [1.0, 2.0]}
    assert "over 2 public rows, treated" in fits["glm"].margins(some).summary().as_text()


def test_without_rows_effects_say_that_a_fit_keeps_none(fits):
    with pytest.raises(NotAvailable, match=r"a fit does not keep any: write margins\(newdata\)"):
        fits["glm"].margins()
    with pytest.raises(NotAvailable, match=r"write margins\(newdata\)"):
        fits["glm"].get_margeff()


def test_values_that_are_offered_for_a_number_lie_in_its_public_range(fits):
    with pytest.raises(ArgumentError, match=r"as at={'x': \[0, 4\]}") as raised:
        fits["glm"].emmeans("x")
    offered = str(raised.value).partition("at=")[2]
    assert len(fits["glm"].emmeans("x", at=eval(offered)).tidy()) == 2


def test_a_quoted_name_is_read_in_single_quotes_and_alone():
    book = dp.codebook({"home town": ["u", "v"], "net pay": (0, 1)}, y=(-9, 9))
    rows = {"home town": ["u", "v"] * 600, "net pay": [0.2, 0.4, 0.9] * 400, "y": [1.0, 2.0] * 600}
    with dp.simulation(seed=1):
        fit = dp.dp_lm(
            "y ~ Q('home town') + Q('net pay')", rows, codebook=book, eps=100.0, delta=1e-6
        )
    test = fit.t_test("Q('net pay') = 0")
    pd.testing.assert_frame_equal(test, fit.t_test('Q("net pay") = 0'))
    pd.testing.assert_frame_equal(test, fit.t_test("net pay"))
    assert fit.wald_test("home town")["df"] == 1
    for name in ("Q('home town')", "home town"):
        assert fit.emmeans(name).tidy()["home town"].tolist() == ["u", "v"]


def test_the_label_of_a_quoted_name_is_printed_where_the_table_names_it():
    number = dp.Numeric(0, 1, label="pay after tax", unit="EUR")
    book = dp.codebook({"net pay": number}, g=["u", "v"])
    rows = {"net pay": [0.2, 0.4, 0.9] * 400, "g": ["u", "v"] * 600}
    with dp.simulation(seed=1):
        mean = dp.dp_mean("Q('net pay') ~ g", rows, codebook=book, eps=1.0)
        of_log = dp.dp_mean("log(Q('net pay') + 1) ~ g", rows, codebook=book, eps=1.0)
    assert str(mean.summary()).count("net pay  pay after tax (EUR)") == 1
    assert str(of_log.summary()).count('Q("net pay")  pay after tax (EUR)') == 1
