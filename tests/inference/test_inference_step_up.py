"""Step-up procedures over hypotheses of which some were never looked at."""

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from dpmodels.inference.screening_tests import METHODS, adjusted, cut_offs

P = np.array([0.2, 0.001, 0.004, 0.03])


@pytest.mark.parametrize("method", METHODS)
def test_hypotheses_without_a_p_value_have_one(method):
    p_values = np.concatenate([P, np.ones(16)])
    expected = multipletests(p_values, method=METHODS[method])[1][:4]
    np.testing.assert_allclose(adjusted(P, 20, method), expected)
    with_nan = adjusted(np.append(P, np.nan), 20, method)
    np.testing.assert_allclose(with_nan, np.append(expected, np.nan))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("q", [0.01, 0.1, 0.6])
def test_what_is_rejected_lies_below_the_line(method, q):
    rng = np.random.default_rng(3)
    p = np.sort(rng.random(30) ** 3)
    below = np.flatnonzero(p <= cut_offs(30, q, method))
    count = below[-1] + 1 if len(below) else 0
    assert int((adjusted(p, 30, method) <= q).sum()) == count
