"""Values of all levels in contrasts: nothing is lost but noise outside them."""

import numpy as np

from dpmodels.mechanisms.protocol import RegressionFacts
from dpmodels.mechanisms.regression.gradients import effect_coding, levelled
from dpmodels.postprocess.normal_equations import contrasts
from dpmodels.privacy import adjacency
from dpmodels.statistics.losses import Logistic, Multinomial, Predictors

OWN = Predictors(2, True, 0.9, 0.5, 1.0, responses=3)
FACTS = RegressionFacts(OWN, Multinomial(4), adjacency("replace"))


def test_what_adds_to_zero_over_the_levels_is_kept():
    rng = np.random.default_rng(0)
    values = rng.normal(size=12)
    flat = levelled(values, FACTS)
    np.testing.assert_allclose(flat.reshape(4, 3).sum(axis=0), 0, atol=1e-14)
    back = np.kron(contrasts(4), np.eye(3)) @ effect_coding(values, FACTS)
    np.testing.assert_allclose(back, flat, atol=1e-14)
    square = effect_coding(np.outer(flat, flat), FACTS)
    np.testing.assert_allclose(square, np.outer(*[effect_coding(flat, FACTS)] * 2), atol=1e-13)


def test_noise_has_the_same_law_in_contrasts():
    """The covariance of a symmetric matrix of noise, by its linear map: exactly the same."""
    size = FACTS.columns
    turn = np.column_stack([effect_coding(unit, FACTS) for unit in np.eye(size)])
    np.testing.assert_allclose(turn @ turn.T, np.eye(9), atol=1e-14)
    # A symmetric matrix of variance 2 on the diagonal and 1 off it is one in isometric coordinates.
    first, second = turn[0], turn[1]
    for left, right, variance in ((first, first, 2.0), (first, second, 1.0)):
        form = np.outer(left, right)
        form = (form + form.T) / 2
        assert np.isclose(2 * (form**2).sum(), variance)


def test_one_linear_predictor_stays_as_it_is():
    facts = RegressionFacts(Predictors(2, True, 0.9, 0.5, 1.0), Logistic(), adjacency("replace"))
    values = np.array([1.0, 2.0, 3.0])
    assert effect_coding(values, facts) is values
    assert levelled(values, facts) is values
