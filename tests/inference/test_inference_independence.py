"""The test of independence on noisy tables: plain without noise, of its nominal size with it."""

import math

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from dpmodels.inference.independence import MOST_CELLS, independence
from dpmodels.inference.proportions import Noise
from dpmodels.postprocess.protocol import balanced

NONE = Noise("gaussian", 0.0, 0)


@pytest.mark.parametrize("shape", [(2, 2), (3, 4), (2, 6)])
def test_without_noise_it_is_the_plain_test(shape):
    table = np.random.default_rng(1).poisson(40.0, shape).astype(float)
    test = independence(table, NONE)
    plain = chi2_contingency(table, correction=False)
    assert test.statistic == pytest.approx(plain.statistic)
    assert test.pvalue == pytest.approx(plain.pvalue)
    assert test.df == plain.dof


def noisy_table(rng, law, sd, counts, effect=0.0):
    shares = np.outer([0.5, 0.3, 0.2], [0.6, 0.4])
    shares[0] += [effect, -effect]
    table = rng.multinomial(counts, shares.ravel()).astype(float)
    draw = rng.laplace(0, sd / math.sqrt(2), 7) if law == "laplace" else rng.normal(0, sd, 7)
    values = balanced(np.append(table, 0.0) + draw, counts)
    return values[:-1].reshape(3, 2), Noise(law, sd, 7)


@pytest.mark.product
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("sd", [3.0, 40.0])
def test_its_size_is_the_nominal_one(law, sd):
    rng = np.random.default_rng(5)
    values = [independence(*noisy_table(rng, law, sd, 4000)).pvalue for _ in range(1500)]
    rejected = np.mean(np.array(values) < 0.05)
    # Five sds of a binomial share, 6e-7, about a size from 0.045 to 0.06.
    room = 5 * math.sqrt(0.06 * 0.94 / 1500)
    assert 0.045 - room <= rejected <= 0.06 + room


def test_the_plain_test_rejects_too_often_and_power_is_left():
    rng = np.random.default_rng(6)
    plain = [
        chi2_contingency(noisy_table(rng, "gaussian", 40.0, 4000)[0]).pvalue for _ in range(200)
    ]
    assert np.mean(np.array(plain) < 0.05) > 0.3
    results = [
        independence(*noisy_table(rng, "gaussian", 40.0, 4000, 0.08)).pvalue for _ in range(200)
    ]
    assert np.mean(np.array(results) < 0.05) > 0.8


def test_it_says_why_there_is_no_statistic():
    lost = independence(np.array([[3.0, -4.0], [2.0, 5.0]]), Noise("laplace", 20.0, 5))
    assert math.isnan(lost.statistic)
    assert "not distinguishable from 0" in lost.reason
    side = math.isqrt(MOST_CELLS) + 1
    large = independence(np.full((side, side), 50.0), NONE)
    assert "too many cells" in large.reason


def test_three_factors_are_tested_for_mutual_independence():
    table = np.einsum("i,j,k->ijk", [100.0, 200], [0.5, 0.25, 0.25], [0.2, 0.8])
    test = independence(table, Noise("gaussian", 0.5, 13))
    assert test.df == 12 - 1 - 1 - 2 - 1
    assert test.statistic == pytest.approx(0.0, abs=1e-9)
    assert test.pvalue == pytest.approx(1.0)


def with_rare_levels(rng, law, sd, counts):
    """Independent factors: one level of the first is empty, one of the second has 0.5 %."""
    shares = np.outer([0.6, 0.4, 0.0], [0.5, 0.3, 0.195, 0.005])
    table = rng.multinomial(counts, shares.ravel()).astype(float)
    draw = rng.laplace(0, sd / math.sqrt(2), 13) if law == "laplace" else rng.normal(0, sd, 13)
    values = balanced(np.append(table, 0.0) + draw, counts)
    return values[:-1].reshape(3, 4), Noise(law, sd, 13)


@pytest.mark.product
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_rare_levels_are_pooled_and_the_size_is_kept(law):
    rng = np.random.default_rng(8)
    results = [independence(*with_rare_levels(rng, law, 6.0, 2000)) for _ in range(600)]
    # The empty level of the first factor goes with the smaller of the others.
    assert {result.pooled for result in results} <= {((1, 2), (2, 3)), ((1, 2), ())}
    assert all(result.df == (2 if result.pooled[1] else 3) for result in results)
    rejected = np.mean(np.array([result.pvalue for result in results]) < 0.05)
    # Five sds of a binomial share, 6e-7, about a size from 0.04 to 0.06.
    room = 5 * math.sqrt(0.06 * 0.94 / 600)
    assert 0.04 - room <= rejected <= 0.06 + room


def test_pooling_leaves_the_power_of_the_other_levels():
    rng, rejected = np.random.default_rng(9), 0
    shares = np.outer([0.6, 0.4, 0.0], [0.5, 0.3, 0.195, 0.005])
    shares[:2, :2] += np.array([[0.04, -0.04], [-0.04, 0.04]])
    for _ in range(40):
        table = rng.multinomial(4000, shares.ravel()) + rng.normal(0, 6.0, 12).reshape(-1)
        rejected += independence(table.reshape(3, 4), Noise("gaussian", 6.0, 0)).pvalue < 0.05
    # Power above 0.99; false alarm of fewer than 32 of 40 below 1e-9.
    assert rejected >= 32


def test_a_pooled_table_is_the_plain_test_of_it_without_noise():
    table = np.array([[40.0, 60.0, 0.0], [30.0, 20.0, 0.0], [25.0, 45.0, 0.0]])
    test = independence(table, NONE)
    plain = chi2_contingency([[40, 60], [30, 20], [25, 45]], correction=False)
    assert test.pooled == ((), (0, 2))
    assert (test.statistic, test.df) == (pytest.approx(plain.statistic), plain.dof)


@pytest.mark.product
def test_the_size_is_kept_where_a_test_is_told_once_in_forty_releases():
    rng = np.random.default_rng(4)
    shares, sd = np.array([0.95, 0.05]), 40.0
    tables = rng.multinomial(2941, np.outer(shares, shares).ravel(), 40_000) + rng.normal(
        0, sd, (40_000, 4)
    )
    tables = tables.reshape(-1, 2, 2)
    smallest = np.minimum(tables.sum(axis=1).min(axis=1), tables.sum(axis=2).min(axis=1))
    clear_tables = tables[smallest > 4 * sd * math.sqrt(2)]
    assert 0.02 < len(clear_tables) / len(tables) < 0.03
    results = [independence(table, Noise("gaussian", sd, 0)) for table in clear_tables[:600]]
    rejected = np.mean(np.array([result.pvalue for result in results]) < 0.05)
    # Five sds of a binomial share, 6e-7, about a size of at most 0.075.
    assert rejected <= 0.075 + 5 * math.sqrt(0.075 * 0.925 / 600)
    # Among these releases the statistic by itself is far from its law.
    assert np.mean(np.array([result.statistic for result in results]) > 3.841) > 0.3
