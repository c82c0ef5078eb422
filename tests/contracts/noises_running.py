"""The noise in sums that running totals are made of, by the definition of the root."""

import math
from typing import Any

import numpy as np
from noises import Noise, releases_of


def of_running_sums(case: Any, data: Any, releases: int) -> dict[str, Noise]:
    """What is added to each sum, in units of the plan's scale."""
    own = case.crossing(case.formula, data, case.book)
    exact, draws = running_sums(own), []
    for one in releases_of(own, releases):
        draws.append(one.values * own.plan.units_per_row - exact)
        assert one.noise_sd * own.plan.units_per_row <= own.plan.scale * (1 + 1e-9)
    return {"sums": Noise("gaussian", np.array(draws) / own.plan.scale)}


def running_sums(own: Any) -> np.ndarray:
    """The sums that noise is added to: of each group those of all cells, last the incomplete rows.

    In the plan's units, by the definition of the root's coefficients.
    """
    exact, groups = own.statistic.cross()[0].astype(float), own.plan.facts.shape[0]
    cells = exact[:-1].reshape(groups, -1)
    root = [math.comb(2 * k, k) / 4**k for k in range(cells.shape[1])]
    rounded = np.rint(2**20 * np.array(root)) / 2**20
    sums = [np.convolve(row, rounded)[: len(row)] for row in cells]
    return np.append(np.concatenate(sums), exact[-1]) * own.plan.units_per_row
