"""Rows added to cells of too few: which, how many, and that none go where rows are enough."""

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.postprocess.small_samples import DETECTION_SDS
from dpmodels.results.lm_fit import layout

BOOK = dp.codebook(y=(0, 10), g=list("abcd"), h=["u", "v"], x=(0, 1))


def equations(formula, counts, eps=1.0):
    rng = np.random.default_rng(0)
    g = np.repeat(list("abcd"), counts)
    columns = {"x": rng.random(len(g)), "y": rng.uniform(0, 10, len(g))}
    rows = {"g": g, "h": rng.choice(["u", "v"], len(g)), **columns}
    with dp.simulation(seed=6):
        fit = dp.dp_lm(formula, rows, codebook=BOOK, eps=eps, delta=1e-6, mechanism="moments")
    return fit, fit.linear.equations


def test_enough_rows_are_left_alone():
    assert equations("y ~ g + x", [3_000] * 4)[1].added_rows is None
    assert equations("y ~ g*h", [4_000] * 4)[1].added_rows is None


def test_an_empty_level_gets_rows_until_its_count_is_told():
    fit, residual_variance = equations("y ~ g + x", [4_000, 4_000, 4_000, 0])
    at = 1 + fit.call.names.index("g[T.d]")
    identities = layout(fit.call, None).identities
    count = (
        residual_variance.whole[0, at] + identities.shift[at] * residual_variance.whole[0, 0]
    ) / identities.factor[at]
    row = identities.shift[at] / identities.factor[at]
    way = np.eye(len(residual_variance.moments))[at] / identities.factor[at]
    way[0] += row
    sd = np.sqrt(way @ residual_variance.score_noise(np.eye(len(way))[0]) @ way)
    assert count == pytest.approx(DETECTION_SDS * sd, rel=1e-6)


def test_levels_first_and_last_and_cells_are_found():
    for counts in ([0, 3_000, 3_000, 3_000], [3_000, 3_000, 3_000, 0]):
        for formula in ("y ~ g + x", "y ~ g*h", "y ~ 0 + g", "y ~ g*x"):
            assert equations(formula, counts)[1].added_rows is not None


def test_no_more_is_assumed_than_the_budget_leaves_open():
    pulls = [equations("y ~ g", [5_000] * 3 + [0], eps)[1].pull.max() for eps in (1.0, 100.0)]
    assert 0 < pulls[1] < 1e-3 * pulls[0]
