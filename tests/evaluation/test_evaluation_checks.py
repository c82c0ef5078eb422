"""Checks pick out planted faults, and leave alone what has none."""

import math

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.evaluation import recipe
from dpmodels.evaluation.recipe import bias
from dpmodels.evaluation.verb import judged

SHAPES = {"spiky": dp.shapes.standard(32)["spiky"]}


def products(signed):
    return signed @ signed.T


def honest(counts, eps, rng):
    return counts + rng.laplace(scale=1 / eps, size=counts.shape)


def inconsistent(counts, eps, rng):
    """The answer is smoothed, whatever the budget."""
    return (honest(counts, eps, rng) + np.roll(counts, 1)) / 2


def unscaled(counts, eps, rng):
    """Noise that takes no notice of eps: it knows the number of rows."""
    return counts + rng.laplace(scale=20 / math.sqrt(eps), size=counts.shape)


def biased(counts, eps, rng):
    return honest(counts, eps, rng) + 0.6 / eps


@pytest.fixture(scope="module")
def study():
    # All noise is that of one seed, so that chance has no part in what is flagged.
    algorithms = {
        "honest": honest,
        "smoothed": inconsistent,
        "unscaled": unscaled,
        "biased": biased,
    }
    return dp.evaluate(algorithms, SHAPES, scale=2_000, eps=0.1, error="identity", repeats=30)


def verdicts(study, column):
    return dict(zip(study.table["algorithm"], study.table[column], strict=True))


@pytest.mark.expensive
def test_an_inconsistent_algorithm_is_picked_out(study):
    result = verdicts(study, "consistent")
    assert {name for name, errors in result.items() if errors is False} == {"smoothed", "uniform"}


def test_an_algorithm_that_is_not_exchangeable_is_picked_out(study):
    result = verdicts(study, "exchangeable")
    assert {name for name, errors in result.items() if errors is False} == {"unscaled"}
    check_rows = study.checks[
        (study.checks["algorithm"] == "unscaled") & (study.checks["table"] == "")
    ]
    # Ten times the rows, noise √10 as large.
    assert check_rows["ratio"].item() == pytest.approx(10**-0.5, rel=0.15)
    assert (
        check_rows["ratio_low"].item()
        < check_rows["ratio"].item()
        < check_rows["ratio_high"].item()
    )


def test_ratios_have_intervals_for_all_of_them_at_once(monkeypatch):
    """One alarm in a hundred studies: of three algorithms, on one table and on all."""
    levels, interval = [], recipe._interval
    monkeypatch.setattr(
        recipe, "_interval", lambda logs, level: levels.append(level) or interval(logs, level)
    )
    dp.evaluate({"honest": honest}, SHAPES, scale=100, error="identity", repeats=2)
    assert levels == pytest.approx([1 - 0.01 / 6] * 6)


def test_a_biased_algorithm_is_picked_out(study):
    result = verdicts(study, "biased")
    assert result["biased"] == 1
    assert result["honest"] == result["identity"] == result["unscaled"] == 0
    share = verdicts(study, "bias")["biased"]
    # Noise of variance 200, bias 6: 36 of 236.
    assert share == pytest.approx(36 / 236, abs=0.05)


def test_what_cannot_be_asked_at_such_a_budget_is_left_open():
    def small(counts, eps, rng):
        if eps > 1:
            raise OverflowError
        return honest(counts, eps, rng)

    evaluation = dp.evaluate({"small": small}, SHAPES, scale=100, eps=0.5, repeats=3)
    assert verdicts(evaluation, "consistent")["small"] is None
    assert verdicts(evaluation, "exchangeable")["small"] is True


def test_noise_of_whole_numbers_is_not_flagged_at_a_large_budget():
    """Half of the errors are 0 there, and others those of rounding."""
    evaluation = dp.evaluate(
        {"honest": honest}, SHAPES, scale=100, eps=20, error="identity", repeats=9
    )
    assert verdicts(evaluation, "exchangeable")["identity"] is True


def test_what_is_never_wrong_has_no_ratio():
    exact = {"exact": lambda counts, eps: counts}
    evaluation = dp.evaluate(exact, SHAPES, scale=100, repeats=2)
    assert verdicts(evaluation, "exchangeable")["exact"] is None
    assert verdicts(evaluation, "consistent")["exact"] is True
    assert evaluation.table["algorithm"][0] == "exact"


@pytest.mark.product
def test_bias_is_estimated_without_bias():
    rng = np.random.default_rng(6)
    biases = np.array([bias(products(rng.normal(0.5, 1, size=(8, 5))), rng)[0] for _ in range(400)])
    # Squared bias 5/4 of a squared error of 25/4; six standard errors.
    assert biases.mean() == pytest.approx(0.2, abs=6 * biases.std() / 20 + 0.02)


def test_p_values_of_bias_keep_their_level():
    rng = np.random.default_rng(7)
    biases = np.array([bias(products(rng.laplace(size=(7, 3))), rng)[1] for _ in range(300)])
    # At most .05 of them below .05: 39 of 300 or more have a probability below 1e-6.
    assert (biases <= 0.05).sum() < 39
    assert bias(products(np.ones((9, 4))), rng)[1] < 0.01


def test_bias_of_no_numbers_is_none():
    rng = np.random.default_rng(8)
    assert all(map(math.isnan, bias(np.empty((0, 0)), rng)))
    assert bias(np.zeros((5, 5)), rng) == (0.0, 1.0)


def test_competitive_is_paired():
    rng = np.random.default_rng(9)
    tables = rng.lognormal(sigma=0.5, size=40)
    error = np.array([tables, tables * 1.05, tables + 1e3, tables])
    result = judged(error, np.full(error.shape, np.nan), 0.95)
    assert result.competitive.tolist() == [True, False, False, True]
    assert result.regret[0] == result.regret[3] == 1
    assert result.regret[1] == pytest.approx(1.05)
    np.testing.assert_allclose(result.p95, np.quantile(error, 0.95, axis=1))


def test_a_perfect_algorithm_leaves_the_others_without_end():
    result = judged(np.array([[0.0, 0.0], [1.0, 2.0]]), np.full((2, 2), np.nan), 0.95)
    assert result.regret.tolist() == [1.0, np.inf]


def test_narrow_intervals_that_do_not_hold_win_nothing():
    error = np.array([[1.0] * 20, [3.0] * 20])
    coverage = np.array([[0.6, 0.7] * 10, [0.95, 0.96] * 10])
    result = judged(error, coverage, 0.95)
    assert result.competitive.tolist() == [False, True]
    assert result.regret.tolist() == pytest.approx([1 / 3, 1.0])


def test_ratios_of_all_tables_have_a_line_of_their_own(study):
    check_rows = study.checks[study.checks["table"] == ""]
    assert isinstance(check_rows, pd.DataFrame)
    assert sorted(check_rows["algorithm"]) == sorted(study.algorithms)
