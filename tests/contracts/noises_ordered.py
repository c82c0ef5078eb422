"""The noise in counts of cells that stand in an order, as `noises` has it."""

import math
from typing import Any

import numpy as np
from noises import Noise, discrete_laplace, releases_of

from dpmodels.postprocess.hierarchy import line
from dpmodels.postprocess.plane import BLOCK, plane
from dpmodels.postprocess.pooled_counts import Halves
from dpmodels.postprocess.wavelet import wavelets


def of_sums(case: Any, data: Any, releases: int) -> dict[str, Noise]:
    """What is added to each sum of cells, or difference, in units of the plan's scale."""
    if case.mechanism.name == "partition":
        return of_runs(case, data, releases)
    crossing = case.crossing(case.formula, data, case.book)
    plan, cells = crossing.plan, crossing.statistic.cross()[0]
    released = releases_of(crossing, releases)
    shape = plan.facts.shape
    if case.mechanism.name == "tree":
        hierarchy = line(shape[1], released[0].fanout)
        sums = np.concatenate(hierarchy.sums(cells[:-1].reshape(shape)), axis=1)
    elif case.mechanism.name == "grid":
        blocks = plane(shape[1:], released[0].fanout)
        turned = cells[:-1].reshape(shape[0], -1)[:, blocks.order]
        sums = np.concatenate(blocks.hierarchy.sums(turned), axis=1)
    else:
        sums = wavelets(cells[:-1].reshape(shape))
    exact = np.append(sums.ravel(), cells[-1]).astype(float) * plan.units_per_row
    draws = np.array([release.values * plan.units_per_row for release in released]) - exact
    if released[0].law == "laplace":
        return {"sums": Noise("gaussian", discrete_laplace(np.rint(draws), plan.scale))}
    return {"sums": Noise("gaussian", draws / plan.scale)}


def of_runs(case: Any, data: Any, releases: int) -> dict[str, Noise]:
    """What is added to the counts of the first step, and to the incomplete rows."""
    crossing = case.crossing(case.formula, data, case.book)
    exact, released = crossing.statistic.cross()[0].astype(float), releases_of(crossing, releases)
    groups, *sides = released[0].shape
    cells, table = math.prod(sides), exact[:-1].reshape(groups, -1)
    if len(sides) == 2:
        table = table[:, plane(sides, BLOCK).order]
    level, n_cells = released[0].levels[0], released[0].sizes[0]
    sums = Halves(cells).sums(table)[level].ravel()
    noise_by_part = {}
    for part, at, counted in (
        ("first", slice(n_cells), sums[sums.shape[0] - n_cells :]),
        ("incomplete", slice(-1, None), exact[-1:]),
    ):
        draws = np.array([release.values[at] for release in released]) - counted
        sd = released[0].noise_sds[0 if part == "first" else -1]
        scale = 1 / math.acosh(1 + sd**-2)
        laplace = released[0].law == "laplace"
        noise = discrete_laplace(np.rint(draws), scale) if laplace else draws / sd
        noise_by_part[part] = Noise("gaussian", noise)
    return noise_by_part
