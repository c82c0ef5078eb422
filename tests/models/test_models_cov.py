import numpy as np
import pytest
from scipy.stats import binom

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError, CodebookError, LedgerError, NotAvailable
from dpmodels.models.moments import dp_cov
from tests.mines import Mine

HUGE = {"eps": 1e9, "delta": 1e-6}
USUAL = {"eps": 2.0, "delta": 1e-6, "mechanism": "gauss"}
LOUD = {**USUAL, "eps": 8.0}
CODEBOOK = dp.codebook(age=(0, 100), income=(0, 250_000), score=(-3, 5), sex=["F", "M"])
FORMULA = "~ age + log(income + 1) + score + sex"
ROWS = 3_000
HALF = np.array([0.5, 50.0, np.log(250_001) / 2, 4.0])


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(6)
    age = np.clip(rng.normal(45, 15, ROWS), 1, 99)
    return {
        "age": age,
        "income": np.clip(rng.lognormal(10, 0.7, ROWS) + 300 * age, 1, 249_000),
        "score": np.clip(rng.normal(1, 1, ROWS) + age / 60, -2.9, 4.9),
        "sex": rng.choice(["F", "M"], ROWS, p=[0.7, 0.3]),
    }


@pytest.fixture(scope="module")
def coded(table):
    """The coded columns, written out by hand; categories come first."""
    parts = table["sex"] == "M", table["age"], np.log(table["income"] + 1), table["score"]
    return np.column_stack([np.asarray(part, dtype=float) for part in parts])


def near(released, exact, resolution=1e-4):
    """Agree, measured in half-ranges of the columns."""
    off = np.abs(np.asarray(released) - exact) / np.outer(HALF, HALF)
    assert float(off.max()) < resolution


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("scale", ["range", None])
def test_a_huge_budget_gives_numpys_matrices(table, coded, adjacency, scale):
    fit = dp_cov(FORMULA, table, codebook=CODEBOOK, scale=scale, adjacency=adjacency, **HUGE)
    # Rows lie on a lattice of 2^20 steps; natural units span five orders of magnitude.
    resolution = 1e-4 if scale else 1e-3
    near(fit.cov, np.cov(coded, rowvar=False), resolution)
    near(fit.cov_released, np.cov(coded, rowvar=False), resolution)
    np.testing.assert_allclose(fit.cor, np.corrcoef(coded, rowvar=False), atol=5 * resolution)
    assert (np.diagonal(fit.cor) == 1).all()
    off = np.abs(fit.center - coded.mean(axis=0)) / HALF
    assert float(off.max()) < resolution
    np.testing.assert_allclose(fit.sd, coded.std(axis=0, ddof=1), rtol=1e-2)
    assert list(fit.cov["variable_"].to_numpy()) == list(fit.call.names)


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_without_a_mean_it_is_the_second_moment(table, coded, adjacency):
    fit = dp_cov(FORMULA, table, codebook=CODEBOOK, center=False, adjacency=adjacency, **HUGE)
    near(fit.cov, coded.T @ coded / ROWS)
    assert fit.center is None
    assert "Private second moment matrix" in str(fit.summary())


def test_unit_rows_have_no_units(table, coded):
    fit = dp_cov(FORMULA, table, codebook=CODEBOOK, row_norm="unit", **HUGE)
    rows = coded / HALF
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_allclose(fit.cov, np.cov(rows, rowvar=False), atol=1e-4)
    np.testing.assert_allclose(fit.center, rows.mean(axis=0), atol=1e-4)
    with pytest.raises(ArgumentError, match='"range" or "sd"'):
        fit.pca(scale=None)


def test_interactions_and_factors(table):
    book = dp.codebook(age=(0, 100), group=["p", "q", "r"])
    rows = {"age": table["age"], "group": np.array(["p", "q", "r"])[np.arange(ROWS) % 3]}
    fit = dp_cov("~ age * group", rows, codebook=book, **HUGE)
    q, r = (np.asarray(rows["group"] == level, dtype=float) for level in "qr")
    exact = np.cov([q, r, rows["age"], rows["age"] * q, rows["age"] * r])
    assert fit.call.names == ("group[T.q]", "group[T.r]", "age", "age:group[T.q]", "age:group[T.r]")
    np.testing.assert_allclose(fit.cov, exact, atol=1e-4 * 50**2)


