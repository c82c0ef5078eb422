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

# Half of the cells are equal; cells of the last round hold some of them.
NEAR = 40 / 1000


def fit(formula="~ y", data=None, **words):
    words = {"eps": 1.0} | words
    return dp_quantile(formula, table() if data is None else data, codebook=BOOK, **words)


@pytest.mark.guarding
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
        ("~ y", {"probs": np.array(0.5)}, ArgumentError, "probs"),
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
    result = fit("y ~ h", data, eps=1e8, probs=probs, adjacency=relation)
    for level, group in groups.items():
        low, high = (np.quantile(group, probs, method=side) for side in ("lower", "higher"))
        params = result.params.loc[level].to_numpy()
        assert (low - NEAR <= params).all()
        assert (params <= high + NEAR).all()
        assert result.counts[level] == pytest.approx(len(group))
        ends = result.conf_int().loc[level].to_numpy()
        assert (ends[:, 0] <= params).all()
        assert (params <= ends[:, 1]).all()


def test_quantiles_0_and_1_are_near_the_smallest_and_largest_rows():
    data = table(20_000)
    result = fit(data=data, probs=[0, 1], level=None)
    order = np.sort(data["y"])
    # The chance of a rank error beyond is below 1e-6 by the law of the noise.
    beyond = int(16 * result.rank_noise_sd.iloc[0, 0])
    low, high = result.params.to_numpy()[0]
    assert low <= order[beyond]
    assert high >= order[-beyond]
    shares = result.drawn.to_numpy()[0]
    assert 0 < shares[0] < 0.01 < 0.99 < shares[1] < 1
    assert "Drawn at" in str(result.summary())


def test_quantiles_rise_and_lie_in_their_intervals():
    with dp.simulation(seed=5):
        for _ in range(5):
            result = fit(data=table(900), probs=np.arange(0, 6) / 5, eps=10.0)
            places = result.params.to_numpy()[0]
            assert (np.diff(places) >= 0).all()
            ends = result.conf_int().to_numpy()
            assert ((ends[:, 0] <= places) & (places <= ends[:, 1])).all()


@pytest.mark.product
@pytest.mark.parametrize("mechanism", ["refined", "tree", "bracketed"])
def test_intervals_cover_the_populations_quantiles(mechanism):
    """Binomial bound with a false-alarm rate of 1e-6 each at 95 %; more is allowed."""
    times, probs = 50, [0.1, 0.5, 0.9]
    rng, hits = np.random.default_rng(9), np.zeros(3)
    truth = stats.gamma(2.0, scale=3.0).ppf(probs) - 5
    with dp.simulation(seed=6):
        for _ in range(times):
            data = {"y": rng.gamma(2.0, 3.0, 800) - 5}
            result = fit(data=data, probs=probs, eps=4.0, mechanism=mechanism)
            low, high = result.conf_int().to_numpy().T
            hits += (low <= truth) & (truth <= high)
    assert (hits >= stats.binom.ppf(1e-6, times, 0.95)).all()


@pytest.mark.guarding
@pytest.mark.product
@pytest.mark.parametrize("wide", [1, 10])
@pytest.mark.parametrize("eps", [0.3, 1.0])
def test_the_interval_of_one_median_covers_where_many_rows_share_values(eps, wide):
    """Binomial bound with a false-alarm rate of 2e-7 each at 95 %; more is allowed."""
    times, hits = 60, np.zeros(3)
    rng, book = np.random.default_rng(4), dp.codebook(y=(0, 15 * wide))
    draws = (
        (lambda: np.minimum(rng.poisson(4.0, 800), 15), 4),
        (lambda: np.where(rng.random(800) < 0.6, 0, np.minimum(rng.exponential(2.0, 800), 15)), 0),
        (lambda: np.minimum(rng.lognormal(0.0, 1.0, 800), 15), 1.0),
    )
    with dp.simulation(seed=8):
        for place, (draw, truth) in enumerate(draws):
            for _ in range(times):
                fit = dp_quantile("~ y", {"y": draw()}, codebook=book, eps=eps, probs=0.5)
                ((low, high),) = fit.conf_int().to_numpy()
                hits[place] += low <= truth <= high
                assert not low > fit.params.iloc[0, 0]
                assert not high < fit.params.iloc[0, 0]
    assert (hits >= stats.binom.ppf(2e-7, times, 0.95)).all()


