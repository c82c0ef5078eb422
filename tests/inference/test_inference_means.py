"""Means, variances and their intervals: exact without noise, Fieller's with it."""

import math

import numpy as np
import pytest
from scipy import stats

from dpmodels.inference.means import GroupMoments, central_weights, power_weights, student_factor
from dpmodels.inference.proportions import Noise, ratio_interval
from dpmodels.statistics.shares import shares

NONE = Noise("laplace", 1e-12, 0)


def parts(values, degree, total=2**40):
    return shares(np.asarray(values), degree, total).sum(axis=1)[None, :] / total


@pytest.fixture
def values():
    return np.random.default_rng(3).beta(1, 4, 400)


@pytest.mark.parametrize("degree", [2, 4])
def test_parts_give_power_sums(values, degree):
    moments_of_parts = parts(values, degree)
    for power in range(degree + 1):
        assert moments_of_parts @ power_weights(degree, power) == pytest.approx(
            (values**power).sum(), abs=1e-6
        )
        central = moments_of_parts @ central_weights(degree, power, np.array([0.3]))[0]
        assert central == pytest.approx(((values - 0.3) ** power).sum(), abs=1e-6)


@pytest.mark.parametrize("degree", [2, 4])
def test_without_noise_they_are_the_rows_own(values, degree):
    moments = GroupMoments(parts(values, degree), NONE)
    assert moments.means[0] == pytest.approx(values.mean(), abs=1e-9)
    assert moments.variances[0] == pytest.approx(values.var(ddof=1), abs=1e-9)
    assert moments.mean_sampling_sd[0] == pytest.approx(values.std(ddof=1) / 20, rel=1e-6)


@pytest.mark.parametrize("rows", [2, 5, 400])
def test_without_noise_the_interval_is_students(values, rows):
    sample = values[:rows]
    low, high = GroupMoments(parts(sample, 2), NONE).mean_interval(0.95, population=True)
    exact = stats.t.interval(0.95, rows - 1, sample.mean(), sample.std(ddof=1) / math.sqrt(rows))
    assert (low[0], high[0]) == pytest.approx(np.clip(exact, 0, 1), abs=1e-6)


def test_without_noise_the_noise_interval_is_a_point(values):
    """The two ends differ in the twelfth digit, where a difference of squares has none left."""
    for degree, interval in ((2, "mean_interval"), (4, "variance_interval")):
        moments = GroupMoments(parts(values, degree), NONE)
        low, high = getattr(moments, interval)(0.95, population=False)
        assert 0 < high[0] - low[0] < 1e-9


def weighed(noise, weights):
    """The noise variance of a weighted sum by the whole covariance matrix."""
    count = noise.parts or len(weights)
    padded = np.append(weights, np.zeros(count - len(weights)))
    if noise.paired:
        # Of b0, b1, b2 and the incomplete rows by (b2 - b0, b1, incomplete).
        makes = np.array([[-0.5, -0.5, -0.5], [0, 1, 0], [0.5, -0.5, -0.5], [0, 0, 1]])
    else:
        makes = np.eye(count) - (1 / count if noise.parts else 0.0)
    return noise.sd**2 * float(((padded @ makes) ** 2).sum())


@pytest.mark.parametrize(
    "noise",
    [
        Noise("laplace", 2.0, 0),
        Noise("laplace", 2.0, 4),
        Noise("gaussian", 3.0, 13),
        Noise("laplace", 2.0, 4, paired=True),
    ],
    ids=str,
)
def test_noise_of_a_weighted_sum_is_that_of_its_matrix(noise):
    for weights in ([1.0, 1.0, 1.0], [-0.2, 0.3, 0.8], [0.0, 0.0, 1.0]):
        values = np.array([weights])
        assert noise.product(values, values)[0] == pytest.approx(
            weighed(noise, values[0]), rel=1e-12
        )


@pytest.mark.parametrize("noise", [Noise("gaussian", 3.0, 0), Noise("gaussian", 3.0, 4)], ids=str)
@pytest.mark.parametrize("sampling", [0.0, 40.0])
def test_ends_are_where_the_score_is_as_large_as_chance_makes_it(noise, sampling):
    sums, weights = np.array([[30.0, 20.0, 10.0]]), np.array([[0.0, 0.5, 1.0]])
    ends = ratio_interval(sums, weights, noise, np.array([sampling]), 0.95)
    for end in ends:
        score = weights - end[:, None]
        spread = math.sqrt(noise.product(score, score)[0] + sampling)
        assert abs((score * sums).sum()) / spread == pytest.approx(stats.norm.ppf(0.975), rel=1e-6)
    assert ends[0][0] < 1 / 3 < ends[1][0]


