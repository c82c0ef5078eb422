"""The log-rank test: statsmodels' without noise, and weights that are derivatives."""

import numpy as np
import pytest
from statsmodels.duration.survfunc import survdiff

from dpmodels.inference.survival import joint_noise, log_rank
from dpmodels.postprocess.protocol import Spread
from dpmodels.postprocess.survival import followed

CELLS = 13


def alone(weights):
    weight_array = np.asarray(weights, dtype=float)
    return Spread((weight_array**2).sum(axis=-1), (weight_array**4).sum(axis=-1))


def compared(cells, sd, effect=1, halved=0.0, public=True):
    followed_cells = [
        followed(cell, np.ones(CELLS), np.full(CELLS, halved), CELLS - 1) for cell in cells
    ]
    noise = joint_noise(alone, 2 * len(cells), CELLS, public=public)
    return log_rank(cells[:, 1], followed_cells, noise, sd, effect)


def counted(groups, rows=400):
    rng = np.random.default_rng(groups)
    time, event, group = (rng.integers(0, top, rows) for top in (CELLS - 1, 2, groups))
    cells = np.zeros((groups, 2, CELLS))
    np.add.at(cells, (group, event, time), 1)
    return cells, time, event, group


@pytest.mark.parametrize("groups", [2, 4])
def test_without_noise_it_is_that_of_the_rows(groups):
    cells, *rows = counted(groups)
    comparison = compared(cells, sd=0.0)
    statistic, p = survdiff(*rows)
    assert (comparison.statistic, comparison.pvalue, comparison.df) == pytest.approx(
        (statistic, p, groups - 1)
    )
    assert comparison.observed.sum() == pytest.approx(comparison.expected.sum())


def test_rows_of_one_person_count_as_fewer():
    cells, *_ = counted(3)
    assert compared(cells, 0.0, effect=4).statistic == pytest.approx(
        compared(cells, 0.0).statistic / 4
    )


@pytest.mark.parametrize("halved", [0.0, 0.5])
def test_the_noise_of_a_difference_is_that_of_its_derivatives(halved):
    cells, *_ = counted(2)
    cells += 2.0
    keep = np.arange(CELLS - 1)

    def difference(cells):
        risk = np.cumsum(cells.sum(axis=1)[:, ::-1], axis=1)[:, ::-1] - halved * cells[:, 0]
        events = cells[:, 1]
        return float((events[0] - risk[0] / risk.sum(axis=0) * events.sum(axis=0))[keep].sum())

    results = []
    for place in np.ndindex(*cells.shape):
        away = np.zeros_like(cells)
        away[place] = 1e-4
        results.append((difference(cells + away) - difference(cells - away)) / 2e-4)
    comparison = compared(cells, sd=3.0, halved=halved, public=False)
    assert comparison.noise_sd[0] == pytest.approx(3 * np.linalg.norm(results), rel=1e-6)
    assert comparison.noise_sd[1] == pytest.approx(comparison.noise_sd[0])
    with_total = compared(cells, sd=3.0, halved=halved)
    less = np.sum(results) ** 2 / (4 * CELLS + 1)
    assert with_total.noise_sd[0] == pytest.approx(3 * np.sqrt(np.sum(np.square(results)) - less))


def test_a_group_without_rows_is_nothing_to_tell_from_others():
    cells, *_ = counted(2)
    three = np.concatenate([cells, np.zeros((1, 2, CELLS))])
    assert compared(three, 1e-6).statistic == pytest.approx(
        compared(cells, 1e-6).statistic, abs=1e-3
    )
    assert (compared(three, 3.0).df, compared(three, 3.0).pvalue > 0) == (2, True)


@pytest.mark.parametrize("groups", [2, 3])
def test_on_coarse_grids_it_is_the_least_of_all_orders(groups):
    """Of the rows' own test, whatever the order of times within intervals, in each group."""
    rng = np.random.default_rng(groups)
    for _ in range(5):
        time = rng.uniform(0, CELLS - 1, 300)
        event, group = rng.integers(0, 2, 300), rng.integers(0, groups, 300)
        cells = np.zeros((groups, 2, CELLS))
        np.add.at(cells, (group, event, time.astype(int)), 1)
        coarse = compared(cells, sd=0.0, halved=0.5)
        for at_start in np.ndindex(*(2,) * groups):
            # Censored rows at the start of intervals, in some groups, else at the end.
            side = np.where(np.array(at_start)[group] == 1, 0.0, 0.9)
            change = np.floor(time) + np.where(event == 1, 0.5, side)
            statistic, _ = survdiff(change, event, group)
            # Variances are those of the middle.
            assert coarse.statistic <= statistic * 1.2 + 1e-9
    assert coarse.pvalue >= compared(cells, sd=0.0).pvalue * 0.5
