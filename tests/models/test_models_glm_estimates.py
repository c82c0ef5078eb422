"""dp_glm: estimates, their errors and intervals, and how they are printed and kept."""

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from glm_cases import BOOK, everything, fit, table
from scipy import stats
from scipy.special import expit

import dpmodels as dp
from dpmodels.errors import ArgumentError, DPModelsError, NotAvailable, OutsideWarning
from dpmodels.mechanisms.regression import NoisyGradients, Objective, Output
from dpmodels.models.glm import dp_glm
from dpmodels.privacy import ZCDP
from dpmodels.results.estimate_table import COLUMNS
from dpmodels.results.glm import GLMResult

ALARM = 1e-6


@pytest.mark.parametrize("formula", ["y ~ a + b + g", "y ~ a + g - 1", "bit ~ a * g", "y ~ 1"])
@pytest.mark.parametrize("scale", ["range", None])
def test_a_huge_budget_gives_the_maximum_likelihood_estimate(formula, scale):
    import patsy

    data = table()
    result = fit(formula, data, budget=ZCDP(1e8), scale=scale)
    right = formula.partition("~")[2]
    design = patsy.dmatrix(right, pd.DataFrame(data), return_type="dataframe")
    label = data["bit"] if formula.startswith("bit") else (data["y"] == "yes").astype(float)
    reference = sm.Logit(label, design).fit(disp=0).params
    assert list(result.params.index) == list(reference.index)
    np.testing.assert_allclose(result.params, reference, atol=0.02)
    reference = sm.Logit(label, design).fit(disp=0, cov_type="HC0").bse
    np.testing.assert_allclose(result.bse, reference, rtol=0.1)


@pytest.mark.expensive
@pytest.mark.parametrize("level", [0.5, 2.5])
def test_poisson_finds_the_maximum_likelihood_estimate(level):
    data = table(20_000)
    noise = np.random.default_rng(1)
    data["c"] = np.minimum(noise.poisson(np.exp(level + 0.5 * data["a"])), 30.0)
    words = {"family": "poisson", "budget": ZCDP(1e8), "clip": 30.0}
    levels = np.column_stack([data["g"] == level for level in "uvw"]).astype(float)
    design = np.column_stack([levels, data["a"]])
    reference = sm.GLM(data["c"], design, family=sm.families.Poisson()).fit().params
    result = fit("c ~ g + a - 1", data, **words)
    np.testing.assert_allclose(result.params, reference, atol=1e-3)
    result = fit("c ~ a + b", data, **words)
    design = sm.add_constant(np.column_stack([data["a"], data["b"]]))
    reference = sm.GLM(data["c"], design, family=sm.families.Poisson()).fit().params
    np.testing.assert_allclose(result.params, reference, atol=1e-3)
    means = result.predict({"a": [0.5], "b": [2.0]})
    assert means[0] == pytest.approx(
        np.exp(reference[0] + 0.5 * reference[1] + 2 * reference[2]), rel=0.05
    )


@pytest.mark.expensive
def test_a_strong_term_leaves_the_others_their_intervals():
    """A slope of 4 log odds for a standard deviation: the step back from the ridge is long."""
    book = dp.codebook(x=(-4, 4), z=(-4, 4), g=["u", "v"], y=["no", "yes"])
    truth, n_identified, n_covered = {"z": 0.5, "g[T.v]": 0.4}, 0, 0
    for seed in range(10):
        rng = np.random.default_rng([112, seed])
        x, z = np.clip(rng.normal(size=(2, 5_000)), -4, 4)
        g = rng.choice(["u", "v"], 5_000)
        odds = -0.3 + 4 * x + 0.5 * z + 0.4 * (g == "v")
        y = np.where(rng.random(5_000) < expit(odds), "yes", "no")
        with dp.simulation(seed=seed):
            options = {"codebook": book, "eps": 3.0, "delta": 1e-6}
            result = dp_glm("y ~ x + z + g", {"x": x, "z": z, "g": g, "y": y}, **options)
        assert result.identified.any(), result.why_not
        intervals = result.conf_int()
        for name, value in truth.items():
            if result.identified[name]:
                n_identified += 1
                n_covered += intervals.lower[name] <= value <= intervals.upper[name]
    assert n_identified >= 16
    assert n_covered >= n_identified - 4


