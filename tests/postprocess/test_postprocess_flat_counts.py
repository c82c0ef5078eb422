"""Whole counts of cells that have noise of their own each: their sums, beside the unbiased ones."""

from dataclasses import replace

import numpy as np
import pytest
from ordered_cases import released

from dpmodels.postprocess.hierarchy import line
from dpmodels.postprocess.ordered import ordered


def counted(values, shape, rows=None):
    return ordered(replace(released("flat", shape, rows), values=values), shape)


def true_counts(rng, shape):
    """Rows in few cells, most of them in the first: cutting at 0 would move all others' noise."""
    counts = np.where(rng.random(shape) < 0.03, rng.geometric(0.01, shape), 0)
    counts[:, 0] += 1000
    return counts


@pytest.mark.parametrize("cells", [17, 100, 4096])
def test_sums_of_long_runs_are_no_farther_than_the_unbiased_ones(cells):
    """Whatever the noise: running totals that rise are nearer to all that do, but for rounding."""
    rng = np.random.default_rng(5)
    hierarchy = line(cells, 4)
    top = max(place for place, size in enumerate(hierarchy.sizes) if size <= 16)
    for sd in (1.0, 30.0, 300.0):
        for _ in range(10):
            true = true_counts(rng, (2, cells))
            noisy = np.append((true + sd * rng.normal(size=true.shape)).ravel(), 5.0)
            result = counted(noisy, true.shape)
            errors = [
                np.cumsum(hierarchy.sums(counts - true)[top], axis=1)
                for counts in (result.cells, result.whole[:-1].reshape(true.shape))
            ]
            before, after = (np.linalg.norm(error, axis=1) for error in errors)
            assert (after <= before + np.sqrt(hierarchy.sizes[top])).all()


@pytest.mark.parametrize("shape", [(1, 16), (1, 17), (3, 40), (2, 1000)])
@pytest.mark.parametrize("sd", [0.0, 5.0, 1e4])
def test_whole_counts_keep_a_public_total_and_the_truth(shape, sd):
    rng = np.random.default_rng(6)
    true = np.append(true_counts(rng, shape).ravel(), 7)
    for rows in (None, int(true.sum())):
        result = counted(true + sd * rng.normal(size=len(true)), shape, rows).whole
        assert result.min() >= 0
        assert rows is None or result.sum() == rows
        assert sd > 0 or result.tolist() == true.tolist()
