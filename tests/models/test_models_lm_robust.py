"""``vcov="HC"``: White's sandwich, bought; what it is without noise, costs, says and refuses."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError, FrameError, NotAvailable
from dpmodels.mechanisms import Rounds, robust_covariance
from dpmodels.mechanisms.regression import ellipsoid
from dpmodels.mechanisms.robust_covariance import solved
from tests.mines import Mine

BOOK = dp.codebook(y=(-9, 9), x=(0, 4), z=(-2, 2), w=(0, 2))
APPROX = {"codebook": BOOK, "eps": 1.0, "delta": 1e-6}
MINES = {name: Mine() for name in BOOK}
TINY = {"eps": None, "delta": 0.0, "budget": dp.ZCDP(1e-28)}
HUGE = {"codebook": BOOK, "budget": dp.ZCDP(1e10), "vcov": "HC"}


def rows_of(count, seed=1):
    """Errors that grow with a skewed column."""
    rng = np.random.default_rng(seed)
    x, z = rng.exponential(0.7, count).clip(0, 4), rng.uniform(-2, 2, count)
    y = 1 - x + 0.5 * z + (0.2 + x) * rng.normal(size=count)
    return pd.DataFrame({"y": y.clip(-9, 9), "x": x, "z": z, "w": rng.uniform(0, 2, count)})


ROWS = rows_of(4_000)


@pytest.mark.parametrize("formula", ["y ~ x + z", "y ~ x + z - 1", "y ~ 1"])
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("weights", [None, "w"])
def test_a_huge_budget_gives_statsmodels_hc1(formula, adjacency, weights):
    words = {"weights": weights, "adjacency": adjacency, "mechanism": "moments"}
    fit = dp.dp_lm(formula, ROWS, **words, **HUGE)
    reference = sm.WLS.from_formula(formula, ROWS, weights=ROWS.w if weights else 1.0).fit(
        cov_type="HC1"
    )
    # Neither number of rows is known, so HC0: the factor of HC1 is 1.0004.
    assert fit.bse.to_numpy() == pytest.approx(reference.bse.to_numpy(), rel=1e-2)
    assert fit.bse_sampling.to_numpy() == pytest.approx(reference.bse.to_numpy(), rel=1e-2)
    wald = fit.conf_int().to_numpy()
    assert wald == pytest.approx(reference.conf_int().to_numpy(), abs=0.02 * reference.bse.max())
    if formula != "y ~ 1":
        plain = dp.dp_lm(formula, ROWS, weights=weights, **{**HUGE, "vcov": "iid"})
        assert abs(np.log(plain.bse / fit.bse)).max() > 0.04


@pytest.mark.parametrize("mechanism", ["ellipsoid", "scores"])
def test_moments_along_axes_have_hc1(mechanism, monkeypatch):
    """Of errors without the response's length along the axes half would be lost."""
    monkeypatch.setattr(ellipsoid, "GAIN", 1e9)
    words = {**HUGE, "codebook": dp.codebook(y=(-90, 90), x=(0, 40), z=(-20, 20))}
    with dp.simulation(seed=1):
        fit = dp.dp_lm("y ~ x + z", ROWS, mechanism=mechanism, **words)
    assert fit.release.ball is not None
    reference = sm.OLS.from_formula("y ~ x + z", ROWS).fit(cov_type="HC1")
    assert fit.bse.to_numpy() == pytest.approx(reference.bse.to_numpy(), rel=0.1)


LEVELS = dp.codebook(y=(-9, 9), x=(0, 4), g=["a", "b", "c", "d", "e"])


def with_levels(count, seed=1):
    """A level in a hundredth of the rows, and none of `e`; the errors of `c` are larger."""
    rng = np.random.default_rng(seed)
    rows = rows_of(count, seed)
    rows["g"] = rng.choice(list("abcd"), count, p=[0.5, 0.3, 0.19, 0.01])
    rows["y"] = (rows.y + (rows.g == "c") * rng.normal(size=count) + (rows.g == "d")).clip(-9, 9)
    return rows


def test_a_factor_with_an_empty_and_a_rare_level_has_hc1():
    rows = with_levels(4_000)
    with dp.simulation(seed=1):
        fit = dp.dp_lm("y ~ g + x", rows, **{**HUGE, "codebook": LEVELS})
    reference = sm.OLS.from_formula("y ~ g + x", rows).fit(cov_type="HC1")
    assert fit.identified.drop(reference.params.index).tolist() == [False]
    # A row of the rare level is long beside its forty: the bought squares have noise of 3 %.
    assert fit.bse[reference.bse.index].to_numpy() == pytest.approx(
        reference.bse.to_numpy(), rel=0.1
    )
    assert fit.params[reference.params.index].to_numpy() == pytest.approx(
        reference.params.to_numpy(), abs=1e-3
    )


