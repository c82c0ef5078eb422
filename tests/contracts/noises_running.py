"""The noise in sums that running totals are made of, by the definition of the root."""

import math
from typing import Any

import numpy as np
from noises import Noise, releases_of


def of_running_sums(case: Any, data: Any, releases: int) -> dict[str, Noise]:
    """What is added to each sum, in units of the plan's scale."""
    crossing = case.crossing(case.formula, data, case.book)
    exact, draws = running_sums(crossing), []
    for release in releases_of(crossing, releases):
        draws.append(release.values * crossing.plan.units_per_row - exact)
        assert release.noise_sd * crossing.plan.units_per_row <= crossing.plan.scale * (1 + 1e-9)
    return {"sums": Noise("gaussian", np.array(draws) / crossing.plan.scale)}


def running_sums(crossing: Any) -> np.ndarray:
    """The sums that noise is added to: of each group those of all cells, last the incomplete rows.

    In the plan's units, by the definition of the root's coefficients.
    """
    exact, groups = crossing.statistic.cross()[0].astype(float), crossing.plan.facts.shape[0]
    cells = exact[:-1].reshape(groups, -1)
    root = [math.comb(2 * k, k) / 4**k for k in range(cells.shape[1])]
    rounded = np.rint(2**20 * np.array(root)) / 2**20
    sums = [np.convolve(row, rounded)[: len(row)] for row in cells]
    return np.append(np.concatenate(sums), exact[-1]) * crossing.plan.units_per_row
