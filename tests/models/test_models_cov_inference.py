"""``inference=True`` of dp_cov and dp_pca: intervals that hold for all rows, and are short."""

import numpy as np
import pytest
from scipy.stats import binom

import dpmodels as dp
from dpmodels import dp_cov, dp_pca
from dpmodels.errors import ArgumentError
from dpmodels.inference.correlations import mean_products
from dpmodels.mechanisms import Rounds

USUAL = {"eps": 1.0, "delta": 1e-6}
UPPER = np.triu_indices(3)


def normal(rng, n):
    return rng.multivariate_normal([0, 0, 0], [[1, 0.5, 0.2], [0.5, 1, 0.3], [0.2, 0.3, 1]], n)


def clustered(rng, n):
    return rng.choice([-2.0, 0.0, 2.0], (n, 1)) + rng.normal(size=(n, 3)) * 0.3


SHAPES = {
    "normal": (normal, (-5, 5)),
    "bounds ten times too wide": (normal, (-50, 50)),
    "bounds far too narrow": (normal, (-0.5, 0.5)),
    "lognormal": (lambda rng, n: np.exp(rng.normal(size=(n, 3))), (0, 40)),
    "discrete": (lambda rng, n: rng.poisson(2.0, (n, 3)).astype(float), (0, 20)),
    "zero-inflated": (
        lambda rng, n: rng.gamma(2.0, 1.0, (n, 3)) * (rng.random((n, 3)) < 0.3),
        (0, 15),
    ),
    "clustered": (clustered, (-6, 6)),
}


def fitted(verb, rows, bounds, **words):
    book = dp.codebook.uniform(["a", "b", "c"], bounds)
    return verb(
        "~ a + b + c", dict(zip("abc", rows.T, strict=True)), codebook=book, **USUAL, **words
    )


def lengths(intervals):
    return (intervals["upper"] - intervals["lower"]).to_numpy()