def test_components_of_the_matrix_are_those_of_dp_pca(table):
    fit = dp_cov(FORMULA, table, codebook=CODEBOOK, **HUGE)
    for scale in ("range", "sd", None):
        pca_asked = dp.dp_pca(FORMULA, table, codebook=CODEBOOK, scale=scale, **HUGE)
        pca_of_cov = fit.pca(scale=scale)
        np.testing.assert_allclose(pca_of_cov.eigenvals, pca_asked.eigenvals, rtol=1e-2)
        # The lattice of natural units is too coarse for directions of tiny variance.
        n_components = 2 if scale is None else 4
        np.testing.assert_allclose(
            pca_of_cov.loadings[:, :n_components], pca_asked.loadings[:, :n_components], atol=2e-3
        )
        np.testing.assert_allclose(
            pca_of_cov.transform(table), pca_asked.transform(table), atol=0.05
        )
    assert fit.pca(2).ncomp == 2
    np.testing.assert_allclose(fit.pca(scale=None).cov, fit.cov, rtol=1e-9)


def test_components_of_a_release_in_natural_units(table):
    fit = dp_cov(FORMULA, table, codebook=CODEBOOK, scale=None, **USUAL)
    with pytest.raises(ArgumentError, match='None or "sd"'):
        fit.pca()
    assert fit.pca(scale=None).release is fit.release


@pytest.mark.product
def test_noise_intervals_cover_the_covariances_of_the_rows(table, coded):
    # 400 releases, ten pairs each asked for 0.9: false alarms below 1e-7 for each of
    # ten counts of misses at a coverage of 0.88.
    exact, missed = np.cov(coded, rowvar=False), np.zeros(10, dtype=int)
    upper = np.triu_indices(4)
    with dp.simulation(seed=7):
        for _ in range(400):
            fit = dp_cov(FORMULA, table, codebook=CODEBOOK, adjacency="add-remove", **USUAL)
            bounds = fit.noise_int(0.9)
            missed += (bounds["lower"] > exact[upper]) | (bounds["upper"] < exact[upper])
    assert missed.max() <= binom.isf(1e-7, 400, 0.12)
    assert missed.min() >= binom.ppf(1e-7, 400, 0.08)


@pytest.mark.product
def test_confidence_intervals_cover_the_population():
    # As above, rows drawn anew from a normal law within bounds.
    rng = np.random.default_rng(5)
    root = np.array([[0.2, 0.0], [0.1, 0.1]])
    exact, missed = (root @ root.T)[np.triu_indices(2)], np.zeros(3, dtype=int)
    book = dp.codebook.uniform(["a", "b"], (-1, 1))
    with dp.simulation(seed=8):
        for _ in range(400):
            rows = dict(zip("ab", root @ rng.normal(size=(2, 1_000)), strict=True))
            fit = dp_cov("~ a + b", rows, codebook=book, **USUAL)
            bounds = fit.conf_int(0.9)
            missed += (bounds["lower"] > exact) | (bounds["upper"] < exact)
            assert (bounds["upper"] >= fit.noise_int(0.9)["upper"]).all()
    assert missed.max() <= binom.isf(1e-7, 400, 0.12)
    assert missed.min() >= binom.ppf(1e-7, 400, 0.08)


@pytest.mark.product
@pytest.mark.parametrize("shape", ["dummies", "counts"])
def test_confidence_intervals_hold_for_rows_that_are_not_normal(shape):
    """Dummies, whose sampling errors are their own, and counts at the edge of their bounds."""
    rng = np.random.default_rng(12)
    common = rng.uniform(size=(50, 8_000, 1))
    mixed = np.where(rng.uniform(size=(50, 8_000, 3)) < 0.4, common, rng.uniform(size=common.shape))
    rates = [0.5, 0.2, 0.04]
    rows = mixed < rates if shape == "dummies" else np.floor(-np.log(mixed) * 1.2).clip(0, 10)
    factor = 1.0 if shape == "dummies" else 10.0
    book = dp.codebook.uniform(["a", "b", "c"], (0, factor))
    pooled = np.cov(rows.reshape(-1, 3).T.astype(float))[np.triu_indices(3)]
    hits = np.zeros(6, dtype=int)
    with dp.simulation(seed=4):
        for variances in rows.astype(float):
            fit = dp_cov("~ .", dict(zip("abc", variances.T, strict=True)), codebook=book, **LOUD)
            bounds = fit.conf_int()
            hits += ((bounds["lower"] <= pooled) & (pooled <= bounds["upper"])).to_numpy()
    # Coverage of at least 0.93, of 0.5 for the near-normal law on dummies: 1e-6 / 12 each.
    assert hits.min() >= binom.ppf(1e-7, 50, 0.93)
    if shape == "dummies":
        width = (bounds["upper"] - bounds["lower"]).to_numpy()[[0, 3, 5]]
        variances = np.array(rates) * (1 - np.array(rates))
        assert (width[1:] < 6 * np.sqrt(variances * (1 - 4 * variances) / 8_000)[1:]).all()