@pytest.mark.parametrize("level", [None, 0.9])
@pytest.mark.parametrize("name", FRAMES)
def test_no_rows_make_it_speak(name, level):
    if level is not None:
        is_silent(dp_quantile, name, "y ~ h", level=level, probs=[0, 0.3, 1])
    else:
        assert fit(data=FRAMES[name], level=None).tidy()["conf_low"].isna().all()


def test_a_tiny_budget_prints_no_number():
    # Noise alone may tell of something that is not there, so the draws are fixed.
    with dp.simulation(seed=1):
        result = fit(eps=1e-9)
    assert result.params.isna().all(axis=None)
    assert result.conf_int().to_numpy().tolist() == [[-10, 30]] * 3
    assert "too few rows" in str(result.summary())
    assert not any(word.isdigit() for word in body(str(result.summary())).split())


def test_intervals_that_were_not_bought_are_not_available():
    with pytest.raises(NotAvailable, match="none were bought"):
        fit(level=None).conf_int()
    result = fit(level=0.9)
    with pytest.raises(NotAvailable, match="those of level"):
        result.conf_int(0.95)
    assert result.conf_int(0.9).equals(result.conf_int())
    with pytest.raises(NotAvailable, match="ranks"):
        result.noise_int()


def test_one_quantile_without_an_interval_is_drawn_with_less_noise():
    alone, with_ends = (fit(probs=0.5, level=level) for level in (None, 0.95))
    assert alone.rank_noise_sd.iloc[0, 0] < with_ends.rank_noise_sd.iloc[0, 0]
    assert alone.release.info.name == "exponential"
    with pytest.raises(NotAvailable, match="none were bought"):
        fit(mechanism="exponential").conf_int()


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_as_many_quantiles_as_one_likes_have_little_more_noise(relation):
    """What the exponential mechanism lost altogether: 99 of 20,000 rows within 1 % of them."""
    data, probs = table(20_000), np.arange(1, 100) / 100
    with dp.simulation(seed=4):
        result = fit(data=data, probs=probs, adjacency=relation).params.to_numpy()[0]
    shares = np.searchsorted(np.sort(data["y"]), result) / 20_000
    assert np.abs(shares - probs).max() < 0.01
    assert (np.diff(result) >= 0).all()


WHOLE = np.array([0.42, 0.2, 0.13, 0.1, 0.15])


@pytest.mark.product
@pytest.mark.parametrize("declared", [dp.Numeric(0, 12, step=1), (0, 12), (0, 1200)])
def test_intervals_cover_quantiles_of_whole_numbers(declared):
    """Binomial bound with a false-alarm rate of 1e-7 each at 95 %; more is allowed.

    Quantiles inside an atom, near its end, and at it.
    """
    times, rng, probs = 25, np.random.default_rng(2), [0.25, 0.5, 0.619, 0.75]
    book = dp.codebook(y=declared)
    truth, hits = np.array([0, 1, 1, 2]), np.zeros(4)
    with dp.simulation(seed=3):
        for _ in range(times):
            data = {"y": rng.choice([0, 1, 2, 5, 9], 1500, p=WHOLE)}
            fit = dp_quantile("~ y", data, codebook=book, eps=1.0, probs=probs)
            low, high = fit.conf_int().to_numpy().T
            hits += (low <= truth) & (truth <= high)
    assert (hits >= stats.binom.ppf(1e-7, times, 0.95)).all()


def test_quantiles_of_steps_are_steps_and_are_printed_as_steps():
    rng = np.random.default_rng(5)
    data = {"y": rng.poisson(2.0, 4000) / 10 + rng.uniform(-0.04, 0.04, 4000)}
    book = dp.codebook(y=dp.Numeric(0, 1.5, step=0.1))
    with dp.simulation(seed=6):
        fit = dp_quantile("~ y", data, codebook=book, eps=1.0)
    assert fit.params.to_numpy()[0] == pytest.approx([0.1, 0.2, 0.3], abs=1e-12)
    assert fit.grid == 16
    assert "[0.1, 0.1]" in str(fit.summary())