@pytest.mark.expensive
def test_a_level_without_cases_is_not_identified_and_one_with_few_has_a_longer_lower_end():
    """The likelihood of a level without cases grows without end; others keep their intervals."""
    book = dp.codebook(z=(-4, 4), g=["u", "v", "w"], y=["no", "yes"])
    lower_is_longer = []
    for seed in range(6):
        rng = np.random.default_rng([113, seed])
        z, g = np.clip(rng.normal(size=5_000), -4, 4), rng.choice(["u", "v", "w"], 5_000)
        for odds_of_w in (-40.0, -2.5):
            odds = -0.3 + 0.8 * z + 0.4 * (g == "v") + odds_of_w * (g == "w")
            y = np.where(rng.random(5_000) < expit(odds), "yes", "no")
            with dp.simulation(seed=seed):
                options = {"codebook": book, "eps": 3.0, "delta": 1e-6}
                result = dp_glm("y ~ z + g", {"z": z, "g": g, "y": y}, **options)
            assert result.identified[["Intercept", "z", "g[T.v]"]].all()
            if odds_of_w == -40:
                assert not result.identified["g[T.w]"]
            elif result.identified["g[T.w]"]:
                low, high = result.conf_int().loc["g[T.w]"]
                middle = result.params["g[T.w]"]
                lower_is_longer.append(middle - low > high - middle)
    assert len(lower_is_longer) >= 4
    assert all(lower_is_longer)


@pytest.mark.parametrize("seed", [51, 158])
def test_a_level_that_noise_gives_curvature_where_a_long_step_ends_is_not_identified(seed):
    """At log odds near -5.5 the rows of w have no curvature to speak of: the noise had 3 sds."""
    book = dp.codebook(z=(-4, 4), g=["u", "v", "w"], y=["no", "yes"])
    rng = np.random.default_rng([113, seed])
    z = np.clip(rng.normal(size=5_000), -4, 4)
    g = rng.choice(["u", "v", "w"], 5_000, p=[0.33335, 0.33335, 0.3333])
    has_case = rng.random(5_000) < expit(-0.3 + 0.8 * z + 0.4 * (g == "v"))
    rows = {"z": z, "g": g, "y": np.where(has_case & (g != "w"), "yes", "no")}
    with dp.simulation(seed=seed):
        result = dp_glm("y ~ z + g", rows, codebook=book, eps=3.0, delta=1e-6)
    assert result.identified[["Intercept", "z", "g[T.v]"]].all()
    assert not result.identified["g[T.w]"]


def test_predictions_are_those_of_the_coefficients():
    result = fit()
    new = {"a": [0.5, 9.0, np.nan], "b": [2.0, 2.0, 2.0], "g": ["w", "u", "u"]}
    with pytest.warns(OutsideWarning, match=r"\(a: 1\)"):
        assert math.isnan(result.predict(new)[1])
    values = result.predict(new, clip=True)
    p = result.params
    assert values[0] == pytest.approx(
        expit(p["Intercept"] + 0.5 * p["a"] + 2 * p["b"] + p["g[T.w]"])
    )
    assert values[1] == pytest.approx(expit(p["Intercept"] + p["a"] + 2 * p["b"]))
    assert math.isnan(values[2])
    np.testing.assert_allclose(expit(result.decision_function(new, clip=True)), values)
    assert result.classes == ("no", "yes")
    with pytest.raises(DPModelsError):
        result.predict({"a": [1.0]})
    with pytest.raises(NotAvailable):
        fit("y ~ 1").predict(new)


def test_a_smaller_row_norm_shrinks_long_rows_alone():
    data = table() | {"b": np.full(3000, 5.0)}
    result = fit("y ~ a + b", data, budget=ZCDP(1e6), row_norm=1.05)
    assert result.call.row_norm == pytest.approx(1.05)
    assert result.call.worst_case == pytest.approx(math.sqrt(2))
    twin = fit("y ~ a + b", data, budget=ZCDP(1e6))
    assert result.params["a"] == pytest.approx(twin.params["a"], abs=0.02)
    assert "shrunk" in str(result.summary())


# ---- intervals -----------------------------------------------------------------------


GRADIENTS = {"mechanism": "gradients", "budget": ZCDP(2.0)}
RUNS = 20


