"""The minimiser's tolerance whatever the rows, up to a public number of them."""

import math
from functools import partial

import mpmath
import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import FrameError
from dpmodels.mechanisms import minimise as module
from dpmodels.mechanisms.minimise import (
    MOST_ROWS,
    SHORTEST,
    furthest,
    minimise,
    provable_rows,
    tolerance,
)
from dpmodels.noise.lattice import MAX_BITS, Lattice
from dpmodels.statistics.double_double import EXACT_ROWS, Pair
from dpmodels.statistics.gradient import Slopes, precise_integers, precise_sums, precise_total
from dpmodels.statistics.losses import Huber, Logistic


class Weighted:
    """Few rows that stand for many: each block counts `times` times, as persons' places do."""

    def __init__(self, z, labels, times=1):
        self.z, self.labels, self.times = z, labels, times
        self.precise = 0

    def slopes(self, parameter, loss):
        margins = self.labels * (parameter @ self.z)
        gradient = -(self.z * self.labels * loss.slope(margins)).sum(axis=1)
        curvature = (self.z * loss.bend(margins)) @ self.z.T
        energy, value = float((self.z**2).sum()), float(loss.value(margins).sum())
        return Slopes(*(part * self.times for part in (value, gradient, curvature, energy)))

    def precise_slopes(self, parameter, loss, linear=()):
        self.precise += 1
        sums = precise_sums(self.z, self.labels, parameter, loss)
        part = type(sums)(*(sum_of_part * self.times for sum_of_part in sums))
        count = self.times * len(self.labels)
        exact, n_rows = precise_integers([(part, count)], len(self.z))
        return precise_total(exact, linear), n_rows


def true_gradient(rows, loss, ridge, tilt, point):
    """Of the sum at an exact point, with 60 digits."""
    theta = [mpmath.mpf(a) + mpmath.mpf(b) for a, b in zip(*point, strict=True)]
    total = [
        mpmath.mpf(b) + mpmath.mpf(ridge) * t for b, t in zip(tilt.tolist(), theta, strict=True)
    ]
    for row, label in zip(rows.z.T.tolist(), rows.labels.tolist(), strict=True):
        m = label * mpmath.fsum(t * mpmath.mpf(x) for t, x in zip(theta, row, strict=True))
        if loss.bell:
            slope = 1 / (1 + mpmath.exp(m))
        else:
            width = mpmath.mpf(loss.width)
            slope = min(max((1 + width - m) / (2 * width), 0), 1)
        total = [
            g - rows.times * label * slope * mpmath.mpf(x) for g, x in zip(total, row, strict=True)
        ]
    return float(mpmath.norm(total))


def opposed(times):
    """Rows that send the minimum far out along one direction, and bend hard across it."""
    rng = np.random.default_rng(2)
    across = np.array([0.6, 0.64, 0.48])
    direction = np.array([-0.8, 0.48, 0.36])
    z = np.column_stack([across] * 40 + [1e-3 * direction] * 40)
    z[:, :40] *= rng.uniform(0.5, 1, 40)
    labels = np.concatenate([np.tile([1.0, -1.0], 20), np.ones(40)])
    return Weighted(z, labels, times)


def spread(rows, times):
    rng = np.random.default_rng(1)
    z = rng.normal(size=(3, rows))
    z /= np.maximum(np.linalg.norm(z, axis=0), 1.0)
    return Weighted(z, rng.choice([-1.0, 1.0], rows), times)


@pytest.mark.parametrize("times", [1, 2**16, 2**26, 2**33])
@pytest.mark.parametrize(
    ("loss", "rows"),
    [
        (Logistic(), opposed),
        (Logistic(), partial(spread, 60)),
        (Huber(0.5), partial(spread, 60)),
        (Huber(0.1), partial(spread, 60)),
    ],
)
def test_the_true_gradient_is_as_short_as_the_mask_assumes(loss, rows, times):
    """With 60 digits, for up to 7 times 10^11 rows, which float64 does not bring to it."""
    case_rows, ridge, tilt = rows(times), 0.5, np.array([0.3, -0.1, 0.2])
    shortest = tolerance(1.0)
    point = minimise(case_rows, loss, ridge, tilt, shortest)
    with mpmath.workdps(60):
        length = true_gradient(case_rows, loss, ridge, tilt, point)
    assert length <= shortest + SHORTEST / 2
    assert length / ridge <= furthest(1.0, ridge)


def test_the_nearest_floats_are_farther_than_masked():
    """Why the point is an exact sum of two: 2.7 times 10^9 rows, a parameter of length 7,000."""
    case_rows, ridge, tilt = opposed(2**26), 0.5, np.array([0.3, -0.1, 0.2])
    point = minimise(case_rows, Logistic(), ridge, tilt, tolerance(0.0))
    nearest = point._replace(low=0 * point.low)
    with mpmath.workdps(60):
        assert true_gradient(case_rows, Logistic(), ridge, tilt, nearest) > 1e3 * tolerance(0.0)
        assert true_gradient(case_rows, Logistic(), ridge, tilt, point) < 1.5 * tolerance(0.0)


