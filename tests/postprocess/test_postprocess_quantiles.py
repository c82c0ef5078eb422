"""Quantiles from noisy counts: without noise those of the rows; intervals that cover on atoms."""

import numpy as np
import pytest
from scipy import stats

from dpmodels.postprocess.hierarchy import NoisyCells, agreeing, line, rising, split_levels


def test_what_rises_already_stays_and_what_does_not_rises():
    assert rising(np.array([0.0, 1, 1, 4])).tolist() == [0, 1, 1, 4]
    assert (np.diff(rising(np.random.default_rng(0).normal(size=99))) >= 0).all()


@pytest.mark.parametrize("prob", [0.01, 0.3, 0.5, 0.99])
def test_without_noise_the_cell_has_the_quantile(prob):
    counts = np.array([3.0, 0, 40, 0, 0, 7, 50])
    cell, share = NoisyCells(counts, "laplace", 1e-6, np.inf).quantile(prob)
    below = np.cumsum(counts) / counts.sum()
    assert (below[cell - 1] if cell else 0) <= prob <= below[cell]
    assert 0 <= share <= 1


@pytest.mark.parametrize("prob", [0.0, 0.2, 0.5, 1.0])
def test_the_noise_in_an_excess_is_that_of_its_weights(prob):
    noisy_cells = NoisyCells(np.arange(6.0), "laplace", 2.0, np.inf)
    weights = np.tril(np.ones((7, 6)), -1) - prob
    assert noisy_cells.excess(prob) == pytest.approx(weights @ noisy_cells.counts)
    assert noisy_cells.excess_sd(prob) == pytest.approx(2.0 * np.linalg.norm(weights, axis=1))
    assert noisy_cells.rank_sd(prob) > 0
    assert noisy_cells.total_sd == pytest.approx(2.0 * np.sqrt(6))


@pytest.mark.parametrize(("cells", "fanout"), [(7, 3), (16, 4), (30, 3), (5, 9)])
def test_the_noise_in_an_excess_is_what_least_squares_makes_of_all_nodes(cells, fanout):
    """Least squares is linear: of each node's noise alone it gives the node's weights."""
    nodes = line(cells, fanout)
    unit_counts = np.eye(sum(nodes.sizes))
    alone = (split_levels(nodes, unit, 1) for unit in unit_counts)
    matrix = np.array([agreeing(nodes, estimate, 0.0, None).cells[0] for estimate in alone])
    noisy_cells = NoisyCells(np.arange(float(cells)), "laplace", 2.0, np.inf, 1, nodes)
    for prob in (0.0, 0.3, 1.0):
        weights = np.tril(np.ones((cells + 1, cells)), -1) - prob
        of_nodes = weights @ matrix.T
        assert noisy_cells.excess_sd(prob) == pytest.approx(2.0 * np.linalg.norm(of_nodes, axis=1))
        assert nodes.noise_weights(weights[2]) == pytest.approx(of_nodes[2])
    assert noisy_cells.total_sd == pytest.approx(2.0 * np.linalg.norm(matrix.sum(axis=1)))
    assert (
        noisy_cells.excess_sd(0.3)
        <= NoisyCells(noisy_cells.counts, "laplace", 2.0, np.inf).excess_sd(0.3) + 1e-9
    ).all(), "counts of nodes make no sum noisier"


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("noise_sd", [0.1, 8.0])
def test_intervals_cover_quantiles_of_atoms(law, noise_sd):
    """Binomial bound with a false-alarm rate of 1e-7 each at 95 %; more is allowed.

    Quantiles are in the middle of an atom, at its very end, and in a cell of many rows.
    """
    shares = np.array([0.3, 0.0, 0.0, 0.2, 0.05, 0.0, 0.25, 0.1, 0.1, 0.0])
    times, rows = 400, 400
    rng = np.random.default_rng(8)
    counts = rng.multinomial(rows, shares, times).astype(float)
    draw = rng.laplace if law == "laplace" else rng.normal
    scale = noise_sd / np.sqrt(2) if law == "laplace" else noise_sd
    noisy = counts + draw(0, scale, counts.shape)
    for prob, cell in ((0.15, 0), (0.3, 0), (0.301, 3), (0.52, 4), (0.7, 6), (0.9, 8)):
        intervals = [
            NoisyCells(counts, law, noise_sd, rows).interval(prob, 0.95) for counts in noisy
        ]
        low, high = np.array(intervals).T
        assert ((low <= cell) & (cell <= high)).sum() >= stats.binom.ppf(1e-7, times, 0.95)
        assert (low <= high).all()


def test_a_larger_level_holds_more_cells_and_no_more_rows_than_there_are_are_told():
    noisy_cells = NoisyCells(np.full(40, 25.0), "laplace", 3.0, 900.0)
    narrow, wide = (noisy_cells.interval(0.5, level) for level in (0.5, 0.999))
    assert wide[0] < narrow[0] <= narrow[1] < wide[1]
    assert noisy_cells.total == 900.0
