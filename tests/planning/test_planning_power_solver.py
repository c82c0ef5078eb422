"""Rows, eps and effects are found where power is what was asked."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from dpmodels.errors import ArgumentError
from dpmodels.planning.power import (
    MOST_ROWS,
    _effect_of,
    _search,
    _standardised,
    effect_for,
    eps_for,
    rows_for,
)
from dpmodels.planning.power_simulation import Cell
from tests.planning.test_planning_population import asking


@pytest.mark.parametrize("sampling", [0.0, 1.0, 30.0])
@pytest.mark.parametrize("noise", [10.0, 100.0, 3_000.0])
def test_the_search_finds_where_a_growing_power_is_reached(sampling, noise):
    def power(rows):
        return float(ndtr(0.5 / np.hypot(sampling / np.sqrt(rows), noise / rows) - ndtri(0.975)))

    result = _search(power, (1_000.0, 1.0, 1e9), 0.8, 0.05, 0.7)
    assert power(result) == pytest.approx(0.8, abs=0.02)


def test_power_is_compared_in_standard_deviations():
    assert _standardised(0.5, 0.05) == pytest.approx(1.96, abs=1e-3)
    assert _standardised(0.0, 0.05) == _standardised(0.055, 0.05)
    assert _standardised(0.9, 0.05) < _standardised(1.0, 0.05) < 7


def test_the_search_says_where_there_is_nothing():
    assert np.isnan(_search(lambda rows: 0.3, (1_000.0, 10, MOST_ROWS), 0.8, 0.05, 0.7))


def test_the_search_passes_cells_where_nothing_is_identified():
    result = _search(lambda rows: float(rows > 70_000) * 0.9, (100.0, 1.0, 1e7), 0.8, 0.05, 0.7)
    assert 70_000 < result < 200_000


def test_the_effect_is_that_of_the_standard_errors_there_are():
    spread = np.append(np.full(90, 2.0), np.full(10, np.nan))
    effect = _effect_of(spread, 0.72, 0.05)
    assert 0.9 * ndtr(effect / 2 - ndtri(0.975)) == pytest.approx(0.72, abs=1e-6)
    assert np.isnan(_effect_of(spread, 0.95, 0.05))


@pytest.mark.product
def test_rows_eps_and_effect_belong_together():
    solver = asking("ttest", runs=80)
    rows = rows_for(solver, 1.0, 3.0, 0.8)
    assert solver.trial(Cell(rows, 1.0, 3.0)).expected(2).power[0] == pytest.approx(0.8, abs=0.06)
    assert eps_for(solver, rows, 3.0, 0.8) == pytest.approx(1.0, rel=0.25)
    assert effect_for(solver, rows, 1.0, 0.8)["F - M"] == pytest.approx(3.0, rel=0.1)


@pytest.mark.product
def test_dependence_is_found():
    w = effect_for(asking("table", runs=60), 2_000, 1.0, 0.8)
    assert 0.05 < w < 0.1


@pytest.mark.product
def test_what_is_not_reached_is_said():
    with pytest.raises(ArgumentError, match=r"100 rows have the power 0\.\d+ without any noise"):
        eps_for(asking("ttest"), 100, 1.0, 0.8)
    with pytest.raises(ArgumentError, match="no effect, however large"):
        effect_for(asking("glm", runs=20), 100, 0.1, 0.8)
    with pytest.raises(ArgumentError, match="exceed the range of the assumed response"):
        effect_for(asking("lm", runs=20), 16, 1e4, 0.95)