@pytest.mark.product
@pytest.mark.parametrize(
    ("family", "words"),
    [
        ("binomial", {"eps": 8.0}),
        ("binomial", {"eps": 2.0, "delta": 1e-6}),
        ("binomial", GRADIENTS),
        ("poisson", GRADIENTS),
    ],
)
def test_errors_are_as_large_as_they_say(family, words):
    """Of the population's coefficients all together, of the rows' own one by one."""
    truth = np.array([0.3, 0.6, -0.1])
    distance, standardised = 0.0, np.zeros(3)
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        a, b = rng.uniform(-1, 1, 6000), rng.uniform(0, 10, 6000)
        x = sm.add_constant(np.column_stack([a, b]))
        if family == "poisson":
            y = np.minimum(rng.poisson(np.exp(x @ truth)), 9)
            reference = sm.GLM(y, x, family=sm.families.Poisson()).fit().params
            data, formula = {"a": a, "b": b, "d": y}, "d ~ a + b"
        else:
            y = rng.random(6000) < expit(x @ truth)
            reference = sm.Logit(y.astype(float), x).fit(disp=0).params
            data, formula = {"a": a, "b": b, "y": np.where(y, "yes", "no")}, "y ~ a + b"
        with dp.simulation(seed=seed):
            fit = dp_glm(formula, data, codebook=BOOK, family=family, **words)
        error = fit.params - truth
        distance += error @ np.linalg.solve(fit.cov_params(), error)
        standardised += ((fit.params - reference) / fit.bse_noise) ** 2
    # Chi-squares, four of 60 and nine of 20 degrees of freedom; half or twice the standard error
    # would move their means by a factor of 4.
    low, high = stats.chi2(3 * RUNS).ppf([ALARM / 8, 1 - ALARM / 8])
    assert low < distance < high
    if "eps" not in words or "delta" in words:
        low, high = stats.chi2(RUNS).ppf([ALARM / 18, 1 - ALARM / 18])
        assert (low < standardised).all()
        assert (standardised < high).all()


def fit_of_levels(levels, rate_of_c, n=20_000, seed=1):
    """A logit of x and of three levels, of which c has fewer cases."""
    rng = np.random.default_rng(3)
    f, x = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2]), np.clip(rng.normal(0, 1, n), -4, 4)
    y = rng.random(n) < np.where(f == "c", rate_of_c, 1 / (1 + np.exp(-0.5 * x)))
    book = dp.codebook(y=["no", "yes"], x=(-4, 4), f=levels)
    data = {"y": np.where(y, "yes", "no"), "x": x, "f": f}
    with dp.simulation(seed=seed):
        return dp.dp_glm("y ~ x + f", data, codebook=book, family="binomial", eps=3, delta=1e-6)


def contrasted(fit):
    return fit.contrasts("f", adjust="none").tidy().set_index("contrast")


def test_contrasts_and_means_of_a_level_without_cases_have_no_interval():
    opened = []
    for seed in range(3):
        fit = fit_of_levels(["a", "b", "c"], 0.0, 5_000, seed)
        is_open = bool(fit.conf_int().loc["f[T.c]"].isna().all())
        lost = contrasted(fit)["conf_low"].isna()
        assert lost.to_dict() == {"a - b": False, "a - c": is_open, "b - c": is_open}
        means = fit.emmeans("f").tidy().set_index("f")["conf_low"].isna()
        assert means.to_dict() == {"a": False, "b": False, "c": is_open}
        opened.append(is_open)
    assert any(opened)


@pytest.mark.parametrize("levels", [["a", "b", "c"], ["c", "a", "b"]])
def test_contrasts_and_means_of_a_level_with_rare_cases_have_its_longer_end(levels):
    fit = fit_of_levels(levels, 0.02)
    lines = contrasted(fit)[["conf_low", "estimate", "conf_high"]]
    shares = {}
    for name, (low, middle, high) in zip(lines.index, lines.to_numpy(), strict=True):
        # The end towards fewer cases of c over the other: 1 where c is in no side.
        ratio = (high - middle) / (middle - low)
        shares[name] = ratio if name.endswith("c") else 1 / ratio
    rare = [share for name, share in shares.items() if "c" in name]
    (common,) = (share for name, share in shares.items() if "c" not in name)
    assert common == pytest.approx(1, abs=0.05)
    assert min(rare) > 1.1
    mean = fit.emmeans("f", at={"x": 0.0}).tidy().set_index("f").loc["c"]
    low, middle, high = (math.log(p / (1 - p)) for p in mean[["conf_low", "estimate", "conf_high"]])
    assert middle - low > 1.1 * (high - middle)
    if levels[0] == "a":
        ends = -fit.conf_int().loc["f[T.c]"].to_numpy()[::-1]
        assert lines.loc["a - c", ["conf_low", "conf_high"]].to_list() == pytest.approx(ends)


