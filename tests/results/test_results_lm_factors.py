"""A regression on real factors: empty levels, rare ones, many, and what is reported about them."""

import math
import time

import numpy as np
import pytest
from scipy.stats import binom

import dpmodels as dp
from dpmodels.errors import NotAvailable

LEVELS = list("abcdef")
BOOK = dp.codebook(y=(-10, 10), g=LEVELS, h=["u", "v"], x=(-4, 4))
MEANS = np.array([0.5, -1.0, 0.3, 1.2, -0.4, 0.0])
SHARES = [0.5, 0.2, 0.15, 0.1, 0.05, 0.0]


def rows_of(seed, count, shares=SHARES):
    rng = np.random.default_rng(seed)
    at = rng.choice(6, count, p=shares)
    x = np.clip(rng.normal(size=count) + 0.3 * MEANS[at], -4, 4)
    y = np.clip(MEANS[at] + 0.5 * x + rng.normal(size=count), -10, 10)
    return {"y": y, "g": np.array(LEVELS)[at], "h": rng.choice(["u", "v"], count), "x": x}


def made(rows, formula="y ~ g + x", **words):
    return dp.dp_lm(formula, rows, codebook=BOOK, **({"eps": 1.0, "delta": 1e-6} | words))


@pytest.fixture(scope="module")
def empty():
    with dp.simulation(seed=4):
        return made(rows_of(1, 50_000))


WAYS = [
    {},
    {"delta": 0.0},
    {"eps": 1e6},
    {"adjacency": "add-remove"},
    {"mechanism": "adassp"},
    {"formula": "y ~ g"},
    {"formula": "y ~ g*h + x", "eps": 5.0},
]


@pytest.mark.parametrize("words", WAYS, ids=str)
def test_one_empty_level_is_one_coefficient_not_identified(words):
    with dp.simulation(seed=4):
        fit = made(rows_of(1, 50_000), **words)
    lost = [name for name, is_identified in fit.identified.items() if not is_identified]
    assert lost == [name for name in fit.params.index if "T.f" in name]
    conf = fit.conf_int()
    assert np.isinf(conf.loc[lost]).all(axis=None)
    assert np.isfinite(conf.drop(lost)).all(axis=None)
    assert fit.tvalues[lost].isna().all()
    assert fit.pvalues[lost].isna().all()


def test_tests_and_the_table_are_of_what_is_identified(empty):
    text = " ".join(empty.summary(notes="all").as_text().split())
    assert "(5 of 6 slopes 0)" in text
    assert empty.glance()["df"][0] == 5
    assert 0.2 < empty.rsquared < 0.7
    assert "Not identified at this budget: g[T.f]." in text
    assert "predict() omits rows" in text
    assert math.isnan(empty.wald_test("g[T.f] = 0, x = 0")["statistic"])
    assert empty.wald_test("g[T.b] = 0, x = 0")["statistic"] > 10


def test_where_nothing_is_identified_nothing_is_tested():
    with dp.simulation(seed=4):
        fit = made(rows_of(1, 300), eps=0.1)
    assert not fit.identified.any()
    assert math.isnan(fit.rsquared)
    assert math.isnan(fit.glance()["statistic"][0])
    text = fit.summary().as_text()
    assert "lost in noise" in text
    assert "slopes 0)" not in text


def test_predictions_are_made_where_they_can_be(empty):
    new = {"g": ["a", "f", "c"], "x": [1.0, 0.0, -2.0]}
    mean = empty.predict(new)
    assert np.isfinite(mean[[0, 2]]).all()
    assert math.isnan(mean[1])
    with pytest.raises(NotAvailable, match="every row needs a coefficient"):
        empty.predict({"g": ["f"], "x": [0.0]})
    with dp.simulation(seed=4):
        lost = made(rows_of(1, 300), eps=0.1)
    with pytest.raises(NotAvailable, match="not identified at this budget"):
        lost.predict(new)


def test_contrasts_stay_where_the_first_level_is_empty():
    shares = [0.0, 0.4, 0.3, 0.2, 0.05, 0.05]
    with dp.simulation(seed=2):
        fit = made(rows_of(3, 50_000, shares))
    assert fit.identified.tolist() == [False] * 6 + [True]
    contrast = fit.t_test("g[T.b] = g[T.c]").iloc[0]
    assert contrast["lower"] < MEANS[1] - MEANS[2] < contrast["upper"]
    assert contrast["upper"] - contrast["lower"] < 0.5


