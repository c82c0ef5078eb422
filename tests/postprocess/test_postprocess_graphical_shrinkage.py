"""Components that are shrunk towards public rows: never farther from the truth in the mean."""

import math
from itertools import combinations

import numpy as np
import pytest

from dpmodels.postprocess.graphical.measurements import Residuals, centred_table
from dpmodels.postprocess.graphical.shrinkage import shrunk

# A pair of 12 degrees of freedom is shrunk by itself; 7 of pairs and 8 of columns are together.
SIZES = (4, 5, 2)
GROUPS = ([(0, 1)], [(0, 2), (1, 2)], [(0,), (1,), (2,)])
PAIRS = list(combinations(range(3), 2))
PARTS = [(), (0,), (1,), (2,), *PAIRS]
SD = 20.0
N_ROWS = 900.0
GENERATOR = np.random.default_rng(4)
PUBLIC = [GENERATOR.integers(0, size, 300) for size in SIZES]


def shares(codes, part):
    counts = np.zeros([SIZES[i] for i in part])
    np.add.at(counts, tuple(codes[i] for i in part), 1 / len(codes[0]))
    return counts


def released(exact, rng):
    """Return components of exact counts by part, each with noise of SD in a cell."""
    tables = {part: centred_table(t + rng.normal(0, SD, t.shape)) for part, t in exact.items()}
    return Residuals(SIZES, {(): np.array(N_ROWS), **tables}, {(): 0.0, **dict.fromkeys(exact, SD)})


def exact_at(distance):
    """Return counts: components of each group are so many noise sds from the public rows."""
    exact = {}
    for group in GROUPS:
        for part in group:
            direction = centred_table(GENERATOR.normal(size=[SIZES[i] for i in part]))
            length = distance * SD / np.linalg.norm(direction) / math.sqrt(len(group))
            exact[part] = N_ROWS * shares(PUBLIC, part) + length * direction
    return exact


@pytest.mark.expensive
@pytest.mark.parametrize("distance", [0.0, 3.0, 8.0])
def test_the_expected_error_of_no_group_rises(distance):
    rng = np.random.default_rng()
    exact = {part: centred_table(table) for part, table in exact_at(distance).items()}
    gains = []
    for _ in range(300):
        noisy = released(exact, rng)
        errors = [
            [sum(((r.tables[part] - exact[part]) ** 2).sum() for part in group) for group in GROUPS]
            for r in (noisy, shrunk(noisy, PUBLIC))
        ]
        gains.append(np.subtract(*errors))
    # The mean gain is (d - 2)²/(distance² + d) in noise variances or more, by Jensen. Each of nine
    # means is 5.5 standard errors below it with a probability of 1e-7 at most.
    for of_group, freedom in zip(np.transpose(gains), (12, 7, 8), strict=True):
        least = (freedom - 2) ** 2 * SD**2 / (distance**2 + freedom)
        assert of_group.mean() > least - 5.5 * of_group.std() / math.sqrt(300)


def test_what_the_noise_explains_goes_and_two_degrees_of_noise_remain():
    exact = {part: centred_table(N_ROWS * shares(PUBLIC, part)) for part in PARTS[1:]}
    at_target = Residuals(SIZES, {(): np.array(N_ROWS), **exact}, dict.fromkeys(PARTS, SD))
    near = shrunk(at_target, PUBLIC)
    for group, freedom in zip(GROUPS, (12, 7, 8), strict=True):
        for part in group:
            np.testing.assert_allclose(near.tables[part], exact[part], atol=1e-9)
            assert near.sds[part] == pytest.approx(SD * math.sqrt(2 / freedom))
    assert (near.n_rows, near.sds[()]) == (N_ROWS, SD)


def test_components_without_noise_or_of_two_degrees_of_freedom_stay():
    noisy = released(exact_at(1.0), np.random.default_rng(2))
    without_noise = Residuals(SIZES, noisy.tables, dict.fromkeys(PARTS, 0.0))
    alone = Residuals(
        (2, 2), {(): np.array(9.0), (0,): np.array([5.0, -5.0])}, {(): 1.0, (0,): 4.0}
    )
    for before, codes in ((without_noise, PUBLIC), (alone, [PUBLIC[2], PUBLIC[2]])):
        after = shrunk(before, codes)
        for part, table in before.tables.items():
            np.testing.assert_allclose(after.tables[part], table)
            assert after.sds[part] == before.sds[part]


def test_far_rows_leave_components_as_they_are():
    noisy = released(exact_at(1e6), np.random.default_rng(3))
    near = shrunk(noisy, PUBLIC)
    for part in PARTS[1:]:
        np.testing.assert_allclose(near.tables[part], noisy.tables[part], atol=1e-3 * SD)
        assert near.sds[part] == pytest.approx(noisy.sds[part])