@pytest.mark.parametrize("formula", ["y ~ 0 + x + z", "y ~ 0 + g + x"])
def test_about_a_line_without_an_intercept_it_is_hc1(formula):
    rows = ROWS if "z" in formula else with_levels(4_000)
    book = BOOK if "z" in formula else LEVELS
    with dp.simulation(seed=1):
        fit = dp.dp_lm(formula, rows, **{**HUGE, "codebook": book, "mechanism": "scores"})
    reference = sm.OLS.from_formula(formula, rows).fit(cov_type="HC1")
    names = reference.params.index
    assert fit.params[names].to_numpy() == pytest.approx(reference.params.to_numpy(), rel=0.05)
    assert fit.bse[names].to_numpy() == pytest.approx(reference.bse.to_numpy(), rel=0.1)


@pytest.mark.parametrize("mechanism", ["moments", "adassp"])
def test_squares_are_bought_at_the_coefficients_that_are_shown(mechanism, monkeypatch):
    solutions = []

    def recorded(*args, **options):
        solutions.append(solved(*args, **options))
        return solutions[-1]

    monkeypatch.setattr(robust_covariance, "solved", recorded)
    words = {**APPROX, "codebook": LEVELS, "vcov": "HC", "mechanism": mechanism}
    fit = dp.dp_lm("y ~ g + x", with_levels(2_000), **words)
    ((equations, theta),) = solutions
    assert theta == pytest.approx(fit.linear.theta)
    assert equations.gram == pytest.approx(fit.linear.equations.gram)
    assert equations.bound is not None


def test_rows_are_held_in_a_wider_ellipsoid_where_errors_may_depend_on_terms():
    rng = np.random.default_rng(1)
    x = rng.normal(size=20_000).clip(-4, 4)
    y = (x + (0.3 + np.abs(x)) * rng.normal(size=20_000)).clip(-9, 9)
    rows = {"x": x, "y": y}
    words = {"codebook": dp.codebook(x=(-40, 40), y=(-90, 90)), "eps": 1.0, "delta": 1e-6}
    words["mechanism"] = "ellipsoid"
    radii = []
    for vcov in ("iid", "HC"):
        with dp.simulation(seed=1):
            radii.append(dp.dp_lm("y ~ x", rows, vcov=vcov, **words).release.ball.radius)
    assert radii[1] > 1.1 * radii[0]


def test_tests_and_means_follow_it():
    fit = dp.dp_lm("y ~ x + z", ROWS, mechanism="moments", **HUGE)
    reference = sm.OLS.from_formula("y ~ x + z", ROWS).fit(cov_type="HC1")
    ahead, new = fit.get_prediction({"x": [0, 3], "z": [1, 1]}), pd.DataFrame({"x": [0, 3], "z": 1})
    reference_frame = reference.get_prediction(new).summary_frame()
    assert ahead["mean_se"].to_numpy() == pytest.approx(
        reference_frame["mean_se"].to_numpy(), rel=1e-2
    )
    assert fit.cov_params().to_numpy() == pytest.approx(
        reference.cov_params().to_numpy(), rel=2e-2, abs=1e-6
    )
    assert fit.wald_test("x = 0, z = 0")["statistic"] == pytest.approx(
        float(reference.wald_test("x = 0, z = 0", scalar=True).statistic), rel=2e-2
    )
    ends = ["obs_ci_lower", "obs_ci_upper"]
    assert ahead[ends].to_numpy() == pytest.approx(reference_frame[ends].to_numpy(), rel=1e-2)


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("words", "error", "match"),
    [
        ({"vcov": "HC3"}, ArgumentError, 'vcov=.*"iid", "HC" or "cluster"'),
        ({"vcov": "cluster"}, ArgumentError, "vcov=.*person="),
        ({"vcov": "HC", "mechanism": "adassp", "delta": 0.0}, BudgetError, "pure"),
        ({"vcov": "HC", **TINY}, BudgetError, "noise"),
    ],
)
def test_refusals_come_before_a_row_is_read(words, error, match):
    ledger = dp.Ledger(5.0, 1e-5)
    with pytest.raises(error, match=match):
        dp.dp_lm("y ~ x", MINES, ledger=ledger, **{**APPROX, **words})
    assert ledger.entries == ()


def test_rows_that_pass_once_are_refused_by_name():
    ledger = dp.Ledger(5.0, 1e-5)
    with pytest.raises(FrameError, match=r"vcov=.* reads the rows again.* leave out"):
        dp.dp_lm("y ~ x", iter([MINES]), vcov="HC", ledger=ledger, **APPROX)
    sites = {"A": MINES, "B": dict(MINES)}
    for protocol in ("full", "cape"):
        with pytest.raises(ArgumentError, match="vcov="):
            dp.dp_lm("y ~ x", sites=sites, protocol=protocol, vcov="HC", ledger=ledger, **APPROX)
    assert ledger.entries == ()


def test_pooled_sites_have_the_fit_of_one_table():
    words = {**APPROX, "vcov": "HC"}
    with dp.simulation(seed=1):
        fit = dp.dp_lm("y ~ x + z", ROWS, **words)
    with dp.simulation(seed=1):
        sites = {"A": ROWS[:900], "B": ROWS[900:]}
        lm_fit = dp.dp_lm("y ~ x + z", sites=sites, protocol="pooled", **words)
    assert (fit.release.meat.squares == lm_fit.release.meat.squares).all()
    assert fit.bse.equals(lm_fit.bse)


