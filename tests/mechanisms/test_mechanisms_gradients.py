"""The first step of noisy gradients, where rounding has the last word."""

import numpy as np
import pytest

from dpmodels.mechanisms.regression.gradients import Start


@pytest.mark.parametrize("least", [-1e-13, 0.0, 1e-13])
def test_a_moment_that_rounding_made_negative_has_no_root_taken(least):
    start = Start(np.zeros(2), np.eye(2), np.diag([least, 4.0]))
    assert start.step(np.array([-1.0, 0.0])).tolist() == [1.0, 0.0]
    assert start.step(np.array([0.0, -3.0])).tolist() == [0.0, 0.5]