@pytest.mark.parametrize(
    ("words", "error", "match"),
    [
        ({"scale": "sd"}, ArgumentError, "free of charge"),
        ({"scale": "var"}, ArgumentError, "range"),
        ({"center": 1}, ArgumentError, "True or False"),
        ({"mechanism": "magic"}, ArgumentError, "gauss"),
        ({"adjacency": "swap"}, ArgumentError, "replace"),
        ({"denoise": "much"}, ArgumentError, "spiked"),
        ({"row_norm": -1.0}, ArgumentError, "row_norm"),
        ({"delta": 0.0}, BudgetError, "delta"),
    ],
)
def test_a_wrong_word_costs_nothing(words, error, match):
    ledger = dp.Ledger(eps=3.0, delta=1e-5)
    with pytest.raises(error, match=match):
        dp_cov("~ age", {"age": Mine()}, codebook=CODEBOOK, ledger=ledger, **{**USUAL, **words})
    assert len(ledger.entries) == 0


def test_a_mechanism_without_a_matrix_is_refused(monkeypatch, table):
    from dpmodels.mechanisms import Gauss
    from dpmodels.models import moments as verb

    class Directions(Gauss):
        pass

    monkeypatch.setattr(verb, "SUBSPACE", {"directions": Directions})
    for mechanism in ("directions", Directions()):
        with pytest.raises(ArgumentError, match="dp_pca"):
            dp_cov("~ age", table, codebook=CODEBOOK, eps=1.0, delta=1e-6, mechanism=mechanism)


def test_an_unknown_variable_costs_nothing(table):
    with pytest.raises(CodebookError, match="height"):
        dp_cov("~ age + height", table, codebook=CODEBOOK, **USUAL)


def test_the_ledger_is_charged_once(table):
    ledger = dp.Ledger(eps=2.2, delta=1e-6)
    fit = dp_cov(FORMULA, table, codebook=CODEBOOK, ledger=ledger, **USUAL)
    fit.pca().summary()
    fit.summary()
    assert [entry.label for entry in ledger.entries] == [f"dp_cov {FORMULA}"]
    with pytest.raises(LedgerError):
        dp_cov(FORMULA, table, codebook=CODEBOOK, ledger=ledger, **USUAL)


@pytest.mark.parametrize(
    "words", [{}, {"center": False}, {"row_norm": "unit"}, {"mechanism": "separate"}], ids=str
)
def test_what_is_read_back_is_the_same(table, tmp_path, words):
    with dp.simulation(seed=3):
        fit = dp_cov(FORMULA, table, codebook=CODEBOOK, **{**USUAL, **words})
    fit.save(tmp_path / "fit.nc")
    again = dp.load(tmp_path / "fit.nc")
    for form in ("as_text", "as_html", "as_latex", "as_markdown"):
        assert getattr(again.summary(), form)() == getattr(fit.summary(), form)()
    assert again.to_xarray().identical(fit.to_xarray())
    assert again.tidy().equals(fit.tidy())
    assert again.glance().equals(fit.glance())
    assert again.release.events == fit.release.events
    assert again.pca().transform(table).identical(fit.pca().transform(table))
    assert repr(again) == repr(fit)
    again.pca(1).save(tmp_path / "pca.nc")
    assert isinstance(dp.load(tmp_path / "pca.nc"), type(fit.pca(1)))


def test_a_mechanism_without_a_law_says_nothing_of_noise(table):
    fit = dp_cov(FORMULA, table, codebook=CODEBOOK, **{**USUAL, "mechanism": "adaptive"})
    assert not fit.lawful
    assert np.isnan(fit.noise_sd).all()
    assert fit.noise_int()[["lower", "upper"]].isna().all(axis=None)
    assert np.isfinite(fit.cor).all()
    with pytest.raises(NotAvailable, match="gauss"):
        fit.conf_int()
    assert "error distribution of this mechanism is not known" in " ".join(
        str(fit.summary()).split()
    )
