"""dp_mean: refusals before a row is read, honest tables, intervals that cover."""

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
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.models.mean import dp_mean

EXACT = 1e9


def fit(formula="y ~ g", data=None, **words):
    words = {"eps": 1.0} | words
    return dp_mean(formula, table() if data is None else data, codebook=BOOK, **words)


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("formula", "words", "error", "match"),
    [
        *REFUSED,
        ("~ y", {"mechanism": "laplacian"}, ArgumentError, "mechanism"),
        ("y ~ h", {"mechanism": "paired"}, ArgumentError, "paired"),
        ("~ y", {"mechanism": "paired", "adjacency": "add-remove"}, ArgumentError, "paired"),
        ("~ y", {"mechanism": "gaussian"}, BudgetError, "pure"),
    ],
)
def test_refusals_come_before_a_row_is_read(formula, words, error, match):
    refuses(dp_mean, formula, words, error, match)


def test_frames_and_ledgers_are_refused_before_a_row_is_read():
    refuses_frames_and_budgets(dp_mean)


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_a_huge_budget_gives_the_means_of_the_complete_rows(relation):
    data, groups = incomplete()
    result = fit("y ~ h", data, eps=EXACT, adjacency=relation)
    for level, group in groups.items():
        assert result.params[level] == pytest.approx(group.mean(), abs=1e-5)
        assert result.sd[level] == pytest.approx(group.std(ddof=1), abs=1e-4)
        assert result.counts[level] == pytest.approx(len(group), abs=1e-4)
        students = stats.ttest_1samp(group, 0).confidence_interval()
        assert result.conf_int().loc[level].tolist() == pytest.approx(list(students), abs=1e-4)
    assert result.bse_sampling["p"] == pytest.approx(stats.sem(groups["p"]), rel=1e-4)
    assert (result.noise_int().diff(axis=1)["upper"] < 1e-4).all()


@pytest.mark.parametrize("mechanism", ["paired", "geometric"])
def test_all_rows_together_are_one_group(mechanism):
    data, _ = incomplete()
    result = fit("~ y", data, eps=EXACT, mechanism=mechanism)
    assert result.params["(all)"] == pytest.approx(np.nanmean(data["y"]), abs=1e-5)
    assert result.counts["(all)"] == pytest.approx(np.isfinite(data["y"]).sum(), abs=1e-4)


def test_what_has_two_values_has_a_proportion():
    data = table()
    assert fit("~ h", data, eps=EXACT).params.iloc[0] == pytest.approx(
        (data["h"] == "q").mean(), abs=1e-6
    )
    assert fit("(y > 0) ~ h", data, eps=EXACT).params["p"] == pytest.approx(
        (data["y"] > 0)[data["h"] == "p"].mean(), abs=1e-6
    )


def test_all_combinations_of_declared_levels_are_shown():
    result = fit("y ~ g + h")
    assert list(result.params.index.names) == ["g", "h"]
    assert len(result.tidy()) == 6
    assert result.glance().loc[0, ["nobs", "ngroups"]].tolist() == [2000, 6]


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("formula", ["~ y", "y ~ h"])
@pytest.mark.parametrize("name", FRAMES)
def test_no_rows_make_it_speak(name, formula, relation):
    if formula == "y ~ h" or relation == "replace":
        is_silent(dp_mean, name, formula, adjacency=relation)


def test_a_tiny_budget_prints_no_number():
    # Noise alone passes its 95 % bound in one release of twenty, so the draws are fixed.
    with dp.simulation(seed=1):
        result = fit("y ~ h", eps=1e-9)
    assert result.params.isna().all()
    assert result.conf_int().to_numpy().tolist() == [[-10, 30], [-10, 30]]
    assert "too few rows" in str(result.summary())
    assert not any(word.isdigit() for word in body(str(result.summary())).split())


def test_small_groups_are_said_to_need_rows_that_are_not_skewed():
    data = table(2000)
    data["g"][:] = "u"
    data["g"][:60] = "v"
    with dp.simulation(seed=1):
        small, large = fit(data=data), fit("~ y", data)
    assert "fewer than 100 rows" in " ".join(str(small.summary(notes="all")).split())
    assert "fewer than 100 rows" not in " ".join(str(large.summary(notes="all")).split())


def test_an_empty_group_is_told_from_the_others():
    data = table()
    data["g"][data["g"] == "w"] = "u"
    # In the second, noise of more than two sds in the count would bound the interval.
    for seed in (1, 68):
        with dp.simulation(seed=seed):
            result = fit(data=data)
        assert result.params.isna().tolist() == [False, False, True]
        assert result.noise_int().loc["w"].tolist() == [-10, 30]