@pytest.mark.parametrize("declared", [["no", "yes"], [0, 1]])
def test_quantiles_of_two_levels_are_0_or_1(declared):
    book = dp.codebook(y=declared)
    with dp.simulation(seed=6):
        fit = dp_quantile("~ y", {"y": declared * 500}, codebook=book, eps=1.0, probs=[0.2, 0.9])
    assert fit.params.to_numpy().tolist() == [[0.0, 1.0]]


def test_quartiles_of_few_rows_and_a_small_budget_are_offered():
    with dp.simulation(seed=8):
        result = fit(data=table(500), eps=0.3)
    assert np.isfinite(result.params.to_numpy()).all()
    ends = result.conf_int().to_numpy()
    assert (np.ptp(ends, axis=1) < 20).all()


def test_bounds_a_thousand_times_too_wide_cost_little():
    rng, probs = np.random.default_rng(1), [0.25, 0.5, 0.75]
    data = {"y": rng.gamma(2.0, 3.0, 20_000)}
    order = np.sort(data["y"])
    with dp.simulation(seed=7):
        fit = dp_quantile("~ y", data, codebook=dp.codebook(y=(0, 40_000)), eps=1.0)
    shares = np.searchsorted(order, fit.params.to_numpy()[0]) / 20_000
    assert np.abs(shares - probs).max() < 0.01
    widths = np.diff(np.searchsorted(order, fit.conf_int().to_numpy()) / 20_000)
    assert widths.max() < 0.06


@pytest.mark.product
def test_many_groups_have_a_coarser_grid():
    book = dp.codebook(y=(0, 1), g=list(range(100)))
    data = {"y": [0.5] * 10, "g": [0] * 10}
    grid, few = dp_quantile("y ~ g", data, codebook=book, eps=1.0).grid, fit().grid
    assert abs(grid - 10_000) <= 5
    assert abs(few - FINEST) <= 5
    assert grid >= COARSEST


def test_results_hold_no_rows_and_are_pickled():
    is_private(fit())


@pytest.mark.parametrize(
    ("formula", "probs", "level", "chosen"),
    [
        ("~ y", (0.2, 0.4, 0.6, 0.8), 0.95, "refined"),
        ("~ y", (0.1, 0.3, 0.5, 0.7, 0.9), 0.95, "tree"),
        ("~ y", (0.1, 0.3, 0.5, 0.7, 0.9), None, "tree"),
        ("~ y", (0.5,), None, "exponential"),
        ("~ y", (0.5,), 0.95, "bracketed"),
        ("y ~ h", (0.9,), 0.95, "bracketed"),
        ("~ z == 1", (0.1, 0.3, 0.5, 0.7, 0.9), 0.95, "refined"),
    ],
)
def test_the_choice_goes_by_how_many_quantiles_and_steps_there_are(formula, probs, level, chosen):
    with dp.simulation(seed=4):
        result = fit(formula, probs=probs, level=level)
    assert result.release.info.name == chosen
    assert chosen in str(result.summary())


@pytest.mark.guarding
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("budget", [{"eps": 2.0}, {"eps": None, "budget": dp.ZCDP(1.0)}], ids=str)
def test_a_tree_gives_groups_their_quantiles_and_one_person_many_rows(budget, relation):
    words = {"mechanism": "tree", "adjacency": relation, "probs": [0.25, 0.5, 0.75]} | budget
    data = table(6_000)
    with dp.simulation(seed=7):
        grouped = fit("y ~ h", data, **words)
        several = fit("~ y", data | {"who": np.arange(6_000) // 2}, person="who", rows=2, **words)
    for level, value in grouped.params.iterrows():
        exact = np.quantile(data["y"][np.array(data["h"]) == level], [0.25, 0.5, 0.75])
        assert value.to_numpy() == pytest.approx(exact, abs=0.6)
    result = fit("~ y", data, **words)
    assert (several.rank_noise_sd > result.rank_noise_sd).all(axis=None)
