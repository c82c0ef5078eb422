"""Rows added to cells of too few: which, how many, and that none go where rows are enough."""

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.postprocess.identities import NONE, Identities
from dpmodels.postprocess.small_samples import DETECTION_SDS, Layout, _slopes
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


@pytest.mark.parametrize(("factor", "shift"), [(1.0, 0.0), (2.0, 0.4)])
def test_a_slope_within_a_level_gets_the_squares_that_its_noise_hides(factor, shift):
    """Squares about the mean of the level, from sums of columns that are moved and scaled."""
    rng = np.random.default_rng(2)
    is_of_level, x = rng.random(50) < 0.3, rng.uniform(0, 1, 50)
    functions = np.column_stack([np.ones(50), is_of_level, x, is_of_level * x])
    factors, shifts = np.array([1.0, *[factor] * 3]), np.array([0.0, *[shift] * 3])
    rows = functions * factors - shifts
    levels, numbers = np.array([[NONE], [1], [NONE], [1]]), np.array([[0], [0], [1], [1]])
    layout = Layout(Identities(np.zeros((4, 4)), factors, shifts), levels, numbers, (2,), ())
    squares = factor**2 * is_of_level.sum() * x[is_of_level].var()
    for square_sd in (squares / 2, squares / DETECTION_SDS * 1.01):
        ((row, lacking),) = _slopes(rows.T @ rows, np.full(4, square_sd), layout)
        assert row.tolist() == [0, 0, 0, 1]
        assert lacking == pytest.approx(DETECTION_SDS * square_sd - squares)
    assert _slopes(rows.T @ rows, np.full(4, squares / DETECTION_SDS * 0.99), layout) == []
