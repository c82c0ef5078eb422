"""``inference=True`` of dp_moments: intervals that follow the rows, of all that is derived."""

import numpy as np
import pytest
from scipy.stats import binom

import dpmodels as dp
from dpmodels import dp_moments
from dpmodels.errors import ArgumentError, FrameError
from dpmodels.mechanisms import Gauss

USUAL = {"eps": 1.0, "delta": 1e-6}
UPPER = np.triu_indices(3)
BOOK = dp.codebook.uniform(["a", "b", "c"], (-6, 6))


def binary(rng, n):
    return (rng.random((n, 3)) < [0.1, 0.3, 0.5]).astype(float)


SHAPES = {
    "normal": (lambda rng, n: rng.normal(size=(n, 3)), (-5, 5)),
    "gamma": (lambda rng, n: rng.gamma(2.0, 1.0, (n, 3)), (0, 15)),
    "lognormal": (lambda rng, n: np.exp(rng.normal(size=(n, 3))), (0, 40)),
    "zero-heavy": (
        lambda rng, n: rng.gamma(2.0, 1.0, (n, 3)) * (rng.random((n, 3)) < 0.2),
        (0, 15),
    ),
    "0 and 1": (binary, (0, 1)),
    "bounds far too narrow": (lambda rng, n: rng.normal(size=(n, 3)), (-0.5, 0.5)),
}


def table_of(rows):
    return dict(zip("abc", rows.T, strict=True))


def released(rows, bounds=(-6, 6), **words):
    book = dp.codebook.uniform(["a", "b", "c"], bounds)
    return dp_moments("~ a + b + c", table_of(rows), codebook=book, **{**USUAL, **words})


def lengths(intervals):
    return (intervals["upper"] - intervals["lower"]).to_numpy()


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(2).normal(size=(20_000, 3))


@pytest.mark.product
@pytest.mark.parametrize("shape", SHAPES)
def test_intervals_cover_the_rows_and_the_population(shape):
    # 100 tables, six pairs: false alarms below 1e-6 / 12 each at a coverage of .93.
    draw, bounds = SHAPES[shape]
    rng, hits = np.random.default_rng(6), np.zeros((2, 6), dtype=int)
    truth = np.cov(np.clip(draw(rng, 400_000), *bounds).T)[UPPER]
    with dp.simulation(seed=6):
        for _ in range(100):
            rows = draw(rng, 2_000)
            fit = released(rows, bounds, inference=True).cov()
            exact = np.cov(np.clip(rows, *bounds).T)[UPPER]
            pairs = [(fit.noise_int(), exact), (fit.conf_int(), truth)]
            for row, (ends, inside) in enumerate(pairs):
                hits[row] += ((ends["lower"] <= inside) & (inside <= ends["upper"])).to_numpy()
    assert hits.min() >= binom.ppf(1e-6 / 12, 100, 0.93)


@pytest.mark.expensive
def test_bought_intervals_are_shorter_for_all_that_is_derived(rows):
    with dp.simulation(seed=2):
        plain, bought = (
            released(rows, inference=with_inference) for with_inference in (False, True)
        )
    for derive in (lambda m: m.cov(), lambda m: m.cov("~ a + c"), lambda m: m.pca("~ b + c")):
        first, second = (lengths(derive(fit).conf_int()) for fit in (plain, bought))
        assert (second < 0.8 * first).all()
    noise = [lengths(fit.cov().noise_int()) for fit in (plain, bought)]
    np.testing.assert_allclose(noise[1], noise[0] / np.sqrt(0.93), rtol=0.05)


def test_a_part_has_the_intervals_that_it_would_have_in_the_whole(rows):
    with dp.simulation(seed=3):
        fit = released(rows, inference=True)
    table = fit.cov().conf_int().set_index(["column1", "column2"])
    part = fit.cov("~ c + a").conf_int().set_index(["column1", "column2"])
    assert part.loc[("a", "a")].equals(table.loc[("a", "a")])
    np.testing.assert_allclose(part.loc[("c", "a")], table.loc[("a", "c")], rtol=1e-9)


