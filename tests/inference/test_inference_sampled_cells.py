"""Errors of weighted cells with capped units, against the formulas over the units themselves."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dpmodels.inference.proportions import Noise
from dpmodels.inference.sampled import Cut
from dpmodels.inference.sampled_cells import Runs, SampledCells
from dpmodels.postprocess.weight_caps import UNLIKE

CELLS, UNITS, EXCESS = 4, 300, 0.6


def units():
    """Weights in caps, those of capped units 1.6, and the cell of each unit."""
    rng = np.random.default_rng(1)
    weights = np.where(rng.random(UNITS) < 0.2, 1 + EXCESS, rng.uniform(0.1, 1, UNITS))
    return weights, rng.integers(0, CELLS, UNITS)


def cells_of(weights, cells, sd=0.0):
    capped = np.minimum(weights, 1.0)
    counts, squares, parts = (
        np.bincount(cells, values, CELLS) for values in (capped, capped**2, weights > 1)
    )
    products = np.column_stack([squares, 0 * squares])
    cut = Cut(parts[:, None], sd, EXCESS, 0.0, EXCESS**2)
    noise = Noise("gaussian", sd, 0)
    return SampledCells(counts, noise, cut, products, n_units=UNITS, n_strata=1)


def run(start, stop, first=0, last=CELLS):
    return Runs(*(np.array([place]) for place in (start, stop, first, last)))


@pytest.mark.parametrize("ends", [(0, 1), (1, 3), (2, 4)])
@pytest.mark.parametrize(("inside", "outside"), [(1.0, 0.0), (0.7, -0.3)])
def test_variances_of_sums_are_those_of_the_uncapped_units(ends, inside, outside):
    """n/(n - 1) times the squared deviations of the scores, each unit with its whole weight."""
    weights, cells = units()
    is_inside = (cells >= ends[0]) & (cells < ends[1])
    scores = weights * np.where(is_inside, inside, outside)
    errors = cells_of(weights, cells).errors(run(*ends), np.array([inside]), np.array([outside]))
    assert errors.sampling == pytest.approx([UNITS * scores.var(ddof=1)])


def test_the_noise_of_a_weighted_sum_is_that_of_its_cells():
    """Sums of squares and of fourth powers of the weights, inside a run and outside it."""
    errors = cells_of(*units(), sd=0.5).errors(run(1, 3), np.array([0.7]), np.array([-0.3]))
    assert errors.squares == pytest.approx([2 * 0.7**2 + 2 * 0.3**2])
    assert errors.fourths == pytest.approx([2 * 0.7**4 + 2 * 0.3**4])
    assert errors.noise_sd > 0.5 * np.sqrt(errors.squares)


def test_a_public_total_takes_the_noise_of_all_cells_off():
    errors = cells_of(*units(), sd=0.5)
    balanced = SampledCells(**(vars_of(errors) | {"noise": Noise("gaussian", 0.5, CELLS)}))
    squares = balanced.errors(run(0, 2), np.array([0.7]), np.array([-0.3])).squares
    assert squares == pytest.approx([2 * 0.7**2 + 2 * 0.3**2 - (2 * 0.7 - 2 * 0.3) ** 2 / CELLS])


@pytest.mark.parametrize("mean_sd", [0.0, 0.2])
@pytest.mark.parametrize("sd", [0.0, 0.5])
def test_what_is_put_back_has_the_error_of_its_size_and_of_its_unlikeness(sd, mean_sd):
    """The excess of a run and of the others may each be a quarter larger or smaller."""
    weights, cells = units()
    sampled = cells_of(weights, cells, sd)
    sampled = replace(sampled, cut=replace(sampled.cut, mean_sd=mean_sd))
    errors = sampled.errors(run(1, 3), np.array([0.7]), np.array([-0.3]))
    is_capped, is_inside = weights > 1, (cells == 1) | (cells == 2)
    capped = np.array([0.7 * (is_capped & is_inside).sum(), -0.3 * (is_capped & ~is_inside).sum()])
    assert errors.shift == pytest.approx([-EXCESS * capped.sum()])
    squares = (
        (mean_sd * capped.sum()) ** 2,
        (UNLIKE * EXCESS) ** 2 * (capped**2).sum(),
        (EXCESS * sd) ** 2 * (2 * 0.7**2 + 2 * 0.3**2),
    )
    assert errors.shift_sd == pytest.approx([math.sqrt(sum(squares))])
    of_cells = sd**2 * (2 * 0.7**2 + 2 * 0.3**2)
    assert errors.noise_sd == pytest.approx([math.sqrt(of_cells + sum(squares))])


def vars_of(cells):
    return {name: getattr(cells, name) for name in SampledCells.__dataclass_fields__}