@pytest.mark.parametrize("total", [-50.0, 0.0, 1.0, 15.0])
def test_a_divisor_lost_in_noise_gives_no_number(total):
    noisy = GroupMoments(np.array([[total / 4, total / 2, total / 4]]), Noise("laplace", 3.0, 0))
    assert np.isnan(noisy.means).all()
    assert np.isnan(noisy.variances).all()
    assert not noisy.detected.any()
    finer = GroupMoments(np.full((1, 5), total / 5), Noise("laplace", 3.0, 0))
    for low, high in (
        noisy.mean_interval(0.95, population=True),
        finer.variance_interval(0.95, population=True),
    ):
        assert 0 <= low[0] < high[0] <= 1


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("paired", [False, True])
def test_noise_intervals_cover(values, law, paired):
    """Binomial bounds with a false-alarm rate of 1e-6 at the nominal coverage."""
    rng = np.random.default_rng(8)
    times, sd = 600, 3.0
    part = parts(values[:150], 2)[0]
    if law == "laplace":
        noise = rng.laplace(scale=sd / math.sqrt(2), size=(times, 3))
    else:
        noise = rng.normal(scale=sd, size=(times, 3))
    if paired:
        ends = -noise[:, 1] - noise[:, 2]
        noise = np.stack([(ends - noise[:, 0]) / 2, noise[:, 1], (ends + noise[:, 0]) / 2], axis=1)
    moments = GroupMoments(part + noise, Noise(law, sd, 4 if paired else 0, paired=paired))
    low, high = moments.mean_interval(0.95, population=False)
    hits = int(((low <= values[:150].mean()) & (values[:150].mean() <= high)).sum())
    fewest, most_hits = stats.binom.ppf((5e-7, 1 - 5e-7), times, 0.95)
    assert fewest <= hits <= most_hits


def test_students_quantile_in_normal_ones():
    factor = student_factor(np.array([1.0, 7.0, 1e9]), 0.025)
    assert factor * stats.norm.ppf(0.975) == pytest.approx(
        [stats.t.ppf(0.975, 1), stats.t.ppf(0.975, 7), stats.norm.ppf(0.975)], rel=1e-6
    )


@pytest.mark.parametrize("population", [False, True])
def test_no_interval_of_a_mean_or_variance_is_a_point(population):
    # Sums far outside what rows can have: the estimate is at an end, and its interval leaves it.
    noise = Noise("laplace", 20.0, 0)
    for sums in ([1_000.0, -150.0, -150.0, 0.0, 0.0], [0.0, 0.0, -150.0, -150.0, 1_000.0]):
        moments = GroupMoments(np.array([sums]), noise)
        for interval in (moments.mean_interval, moments.variance_interval):
            lower, upper = interval(0.95, population=population)
            assert upper[0] - lower[0] > 0.01
    assert moments.means[0] == 1.0


def test_an_interval_moved_to_the_end_holds_what_it_held():
    # Of noisy sums of rows near 0: the moved interval holds all of the other that can be true.
    rng, noise = np.random.default_rng(5), Noise("gaussian", 30.0, 0)
    counts = np.array([990.0, 6.0, 4.0, 0.0, 0.0])
    for _ in range(100):
        moments = GroupMoments((counts + rng.normal(0, 30, 5))[None, :], noise)
        free = ratio_interval(moments.parts, power_weights(4, 1)[None, :], noise, np.zeros(1), 0.95)
        lower, upper = moments.mean_interval(0.95, population=False)
        assert lower[0] <= max(free[0][0], 0.0) + 1e-12
        assert upper[0] >= min(free[1][0], 1.0) - 1e-12


def test_ends_of_a_variance_are_held_against_the_spread_there(values):
    # Wilson's: the sampling variance is in proportion to the variance, as at the estimate.
    moments = GroupMoments(parts(values, 4), NONE)
    raw = moments.variances[0] * 399 / 400
    slope = moments.variance_sampling_sd[0] ** 2 / raw
    lower, upper = moments.variance_interval(0.95, population=True)
    for end in (lower[0], upper[0]):
        mean_at_end = end * 399 / 400
        assert (mean_at_end - raw) ** 2 == pytest.approx(
            1.959964**2 * slope * mean_at_end, rel=1e-4
        )


def test_parts_of_persons_in_several_groups_count_as_the_ends_of_their_range():
    """The bound of `joint_sampling_sd`: the last two parts raise the lowest and the highest."""
    parts = np.array([[40.0, 30.0, 20.0, 6.0, 1.0], [15.0, 50.0, 25.0, 0.5, 8.0]])
    persons = GroupMoments(parts, Noise("gaussian", 0.0, 0), clustered=True)
    ends = np.array([[46.0, 30.0, 21.0], [15.5, 50.0, 33.0]])
    rows = GroupMoments(ends, Noise("gaussian", 0.0, 0))
    expected = np.fmin(rows.mean_sampling_sd, persons.mean_sampling_sd * np.sqrt(2))
    assert persons.joint_sampling_sd == pytest.approx(expected)
    assert (rows.mean_sampling_sd < persons.mean_sampling_sd * np.sqrt(2)).any()
