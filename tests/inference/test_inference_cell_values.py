"""Points within the cells of a table, and distributions within cells."""

import numpy as np

from dpmodels.inference.cell_estimates import Distribution, refined
from dpmodels.inference.cell_values import Nodes
from dpmodels.postprocess.graphical.histograms import Histogram


def test_sums_over_points_are_those_of_gathered_scores_over_cells():
    rng = np.random.default_rng(2)
    levels = np.array([0, 1, 2, 0, 1, 2]), np.arange(2), np.array([0, 1, 0, 1])
    nodes = Nodes((rng.normal(size=(6, 3)), np.eye(2), rng.normal(size=(4, 2))), levels)
    counts, scores = rng.normal(size=12), rng.normal(size=(48, 5))
    by_point = nodes.spread(counts) @ scores
    np.testing.assert_allclose(by_point, counts @ nodes.gathered(scores))
    at = nodes.at(counts[:, None]).reshape(6, 2, 4)
    np.testing.assert_array_equal(at[4, 1], counts.reshape(3, 2, 2)[1, 1, [0, 1, 0, 1]])


def histogram_of(counts, ends):
    return Histogram(np.arange(len(counts) + 1.0), np.array(counts, dtype=float), 1.0, ends)


def test_a_distribution_within_cells_follows_the_histogram():
    histogram = histogram_of([300, 100, 200, 400], (0, 2, 4))
    half = Distribution(np.array([0.0, 2, 4]), np.array([0, 0.4, 1]), *np.zeros((2, 3)))
    fine = refined(half, histogram)
    np.testing.assert_allclose(fine.values, [0, 0.3, 0.4, 0.6, 1])
    assert fine.noise_sd[[0, 2, 4]].max() < 1e-12
    assert fine.noise_sd[1] > 0
    assert abs(fine.quantile(0.15) - 0.5) < 1e-9


def test_quantiles_of_whole_numbers_are_whole_numbers():
    values = Distribution(np.array([-0.5, 0.5, 1.5]), np.array([0, 0.7, 1]), *np.zeros((2, 3)), 1.0)
    assert values.quantile(0.69) == 0.0
    assert values.interval(0.9, 0.95, full=True) == (1.0, 1.0)


def test_nodes_are_themselves_alone():
    """Arrays have neither one truth of equality nor a hash."""
    nodes, others = (Nodes((np.eye(2),), (np.arange(2),)) for _ in range(2))
    assert len({nodes, others, nodes}) == 2
    assert nodes != others
