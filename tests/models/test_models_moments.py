import copy
import pickle

import numpy as np
import pytest
from scipy.stats import binom

import dpmodels as dp
from dpmodels.design import private_design
from dpmodels.digest import release_digest
from dpmodels.errors import ArgumentError, BudgetError, FormulaError, LedgerError, NotAvailable
from dpmodels.mechanisms import Facts, Gauss
from dpmodels.models.moments import dp_moments
from dpmodels.noise import source
from dpmodels.privacy import ApproxDP
from dpmodels.results import MomentsResult
from dpmodels.results.estimate_table import COLUMNS
from dpmodels.statistics import moments
from tests.mines import Mine

HUGE = {"eps": 1e9, "delta": 1e-6}
USUAL = {"eps": 2.0, "delta": 1e-6}
CODEBOOK = dp.codebook(
    age=(0, 100), income=(0, 250_000), score=(-3, 5), sex=["F", "M"], group=["p", "q", "r"]
)
FORMULA = "~ age * sex + log(income + 1) + score + group"
NAMES = (
    *("sex[T.M]", "group[T.q]", "group[T.r]"),
    *("age", "age:sex[T.M]", "log(income + 1)", "score"),
)
ROWS = 3_000


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(6)
    age = np.clip(rng.normal(45, 15, ROWS), 1, 99)
    return {
        "age": age,
        "income": np.clip(rng.lognormal(10, 0.7, ROWS) + 300 * age, 1, 249_000),
        "score": np.clip(rng.normal(1, 1, ROWS) + age / 60, -2.9, 4.9),
        "sex": rng.choice(["F", "M"], ROWS, p=[0.7, 0.3]),
        "group": rng.choice(["p", "q", "r"], ROWS),
    }


@pytest.fixture(scope="module")
def coded(table):
    """All released columns, written out by hand."""
    man, age = table["sex"] == "M", table["age"]
    parts = man, table["group"] == "q", table["group"] == "r", age, age * man
    parts = *parts, np.log(table["income"] + 1), table["score"]
    return dict(zip(NAMES, (np.asarray(part, dtype=float) for part in parts), strict=True))


@pytest.fixture(scope="module")
def whole(table):
    return dp_moments(FORMULA, table, codebook=CODEBOOK, **HUGE)


@pytest.fixture(scope="module")
def noisy(table):
    return dp_moments(FORMULA, table, codebook=CODEBOOK, **USUAL)


PARTS = {
    None: NAMES,
    "~ age + score": ("age", "score"),
    "~ score + sex": ("sex[T.M]", "score"),
    "~ group + log(income + 1)": ("group[T.q]", "group[T.r]", "log(income + 1)"),
    "~ age * sex": ("sex[T.M]", "age", "age:sex[T.M]"),
}


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("formula", PARTS)
def test_a_huge_budget_gives_numpys_answers(table, coded, formula, adjacency):
    fit = dp_moments(FORMULA, table, codebook=CODEBOOK, adjacency=adjacency, **HUGE)
    rows = np.column_stack([coded[name] for name in PARTS[formula]])
    cov = fit.cov(formula)
    half = (cov.call.upper - cov.call.lower) / 2
    assert cov.call.names == PARTS[formula]
    assert np.abs((cov.cov - np.cov(rows, rowvar=False)) / np.outer(half, half)).max() < 1e-4
    np.testing.assert_allclose(fit.cor(formula), np.corrcoef(rows, rowvar=False), atol=1e-3)
    mean = fit.mean(formula)
    assert list(mean.index) == list(PARTS[formula])
    assert (np.abs(mean["mean"] - rows.mean(axis=0)) / half).max() < 1e-4


@pytest.mark.parametrize("formula", [formula for formula in PARTS if formula])
def test_a_part_is_the_block_of_the_release(noisy, formula):
    part, names = noisy.cov(formula), list(PARTS[formula])
    block = {"variable": names, "variable_": names}
    for name in ("cov_released", "noise_sd"):
        np.testing.assert_array_equal(getattr(part, name), getattr(noisy.cov(), name).loc[block])
    assert noisy.mean(formula).equals(noisy.mean().loc[names])
    assert part.release.events == noisy.release.events
    assert part.release.guarantee == noisy.release.guarantee


@pytest.mark.parametrize("scale", ["range", "sd", None])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("formula", ["~ age + score + sex", "~ age * sex", "~ group + score"])
def test_components_of_a_part_are_those_of_dp_pca(whole, table, formula, center, scale):
    words = {"center": center, "scale": scale}
    pca_of_moments = whole.pca(formula, **words)
    asked_alone = dp.dp_pca(formula, table, codebook=CODEBOOK, mechanism="gauss", **words, **HUGE)
    largest = float(asked_alone.eigenvals[0])
    np.testing.assert_allclose(
        pca_of_moments.eigenvals, asked_alone.eigenvals, rtol=1e-3, atol=1e-4 * largest
    )
    # Equal loadings leave the sign to the last bit.
    sign = np.sign(float(pca_of_moments.loadings[:, 0] @ asked_alone.loadings[:, 0]))
    np.testing.assert_allclose(
        pca_of_moments.loadings[:, 0], sign * asked_alone.loadings[:, 0], atol=1e-3
    )
    np.testing.assert_allclose(pca_of_moments.cov, asked_alone.cov, rtol=1e-3, atol=1e-4 * largest)
    first = pca_of_moments.transform(table)[:, 0] - sign * asked_alone.transform(table)[:, 0]
    assert np.abs(first).max() < 5e-3 * np.sqrt(largest)
    assert (pca_of_moments.center is None) == (not center)
    if center:
        np.testing.assert_allclose(pca_of_moments.center, asked_alone.center, atol=1e-2)


