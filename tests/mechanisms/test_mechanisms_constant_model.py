"""The model of a constant alone: its gradient vanishes at the released means."""

import numpy as np
import pytest
from scipy.special import softmax

from dpmodels.mechanisms.regression.gradients import RAREST, constant_model
from dpmodels.statistics.losses import Logistic, Multinomial, Poisson


@pytest.mark.parametrize("means", [[0.2, 0.5], [0.0, 1.3], [-0.4, -0.1]])
def test_levels_have_their_frequencies_held_above_none(means):
    parameters = constant_model(np.array(means), Multinomial(3))
    np.testing.assert_allclose(softmax(parameters.linear), parameters.mean, rtol=1e-12)
    assert parameters.mean.min() >= RAREST / 2.5
    np.testing.assert_allclose(parameters.bend @ np.ones(3), 0, atol=1e-15)
    assert np.linalg.eigvalsh(parameters.bend)[1] > 0
    assert 0 < parameters.square < 1


def test_one_predictor_has_one_line():
    odds = constant_model(np.array([0.25]), Logistic())
    assert np.isclose(odds.linear[0], np.log(0.25 / 0.75))
    assert odds.bend.tolist() == [[0.25]]
    counted = constant_model(np.array([2.0]), Poisson(9.0, 6.0))
    assert np.isclose(counted.linear[0], np.log(2))
    assert np.isclose(counted.bend[0, 0], 2 * 2 / 6)
