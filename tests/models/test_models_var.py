"""dp_var: refusals before a row is read, honest tables, intervals that cover."""

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
from dpmodels.models.mean import dp_var


def fit(formula="y ~ h", data=None, **words):
    words = {"eps": 1.0} | words
    return dp_var(formula, table() if data is None else data, codebook=BOOK, **words)


@pytest.mark.guarding
@pytest.mark.parametrize(("formula", "words", "error", "match"), REFUSED)
def test_refusals_come_before_a_row_is_read(formula, words, error, match):
    refuses(dp_var, formula, words, error, match)


def test_frames_and_ledgers_are_refused_before_a_row_is_read():
    refuses_frames_and_budgets(dp_var)


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_a_huge_budget_gives_the_variances_of_the_complete_rows(relation):
    data, groups = incomplete()
    result = fit(data=data, eps=1e9, adjacency=relation)
    low, high = result.conf_int().to_numpy().T
    for i, group in enumerate(groups.values()):
        variance = group.var(ddof=1)
        assert result.params.iloc[i] == pytest.approx(variance, abs=1e-3)
        assert result.mean.iloc[i] == pytest.approx(group.mean(), abs=1e-4)
        fourth = ((group - group.mean()) ** 4).mean()
        half = 1.96 * np.sqrt((fourth - variance**2) / len(group))
        assert (high[i] - low[i]) / 2 == pytest.approx(half, rel=0.01)
        assert result.bse.iloc[i] == pytest.approx(half / 1.96, rel=0.01)


@pytest.mark.parametrize("name", FRAMES)
def test_no_rows_make_it_speak(name):
    is_silent(dp_var, name, "y ~ h")


def test_a_tiny_budget_prints_no_number():
    # Noise alone may tell of something that is not there, so the draws are fixed.
    with dp.simulation(seed=1):
        result = fit(eps=1e-9)
    assert result.params.isna().all()
    assert result.conf_int().to_numpy().tolist() == [[0, 400], [0, 400]]
    assert not any(word.isdigit() for word in body(str(result.summary())).split())


@pytest.mark.product
def test_noise_intervals_cover_the_rows_own_variance():
    """Binomial bound with a false-alarm rate of 1e-6 at 95 %."""
    data, times = table(400), 100
    variance = data["y"].var(ddof=1)
    with dp.simulation(seed=2):
        ends = [fit("~ y", data, eps=2.0).noise_int().iloc[0] for _ in range(times)]
    hits = sum(low <= variance <= high for low, high in ends)
    assert stats.binom.ppf(1e-6, times, 0.95) <= hits < times


def test_variances_are_never_negative():
    with dp.simulation(seed=3):
        results = [fit("~ y", {"y": [5.0] * 200}, eps=1.0) for _ in range(40)]
    assert min(result.params.iloc[0] for result in results) == 0.0
    assert min(result.noise_int().iloc[0, 0] for result in results) == 0.0


DESIGN = dp.design(weights="w", bounds=(0.1, 2), weights_are="design")


@pytest.mark.parametrize("design", [None, DESIGN])
def test_variances_are_at_most_those_of_rows_at_both_bounds(design):
    n = 40
    ends = dp.codebook(y=(0, 20), w=(0.1, 2))
    data = {"y": [0.0, 20.0] * (n // 2), "w": [1.0] * n}
    with dp.simulation(seed=4):
        fits = [dp_var("~ y", data, codebook=ends, eps=0.5, design=design) for _ in range(12)]
    variances = np.array([fit.params.iloc[0] for fit in fits])
    limit = 100 * n / (n - 1)
    assert np.nanmax(variances) > 90
    assert np.nanmax(variances) < 1.01 * limit
    for fit in fits:
        for low, high in (fit.noise_int().iloc[0], fit.conf_int().iloc[0]):
            assert not low > fit.params.iloc[0]
            assert not fit.params.iloc[0] > high


def test_results_hold_no_rows_and_are_pickled():
    is_private(fit())
