import numpy as np
import pytest

from dpmodels.postprocess import correlation, covariance
from dpmodels.released import MomentNoise

EXACT = MomentNoise(0.0, 0.0, 0.0, 0.0)
ROWS, SIZE, RADIUS = 500, 3, 2.5
BOX = (np.full(SIZE, -2.0), np.full(SIZE, 2.0))


@pytest.fixture
def rows():
    values = np.random.default_rng(1).normal(size=(ROWS, SIZE)) * [0.5, 0.3, 0.1] + [0.4, -0.2, 0.0]
    return np.clip(values, -1, 1)


def released(rows, noise=EXACT, count=ROWS, most=ROWS, centred=True, box=BOX):
    unit = rows / RADIUS
    total = unit.sum(axis=0) if centred else None
    return covariance(count, total, unit.T @ unit, noise, max_rows=most, box=box, row_norm=RADIUS)


def test_covariance_has_the_divisor_of_prcomp(rows):
    cov = released(rows)
    np.testing.assert_allclose(cov.matrix, np.cov(rows, rowvar=False))
    np.testing.assert_allclose(cov.mean, rows.mean(axis=0))
    assert (cov.count, cov.standardised) == (ROWS, False)


def test_second_moment_has_the_number_of_rows(rows):
    cov = released(rows, centred=False)
    np.testing.assert_allclose(cov.matrix, rows.T @ rows / ROWS)
    assert (cov.mean == 0).all()


def test_the_number_of_rows_is_held_between_one_and_the_public_one(rows):
    assert released(rows, count=ROWS + 40).count == ROWS
    assert released(rows, count=ROWS + 40, most=None).count == ROWS + 40
    assert released(rows, count=-7.0).count == 1.0


def test_the_mean_is_held_in_the_public_box(rows):
    tight = (np.full(SIZE, -0.1), np.full(SIZE, 0.1))
    cov = released(rows, box=tight)
    assert (np.abs(cov.mean) <= 0.1).all()
    assert cov.mean[:2].tolist() == [0.1, -0.1]


def test_noise_scales_follow_the_division(rows):
    noise = MomentNoise(5.0, 2.0, 3.0, 1.5)
    cov = released(rows, noise=noise)
    assert cov.noise.count == pytest.approx(5.0 / ROWS)
    assert cov.noise.mean == pytest.approx(2.0 * RADIUS / ROWS)
    assert cov.noise.diagonal == pytest.approx(3.0 * RADIUS**2 / (ROWS - 1))
    assert cov.noise.off == pytest.approx(1.5 * RADIUS**2 / (ROWS - 1))
    assert released(rows, noise=noise, centred=False).noise.mean == 0.0


@pytest.mark.product
def test_the_noise_of_a_squared_mean_is_given_back(rows):
    # 4,000 draws; a bias of one noise variance would be 60 standard errors. Rate < 1e-6.
    rng = np.random.default_rng(2)
    noise = MomentNoise(0.0, 20.0, 0.0, 0.0)
    unit = rows / RADIUS
    draws = np.array(
        [
            covariance(
                ROWS,
                unit.sum(axis=0) + rng.normal(size=SIZE) * noise.mean,
                unit.T @ unit,
                noise,
                max_rows=ROWS,
                box=BOX,
                row_norm=RADIUS,
            ).matrix
            for _ in range(4_000)
        ]
    )
    exact = np.cov(rows, rowvar=False)
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - exact) <= 5.5 * error).all()
    assert (noise.mean * RADIUS / ROWS) ** 2 > 10 * error.max() / 5.5


def test_nothing_is_given_back_for_a_mean_at_the_edge(rows):
    noise = MomentNoise(0.0, 50.0, 0.0, 0.0)
    tight = (np.full(SIZE, -0.1), np.full(SIZE, 0.1))
    exact, noisy = released(rows, box=tight), released(rows, noise=noise, box=tight)
    added = np.diagonal(noisy.matrix - exact.matrix)
    assert added[:2].tolist() == [0.0, 0.0]
    assert added[2] > 0


def test_the_trace_and_its_noise(rows):
    noise = MomentNoise(5.0, 2.0, 3.0, 1.5)
    cov = released(rows, noise=noise)
    variance = SIZE * cov.noise.diagonal**2 + 4 * cov.noise.mean**2 * (cov.mean**2).sum()
    by_count = (np.trace(cov.matrix) - (cov.mean**2).sum()) * cov.noise.count
    assert cov.trace == (
        pytest.approx(np.trace(cov.matrix)),
        pytest.approx(np.hypot(variance**0.5, by_count)),
    )


def test_correlation(rows):
    cor = correlation(released(rows))
    np.testing.assert_allclose(cor.matrix, np.corrcoef(rows, rowvar=False))
    np.testing.assert_allclose(cor.divisor, rows.std(axis=0, ddof=1))
    assert cor.standardised
    assert not cor.weak.any()
    assert cor.trace == (pytest.approx(SIZE), 0.0)


def test_a_column_lost_in_noise_is_divided_by_a_bound(rows):
    # The variances are about 0.25, 0.09 and 0.01; four noise sds are 0.04.
    diagonal = 0.01 * (ROWS - 1) / RADIUS**2
    noise = MomentNoise(0.0, 0.0, diagonal, diagonal / np.sqrt(2))
    cor = correlation(released(rows, noise=noise))
    assert cor.weak.tolist() == [False, False, True]
    assert cor.divisor[2] == pytest.approx(0.2)
    assert np.diagonal(cor.matrix)[:2].tolist() == pytest.approx([1.0, 1.0])
    assert 0 < cor.matrix[2, 2] < 1
    understated = np.abs(cor.matrix[2, :2]) < np.abs(np.corrcoef(rows, rowvar=False)[2, :2])
    assert understated.all()
    assert cor.trace[1] == pytest.approx(0.25)


def test_a_negative_variance_is_weak():
    noise = MomentNoise(0.0, 0.0, 1.0, 1.0)
    second = np.diag([100.0, -2.0])
    box = (np.full(2, -1.0), np.full(2, 1.0))
    cor = correlation(covariance(10, None, second, noise, max_rows=10, box=box, row_norm=1.0))
    assert cor.weak.tolist() == [False, True]
    assert np.isfinite(cor.matrix).all()