def test_a_gradient_in_float64_may_be_farther_off_than_masked():
    """Where it is computed to be 0 within the tolerance the true one is not: 80 million rows."""
    case_rows, ridge, tilt = opposed(2**20), 0.5, np.array([0.3, -0.1, 0.2])
    point = minimise(case_rows, Logistic(), ridge, tilt, tolerance(0.0))
    computed = case_rows.slopes(point.high, Logistic()).gradient + ridge * point.high + tilt
    with mpmath.workdps(60):
        length = true_gradient(
            case_rows, Logistic(), ridge, tilt, point._replace(low=0 * point.low)
        )
    assert abs(np.linalg.norm(computed) - length) > 2 * tolerance(0.0)


def test_one_precise_pass_is_the_rule():
    case_rows = spread(3000, 1)
    minimise(case_rows, Logistic(), 0.5, np.array([0.3, -0.1, 0.2]), tolerance(1.0))
    assert case_rows.precise == 1


def test_accelerated_gradients_take_over_where_newton_steps_run_out(monkeypatch):
    monkeypatch.setattr(module, "MOST_PASSES", 1)
    case_rows, tilt = spread(300, 1), np.array([0.3, -0.1, 0.2])
    point = minimise(case_rows, Logistic(), 1.0, tilt, tolerance(1.0))
    with mpmath.workdps(60):
        assert true_gradient(case_rows, Logistic(), 1.0, tilt, point) <= 1.5 * tolerance(1.0)


@pytest.mark.parametrize("condition", [1.0, 100.0, 1e4])
def test_accelerated_gradients_have_as_many_passes_as_the_worst_quadratic_needs(condition):
    """From the minimum's flattest direction, without the ridge's help along the others."""
    curvature = np.diag([1.0, 1 / condition])
    passes = []

    def at(point):
        passes.append(point)
        gradient = curvature @ point
        return Slopes(float(point @ gradient) / 2, gradient, curvature, 1.0)

    start, shortest = np.array([0.0, condition]), 1e-9
    point, last = module._accelerated(at, 1.0, 1 / condition, start, shortest)
    assert np.linalg.norm(curvature @ point) <= shortest
    assert np.array_equal(last.gradient, curvature @ point)
    # The bound of Nesterov's method, 2 sqrt(condition) log(...), and the two passes beside it.
    most = 2 * math.sqrt(condition) * math.log(math.sqrt(18) * condition / shortest + 1)
    assert len(passes) <= most + 4


@pytest.mark.parametrize("columns", [1, 10, 100])
@pytest.mark.parametrize("ridge", [1.0, 100.0])
def test_the_proof_reaches_as_far_as_documented(columns, ridge):
    assert provable_rows(columns, Logistic().smoothness, 2.0, ridge) == MOST_ROWS
    assert provable_rows(columns, Huber().smoothness, 2.0, ridge) == MOST_ROWS
    assert MOST_ROWS * 2.0**-70 <= SHORTEST / 4


@pytest.mark.parametrize("columns", [500, 5000])
@pytest.mark.parametrize("ridge", [1e-6, 1.0])
@pytest.mark.parametrize("scale", [0.0, 1e6])
def test_the_proof_holds_up_to_the_rows_that_it_names(columns, ridge, scale):
    loss = Huber(0.1)
    rows = provable_rows(columns, loss.smoothness, scale, ridge)
    size = 2 * (2 * columns + 2000) * scale / ridge + math.sqrt(5.2 * rows / ridge)
    error = rows * (2.0**-70 + 2.0**-103 * loss.smoothness * columns**2 * size)
    assert error <= tolerance(scale) / 2
    # Fewer only in thousands of columns, or for a ridge that is lost in the noise.
    assert rows >= 10**9 or columns == 5000 or ridge < 1


def test_more_rows_than_proved_are_refused_and_the_message_says_what_to_write():
    """By a public number, without the number of rows, which may be private."""
    case_rows = spread(100, 1)
    with pytest.raises(FrameError) as caught:
        minimise(case_rows, Logistic(), 1.0, np.zeros(3), tolerance(0.0), 99)
    assert "more rows than the 99 " in str(caught.value)
    assert 'write mechanism="gradients"' in str(caught.value)
    assert "remains so" in str(caught.value)
    assert "100" not in str(caught.value)
    minimise(case_rows, Logistic(), 1.0, np.zeros(3), tolerance(0.0), 100)


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_a_verb_refuses_them_after_the_charge(relation, mechanism, monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 64)
    rng = np.random.default_rng(0)
    data = {"x": rng.uniform(-1, 1, 200), "y": rng.choice(["no", "yes"], 200)}
    book, ledger = dp.codebook(x=(-1, 1), y=["no", "yes"]), dp.Ledger(eps=2.0, adjacency=relation)
    options = {"codebook": book, "eps": 1.0, "mechanism": mechanism, "adjacency": relation}
    with pytest.raises(FrameError, match="more rows than the 64 "):
        dp.dp_glm("y ~ x", data, ledger=ledger, **options)
    assert ledger.spent.amount == pytest.approx(1.0)
    few = {name: values[:60] for name, values in data.items()}
    dp.dp_glm("y ~ x", few, **options)


def test_blocks_of_rows_are_no_longer_than_their_sums_are_exact():
    assert Lattice(MAX_BITS, 5).block_rows <= EXACT_ROWS
    with pytest.raises(AssertionError):
        precise_sums(
            np.zeros((1, EXACT_ROWS + 1)),
            np.zeros(EXACT_ROWS + 1),
            Pair(np.zeros(1), np.zeros(1)),
            Logistic(),
        )
