"""Intervals of counts and shares: known forms without noise, coverage with it."""

import math

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from dpmodels.inference.proportions import Noise, count_interval, ratio_interval, share_interval
from dpmodels.postprocess.protocol import balanced

NONE = Noise("gaussian", 0.0, 0)


def test_without_noise_shares_have_wilsons_intervals():
    counts = np.array([0.0, 3.0, 40.0, 157.0])
    lower, upper = share_interval(counts, NONE, 0.9)
    expected = proportion_confint(counts, 200, 0.1, "wilson")
    assert lower == pytest.approx(np.maximum(expected[0], 0), abs=1e-9)
    assert upper == pytest.approx(expected[1])


def test_without_noise_and_sampling_a_ratio_is_exact():
    sums, weights = np.array([[3.0, 1.0], [0.0, 4.0]]), np.array([[0.0, 1.0], [0.0, 1.0]])
    ends = ratio_interval(sums, weights, NONE, np.zeros(2), 0.95)
    for end in ends:
        assert end.tolist() == [0.25, 1.0]


def test_without_rows_shares_are_anything():
    lower, upper = share_interval(np.array([-3.0, 1.0]), Noise("laplace", 3.0, 0, 1.0), 0.95)
    assert (lower.tolist(), upper.tolist()) == ([0, 0], [1, 1])


def test_laplace_counts_have_the_quantile_of_their_law():
    fine = Noise("laplace", math.sqrt(2) * 10, 0, 2.0**-40)
    lower, upper = count_interval(np.array([500.0]), fine, 0.95)
    assert upper[0] - 500 == pytest.approx(500 - lower[0])
    assert upper[0] - 500 == pytest.approx(10 * math.log(20), rel=1e-4)


@pytest.mark.parametrize("scale", [0.3, 0.5, 1.0, 2.0, 4.0])
def test_whole_laplace_noise_is_covered_at_least_so_often(scale):
    """Without a public total the noise is a whole number: the least width that is enough."""
    q = math.exp(-1 / scale)
    noise = Noise("laplace", math.sqrt(2 * q) / (1 - q), 0, 1.0)
    lower, upper = count_interval(np.array([500.0]), noise, 0.95)
    limit = next(k for k in range(100) if 1 - 2 * q ** (k + 1) / (1 + q) >= 0.95)
    assert (upper[0] - 500, 500 - lower[0]) == pytest.approx((limit, limit), abs=1e-4)
    assert lower[0] <= 500 - limit
    assert upper[0] >= 500 + limit


@pytest.mark.parametrize("counts", [-40.0, -1.0, 0.0])
def test_no_interval_holds_nothing_but_zero(counts):
    noise = Noise("laplace", 8.0, 3, 1.0)
    values = np.array([counts, 900.0])
    assert count_interval(values, noise, 0.95)[1][0] > 10
    assert share_interval(values, noise, 0.95)[1][0] > 0.01


@pytest.mark.product
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("sd", [2.0, 60.0])
def test_intervals_cover(law, sd):
    rng = np.random.default_rng(3)
    shares, total, runs = np.array([0.02, 0.28, 0.7]), 3000, 1200
    noise, hits, inside = Noise(law, sd, 4, 0.0), [], []
    for _ in range(runs):
        table = rng.multinomial(total, shares).astype(float)
        draw = rng.laplace(0, sd / math.sqrt(2), 4) if law == "laplace" else rng.normal(0, sd, 4)
        values = balanced(np.append(table, 0.0) + draw, total)[:-1]
        low, high = share_interval(values, noise, 0.95)
        hits.append((low <= shares) & (shares <= high))
        low, high = count_interval(values, noise, 0.95)
        inside.append((low <= table) & (table <= high))
    # Five sds of a binomial share, 6e-7, about a coverage from 0.94 to 0.965; more where a
    # count below 0 is read as 0.
    room = 5 * math.sqrt(0.94 * 0.06 / runs)
    for value in (np.mean(hits, axis=0), np.mean(inside, axis=0)):
        assert (value >= 0.94 - room).all()
        assert (value[1:] <= 0.965 + room).all()


@pytest.mark.parametrize(
    "noise",
    [
        Noise("gaussian", 1.0, 0),
        Noise("gaussian", 1.0, 5),
        Noise("laplace", 1.0, 0, 1.0, True),
        Noise("laplace", 1.0, 5, added=(0, 2, 1)),
    ],
)
def test_weights_of_noise_variables_are_those_of_each_row_of_weights(noise):
    rows = np.random.default_rng(1).normal(size=(2, 4, 3))
    weights = noise.weights(rows)
    for at in np.ndindex(2, 4):
        np.testing.assert_array_equal(weights[at], noise.weights(rows[at]))
