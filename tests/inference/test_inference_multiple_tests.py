"""Adjusted p-values are statsmodels', and levels those of intervals that hold together."""

import numpy as np
import pytest
from scipy.stats import norm
from statsmodels.stats.multitest import multipletests

from dpmodels.inference.screening_tests import adjusted_pvalues, largest, simultaneous

P = np.array([0.01, 0.2, 0.011, 0.9, 0.04, 1e-12])


@pytest.mark.product
@pytest.mark.parametrize("method", ["holm", "bonferroni", "sidak"])
def test_they_are_statsmodels(method):
    np.testing.assert_allclose(
        adjusted_pvalues(P, method), multipletests(P, method=method)[1], rtol=1e-9
    )


def test_a_test_without_a_p_value_counts_and_has_none():
    with_lost = np.append(P, np.nan)
    np.testing.assert_allclose(
        adjusted_pvalues(with_lost, "holm")[:-1], adjusted_pvalues(np.append(P, 1.0), "holm")[:-1]
    )
    assert np.isnan(adjusted_pvalues(with_lost, "holm")[-1])


def test_levels_hold_together():
    assert simultaneous(0.95, 5, "holm") == pytest.approx(0.99)
    assert simultaneous(0.95, 5, "sidak") ** 5 == pytest.approx(0.95)
    assert simultaneous(0.95, 5, "none") == simultaneous(0.95, 1, "holm") == 0.95


def test_independent_variables_all_stay_within_the_largest_as_often_as_asked():
    sds = np.array([1.0, 0.2, 3.0, 0.0])
    within = norm.cdf(largest(sds, 0.95) / sds[:3]) * 2 - 1
    assert np.prod(within) == pytest.approx(0.95, abs=1e-9)
    assert largest(sds[:1], 0.95) == pytest.approx(norm.ppf(0.975))
    assert largest(np.zeros(2), 0.95) == 0.0
