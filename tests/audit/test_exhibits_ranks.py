"""The exhibit of ranks: what is read off a place that depends on the rows themselves."""

import numpy as np
from exhibits import CORRECT, EXHIBITS

from dpmodels.noise import simulation


def test_exact_ranks_are_read_off_and_noisy_ones_are_not():
    places = []
    with simulation(seed=1):
        for value in (EXHIBITS["exact_ranks"], CORRECT["exact_ranks"]):
            sides = (
                value.recipe.batch(rows, 200) for rows in (value.pair.rows, value.pair.neighbour)
            )
            places += [np.unique(side[:, 2] % 0.5) for side in sides]
    assert set(places[0]) & set(places[1]) <= {0.0}, "only the ends of cells are common"
    assert max(map(len, places[:2])) <= 2 < min(map(len, places[2:]))
