"""Sums of two floats against many digits: products, exponentials, slopes, sums of gradients."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpmodels as dp
from dpmodels.mechanisms.protocol import RegressionFacts, passes
from dpmodels.models.linear import linear
from dpmodels.privacy import ZCDP, adjacency
from dpmodels.request import Request
from dpmodels.statistics.double_double import (
    EXACT_ROWS,
    LARGEST,
    Pair,
    divided,
    dot,
    exp,
    row_sums,
    two_product,
    two_sum,
)
from dpmodels.statistics.gradient import precise_integers, precise_sums, precise_total
from dpmodels.statistics.losses import Huber, Logistic

UNIT = Fraction(1, 2**53)
# Sizes whose products and rounding errors are normal numbers.
NUMBERS = st.floats(1e-70, 1e70) | st.floats(-1e70, -1e-70) | st.just(0.0)


def exact(pair):
    return [
        Fraction(a) + Fraction(b) for a, b in zip(pair.high.ravel(), pair.low.ravel(), strict=True)
    ]


def precise(pair):
    return [mpmath.mpf(a) + mpmath.mpf(b) for a, b in zip(pair.high, pair.low, strict=True)]


def margins():
    """Numbers and small parts beside them, of all sizes, with the ends of the range."""
    rng = np.random.default_rng(0)
    high = np.concatenate(
        [
            rng.uniform(-LARGEST, LARGEST, 300),
            rng.normal(size=300),
            1e-8 * rng.normal(size=100),
            [0.0, -LARGEST, LARGEST, 0.5, 1.5, np.log(2) / 512, -np.log(2) / 512],
        ]
    )
    return Pair(high, high * rng.uniform(-(2.0**-54), 2.0**-54, len(high)))


@given(NUMBERS, NUMBERS)
def test_sums_and_products_lose_nothing(one, other):
    pair = np.array([one]), np.array([other])
    assert exact(two_sum(*pair)) == [Fraction(one) + Fraction(other)]
    assert exact(two_product(*pair)) == [Fraction(one) * Fraction(other)]


@pytest.mark.parametrize("columns", [1, 2, 7, 60])
@pytest.mark.parametrize("size", [1.0, 1e6])
def test_products_with_a_parameter_keep_their_bound(columns, size):
    """Where rows are nearly orthogonal to it too, which is where float64 is lost."""
    rng = np.random.default_rng(columns)
    rows = rng.normal(size=(columns, 40))
    high = size * rng.normal(size=columns)
    if columns > 1:
        rows -= np.outer(high, high @ rows) / (high @ high)
    rows /= np.linalg.norm(rows, axis=0)
    parameter = Pair(high, high * rng.uniform(-(2.0**-53), 2.0**-53, columns))
    sums, exact_values = [], exact(dot(parameter, rows))
    for row in rows.T:
        sums.append(sum(t * Fraction(x) for t, x in zip(exact(parameter), row, strict=True)))
    bound = 8 * columns**2 * UNIT**2 * Fraction(1.01 * float(np.linalg.norm(high)))
    for exact_value, computed in zip(exact_values, sums, strict=True):
        assert abs(exact_value - computed) <= bound + UNIT**2 * abs(computed)


def test_exponentials_and_quotients_keep_their_bounds():
    margin = margins()
    with mpmath.workdps(60):
        for actual, x in zip(precise(exp(margin)), precise(margin), strict=True):
            assert abs(actual / mpmath.exp(x) - 1) < mpmath.mpf(2) ** -78
        unit = Pair(np.ones_like(margin.high), 0 * margin.high)
        shifted = Pair(margin.high + 700, margin.low)
        for actual, x in zip(precise(divided(unit, shifted)), precise(shifted), strict=True):
            assert abs(actual * x - 1) < mpmath.mpf(2) ** -98


@pytest.mark.parametrize("loss", [Logistic(), Huber(0.1), Huber(0.5), Huber(4.0)])
def test_slopes_keep_their_bound(loss):
    margin = margins()
    beyond = Pair(np.append(margin.high, [1e4, -1e4]), np.append(margin.low, [0.0, 0.0]))
    with mpmath.workdps(400):
        for actual, m in zip(precise(loss.precise_slope(beyond)), precise(beyond), strict=True):
            if loss.bell:
                right = 1 / (1 + mpmath.exp(m))
            else:
                width = mpmath.mpf(loss.width)
                right = min(max((1 + width - m) / (2 * width), mpmath.mpf(0)), mpmath.mpf(1))
            assert abs(actual - right) < mpmath.mpf(2) ** -77


def test_sums_of_rows_keep_their_bound():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(3, EXACT_ROWS))
    rows /= np.linalg.norm(rows, axis=0)
    high = rng.uniform(-1, 1, EXACT_ROWS)
    weights = Pair(high, high * rng.uniform(-(2.0**-53), 2.0**-53, EXACT_ROWS))
    parts, shares = row_sums(weights, rows), exact(weights)
    for at, row in enumerate(rows):
        right = sum(w * Fraction(x) for w, x in zip(shares, row, strict=True))
        combined, fine, error = (part[at] for part in parts)
        total = Fraction(combined, 2**39) + Fraction(fine) + Fraction(error)
        assert abs(total - right) <= EXACT_ROWS * Fraction(1, 2**79)


@pytest.mark.parametrize("loss", [Logistic(), Huber(4.0)])
def test_gradients_keep_their_bound_where_those_in_float64_do_not(loss):
    """At a parameter of length 3e5: rows that are nearly orthogonal to it bend the most."""
    rng = np.random.default_rng(5)
    rows = 300
    z = rng.normal(size=(4, rows))
    theta = 1e5 * np.array([1.0, -2.0, 1.5, 0.5])
    z -= np.outer(theta, theta @ z) / (theta @ theta)
    z /= np.linalg.norm(z, axis=0)
    labels = rng.choice([-1.0, 1.0], rows)
    parameter = Pair(theta, np.array([1e-12, 0.0, -2e-12, 0.0]))
    linear = np.array([0.5, 0.0, 1e-20, -3.0])
    exact, count = precise_integers([(precise_sums(z, labels, parameter, loss), rows)], 4)
    total = precise_total(exact, (linear,))
    with mpmath.workdps(60):
        right = [mpmath.mpf(x) for x in linear]
        coordinates = [mpmath.mpf(a) + mpmath.mpf(b) for a, b in zip(*parameter, strict=True)]
        for row, label in zip(z.T.tolist(), labels.tolist(), strict=True):
            m = label * mpmath.fsum(
                t * mpmath.mpf(x) for t, x in zip(coordinates, row, strict=True)
            )
            width = mpmath.mpf(getattr(loss, "width", 1))
            slope = min(max((1 + width - m) / (2 * width), 0), 1)
            slope = 1 / (1 + mpmath.exp(m)) if loss.bell else slope
            right = [g - label * slope * mpmath.mpf(x) for g, x in zip(right, row, strict=True)]
        bound = rows * (2.0**-70 + 2.0**-103 * loss.smoothness * 16 * 3e5)
        plain = -(z * labels * loss.slope(labels * (theta @ z))).sum(axis=1) + linear
        off = float(
            mpmath.norm([a - mpmath.mpf(b) for a, b in zip(right, total.gradient, strict=True)])
        )
        lost = float(mpmath.norm([a - mpmath.mpf(b) for a, b in zip(right, plain, strict=True)]))
    # A last rounding of each coordinate besides.
    assert off <= bound + 2 * float(UNIT) * np.linalg.norm(total.gradient)
    assert lost > 100 * off
    assert (count, total.value) == (rows, math.inf)


def test_rows_that_count_several_times_are_added_without_rounding():
    """Rows of persons take places: a block counts as often as its rows do."""
    rng = np.random.default_rng(0)
    people = np.repeat(np.arange(40), rng.integers(1, 5, 40))
    data = {
        "a": rng.uniform(-1, 1, len(people)),
        "y": rng.choice(["no", "yes"], len(people)),
        "who": people.astype(str),
    }
    book = dp.codebook(a=(-1, 1), y=["no", "yes"])
    words = {"scale": "range", "row_norm": None}
    estimates = linear(Request("glm", "y ~ a", book, ZCDP(1.0), adjacency("replace"), words))
    facts = RegressionFacts(estimates.predictors, Logistic(), adjacency("replace"))
    once = passes(estimates.design.bind(data), facts)
    theta = np.array([0.3, -1.0])
    slopes, count = once.precise_slopes(Pair(theta, 0 * theta), Logistic())
    thrice = passes(estimates.design.bind({n: np.repeat(v, 3) for n, v in data.items()}), facts)
    extra, large = thrice.precise_slopes(Pair(theta, 0 * theta), Logistic())
    assert (count, large) == (len(people), 3 * len(people))
    np.testing.assert_allclose(extra.gradient, 3 * slopes.gradient, rtol=4e-16)
    np.testing.assert_allclose(slopes.gradient, once.slopes(theta, Logistic()).gradient, rtol=1e-9)
