import numpy as np
import pytest
from scipy.stats import binom

import dpmodels as dp
from dpmodels.errors import ArgumentError, CodebookError, FrameError, LedgerError

HUGE = {"eps": 1e9, "delta": 1e-6}
USUAL = {"eps": 2.0, "delta": 1e-6}
CODEBOOK = dp.codebook(age=(0, 100), income=(0, 250_000), score=(-3, 5), sex=["F", "M"])
FORMULA = "~ age + log(income + 1) + score + sex"
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
    }


@pytest.fixture(scope="module")
def coded(table):
    """The coded columns, written out by hand; categories come first."""
    parts = table["sex"] == "M", table["age"], np.log(table["income"] + 1), table["score"]
    return np.column_stack([np.asarray(part, dtype=float) for part in parts])


def half_ranges():
    return np.array([0.5, 50.0, np.log(250_001) / 2, 4.0])


def check(fit, matrix, resolution):
    values, vectors = np.linalg.eigh(matrix)
    values, vectors = values[::-1], vectors[:, ::-1]
    scale = values[0]
    np.testing.assert_allclose(fit.eigenvals, values, rtol=0, atol=resolution * scale)
    np.testing.assert_allclose(fit.sdev, np.sqrt(values), rtol=0, atol=resolution * scale**0.5 * 9)
    cosines = np.abs((fit.loadings.to_numpy() * vectors).sum(axis=0))
    np.testing.assert_allclose(cosines, 1.0, atol=resolution)
    np.testing.assert_allclose(fit.explained_variance_ratio, values / values.sum(), atol=resolution)
    assert fit.total_variance == pytest.approx(values.sum(), rel=resolution)


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("scale", ["range", None, "sd"])
def test_a_huge_budget_gives_ordinary_pca(table, coded, adjacency, center, scale):
    fit = dp.dp_pca(
        FORMULA, table, codebook=CODEBOOK, center=center, scale=scale, adjacency=adjacency, **HUGE
    )
    scaled = coded / half_ranges() if scale else coded
    matrix = np.cov(scaled, rowvar=False) if center else scaled.T @ scaled / ROWS
    if scale == "sd":
        divisor = np.sqrt(np.diagonal(matrix))
        matrix = matrix / np.outer(divisor, divisor)
    # Rows lie on a lattice of 2^20 steps; natural units span five orders of magnitude.
    check(fit, matrix, 1e-3 if scale != "range" else 1e-4)


def test_center_is_in_the_columns_own_units(table, coded):
    for scale in ("range", None, "sd"):
        fit = dp.dp_pca(FORMULA, table, codebook=CODEBOOK, scale=scale, **HUGE)
        off = np.abs(fit.center - coded.mean(axis=0)) / half_ranges()
        assert float(off.max()) < 1e-3
        assert list(fit.center["variable"].to_numpy()) == list(fit.call.names)
    assert dp.dp_pca(FORMULA, table, codebook=CODEBOOK, center=False, **HUGE).center is None


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("scale", ["range", None, "sd"])
def test_transform_is_the_manual_computation(table, coded, center, scale):
    fit = dp.dp_pca(FORMULA, table, codebook=CODEBOOK, center=center, scale=scale, **USUAL)
    public = {name: column[:7] for name, column in table.items()}
    scaled = coded[:7] / half_ranges() if scale else coded[:7]
    if center:
        scaled = scaled - fit.center.to_numpy() / (half_ranges() if scale else 1.0)
    if scale == "sd":
        scaled = scaled / fit._analysis.best.divisor
    scores = fit.transform(public)
    np.testing.assert_allclose(scores, scaled @ fit.loadings.to_numpy(), rtol=1e-9, atol=1e-9)
    assert scores.dims == ("row", "component")
    assert list(scores["component"].to_numpy()) == ["PC1", "PC2", "PC3", "PC4"]


def test_scores_of_all_rows_have_the_eigenvalues_as_variances(table):
    fit = dp.dp_pca(FORMULA, table, codebook=CODEBOOK, **HUGE)
    scores = fit.transform(table)
    np.testing.assert_allclose(scores.var("row", ddof=1), fit.eigenvals, rtol=1e-3)
    np.testing.assert_allclose(scores.mean("row"), 0.0, atol=1e-3)


def test_transform_gives_nan_for_incomplete_rows_and_clips_the_others(table):
    fit = dp.dp_pca(FORMULA, table, codebook=CODEBOOK, ncomp=2, **USUAL)
    public = {
        "age": [40.0, np.nan, 40.0, 400.0, 100.0],
        "income": [1e4] * 5,
        "score": [0.0] * 5,
        "sex": ["F", "M", "other", "F", "F"],
    }
    scores = fit.transform(public).to_numpy()
    assert scores.shape == (5, 2)
    assert np.isnan(scores).all(axis=1).tolist() == [False, True, True, False, False]
    np.testing.assert_array_equal(scores[3], scores[4])


def test_transform_needs_the_variables(table):
    fit = dp.dp_pca(FORMULA, table, codebook=CODEBOOK, **USUAL)
    with pytest.raises(FrameError, match="income"):
        fit.transform({"age": [1.0], "score": [1.0], "sex": ["F"]})


def test_complete_rows_are_counted(table):
    holes = {**table, "score": np.where(np.arange(ROWS) % 3 == 0, np.nan, table["score"])}
    fit = dp.dp_pca(FORMULA, holes, codebook=CODEBOOK, **HUGE)
    assert fit.nobs == ROWS
    assert fit.ncomplete == pytest.approx(2 * ROWS / 3, abs=0.1)
    is_complete = np.arange(ROWS) % 3 != 0
    complete_rows = {name: column[is_complete] for name, column in table.items()}
    np.testing.assert_allclose(
        fit.eigenvals,
        dp.dp_pca(FORMULA, complete_rows, codebook=CODEBOOK, **HUGE).eigenvals,
        rtol=1e-4,
        atol=1e-5,
    )


