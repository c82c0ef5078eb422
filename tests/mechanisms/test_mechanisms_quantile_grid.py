"""Public cells of a range: every place is in one, those near the pole are narrow."""

import numpy as np
import pytest

from dpmodels.mechanisms.quantile_facts import DOUBLINGS, Grid

POLES = (0.0, 0.3, 1.0)


@pytest.mark.parametrize("pole", POLES)
@pytest.mark.parametrize("size", [1_000, 65_536])
def test_every_place_is_in_its_cell(size, pole):
    grid = Grid(size, pole)
    rng = np.random.default_rng(2)
    places = np.concatenate([rng.random(5_000), rng.random(5_000) ** 12, [0.0, pole, 1.0]])
    at = grid.cell(places).astype(int)
    assert (grid.lower[at] <= places).all()
    assert (places <= grid.upper[at]).all()
    assert abs(grid.cells - size) <= 5
    assert (grid.lower[1:] >= grid.upper[:-1]).all()
    assert np.isnan(grid.cell(np.array([np.nan]))).all()


@pytest.mark.parametrize("pole", POLES)
def test_the_pole_and_the_ends_are_cells_of_one_number(pole):
    grid = Grid(1_000, pole)
    for place in (0.0, pole, 1.0):
        at = int(grid.cell(np.array([place]))[0])
        assert grid.lower[at] == grid.upper[at] == place


@pytest.mark.parametrize("pole", POLES)
def test_cells_are_narrow_beside_their_distance_from_the_pole(pole):
    """So that a range a thousand times too wide keeps two digits and more."""
    grid = Grid(65_536, pole)
    away = np.abs((grid.lower + grid.upper) / 2 - pole)
    is_far = away > 2.0 ** (2 - DOUBLINGS)
    assert ((grid.upper - grid.lower)[is_far] <= 0.002 * away[is_far]).all()
    assert (grid.upper - grid.lower).max() <= 1 / 32_768 * (1 + 1e-9)


def test_steps_are_cells_and_shares_of_runs_fall_on_them():
    grid = Grid(16)
    assert grid.cell(np.arange(16) / 15).tolist() == list(range(16))
    assert (grid.lower == grid.upper).all()
    runs = grid.within(np.array([3, 3, 3]), np.array([4, 6, 6]), np.array([0.9, 0.5, 1.0]))
    assert runs * 15 == pytest.approx([3, 4, 5])