def test_a_dot_stands_for_the_released_variables(table):
    fit = dp_moments("~ age + score", table, codebook=CODEBOOK, **USUAL)
    assert fit.pca("~ .").call.names == ("age", "score")
    assert fit.cov("~ . - age").call.names == ("score",)


def test_factors_of_an_interaction_in_any_order(noisy):
    turned, straight = noisy.cov("~ age + sex + sex:age"), noisy.cov("~ age * sex")
    assert set(straight.call.names) != set(turned.call.names)
    np.testing.assert_array_equal(turned.cov_released, straight.cov_released)


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("formula", "options"),
    [
        ("~ age + income", "column 'income'"),
        ("~ 0 + sex", r"column 'sex\[F\]'"),
        ("~ age:score", "column 'age:score'"),
        ("~ age + height", "variable 'height'"),
    ],
)
def test_what_was_not_released_is_refused_by_name(noisy, formula, options):
    for method in (noisy.cov, noisy.cor, noisy.mean, noisy.pca):
        with pytest.raises(FormulaError, match=options) as raised:
            method(formula)
        assert "age:sex[T.M]" in str(raised.value)
        assert "new release with dp.dp_moments" in str(raised.value)


@pytest.mark.guarding
@pytest.mark.parametrize("formula", ["score ~ age", "~ 1", "age +", 3])
def test_what_is_no_right_hand_side_is_refused(noisy, formula):
    with pytest.raises(FormulaError):
        noisy.pca(formula)


@pytest.mark.parametrize(
    "words",
    [{"center": 1}, {"center": None}, {"scale": "var"}, {"scale": 2}, {"ncomp": 3}, {"ncomp": 0}],
)
def test_wrong_words_of_components(noisy, words):
    with pytest.raises(ArgumentError):
        noisy.pca("~ age + score", **words)


@pytest.mark.parametrize("level", [0.0, 1.0, 95, "0.9"])
def test_a_level_is_a_share(noisy, level):
    for method in (noisy.mean, noisy.cov().noise_int, noisy.cov().conf_int):
        with pytest.raises(ArgumentError, match="between 0 and 1"):
            method(level=level)


@pytest.mark.parametrize(
    ("words", "error", "match"),
    [
        ({"row_norm": "unit"}, ArgumentError, "dp_pca"),
        ({"row_norm": -1.0}, ArgumentError, "row_norm"),
        ({"denoise": "much"}, ArgumentError, "spiked"),
        ({"adjacency": "swap"}, ArgumentError, "replace"),
        ({"delta": 0.0}, BudgetError, "delta"),
        ({"formula": "~ height"}, FormulaError, "height"),
    ],
)
def test_a_wrong_word_costs_nothing(words, error, match):
    ledger = dp.Ledger(eps=3.0, delta=1e-5)
    words = {"formula": "~ age", **USUAL, **words}
    with pytest.raises(error, match=match):
        dp_moments(data={"age": Mine()}, codebook=CODEBOOK, ledger=ledger, **words)
    assert len(ledger.entries) == 0


def test_models_of_a_release_are_free(table):
    ledger = dp.Ledger(eps=2.2, delta=1e-6)
    fit = dp_moments(FORMULA, table, codebook=CODEBOOK, ledger=ledger, **USUAL)
    fit.pca("~ age + score", center=False).summary()
    fit.cov("~ age * sex").pca(scale="sd")
    fit.cor("~ group")
    fit.mean()
    assert [entry.label for entry in ledger.entries] == [f"dp_moments {FORMULA}"]
    with pytest.raises(LedgerError):
        dp_moments(FORMULA, table, codebook=CODEBOOK, ledger=ledger, **USUAL)


