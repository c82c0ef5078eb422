import numpy as np
import pytest

from dpmodels.inference.spectrum import noise_edge, tracy_widom


@pytest.mark.parametrize(("level", "tabulated"), [(0.9, 0.4501), (0.95, 0.9793), (0.99, 2.0234)])
def test_tracy_widom_is_that_of_published_tables(level, tabulated):
    assert tracy_widom(level) == pytest.approx(tabulated, abs=0.011)


@pytest.mark.parametrize("size", [1, 2, 3, 10, 40])
@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_the_largest_eigenvalue_of_noise_exceeds_its_quantile_as_often_as_said(
    rng, most, fewest, size, level
):
    # False alarms <= 1e-6 for true shares within 0.6 and 1.2 times the one asked.
    times = 3_000 if size < 40 else 1_000
    noise = rng.normal(size=(times, size, size))
    top = np.linalg.eigvalsh((noise + noise.transpose(0, 2, 1)) / np.sqrt(2))[:, -1]
    over = int((top > noise_edge(size, level)).sum())
    assert fewest(times, 0.6 * (1 - level)) <= over <= most(times, 1.2 * (1 - level))


def test_several_sizes_at_once():
    alone = [float(noise_edge(size, 0.95)) for size in (1, 5, 50)]
    np.testing.assert_allclose(noise_edge([1, 5, 50], 0.95), alone)