@pytest.mark.product
def test_rare_outcomes_have_intervals_that_cover():
    """Of the constant too, from which a ridge about 0 would pull them by a hundred errors."""
    runs, n_covered, truth = 16, 0, np.array([-3.9, 0.6, -0.1])
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        a, b = rng.uniform(-1, 1, 8000), rng.uniform(0, 10, 8000)
        y = rng.random(8000) < expit(truth @ np.array([np.ones(8000), a, b - 5]))
        assert y.mean() < 0.04
        data = {"a": a, "b": b, "y": np.where(y, "yes", "no")}
        with dp.simulation(seed=seed):
            ends = fit("y ~ a + I(b - 5)", data, eps=4.0, delta=1e-6).conf_int().to_numpy()
        n_covered += (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    # A coverage of .95 gives fewer than 9 of 16 once in two million times; three of them.
    assert (n_covered >= 9).all()


def test_a_level_without_rows_is_one_coefficient_not_identified():
    data = table(6000) | {"g": np.where(np.arange(6000) % 2, "u", "v")}
    with dp.simulation(seed=1):
        result = fit("y ~ a + b + g", data, eps=4.0, delta=1e-6)
    assert result.identified.to_dict() == {
        **{"Intercept": True, "a": True, "b": True, "g[T.v]": True},
        "g[T.w]": False,
    }
    for values in (result.bse, result.bse_noise, result.tvalues, result.pvalues):
        assert (values.notna() == result.identified).all()
    for frame in (result.conf_int(), result.noise_int(), result.cov_params()):
        assert frame.loc["g[T.w]"].isna().all()
        assert np.isfinite(frame.iloc[0, :2]).all()
    text = str(result.summary())
    assert "not identified" in text
    assert "1 coefficient is not identified at this budget" in text
    inner = result.noise_int().dropna().to_numpy()
    outer = result.conf_int().dropna().to_numpy()
    assert (outer[:, 0] <= inner[:, 0]).all()
    assert (outer[:, 1] >= inner[:, 1]).all()


def test_a_number_lost_in_wide_bounds_leaves_no_coefficient_identified():
    """What moves with it would move the others, the constant first, by what is not known of it."""
    rng = np.random.default_rng(1)
    a = rng.uniform(0, 1, 6000)
    data = {"a": a, "s": rng.choice(["f", "m"], 6000)}
    data["y"] = np.where(rng.random(6000) < expit(3 * a - 3), "yes", "no")
    book = dp.codebook(a=(0, 1e6), s=["f", "m"], y=["no", "yes"])
    with dp.simulation(seed=2):
        fit = dp_glm("y ~ a + s", data, codebook=book, eps=1.0, delta=1e-6)
    assert not fit.identified.any()
    assert "the curvature of a, which affects the other coefficients" in fit.why_not


def test_what_is_printed_without_standard_errors_says_what_noise_there_is_at_least():
    with dp.simulation(seed=1):
        result = fit(eps=0.05, delta=1e-6)
    assert not result.identified.any()
    text = str(result.summary())
    assert "at least" in text or "least" in text
    # The linear term's noise moves the minimum by as much, were all rows as curved as can be.
    assert (result.noise_least > 0).all()
    with dp.simulation(seed=1):
        second = fit(eps=0.05, delta=1e-6, mechanism="gradients")
    assert second.noise_least.isna().all()
    assert "was not released" in str(second.summary())


def test_poisson_standard_errors_are_those_of_the_sandwich():
    """Of counts that vary more than Poisson's, where none is clipped."""
    data = table(20_000)
    rng = np.random.default_rng(3)
    data["c"] = np.minimum(
        rng.poisson(np.exp(0.5 + 0.5 * data["a"]) * rng.gamma(2, 0.5, 20_000)), 30.0
    )
    result = fit("c ~ a + b", data, family="poisson", budget=ZCDP(1e8), clip=30.0)
    design = sm.add_constant(np.column_stack([data["a"], data["b"]]))
    reference = sm.GLM(data["c"], design, family=sm.families.Poisson()).fit(cov_type="HC0")
    np.testing.assert_allclose(result.params, reference.params, atol=1e-3)
    np.testing.assert_allclose(result.bse, reference.bse, rtol=0.02)


def test_parts_of_the_error_add_up():
    result = fit(budget=ZCDP(2.0))
    together = np.hypot(result.bse_noise, result.bse_sampling)
    np.testing.assert_allclose(result.bse, together, rtol=1e-9)
    np.testing.assert_allclose(result.tvalues, result.params / result.bse)
    assert ((result.pvalues >= 0) & (result.pvalues <= 1)).all()
    centre, ends = result.params.to_numpy()[:, None], [-1.959963984540054, 1.959963984540054]
    assert result.conf_int().to_numpy() == pytest.approx(centre + np.outer(result.bse, ends))
    assert result.noise_int().to_numpy() == pytest.approx(centre + np.outer(result.bse_noise, ends))
    wide, narrow = result.conf_int(0.99), result.conf_int(0.5)
    assert (wide["lower"] < narrow["lower"]).all()
    with pytest.raises(ArgumentError):
        result.conf_int(95)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ({"inference": False}, "inference=True"),
        ({"eps": 0.01}, "not identified at this budget"),
        ({"mechanism": "output"}, "no intervals"),
        ({"mechanism": NoisyGradients(inference=False), "delta": 1e-6}, "inference=True"),
        ({"mechanism": "gradients", "delta": 1e-6, "eps": 0.01}, "not identified at this budget"),
    ],
)
def test_intervals_that_would_not_cover_are_not_given(words, reason):
    result = fit(**words)
    for name in ("conf_int", "noise_int", "cov_params"):
        with pytest.raises(NotAvailable, match=reason):
            getattr(result, name)()
    for name in ("bse", "bse_noise", "bse_sampling", "tvalues", "pvalues"):
        with pytest.raises(NotAvailable, match=reason):
            getattr(result, name)
    assert list(result.tidy()) == ["term", *COLUMNS]
    assert result.tidy()["std_error"].isna().all()
    assert "Standard errors" in str(result.summary())