@pytest.mark.product
def test_intervals_cover_the_moments_of_the_rows(table, coded):
    # 500 releases asked for 0.9: false alarms below 1e-7 for each count of misses, at a
    # coverage of at least 0.88 (0.86 for eigenvalues, whose law is of first order).
    names = ("age", "score")
    rows = np.column_stack([coded[name] for name in names])
    half = np.array([50.0, 4.0])
    truths = {
        (center, scale): np.linalg.eigvalsh(
            np.cov(rows / by, rowvar=False) if center else (rows / by).T @ (rows / by) / ROWS
        )[::-1]
        for center in (True, False)
        for scale, by in (("range", half), (None, 1.0))
    }
    missed, outside = np.zeros(2, dtype=int), dict.fromkeys(truths, 0)
    with dp.simulation(seed=2012):
        first = dp_moments(FORMULA, table, codebook=CODEBOOK, eps=2.0, delta=1e-6)
        design = private_design(FORMULA, table, CODEBOOK)
        facts = Facts(len(NAMES), first.release.adjacency, centred=True)
        plan = Gauss().plan(facts, ApproxDP(2.0, 1e-6))
        exact = moments(design, plan.lattice)
        for _ in range(500):
            fit = MomentsResult(first.call, Gauss().release(exact, plan, source()))
            bounds = fit.mean("~ age + score", level=0.9)
            mean = rows.mean(axis=0)
            missed += ((bounds["lower"] > mean) | (bounds["upper"] < mean)).to_numpy()
            for (center, scale), values in truths.items():
                pca_noise = fit.pca("~ age + score", center=center, scale=scale).noise_int(0.9)
                low, high = pca_noise.iloc[0]
                outside[center, scale] += not low <= values[0] <= high
    assert missed.max() <= binom.isf(1e-7, 500, 0.12)
    assert missed.min() >= binom.ppf(1e-7, 500, 0.08)
    assert max(outside.values()) <= binom.isf(1e-7, 500, 0.14)


def test_incomplete_rows_count_in_no_part(table):
    holes = {**table, "score": np.where(np.arange(ROWS) % 3 == 0, np.nan, table["score"])}
    fit = dp_moments(FORMULA, holes, codebook=CODEBOOK, **HUGE)
    is_complete = np.arange(ROWS) % 3 != 0
    assert fit.nobs == ROWS
    assert fit.ncomplete == pytest.approx(is_complete.sum(), abs=0.1)
    assert fit.mean("~ age").loc["age", "mean"] == pytest.approx(
        table["age"][is_complete].mean(), abs=0.1
    )


def test_the_report_says_what_is_free(noisy):
    text = " ".join(str(noisy.summary()).split())
    for sentence in (
        "Private moments",
        "Without further budget, for formulas of these columns",
        ".pca(), .cov(), .cor(), .mean()",
        "eps = 2, delta = 1e-06",
        "5. age:sex[T.M]",
        "gauss (exact lattice)",
    ):
        assert sentence in text
    for part in (noisy.pca("~ age"), noisy.cov("~ age")):
        text = " ".join(str(part.summary()).split())
        of = f"7 columns ({FORMULA}), digest {release_digest(noisy.release)[:12]}"
        assert f"Part of one release of {of}, at no further cost" in text
    assert "no further cost" not in str(noisy.summary())


def test_tables(noisy):
    tidy = noisy.tidy()
    assert list(tidy["column"]) == list(NAMES)
    assert list(tidy.columns) == ["column", *COLUMNS, "sd", "sd_noise_sd"]
    assert (tidy["estimate"].to_numpy() == noisy.mean()["mean"].to_numpy()).all()
    row = noisy.glance().iloc[0]
    assert (row["nobs"], row["ncolumns"], row["eps"], row["mechanism"]) == (ROWS, 7, 2.0, "gauss")
    bounds = noisy.mean()
    assert (bounds["lower"] <= bounds["mean"]).all()
    assert (bounds["upper"] >= bounds["mean"]).all()
    assert (bounds["noise_sd"] > 0).all()


def test_what_is_read_back_is_the_same(table, tmp_path):
    with dp.simulation(seed=3):
        fit = dp_moments(FORMULA, table, codebook=CODEBOOK, **USUAL)
    fit.save(tmp_path / "fit.nc")
    again = dp.load(tmp_path / "fit.nc")
    for form in ("as_text", "as_html", "as_latex", "as_markdown"):
        assert getattr(again.summary(), form)() == getattr(fit.summary(), form)()
    assert again.simulated
    assert "SIMULATION" in str(again.summary())
    assert again.tidy().equals(fit.tidy())
    assert again.glance().equals(fit.glance())
    assert repr(again) == repr(fit)
    for part in (fit.pca("~ age * sex", center=False), fit.cov("~ age + score")):
        part.save(tmp_path / "part.nc", overwrite=True)
        read = dp.load(tmp_path / "part.nc")
        assert read.to_xarray().identical(part.to_xarray())
        assert str(read.summary()) == str(part.summary())
    read = again.pca("~ age * sex", center=False)
    assert read.transform(table).identical(fit.pca("~ age * sex", center=False).transform(table))


@pytest.mark.parametrize("name", ["scores", "resid", "fittedvalues"])
def test_nothing_about_rows_is_available(noisy, name):
    for result in (noisy, noisy.cov()):
        with pytest.raises(NotAvailable, match=r"pca\(\).transform"):
            getattr(result, name)


@pytest.mark.product
def test_results_and_what_is_derived_from_them_are_pickled_and_copied(noisy):
    parts = (noisy, noisy.cov(), noisy.pca(ncomp=1, scale="sd"), noisy.cov().pca(1))
    for result in parts:
        for again in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):
            assert str(again.summary()) == str(result.summary())
