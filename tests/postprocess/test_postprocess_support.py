"""Support of a box within a ball, against corners and against a general optimiser."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from dpmodels.postprocess.covariance import longest_in_box, support

NUMBERS = st.floats(-3, 3, allow_subnormal=False).map(lambda x: round(x, 3))
SIDES = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=5)


def box(corners):
    direction, lower_corner, upper_corner = np.array(corners, dtype=float).T
    return direction, np.minimum(lower_corner, upper_corner), np.maximum(lower_corner, upper_corner)


@settings(max_examples=100, deadline=None)
@given(SIDES)
def test_in_a_large_ball_it_is_the_best_corner(drawn):
    direction, lower, upper = box(drawn)
    corners = np.array(list(product(*zip(lower, upper, strict=True))))
    assert support(direction, lower, upper, 100.0) == pytest.approx((corners @ direction).max())


@pytest.mark.product
@settings(max_examples=100, deadline=None)
@given(SIDES, st.floats(0.05, 1.2))
def test_no_point_of_both_lies_further_and_one_lies_there(drawn, share):
    direction, lower, upper = box(drawn)
    nearest = np.linalg.norm(np.clip(0.0, lower, upper))
    farthest = np.linalg.norm(np.maximum(np.abs(lower), np.abs(upper)))
    radius = nearest + share * (farthest - nearest) + 1e-3
    result = support(direction, lower, upper, radius)
    best = minimize(
        lambda s: -direction @ s,
        np.clip(0.0, lower, upper),
        jac=lambda s: -direction,
        bounds=list(zip(lower, upper, strict=True)),
        constraints={"type": "ineq", "fun": lambda s: radius**2 - s @ s, "jac": lambda s: -2 * s},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert result >= -best.fun - 1e-6
    if best.success:
        assert result == pytest.approx(-best.fun, abs=1e-4)


def test_without_a_direction_it_is_zero():
    assert support(np.zeros(2), np.array([-1.0, 2.0]), np.array([1.0, 3.0]), 9.0) == 0.0
    assert support(np.zeros(2), np.array([-1.0, 0.0]), np.array([1.0, 3.0]), 0.5) == 0.0


@pytest.mark.product
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(0.1, 3), st.floats(0.1, 3)), min_size=1, max_size=5), NUMBERS)
def test_the_longest_row_is_the_linear_programmes(drawn, radius):
    reach, divisor = np.array(drawn).T
    squares = linprog(
        -1 / divisor**2,
        A_ub=np.ones((1, len(reach))),
        b_ub=[radius**2],
        bounds=[(0, side**2) for side in reach],
    )
    assert longest_in_box(reach, radius, divisor) == pytest.approx(np.sqrt(-squares.fun), abs=1e-9)