def test_where_the_number_of_rows_comes_from(table):
    known_count = dp.dp_pca(FORMULA, table, codebook=CODEBOOK, **USUAL)
    bought = dp.dp_pca(FORMULA, table, codebook=CODEBOOK, adjacency="add-remove", **USUAL)
    assert (known_count.nobs, known_count.nobs_origin) == (ROWS, "public")
    assert known_count.ncomplete <= ROWS
    assert bought.nobs_origin.startswith("private, noise sd ")
    assert bought.release.rows is None
    # Twenty noise sds: a false alarm below 1e-80.
    assert bought.nobs == pytest.approx(ROWS, abs=20 * bought.release.noise.count)
    assert bought.nobs != ROWS


@pytest.mark.parametrize("ncomp", [1, 2, 4, np.int64(3)])
def test_ncomp_keeps_the_first_components(table, ncomp):
    with dp.simulation(seed=4):
        fit = dp.dp_pca(FORMULA, table, codebook=CODEBOOK, **USUAL)
    with dp.simulation(seed=4):
        some = dp.dp_pca(FORMULA, table, codebook=CODEBOOK, ncomp=ncomp, **USUAL)
    assert some.ncomp == ncomp
    assert some.loadings.equals(fit.loadings[:, :ncomp])
    assert some.explained_variance_ratio.equals(fit.explained_variance_ratio[:ncomp])


@pytest.mark.parametrize("ncomp", [0, 5, -1, 2.0, True, "2"])
def test_ncomp_is_a_number_of_columns(table, ncomp):
    with pytest.raises(ArgumentError, match="1 to 4"):
        dp.dp_pca(FORMULA, table, codebook=CODEBOOK, ncomp=ncomp, **USUAL)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ({"scale": "var"}, ArgumentError),
        ({"center": 1}, ArgumentError),
        ({"row_norm": -1.0}, ArgumentError),
        ({"mechanism": "magic"}, ArgumentError),
        ({"adjacency": "swap"}, ArgumentError),
        ({"ncomp": 9}, ArgumentError),
    ],
)
def test_a_wrong_word_costs_nothing(table, words, error):
    ledger = dp.Ledger(eps=3.0, delta=1e-5)
    with pytest.raises(error):
        dp.dp_pca(FORMULA, table, codebook=CODEBOOK, ledger=ledger, **{**USUAL, **words})
    assert len(ledger.entries) == 0


def test_an_unknown_variable_costs_nothing(table):
    ledger = dp.Ledger(eps=3.0, delta=1e-5)
    with pytest.raises(CodebookError, match="height"):
        dp.dp_pca("~ age + height", table, codebook=CODEBOOK, ledger=ledger, **USUAL)
    assert len(ledger.entries) == 0


def test_the_ledger_is_charged_and_told_of(table):
    ledger = dp.Ledger(eps=2.2, delta=1e-6)
    fit = dp.dp_pca(FORMULA, table, codebook=CODEBOOK, ledger=ledger, **USUAL)
    assert len(ledger.entries) == 1
    assert fit.call.ledger == ledger.describe()
    with pytest.raises(LedgerError):
        dp.dp_pca(FORMULA, table, codebook=CODEBOOK, ledger=ledger, **USUAL)


def test_a_smaller_row_norm_shrinks_long_rows(table):
    fit = dp.dp_pca(FORMULA, table, codebook=CODEBOOK, **HUGE)
    pca_fit = dp.dp_pca(FORMULA, table, codebook=CODEBOOK, row_norm=0.3, **HUGE)
    assert pca_fit.call.row_norm == 0.3
    assert pca_fit.total_variance < 0.3**2 < fit.total_variance
    wide = dp.dp_pca(FORMULA, table, codebook=CODEBOOK, row_norm=1e9, **HUGE)
    assert wide.call.row_norm == wide.call.worst_case


def test_a_simulation_is_repeatable_and_says_so(table):
    fits = []
    for _ in range(2):
        with dp.simulation(seed=5):
            fits.append(dp.dp_pca(FORMULA, table, codebook=CODEBOOK, **USUAL))
    assert fits[0].loadings.equals(fits[1].loadings)
    assert fits[0].simulated
    outside = dp.dp_pca(FORMULA, table, codebook=CODEBOOK, **USUAL)
    assert not outside.simulated
    assert not outside.loadings.equals(fits[0].loadings)


@pytest.mark.product
def test_intervals_hold_for_the_population_of_dummies():
    # The near-normal law covers 0.4 of the last; asked 0.95, false alarms below 1e-6.
    rng = np.random.default_rng(8)
    common, separate = rng.uniform(size=(40, 8_000, 1)), rng.uniform(size=(40, 8_000, 3))
    rows = np.where(rng.uniform(size=separate.shape) < 0.2, common, separate) < [0.3, 0.1, 0.03]
    rows, hits = rows.astype(float), np.zeros(3, dtype=int)
    truth = np.linalg.eigvalsh(4 * np.cov(rows.reshape(-1, 3).T))[::-1]
    book = dp.codebook.uniform(["a", "b", "c"], (0, 1))
    with dp.simulation(seed=6):
        for part in rows:
            data = dict(zip("abc", part.T, strict=True))
            fit = dp.dp_pca("~ .", data, codebook=book, eps=8.0, delta=1e-6, mechanism="gauss")
            bounds = fit.conf_int().to_numpy()
            hits += (bounds[:, 0] <= truth) & (truth <= bounds[:, 1])
    assert hits.min() >= binom.ppf(1e-7, 40, 0.93)