def test_what_it_costs_is_what_was_asked():
    ledger = dp.Ledger(1.0, 1e-6)
    words = {**APPROX, "mechanism": "moments"}
    fit = dp.dp_lm("y ~ x", ROWS, vcov="HC", ledger=ledger, **words)
    plain = dp.dp_lm("y ~ x", ROWS, **words)
    assert ledger.entries[0].events == fit.release.events
    assert len(fit.release.events) == len(plain.release.events) + 1
    # A twentieth of the budget: 2.6 % more noise in the coefficients.
    assert fit.release.noise.off / plain.release.noise.off == pytest.approx(0.95**-0.5)
    assert plain.release.meat is None


@pytest.mark.parametrize("words", [{}, {"mechanism": Rounds()}, {"delta": 0.0}], ids=str)
def test_what_is_read_back_is_the_same(words, tmp_path):
    with dp.simulation(seed=2):
        fit = dp.dp_lm("y ~ x + z", ROWS, **{**APPROX, "vcov": "HC", "eps": 3.0, **words})
    fit.save(tmp_path / "fit.nc")
    again = dp.load(tmp_path / "fit.nc")
    assert str(again.summary()) == str(fit.summary())
    text = str(again.summary(notes="all"))
    assert again.bse.equals(fit.bse)
    assert "Covariance type:" in text
    assert "HC, bought with 5% of the budget" in text
    assert "unequal residual variances" in " ".join(text.split())


def test_the_table_of_equal_variances_names_them():
    text = " ".join(str(dp.dp_lm("y ~ x", ROWS, **APPROX).summary(notes="all")).split())
    assert "sampling with equal residual variances" in text
    assert "Covariance type" not in text


def test_weights_and_a_private_number_of_rows_have_standard_errors_by_it_alone():
    words = {**APPROX, "weights": "w", "adjacency": "add-remove", "eps": 20.0}
    with pytest.raises(NotAvailable, match="vcov="):
        dp.dp_lm("y ~ x", ROWS, **words).conf_int()
    fit = dp.dp_lm("y ~ x", ROWS, vcov="HC", **words)
    assert np.isfinite(fit.conf_int()).all(axis=None)
    assert "Without the number of rows" not in str(fit.summary())


ODD = {
    "two rows": {"y": [1.0, 2.0], "x": [0.0, 3.0], "z": [0.0, 1.0]},
    "no rows": {"y": [], "x": [], "z": []},
    "all equal": {"y": [1.0] * 500, "x": [2.0] * 500, "z": [0.0] * 500},
    "a constant response": {"y": [3.0] * 500, "x": ROWS.x[:500], "z": ROWS.z[:500]},
    "a perfect line": {"y": ROWS.x * 2 - 4, "x": ROWS.x, "z": ROWS.z},
    "nothing complete": {"y": [np.nan] * 9, "x": [1.0] * 9, "z": [0.0] * 9},
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.filterwarnings("error", "ignore::dpmodels.errors.BudgetWarning")
def test_odd_rows_make_tables_in_silence(kind):
    budgets = (dp.ApproxDP(1e-3, 1e-9), dp.ApproxDP(1e6, 1e-6), dp.PureDP(1e-3))
    for formula, budget in zip(("y ~ x", "y ~ x - 1", "y ~ x"), budgets, strict=True):
        fit = dp.dp_lm(formula, ODD[kind], codebook=BOOK, budget=budget, vcov="HC")
        assert np.isfinite(fit.params).all()
        assert np.isfinite(fit.release.meat.squares).all()
        assert (fit.bse >= fit.bse_noise * (1 - 1e-9)).all()
        assert "Covariance type" in str(fit.summary())


@pytest.mark.slow
@pytest.mark.parametrize("heavy", [False, True])
def test_intervals_cover_where_variances_differ(heavy):
    """Of 300 fits each: less than 261 intervals of 95 % hold the truth with a chance below 1e-6."""
    hits, plain = [], []
    truth = np.array([1.0, -1.0, 0.5])
    for seed in range(300):
        rows = rows_of(20_000, seed)
        if heavy:
            rng = np.random.default_rng(seed)
            rows["y"] += (rows.x * rng.standard_t(3, len(rows)) / 3).clip(-3, 3)
        for n_covered, vcov in ((hits, "HC"), (plain, "iid")):
            with dp.simulation(seed=seed):
                fit = dp.dp_lm("y ~ x + z", rows, codebook=BOOK, eps=5.0, delta=1e-6, vcov=vcov)
            ends = fit.conf_int()
            n_covered.append((ends["lower"] <= truth) & (truth <= ends["upper"]))
    shares = np.mean(hits, axis=0)
    assert (shares >= 0.87).all(), shares
    assert np.mean(plain, axis=0).min() < 0.87