@pytest.mark.product
def test_the_printed_table():
    with dp.simulation(seed=1):
        text = str(fit(budget=ZCDP(1.0), ledger=dp.Ledger(budget=ZCDP(2.0))).summary())
    for word in (
        *("Private generalised linear model", "y ~ a + b + g", "rho = 1 (zCDP)", "objective"),
        *("3,000 (public)", "yes against no", "std err", "noise", "P>|z|", "g[T.w]", "Ledger"),
    ):
        assert word in text
    assert "private" in str(fit(adjacency="add-remove").summary())


@pytest.mark.product
def test_strategies_are_taken_as_they_are():
    result = fit(mechanism=Objective(ridge=50.0))
    assert result.release.ridge == 50
    assert fit(mechanism=Output(ridge=70.0)).release.ridge == 70
    assert "automatically" in str(fit().summary(notes="all"))
    assert "automatically" not in str(fit(mechanism="objective").summary(notes="all"))


# ---- storage and pictures ------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("y ~ a + b + g", {"budget": ZCDP(1.0)}),
        ("y ~ a * g", {"adjacency": "add-remove", "inference": False}),
        ("bit ~ a - 1", {"mechanism": "output"}),
        ("c ~ a", {"family": "poisson", "budget": ZCDP(1.0), "row_norm": 0.5}),
    ],
)
def test_what_is_read_back_prints_the_same(formula, words, tmp_path):
    result = fit(formula, **words)
    result.save(tmp_path / "fit.nc")
    again = dp.load(tmp_path / "fit.nc")
    assert isinstance(again, GLMResult)
    assert everything(again)[:4] == everything(result)[:4]
    assert again.release.events == result.release.events
    assert again.call.codebook == result.call.codebook
    pd.testing.assert_frame_equal(again.tidy(), result.tidy(), check_exact=True)


def test_the_picture_of_coefficients():
    from matplotlib.figure import Figure

    with dp.simulation(seed=1):
        result = fit(budget=ZCDP(1.0))
    ax = result.plot(ax=Figure().subplots())
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["g", "v", "w", "a", "b"]
    assert "yes" in ax.get_xlabel()
    with pytest.raises(NotAvailable, match="inference"):
        fit(inference=False).plot()
    with pytest.raises(ArgumentError, match="terms"):
        fit("y ~ 1", budget=ZCDP(1.0)).plot()