@pytest.mark.product
@pytest.mark.parametrize("inference", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_intervals_cover_the_rows_and_the_population(shape, inference):
    # 40 tables, six pairs: false alarms below 1e-6 / 12 each at a coverage of .93.
    draw, bounds = SHAPES[shape]
    rng, hits = np.random.default_rng(6), np.zeros((2, 6), dtype=int)
    truth = np.cov(np.clip(draw(rng, 400_000), *bounds).T)[UPPER]
    with dp.simulation(seed=6):
        for _ in range(40):
            rows = draw(rng, 2_000)
            fit = fitted(dp_cov, rows, bounds, inference=inference)
            exact = np.cov(np.clip(rows, *bounds).T)[UPPER]
            for row, (ends, inside) in enumerate(
                [(fit.noise_int(), exact), (fit.conf_int(), truth)]
            ):
                hits[row] += ((ends["lower"] <= inside) & (inside <= ends["upper"])).to_numpy()
    assert hits.min() >= binom.ppf(1e-6 / 12, 40, 0.93)


@pytest.mark.parametrize("verb", [dp_cov, dp_pca])
@pytest.mark.parametrize("shape", ["normal", "lognormal", "bounds ten times too wide"])
def test_bought_intervals_are_shorter(verb, shape):
    draw, bounds = SHAPES[shape]
    rows = draw(np.random.default_rng(2), 20_000)
    with dp.simulation(seed=2):
        plain, bought = (
            fitted(verb, rows, bounds, inference=with_inference) for with_inference in (False, True)
        )
    for ends in ("conf_int", "noise_int"):
        first, second = (lengths(getattr(fit, ends)()) for fit in (plain, bought))
        identified = np.isfinite(first)
        assert (second[identified] < first[identified] / 2).all()


def test_without_it_nothing_changes():
    rows = normal(np.random.default_rng(3), 3_000)
    with dp.simulation(seed=1):
        plain = fitted(dp_cov, rows, (-5, 5), mechanism=Rounds())
    with dp.simulation(seed=1):
        without_inference = fitted(dp_cov, rows, (-5, 5), mechanism="rounds", inference=False)
    assert plain.release.tails is None
    assert np.array_equal(plain.release.second, without_inference.release.second)


@pytest.mark.parametrize("verb", [dp_cov, dp_pca])
def test_what_is_read_back_is_the_same(verb, tmp_path):
    rows = normal(np.random.default_rng(4), 4_000)
    with dp.simulation(seed=4):
        fit = fitted(verb, rows, (-8, 8), inference=True)
    fit.save(tmp_path / "fit.nc")
    again = dp.load(tmp_path / "fit.nc")
    assert fit.release.tails is not None
    assert again.conf_int().equals(fit.conf_int())
    assert again.noise_int().equals(fit.noise_int())
    assert again.summary().as_text() == fit.summary().as_text()


def test_components_of_a_matrix_use_what_it_bought():
    rows = normal(np.random.default_rng(4), 20_000)
    with dp.simulation(seed=4):
        fit = fitted(dp_cov, rows, (-8, 8), inference=True)
        plain = fitted(dp_cov, rows, (-8, 8))
    exact = np.linalg.eigvalsh(np.cov(rows.T / 8))[::-1]
    # Three intervals: false alarms below 1e-6.
    ends = fit.pca().noise_int(1 - 1e-7).to_numpy()
    assert (lengths(fit.pca().conf_int()) < lengths(plain.pca().conf_int()) / 2).all()
    assert (ends[:, 0] <= exact).all()
    assert (exact <= ends[:, 1]).all()
    in_units = fit.pca(scale=None).conf_int() / 64
    np.testing.assert_allclose(in_units, fit.pca().conf_int(), rtol=1e-6)


@pytest.mark.parametrize("kind", ["one table", "two sites", "persons", "private n"])
def test_rows_of_all_kinds(kind):
    rows = normal(np.random.default_rng(8), 6_000)
    book = dp.codebook.uniform(["a", "b", "c"], (-6, 6))
    table = dict(zip("abc", rows.T, strict=True))
    words = {"codebook": book, "inference": True, "mechanism": "rounds", **USUAL}
    with dp.simulation(seed=8):
        if kind == "two sites":
            half = [{name: part[i::2] for name, part in table.items()} for i in range(2)]
            fit = dp_cov(
                "~ a + b + c", sites={"x": half[0], "y": half[1]}, protocol="pooled", **words
            )
        elif kind == "persons":
            ids = {"id": np.arange(6_000) // 2}
            book = dp.codebook({**book, "id": dp.Identifier()})
            fit = dp_cov(
                "~ a + b + c", {**table, **ids}, person="id", **{**words, "codebook": book}
            )
        elif kind == "private n":
            fit = dp_cov("~ a + b + c", table, adjacency="add-remove", **words)
        else:
            fit = dp_cov("~ a + b + c", table, **words)
    tails, ball, n_rows = fit.release.tails, fit.release.ball, fit.ncomplete
    fourth = tails.fourth[0, 0] * fit.call.row_norm**4 * 6**4 / n_rows
    noise = tails.fourth_sd * fit.call.row_norm**4 * 6**4 / n_rows
    clipped = np.clip(
        rows[:, 0] - fit.call.origin[0], -fit.call.row_norm * 6, fit.call.row_norm * 6
    )
    assert ball is not None
    assert abs(fourth - np.mean(clipped**4)) < 5.5 * noise + 0.05
    # Six intervals: false alarms below 1e-6.
    ends, exact = fit.noise_int(1 - 1e-7), np.cov(rows.T)[UPPER]
    assert ((ends["lower"] <= exact) & (exact <= ends["upper"])).all()


@pytest.mark.parametrize("words", [{"inference": "yes"}, {"inference": None}], ids=str)
@pytest.mark.parametrize("verb", [dp_cov, dp_pca])
def test_a_wrong_word_costs_nothing(verb, words):
    ledger = dp.Ledger(eps=1.0, delta=1e-6)
    with pytest.raises(ArgumentError, match="inference"):
        fitted(verb, np.zeros((5, 3)), (-1, 1), ledger=ledger, **words)
    assert not ledger.entries


def test_fourth_moments_along_directions_are_bounded():
    rng = np.random.default_rng(5)
    for _ in range(200):
        rows = rng.gamma(0.5, 1.0, (50, 3)) + rng.normal(size=3)
        directions = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        mean = rows.mean(axis=0)
        bound = mean_products((rows**2).T @ rows**2 / 50, (rows**2).mean(axis=0), mean, directions)
        along = (rows - mean) @ directions
        assert (bound >= (along**2).T @ along**2 / 50 * (1 - 1e-12)).all()
    about = mean_products(np.diag([2.0, 3.0]) + 1, np.ones(2), np.zeros(2), np.eye(2))
    np.testing.assert_allclose(about, np.diag([2.0, 3.0]) + 1)