@pytest.mark.product
@pytest.mark.parametrize("words", [{}, {"adjacency": "add-remove"}, {"budget": dp.ZCDP(0.02)}])
@pytest.mark.parametrize("formula", ["~ y", "y ~ h"])
def test_noise_intervals_cover_the_rows_own_mean(formula, words):
    """Binomial bounds with a false-alarm rate of 1e-6 at 95 %, by groups at two each."""
    data, times = table(400), 100
    words = {"eps": 0.5} | words if "budget" not in words else {"eps": None} | words
    means = np.array([data["y"].mean()])
    if formula == "y ~ h":
        means = np.array([data["y"][data["h"] == level].mean() for level in "pq"])
    hits = 0
    with dp.simulation(seed=1):
        for _ in range(times):
            low, high = fit(formula, data, **words).noise_int().to_numpy().T
            hits += int(((low <= means) & (means <= high)).sum())
    # Groups share a public total: at worst the two hits are one.
    fewest = stats.binom.ppf(1e-6, times, 0.95) * len(means)
    assert hits >= fewest
    assert hits < times * len(means)


def test_the_least_noise_is_that_of_a_plain_sum():
    """In the middle of the range a sum of sensitivity one range alone has as much."""
    data = {"y": np.full(1000, 10.0)}
    plain = np.sqrt(2) * 40 / 1000
    assert fit("~ y", data).bse_noise.iloc[0] == pytest.approx(plain, rel=0.1)
    assert fit("~ y", data, mechanism="geometric").bse_noise.iloc[0] > 1.25 * plain


def test_results_hold_no_rows_and_are_pickled():
    is_private(fit())


def test_intervals_refuse_what_is_no_level():
    for interval in (fit().conf_int, fit().noise_int):
        for level in (0.0, 1.0, 95):
            with pytest.raises(ArgumentError, match="level"):
                interval(level)


def test_a_ledger_is_charged_once_and_shown():
    ledger = dp.Ledger(eps=2.0)
    result = fit(ledger=ledger)
    assert len(ledger.entries) == 1
    assert ledger.entries[0].events == result.release.events
    assert ledger.describe() in str(result.summary())


@pytest.mark.product
def test_a_mean_of_a_heavy_tail_says_that_its_interval_may_cover_less():
    rng, note = np.random.default_rng(5), "so they may cover less than 95 %"
    book = dp.codebook(y=(0, 1e6))
    heavy: dict[str, list[bool]] = {"pareto": [], "normal": []}
    for seed in range(9):
        numbers = {"pareto": 1 + rng.pareto(1.3, 3_000), "normal": rng.normal(50, 10, 3_000)}
        for name, y in numbers.items():
            with dp.simulation(seed=seed):
                mean = dp.dp_mean("~ y", {"y": y}, codebook=book, eps=1.0, delta=1e-6)
            assert (note in " ".join(str(mean.summary()).split())) == mean.has_heavy_tail
            heavy[name].append(mean.has_heavy_tail)
    # In nearly all and none of fresh fits; seeds are fixed.
    assert sum(heavy["pareto"]) > 7
    assert sum(heavy["normal"]) < 1


@pytest.mark.product
def test_variances_and_intercepts_of_a_heavy_tail_say_so_too():
    rng = np.random.default_rng(7)
    notes = {"var": "may cover less than 95 %", "lm": "so it may cover less than 95 %"}
    words = {"codebook": dp.codebook(y=(0, 1000), z=(-4, 4)), "eps": 1.0, "delta": 1e-6}
    heavy = {(name, verb): 0 for name in ("pareto", "normal") for verb in ("var", "lm")}
    for seed in range(9):
        numbers = {"pareto": rng.pareto(1.4, 4_000), "normal": rng.normal(50, 10, 4_000)}
        for name, y in numbers.items():
            rows = {"y": y, "z": rng.normal(size=4_000).clip(-4, 4)}
            with dp.simulation(seed=seed):
                fits = {"var": dp.dp_var("~ y", rows, **words)}
                fits["lm"] = dp.dp_lm("y ~ z", rows, **words)
            for verb, fitted in fits.items():
                text = " ".join(str(fitted.summary(notes="all")).split())
                assert (notes[verb] in text) == fitted.has_heavy_tail
                heavy[name, verb] += fitted.has_heavy_tail
    # In nearly all fresh fits of Pareto rows, and hardly any of normal ones; seeds are fixed.
    assert heavy["pareto", "var"] > 7
    assert heavy["pareto", "lm"] > 6
    assert heavy["normal", "var"] + heavy["normal", "lm"] < 2


def test_a_mean_without_a_released_range_has_no_heavy_tail():
    assert not fit(mechanism="geometric").has_heavy_tail
    assert not dp.dp_var("~ y", table(), codebook=BOOK, eps=1, mechanism="geometric").has_heavy_tail
