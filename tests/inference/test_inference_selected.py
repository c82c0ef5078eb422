"""A chi-square tail among the releases that were chosen: uniform there, plain where all are."""

import math

import numpy as np
import pytest
from scipy.special import chdtrc

from dpmodels.inference.independence import selected_tail

NONE = np.zeros(0)


def test_it_is_uniform_where_the_choice_is_seldom_and_knows_of_the_statistic():
    rng = np.random.default_rng(1)
    white = rng.normal(size=(40_000, 2))
    fixed = np.array([[0.9, 0.0], [-0.3, 0.5]])
    margins = white @ fixed.T + 0.4 * rng.normal(size=(40_000, 2)) - np.array([1.0, 0.2])
    indices = np.flatnonzero((margins > 0).all(axis=1))
    assert 1000 < len(indices) < 6000
    values = []
    for place in indices.tolist():
        length = float(np.linalg.norm(white[place]))
        slopes = fixed @ white[place] / length
        values.append(selected_tail(length**2, 2, 1.0, margins[place], slopes))
    # Five sds of a binomial share, 6e-7.
    for level in (0.05, 0.5):
        room = 5 * math.sqrt(level * (1 - level) / len(indices))
        assert np.mean(np.array(values) < level) == pytest.approx(level, abs=room)
    plain = chdtrc(2, (white[indices] ** 2).sum(axis=1))
    assert np.mean(plain < 0.05) > 0.08


def test_margins_that_do_not_move_leave_the_plain_tail():
    for margins, slopes in ((NONE, NONE), (np.array([3.0, 0.0]), np.zeros(2))):
        assert selected_tail(4.0, 3, 1.5, margins, slopes) == pytest.approx(
            float(chdtrc(3 / 1.5, 4.0 / 1.5))
        )


def test_it_ends_where_a_margin_changes_its_sign():
    at = [selected_tail(4.0, 1, 1.0, np.array([gap]), np.array([1.0])) for gap in (1e-12, 2.0, 9.0)]
    assert at == [pytest.approx(1.0), pytest.approx(chdtrc(1, 4.0)), pytest.approx(chdtrc(1, 4.0))]
    close = selected_tail(4.0, 1, 1.0, np.array([1e-12]), np.array([-1.0]))
    assert close == pytest.approx(0.0, abs=1e-9)
    assert selected_tail(1e6, 1, 1.0, np.array([1.0]), np.array([1.0])) == 1.0
