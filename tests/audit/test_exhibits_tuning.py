"""The exhibit of tuning: what a fit and a choice that read the same rows lose together."""

import math

import numpy as np
import pytest
from exhibits import CORRECT, EXHIBITS

from dpmodels.noise import simulation


def chances(value, runs):
    """How often the count is beyond both and the label is 0, on each side."""
    with simulation(seed=1):
        sides = [value.recipe.batch(rows, runs) for rows in (value.pair.rows, value.pair.neighbour)]
    return [float(np.mean((side[:, 0] <= 3) & (side[:, 1] == 0))) for side in sides]


@pytest.mark.expensive
def test_losses_of_a_fit_and_a_choice_on_the_same_rows_add_up():
    values, runs = EXHIBITS["judged_by_its_own"], 400_000
    result = chances(values, runs)
    known_values = [0.5 / (1 + math.e), 0.5 * math.exp(-1) / (1 + math.exp(2))]
    # 6 standard deviations: false alarms 2e-9 each.
    for value, chance in zip(result, known_values, strict=True):
        assert abs(value - chance) < 6 * math.sqrt(chance / runs)
    assert abs(math.log(known_values[0] / known_values[1]) - values.loss) < 1e-12
    first, second = chances(CORRECT["judged_by_its_own"], runs)
    # The ratio is known to 0.02; the twin's is below e by far more.
    assert first < 0.9 * math.e * second
