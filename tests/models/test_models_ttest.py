"""dp_ttest: refusals before a row is read, Welch's test, its size with noise."""

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
from dpmodels.errors import ArgumentError, FormulaError
from dpmodels.models.mean import dp_ttest


def fit(formula="y ~ h", data=None, **words):
    words = {"eps": 1.0} | words
    return dp_ttest(formula, table() if data is None else data, codebook=BOOK, **words)


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("formula", "words", "error", "match"),
    [
        *REFUSED,
        ("y ~ g", {}, FormulaError, "two groups"),
        ("y ~ h + g", {}, FormulaError, "two groups"),
        ("y ~ h", {"mu": float("nan")}, ArgumentError, "mu"),
        ("y ~ h", {"mu": "none"}, ArgumentError, "mu"),
    ],
)
def test_refusals_come_before_a_row_is_read(formula, words, error, match):
    refuses(dp_ttest, formula, words, error, match)


def test_frames_and_ledgers_are_refused_before_a_row_is_read():
    refuses_frames_and_budgets(dp_ttest)


@pytest.mark.parametrize("mu", [0.0, 0.2, -9.0])
def test_a_huge_budget_gives_welchs_test(mu):
    data, groups = incomplete()
    result = fit(data=data, eps=1e9, mu=mu)
    exact = stats.ttest_ind(groups["p"], groups["q"] + mu, equal_var=False)
    assert result.params == pytest.approx(groups["p"].mean() - groups["q"].mean(), abs=1e-4)
    assert result.tvalue == pytest.approx(exact.statistic, rel=1e-3)
    assert result.pvalue == pytest.approx(max(exact.pvalue, 1e-9), rel=1e-2)
    shifted = np.array(exact.confidence_interval()) + mu
    ends = result.conf_int()
    assert (list(ends), ends.index.tolist()) == (["lower", "upper"], ["p - q"])
    assert ends.to_numpy()[0] == pytest.approx(shifted, abs=1e-3)


def test_one_sample():
    data = table()
    result = fit("~ y", data, eps=1e9, mu=0.9)
    exact = stats.ttest_1samp(data["y"], 0.9)
    assert (result.tvalue, result.pvalue) == pytest.approx(
        (exact.statistic, exact.pvalue), rel=1e-3
    )
    assert result.conf_int().loc["mean"].tolist() == pytest.approx(
        tuple(exact.confidence_interval()), abs=1e-4
    )


def test_a_comparison_makes_two_groups():
    assert fit('y ~ (g == "u")').means.params.index.tolist() == [False, True]


@pytest.mark.parametrize("formula", ["y ~ h", "~ y"])
@pytest.mark.parametrize("name", FRAMES)
def test_no_rows_make_it_speak(name, formula):
    is_silent(dp_ttest, name, formula)


def test_a_tiny_budget_prints_no_number():
    # Noise alone may tell of something that is not there, so the draws are fixed.
    with dp.simulation(seed=1):
        result = fit(eps=1e-9)
    assert np.isnan([result.params, result.tvalue, result.pvalue]).all()
    assert result.conf_int().to_numpy().tolist() == [[-40, 40]]
    words = body(str(result.summary())).replace("= 0?", "").split()
    assert not any(word.isdigit() for word in words)


@pytest.mark.product
def test_its_size_counts_the_noise_in():
    """Binomial bounds with a false-alarm rate of 1e-6 at 5 %."""
    times, small = 120, 0
    rng = np.random.default_rng(6)
    with dp.simulation(seed=4):
        for _ in range(times):
            data = {"y": rng.normal(0, 2, 400), "h": rng.choice(["p", "q"], 400)}
            small += fit(data=data, eps=1.0).pvalue < 0.05
    assert small <= stats.binom.ppf(1 - 1e-6, times, 0.05)


def test_a_difference_of_hundreds_of_errors_is_found():
    data = {"y": np.repeat([-9.0, 29.0], 20_000), "h": np.repeat(["p", "q"], 20_000)}
    result = fit(data=data)
    assert abs(result.tvalue) > 1000
    assert result.pvalue < 1e-6


def test_results_hold_no_rows_and_are_pickled():
    is_private(fit())