def test_fourth_moments_are_those_about_the_released_mean(rows):
    with dp.simulation(seed=4):
        fit = released(rows, inference=True)
    tails, scaled = fit.release.tails, (rows - fit.release.tails.about) / 6
    exact = (scaled**2).T @ scaled**2 / tails.farthest**4
    expected = np.where(np.eye(3), 1.0, np.sqrt(0.5)) * tails.fourth_sd
    # Six errors within 6 sds: false alarms below 1e-7.
    assert (np.abs(tails.fourth - exact) < 6 * expected).all()
    assert (tails.beyond, tails.beyond_sd) == (0, 0)


def test_regressions_and_means_are_those_without_it(rows):
    response = rows @ [[1, 0, 0], [0, 1, 0], [0.5, -0.3, 1]]
    with dp.simulation(seed=5):
        fit = released(response, inference=True)
    model = fit.lm("c ~ a + b")
    exact = np.linalg.lstsq(np.column_stack([np.ones(len(rows)), response[:, :2]]), response[:, 2])
    # Three intervals: false alarms below 1e-6.
    ends = model.noise_int(1 - 1e-7).to_numpy()
    assert (ends[:, 0] <= exact[0]).all()
    assert (exact[0] <= ends[:, 1]).all()
    means = fit.mean(level=1 - 1e-7)
    assert (means["lower"] <= response.mean(axis=0)).all()
    assert (response.mean(axis=0) <= means["upper"]).all()


@pytest.mark.expensive
def test_what_is_read_back_is_the_same(rows, tmp_path):
    with dp.simulation(seed=6):
        fit = released(rows, inference=True)
    for part, name in ((fit, "whole.nc"), (fit.cov("~ a + b"), "part.nc")):
        part.save(tmp_path / name)
        again = dp.load(tmp_path / name)
        assert str(again.summary()) == str(part.summary())
    assert again.conf_int().equals(fit.cov("~ a + b").conf_int())


def test_without_it_nothing_changes(rows):
    with dp.simulation(seed=1):
        plain = released(rows)
    with dp.simulation(seed=1):
        without_inference = released(rows, mechanism=Gauss(), inference=False)
    assert plain.release.tails is None
    assert np.array_equal(plain.release.second, without_inference.release.second)


@pytest.mark.expensive
@pytest.mark.parametrize("kind", ["two sites", "persons", "private n"])
def test_rows_of_all_kinds(kind, rows):
    rows, words = rows[:6_000], {"codebook": BOOK, "inference": True, **USUAL}
    table = table_of(rows)
    with dp.simulation(seed=8):
        if kind == "two sites":
            half = [table_of(rows[i::2]) for i in range(2)]
            sites = {"x": half[0], "y": half[1]}
            fit = dp_moments("~ a + b + c", sites=sites, protocol="pooled", **words)
        elif kind == "persons":
            table["id"] = np.arange(6_000) // 2
            words["codebook"] = dp.codebook({**BOOK, "id": dp.Identifier()})
            fit = dp_moments("~ a + b + c", table, person="id", **words)
        else:
            fit = dp_moments("~ a + b + c", table, adjacency="add-remove", **words)
    tails, n_rows = fit.release.tails, fit.ncomplete
    spread, noise = (
        part * tails.farthest**4 * 6**4 / n_rows for part in (tails.fourth[0, 0], tails.fourth_sd)
    )
    # One error within 6 sds, and the rows' own: false alarms below 1e-7.
    assert abs(spread - np.mean(rows[:, 0] ** 4)) < 6 * noise + 0.1
    ends, exact = fit.cov().noise_int(1 - 1e-7), np.cov(rows.T)[UPPER]
    assert ((ends["lower"] <= exact) & (exact <= ends["upper"])).all()


def test_a_wrong_word_costs_nothing(rows):
    ledger = dp.Ledger(eps=1.0, delta=1e-6)
    with pytest.raises(ArgumentError, match="inference"):
        released(rows, inference="yes", ledger=ledger)
    with pytest.raises(FrameError, match="only once"):
        dp_moments(
            "~ a", iter([{"a": [0.0]}]), codebook=BOOK, inference=True, ledger=ledger, **USUAL
        )
    assert not ledger.entries