@pytest.mark.product
@pytest.mark.parametrize("words", [{}, {"delta": 0.0, "eps": 3.0}], ids=str)
def test_intervals_beside_empty_and_rare_levels_cover(words):
    truth = np.array([MEANS[0], *(MEANS[1:5] - MEANS[0]), 0.5])
    hits, repeats = np.zeros(6), 30
    with dp.simulation(seed=9):
        for seed in range(repeats):
            conf = made(rows_of(seed, 10_000), **words).conf_int().drop("g[T.f]").to_numpy()
            hits += (conf[:, 0] <= truth) & (truth <= conf[:, 1])
    # Six counts at 0.935 or more: each below its bound with probability 1e-7; their mean varies
    # no more than one of them.
    assert hits.min() >= binom.ppf(1e-7, repeats, 0.935)
    assert hits.mean() >= binom.ppf(1e-6, repeats, 0.935)


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(5)
    names = [f"l{j:02d}" for j in range(40)]
    at = rng.choice(40, 92_962, p=np.r_[0.3, 0.7 * rng.dirichlet(np.ones(39))])
    y = np.clip(0.02 * at + rng.normal(size=len(at)), -10, 10)
    book = dp.codebook(y=(-10, 10), g=names)
    rows = {"y": y, "g": np.array(names)[at]}
    with dp.simulation(seed=1):
        fit = dp.dp_lm("y ~ g", rows, codebook=book, eps=1.0, delta=1e-6)
        means = dp.dp_mean("y ~ g", rows, codebook=book, eps=1.0, delta=1e-6)
    return fit, means, np.bincount(at)


@pytest.mark.product
def test_forty_levels_say_what_their_means_say(many):
    fit, means, counts = many
    large = np.flatnonzero(counts >= 1_000)
    assert len(large) > 15
    matrix = np.zeros((len(large), 40))
    matrix[:, 0] = 1
    matrix[np.arange(len(large)), large] = 1
    contrasts = fit.t_test(matrix)
    wide = (contrasts["upper"] - contrasts["lower"]).to_numpy()
    reference = np.ptp(means.conf_int().to_numpy()[large], axis=1)
    # Twice: a row holds the counts of all levels and the response, which the mean's does not.
    assert np.median(wide[1:] / reference[1:]) < 2.2
    assert (wide[1:] < 3 * reference[1:]).all()
    # The first level is what the others leave: its noise is that of all of them.
    assert fit.identified[: len(large)].mean() > 0.9
    assert np.ptp(fit.conf_int().to_numpy()[large[1:]], axis=1).max() < 4 * reference[1:].max()


@pytest.mark.product
def test_a_table_of_many_levels_takes_no_search(many):
    began = time.process_time()
    many[0].summary()
    assert time.process_time() - began < 2


def test_z_is_said_to_be_the_score_where_it_is_not_the_ratio(empty):
    with dp.simulation(seed=4):
        weak = made(rows_of(1, 12_000))
    for fit in (empty, weak):
        is_identified = fit.identified.to_numpy()
        off = np.abs(fit.tvalues - fit.params / fit.bse)[is_identified]
        is_score = "score z" in fit.summary().as_text()
        assert is_score == bool(
            (off > 0.02 * np.maximum(np.abs(fit.params / fit.bse)[is_identified], 0.5)).any()
        )
        # A p-value below .05 is an interval without 0, and the other way round.
        conf = fit.conf_int()[is_identified]
        without = (conf["lower"] > 0) | (conf["upper"] < 0)
        assert ((fit.pvalues[is_identified] < 0.05) == without).all()


@pytest.mark.parametrize("eps", [0.02, 0.1, 0.4, 1.0])
def test_standard_errors_are_of_the_size_of_their_intervals(eps):
    with dp.simulation(seed=7):
        fit = dp.dp_lm(
            "y ~ x", rows_of(2, 3_000), codebook=BOOK, eps=eps, delta=1e-6, mechanism="adassp"
        )
    is_identified = fit.identified.to_numpy()
    half = np.ptp(fit.conf_int().to_numpy()[is_identified], axis=1) / 2
    assert half == pytest.approx(1.96 * fit.bse.to_numpy()[is_identified], rel=0.5)
    # Beside a response of 20 in all a slope within 4 either way is of use.
    assert (half < 10).all()


ODD = {
    "one level": {"g": np.full(400, "c")},
    "equal rows": {"g": np.full(400, "c"), "x": np.ones(400), "y": np.ones(400)},
    "two rows": None,
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("words", [{}, {"eps": 1e-3}, {"delta": 0.0}, {"eps": 1e6}], ids=str)
@pytest.mark.parametrize("formula", ["y ~ g*x", "y ~ 0 + g:h", "y ~ C(g, Sum) + x"])
def test_odd_rows_are_finite_honest_and_silent(kind, words, formula):
    rows = rows_of(1, 400)
    rows = rows | ODD[kind] if ODD[kind] else {name: column[:2] for name, column in rows.items()}
    with dp.simulation(seed=4):
        fit = made(rows, formula, **words)
        fit.summary().as_text()
    assert np.isfinite(fit.params).all()
    assert not fit.identified.all()


def test_means_of_levels_have_the_noise_of_differences_between_them():
    """About a line: whether a factor stands beside a constant or has all its levels."""
    rng = np.random.default_rng(3)
    g = rng.choice(list("abc"), 5_000, p=[0.5, 0.3, 0.2])
    y = (60 + 10 * (g == "b") + rng.normal(0, 5, 5_000)).clip(0, 100)
    words = {"codebook": dp.codebook(g=list("abc"), y=(0, 100)), "delta": 1e-6}
    for seed in range(3):
        with dp.simulation(seed=seed):
            means, differences = (
                dp.dp_lm(formula, {"g": g, "y": y}, eps=0.3, mechanism="scores", **words)
                for formula in ("y ~ 0 + g", "y ~ g")
            )
        assert means.bse_noise.max() < differences.bse_noise.max()
