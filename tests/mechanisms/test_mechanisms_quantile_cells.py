"""Where cells are cut: at the quantiles, finer in each round, around values that rows share."""

import math

import numpy as np
import pytest

from dpmodels.mechanisms.quantile_facts import Grid
from dpmodels.mechanisms.quantile_rounds import FIRST_CELLS, first_ends, next_ends
from dpmodels.mechanisms.scalar import QuantileFacts
from dpmodels.postprocess.hierarchy import NoisyCells
from dpmodels.privacy import adjacency

CELLS = 60_000


def refined(cells, probs, noise_sd=1.0):
    """The ends of the last of three further rounds, of counts without noise."""
    below = np.concatenate([[0], np.cumsum(cells)])
    facts = QuantileFacts(probs, 1, Grid(len(cells)), 0.95, adjacency("replace"))
    ends = first_ends(len(cells))
    for left in (3, 2, 1):
        counts = np.diff(below[ends]).astype(float)
        noisy_cells = NoisyCells(counts, "laplace", noise_sd * left, np.inf)
        ends = next_ends(ends, noisy_cells, facts, left, noise_sd)
    return ends


def test_the_first_cells_are_equal_or_the_steps_themselves():
    assert np.ptp(np.diff(first_ends(CELLS))) <= 1
    assert len(first_ends(CELLS)) == FIRST_CELLS + 1
    assert first_ends(7).tolist() == list(range(8))


@pytest.mark.parametrize("probs", [(0.5,), (0.0, 0.25, 0.9), tuple(np.arange(1, 99) / 99)])
def test_ends_rise_from_one_end_of_the_range_to_the_other(probs):
    rng = np.random.default_rng(4)
    for cells in (rng.integers(0, 2, CELLS), np.zeros(CELLS, int), np.eye(1, CELLS, 5)[0]):
        ends = refined(cells, probs)
        assert (ends[0], ends[-1]) == (0, CELLS)
        assert (np.diff(ends) > 0).all()
        assert len(ends) <= 500


def test_values_that_many_rows_share_have_cells_of_their_own():
    cells = np.zeros(CELLS, dtype=int)
    cells[::5_000] = 300
    ends = refined(cells, (0.25, 0.52, 0.75))
    for prob in (0.25, 0.52, 0.75):
        value = np.searchsorted(np.cumsum(cells), prob * cells.sum())
        at = np.searchsorted(ends, value, side="right") - 1
        assert ends[at + 1] - ends[at] <= 8


def test_a_value_of_most_rows_leaves_cells_to_the_quantiles_beyond_it():
    cells = np.zeros(CELLS, dtype=int)
    cells[10], cells[60::120] = 4_500, 1
    for noise_sd in (0.1, 4.0):
        ends = refined(cells, (0.5, 0.95), noise_sd)
        at = np.searchsorted(ends, CELLS // 2, side="right")
        assert cells[ends[at - 1] : ends[at]].sum() <= 25


def test_rows_spread_evenly_are_cut_to_few_rows_at_the_quantile():
    ends = refined(np.ones(CELLS, dtype=int), (0.5,))
    at = np.searchsorted(ends, CELLS // 2)
    assert ends[at] - ends[at - 1] <= 30
    assert len(ends) <= 80


@pytest.mark.parametrize("prob", [0.5, 0.9])
def test_the_last_round_cuts_as_far_as_the_interval_reaches_and_little_farther(prob):
    """Evenly spread rows: the interval's half-width is that of a binomial rank."""
    ends = refined(np.ones(CELLS, dtype=int), (prob,))
    half = 1.96 * math.sqrt(CELLS * prob * (1 - prob))
    for reach in (prob * CELLS - ends[1], ends[-2] - prob * CELLS):
        assert half < reach < 2 * half
