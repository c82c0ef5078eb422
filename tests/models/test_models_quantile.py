"""dp_quantile: refusals before a row is read, quantiles 0 and 1, intervals that cover."""

import numpy as np
import pytest
from described_cases import (
    BOOK,
    FRAMES,
    REFUSED,
    body,
    incomplete,
    is_private,
    is_silent,
    refuses,
    refuses_frames_and_budgets,
    table,
)
from scipy import stats

import dpmodels as dp
from dpmodels.errors import ArgumentError, NotAvailable
from dpmodels.models.quantile import COARSEST, FINEST, dp_quantile

CELL = 40 / FINEST


def fit(formula="~ y", data=None, **words):
    words = {"eps": 1.0} | words
    return dp_quantile(formula, table() if data is None else data, codebook=BOOK, **words)


@pytest.mark.parametrize(
    ("formula", "words", "error", "match"),
    [
        *REFUSED,
        ("~ y", {"probs": []}, ArgumentError, "probs"),
        ("~ y", {"probs": [-0.1]}, ArgumentError, "from 0 to 1"),
        ("~ y", {"probs": 1.1}, ArgumentError, "from 0 to 1"),
        ("~ y", {"probs": [0.5, 0.25]}, ArgumentError, "increasing"),
        ("~ y", {"probs": [0.5, 0.5]}, ArgumentError, "increasing"),
        ("~ y", {"probs": [0.5, float("nan")]}, ArgumentError, "probs"),
        ("~ y", {"probs": "0.5"}, ArgumentError, "probs"),
        ("~ y", {"probs": np.linspace(0, 1, 102)}, ArgumentError, "probs"),
        ("~ y", {"level": 95}, ArgumentError, "level"),
        ("~ y", {"level": 1.0}, ArgumentError, "level"),
    ],
)
def test_refusals_come_before_a_row_is_read(formula, words, error, match):
    refuses(dp_quantile, formula, words, error, match)


def test_frames_and_ledgers_are_refused_before_a_row_is_read():
    refuses_frames_and_budgets(dp_quantile)


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_a_huge_budget_gives_the_quantiles_of_the_complete_rows(relation):
    data, groups = incomplete()
    probs = [0, 0.1, 0.5, 0.9, 1]
    found = fit("y ~ h", data, eps=1e8, probs=probs, adjacency=relation)
    for level, own in groups.items():
        low, high = (np.quantile(own, probs, method=side) for side in ("lower", "higher"))
        params = found.params.loc[level].to_numpy()
        assert (low - 3 * CELL <= params).all()
        assert (params <= high + 3 * CELL).all()
        assert found.counts[level] == pytest.approx(len(own))
        ends = found.conf_int().loc[level].to_numpy()
        assert (ends[:, 0] <= params).all()
        assert (params <= ends[:, 1]).all()


def test_quantiles_0_and_1_are_near_the_smallest_and_largest_rows():
    data = table(20_000)
    found = fit(data=data, probs=[0, 1], level=None)
    order = np.sort(data["y"])
    # The chance of a rank error beyond is below 1e-6 by the law of the noise.
    beyond = int(16 * found.rank_noise_sd.iloc[0])
    low, high = found.params.to_numpy()[0]
    assert low <= order[beyond]
    assert high >= order[-beyond]
    shares = found.drawn.to_numpy()[0]
    assert 0 < shares[0] < 0.01 < 0.99 < shares[1] < 1
    assert "Drawn at" in str(found.summary())


def test_quantiles_rise_and_lie_in_their_intervals():
    with dp.simulation(seed=5):
        for _ in range(5):
            found = fit(data=table(900), probs=np.arange(0, 6) / 5, eps=10.0)
            places = found.params.to_numpy()[0]
            assert (np.diff(places) >= 0).all()
            ends = found.conf_int().to_numpy()
            assert ((ends[:, 0] <= places) & (places <= ends[:, 1])).all()


def test_intervals_cover_the_populations_quantiles():
    """Binomial bound with a false-alarm rate of 1e-6 each at 95 %; more is allowed."""
    times, probs = 50, [0.1, 0.5, 0.9]
    rng, hits = np.random.default_rng(9), np.zeros(3)
    truth = stats.gamma(2.0, scale=3.0).ppf(probs) - 5
    with dp.simulation(seed=6):
        for _ in range(times):
            data = {"y": rng.gamma(2.0, 3.0, 800) - 5}
            low, high = fit(data=data, probs=probs, eps=4.0).conf_int().to_numpy().T
            hits += (low <= truth) & (truth <= high)
    assert (hits >= stats.binom.ppf(1e-6, times, 0.95)).all()


@pytest.mark.parametrize("level", [None, 0.9])
@pytest.mark.parametrize("name", FRAMES)
def test_no_rows_make_it_speak(name, level):
    if level is not None:
        is_silent(dp_quantile, name, "y ~ h", level=level, probs=[0, 0.3, 1])
    else:
        assert fit(data=FRAMES[name], level=None).tidy().shape == (3, 3)


def test_a_tiny_budget_prints_no_number():
    # Noise alone may tell of something that is not there, so the draws are fixed.
    with dp.simulation(seed=1):
        found = fit(eps=1e-9)
    assert found.params.isna().all(axis=None)
    assert found.conf_int().to_numpy().tolist() == [[-10, 30]] * 3
    assert "too few rows" in str(found.summary())
    assert not any(word.isdigit() for word in body(str(found.summary())).split())


def test_intervals_that_were_not_bought_are_not_available():
    with pytest.raises(NotAvailable, match="none were bought"):
        fit(level=None).conf_int()
    found = fit(level=0.9)
    with pytest.raises(NotAvailable, match="those of level"):
        found.conf_int(0.95)
    assert found.conf_int(0.9).equals(found.conf_int())
    with pytest.raises(NotAvailable, match="ranks"):
        found.noise_int()


def test_intervals_and_deltas_change_the_noise_in_ranks():
    alone, with_ends = (fit(level=level).rank_noise_sd.max() for level in (None, 0.95))
    assert alone == pytest.approx(with_ends * 0.45 / 0.95)
    deciles = np.arange(1, 10) / 10
    plain, helped = (fit(probs=deciles, delta=delta).rank_noise_sd.max() for delta in (0.0, 1e-6))
    assert helped < 0.8 * plain


def test_many_groups_have_a_coarser_grid():
    book = dp.codebook(y=(0, 1), g=list(range(100)))
    data = {"y": [0.5] * 10, "g": [0] * 10}
    assert dp_quantile("y ~ g", data, codebook=book, eps=1.0).grid == 10_000
    assert COARSEST <= 10_000 < FINEST == fit().grid


def test_results_hold_no_rows_and_are_not_pickled():
    is_private(fit())
