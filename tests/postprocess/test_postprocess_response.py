"""Matrices of devices, and the likeliest truth."""

import numpy as np
import pytest

from dpmodels.postprocess.response import device_loss, inverse, likeliest, matrix, truth_of
from dpmodels.released import Channel
from dpmodels.released.answers import exact

FORCED = Channel(0.6, (0.5, 0.2, 0.3), device_loss(0.6, 0.2), "forced")
WARNER = Channel(0.4, (0.5, 0.5), device_loss(0.4, 0.5), "Warner")


@pytest.mark.parametrize("channels", [[WARNER], [FORCED, exact(2)], [WARNER, FORCED, WARNER]])
def test_the_inverse_is_that_of_the_matrix(channels):
    probabilities = matrix(channels)
    np.testing.assert_allclose(probabilities.sum(axis=0), 1.0)
    np.testing.assert_allclose(inverse(channels), np.linalg.inv(probabilities), atol=1e-12)


def test_the_last_question_is_fastest():
    joint = matrix([WARNER, FORCED])
    alone = matrix([WARNER]), matrix([FORCED])
    assert joint[1 * 3 + 2, 0 * 3 + 1] == pytest.approx(alone[0][1, 0] * alone[1][2, 1])


def test_eps_and_truth_are_each_others_inverse():
    for levels in (2, 5, 100):
        assert device_loss(truth_of(0.7, levels), 1 / levels) == pytest.approx(0.7)


def test_the_likeliest_shares_are_the_estimates_where_those_are_shares():
    shares = np.array([0.2, 0.5, 0.3])
    state = likeliest(matrix([FORCED]) @ shares, [FORCED])
    np.testing.assert_allclose(state, shares, atol=1e-7)


def test_the_likeliest_shares_of_several_questions_are_those_of_their_product():
    shares = np.array([0.05, 0.2, 0.15, 0.1, 0.3, 0.2])
    for channels in ([FORCED, WARNER], [WARNER, FORCED], [exact(2), FORCED]):
        state = likeliest(matrix(channels) @ shares, channels)
        np.testing.assert_allclose(state, shares, atol=1e-6)


def test_the_likeliest_shares_elsewhere_are_on_the_edge_and_likelier_than_any():
    probabilities = matrix([FORCED])
    answers = np.array([0.55, 0.04, 0.41])
    assert (np.linalg.solve(probabilities, answers) < 0).any()
    state = likeliest(answers, [FORCED])
    assert state.sum() == pytest.approx(1.0)
    assert state[1] == pytest.approx(0.0, abs=1e-6)
    grid = [np.array([a, b, 100 - a - b]) / 100 for a in range(101) for b in range(101 - a)]
    best = max(answers @ np.log(probabilities @ candidate) for candidate in grid)
    assert answers @ np.log(probabilities @ state) >= best - 1e-9


def random_channels(rng, sizes):
    """Devices with any probability of the truth and any drawn answers."""
    laws = [rng.dirichlet(3 * np.ones(size)) for size in sizes]
    return [Channel(rng.uniform(0.2, 0.8), tuple(law), 1.0, "any") for law in laws]


@pytest.mark.parametrize("sizes", [(2,), (3,), (7,), (2, 2), (3, 2), (2, 3, 2)])
def test_the_conditions_of_a_maximum_hold_to_1e_10(sizes):
    """The log-likelihood is concave: they are necessary and sufficient."""
    rng, outside = np.random.default_rng(5), 0
    for _ in range(30):
        channels = random_channels(rng, sizes)
        probabilities = matrix(channels)
        truths = rng.dirichlet(0.2 * np.ones(len(probabilities)))
        answers = rng.multinomial(40, probabilities @ truths) / 40
        outside += (inverse(channels) @ answers < 0).any()
        state = likeliest(answers, channels)
        gradient = probabilities.T @ np.divide(
            answers, probabilities @ state, where=answers > 0, out=0 * answers
        )
        assert state.min() >= 0
        assert state.sum() == pytest.approx(1.0, abs=1e-12)
        assert gradient.max() < 1 + 1e-10
        np.testing.assert_allclose(gradient[state > 1e-9], 1.0, atol=1e-10)
    assert outside > 5


def test_two_levels_are_the_estimate_held_between_0_and_1():
    np.testing.assert_array_equal(likeliest(np.array([29.0, 1.0]), [WARNER]), [1.0, 0.0])
    inside = inverse([WARNER]) @ np.array([0.55, 0.45])
    np.testing.assert_allclose(likeliest(np.array([55.0, 45.0]), [WARNER]), inside, atol=1e-15)
    assert np.isnan(likeliest(np.zeros(2), [WARNER])).all()
