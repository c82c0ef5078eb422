"""Whole tables with given margins: they have them, and are near."""

from itertools import product

import numpy as np
import pytest

from dpmodels.postprocess.residuals import agreeing, fitted


@pytest.mark.parametrize("seed", range(20))
def test_whole_counts_have_the_margins_and_are_near(seed):
    rng = np.random.default_rng(seed)
    true = rng.poisson(rng.choice([0.3, 4.0, 60.0]), (rng.integers(2, 7), rng.integers(2, 7)))
    table = true + rng.normal(0, 6, true.shape)
    result = agreeing(table, true.sum(axis=1), true.sum(axis=0))
    assert result.dtype == np.int64
    assert (result >= 0).all()
    assert (result.sum(axis=1) == true.sum(axis=1)).all()
    assert (result.sum(axis=0) == true.sum(axis=0)).all()
    fitted_counts = fitted(table, true.sum(axis=1).astype(float), true.sum(axis=0).astype(float))
    # Of the convex set that holds the truth the projection comes closer to it.
    assert ((fitted_counts - true) ** 2).sum() <= ((table - true) ** 2).sum() + 0.1
    assert np.abs(result - fitted_counts).max() < 2


def test_small_tables_are_the_nearest_by_trying_all():
    rng = np.random.default_rng(3)
    for _ in range(20):
        lines, columns = rng.multinomial(5, [0.3, 0.7]), rng.multinomial(5, [0.2, 0.3, 0.5])
        table = rng.normal(0.8, 1.5, (2, 3))
        every = [
            line
            for first in product(range(6), repeat=3)
            if (line := np.array([first, columns - first])).min() >= 0
            and (line.sum(axis=1) == lines).all()
        ]
        smallest = min(((candidate - table) ** 2).sum() for candidate in every)
        result = agreeing(table, lines, columns)
        # Whole numbers about the nearest fractions: the best of all, or within half a row of it.
        assert ((result - table) ** 2).sum() <= smallest + 0.5


def test_no_rows_make_a_table_of_zeros():
    result = agreeing(np.full((2, 3), -4.0), np.zeros(2, np.int64), np.zeros(3, np.int64))
    assert not result.any()
