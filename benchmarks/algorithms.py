"""Published algorithms for tables of counts, with proofs; for evaluations alone.

Each is a function of counts by cell and eps, and adds noise from `dpmodels.noise`. `LINE` has those
for one axis, `PLANE` those for two. `dpmodels evaluate` compares them with the mechanisms of
dp_hist, and so does a study of one's own:

    dp.evaluate(LINE, dp.shapes.standard(1024), scale=1e5, eps=0.1)
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise, product
from typing import Final, TypeVar

import numpy as np
from scipy.fft import dctn, idctn

from dpmodels.evaluation.histograms import noisy
from dpmodels.noise import source
from dpmodels.noise.finite import draw_finite
from dpmodels.typing import Floats, Integers

Table = TypeVar("Table", Floats, Integers)

# Of the budget, for the number of rows, where an algorithm buys it.
TOTAL: Final = 1 / 20


# --- trees of noisy counts


# Noisy counts of a table at several levels of detail, and the least squares table of them all.
#
# Each level puts b cells of the next one together. Of levels with independent noise of variances
# ``s_l``, equal within each, least squares takes two passes: up, a cell's estimate is the mean of
# its own count and of the sum of its parts' estimates, by their precisions; down, what the parts
# lack of their whole is shared out evenly among them, as they have one variance.


def put_together(table: Table, by: int) -> Table:
    """Sum blocks of `by` cells along each axis."""
    parts = [part for cells in table.shape for part in (cells // by, by)]
    sums: Table = table.reshape(parts).sum(axis=tuple(range(1, 2 * table.ndim, 2)))
    return sums


def spread(table: Floats, by: int) -> Floats:
    """Repeat each cell `by` times along each axis."""
    for axis in range(table.ndim):
        table = table.repeat(by, axis=axis)
    return table


def padded(table: Integers, by: int) -> tuple[Integers, int]:
    """Return a table of ``by**height`` cells along each axis, empty ones behind, and the height."""
    height = 0
    while by**height < max(table.shape):
        height += 1
    return np.pad(table, [(0, by**height - cells) for cells in table.shape]), height


def noisy_tree(counts: Integers, eps: float, shares: Callable[[int], Floats]) -> Floats:
    """Return the least squares table of a noisy tree whose nodes have two parts along each axis.

    `shares`, of a height, are those of the levels, the root first, in `eps`; they add up to 1.
    """
    finest, height = padded(counts, 2)
    levels = [finest]
    for _ in range(height):
        levels.append(put_together(levels[-1], 2))
    scales = 1 / (eps * shares(height))
    noise = [noisy(level, scale) for level, scale in zip(levels[::-1], scales, strict=True)]
    estimates = least_squares(noise, (2 * scales**2).tolist(), 2)
    return estimates[tuple(slice(cells) for cells in counts.shape)]


def least_squares(levels: Sequence[Floats], variances: Sequence[float], by: int) -> Floats:
    """Return the estimate of the finest level, the last, from all of them."""
    parts = by ** levels[0].ndim
    estimate, variance = levels[-1], variances[-1]
    up = [estimate]
    for level, noise in zip(levels[-2::-1], variances[-2::-1], strict=True):
        weight = parts * variance / (noise + parts * variance)
        estimate = weight * level + (1 - weight) * put_together(estimate, by)
        variance = weight * noise
        up.append(estimate)
    totals = up[-1]
    for finer in up[-2::-1]:
        totals = finer + spread(totals - put_together(finer, by), by) / parts
    return np.asarray(totals)


# --- one axis


def greedyh(counts: Integers, eps: float) -> Floats:
    """A binary tree of noisy counts, in which levels that ranges need more have more of the budget.

    Return counts by cell of the least squares table of a weighted binary tree.

    Theorem
        ε-differentially private where neighbours have one row more or fewer: the shares of the
        levels add up to ε and depend on no row.
    Sensitivity
        A row is in one node of each level: 1 in L1 a level.
    Noise
        Discrete Laplace of scale ``1/ε_l`` on level l. If prefix ranges use ``c_l`` nodes of it,
        ``sum c_l/ε_l²`` is least for ``ε_l`` proportional to ``c_l^(1/3)``.
    Numerics
        exact: integers on nodes; least squares in floats follows the release.
    Source
        Li, Hay, Miklau (2014), "A data- and workload-aware algorithm for range queries under
        differential privacy", PVLDB, whose second stage it is; Cormode et al. (2012),
        "Differentially private spatial decompositions", ICDE, for the cube roots.
    """
    return noisy_tree(counts.ravel(), eps, greedyh_shares).reshape(counts.shape)


def greedyh_shares(height: int) -> Floats:
    """Return the shares of the levels, the root first, by the nodes that prefixes use of each.

    Half of all prefixes end in the second half of a node of any level, and use its first; the root
    serves the one that is the whole.
    """
    used = np.full(height + 1, 2.0**height / 2)
    used[0] = 1.0
    weights = np.cbrt(used)
    return np.asarray(weights / weights.sum())


MWEM_ROUNDS: Final = 10
# Times that all answers are gone through after each round.
_MWEM_PASSES: Final = 20


def mwem(counts: Integers, eps: float) -> Floats:
    """Multiplicative weights: a distribution is moved towards answers that it gets most wrong.

    Return a table of the noisy total that agrees with ten noisy counts of ranges.

    Theorem
        ε-differentially private where neighbours have one row more or fewer, by adding up: ε/20 for
        the number of rows, and for each of ten rounds one half of a tenth of the rest to choose a
        query and one half to answer it. Inconsistent: ten queries do not fix a table of more cells.
    Sensitivity
        Queries are counts of the rows from the first cell to some cell. A row more or fewer moves
        each by 0 or 1, and so the whole-number score ``|q(x) - round(q(y))|`` by 1 at most, some up
        and others down, where y is what was released before: a draw with weights
        ``exp(a score / 2)`` is a-differentially private.
    Noise
        Discrete Laplace on the number of rows, and on the answer of each query that was drawn.
    Numerics
        exact: integer scores, integer noise and the exact law of the draw.
    Source
        Hardt, Ligett, McSherry (2012), "A simple and practical algorithm for differentially private
        data release", NIPS. There the number of rows is public; here it is bought.
    """
    exact = counts.ravel().cumsum()
    total = max(float(noisy(exact[-1:], 1 / (TOTAL * eps))[0]), 1.0)
    share = (1 - TOTAL) * eps / (2 * MWEM_ROUNDS)
    table = np.full(exact.size, total / exact.size)
    answers: dict[int, float] = {}
    for _ in range(MWEM_ROUNDS):
        levels = -mwem_scores(exact, table)
        chosen = draw_finite(levels, Fraction(share) / 2, source())
        answers[chosen] = float(noisy(exact[chosen : chosen + 1], 1 / share)[0])
        table = _moved(table, answers, total)
    return table.reshape(counts.shape)


def mwem_scores(exact: Integers, table: Floats) -> Integers:
    """Return how far each count of rows up to a cell is from that of a released table."""
    return np.asarray(np.abs(exact - np.rint(table.cumsum()).astype(np.int64)))


def _moved(table: Floats, answers: dict[int, float], total: float) -> Floats:
    """Multiply the weights of the cells of each query by an exponential of what it lacks."""
    for _ in range(_MWEM_PASSES):
        for last, answer in answers.items():
            lacking = (answer - table[: last + 1].sum()) / (2 * total)
            table[: last + 1] *= math.exp(min(max(lacking, -1.0), 1.0))
            table *= total / table.sum()
    return table


# Parts of a row that a score is rounded to, and of the noise's scale that a coefficient is.
_FINE: Final = 2**20


def efpa(counts: Integers, eps: float) -> Floats:
    """The first cosine coefficients of a table, so many as its energy and the noise make best.

    Return the table of which some first noisy coefficients are kept.

    Theorem
        ε-differentially private where neighbours have one row more or fewer: ε/2 to draw how many
        coefficients are kept, ε/2 for these, given how many.
    Sensitivity
        The transform is orthonormal, so one row moves all coefficients together by 1 in L2, and the
        length of those left out by 1 at most. So it moves the score, that length plus what is
        expected of the noise on those kept, which is public: a draw with weights
        ``exp(-(ε/2) score / 2)`` is ε/2-differentially private. Of one row the first coefficient is
        ``1/√n`` and the others are at most ``√(2/n)``: the first k move by
        ``√(1/n) + (k - 1) √(2/n)`` in L1, and by no more than √k.
    Noise
        Discrete Laplace on coefficients rounded to a lattice a millionth of their noise fine, the
        steps of which are counted as sensitivity besides.
    Numerics
        idealised: coefficients are floats; their rounding to 1e-16 of the rows is not counted. The
        draw has the exact law of its rounded scores.
    Source
        Ács, Castelluccia, Chen (2012), "Differentially private histogram publishing through lossy
        compression", ICDM, with a complex transform; the real one moves by less in L1. Code that
        adds noise to the lengths of complex coefficients and keeps their phases, as DPBench's does,
        keeps no ε: see the exhibit ``kept_phases`` of the audit.
    """
    exact = dctn(counts.ravel().astype(np.float64), norm="ortho")
    levels = np.floor(_FINE * efpa_scores(exact, eps / 2)).astype(np.int64)
    n_kept = 1 + draw_finite(levels, Fraction(eps) / (4 * (_FINE + 1)), source())
    sensitivity = float(efpa_moves(exact.size)[n_kept - 1])
    step = sensitivity / _FINE
    # Rounding moves each coefficient by one step more.
    scale = (_FINE + n_kept) * 2 / eps
    noise = noisy(np.rint(exact[:n_kept] / step).astype(np.int64), scale) * step
    coefficients = np.zeros(exact.size)
    coefficients[:n_kept] = noise
    return np.asarray(idctn(coefficients, norm="ortho").reshape(counts.shape))


def efpa_moves(cells: int) -> Floats:
    """Return how far one row moves the first 1, 2, ..., n coefficients in L1, at most."""
    n_kept = np.arange(1, cells + 1)
    single = (1 + (n_kept - 1) * math.sqrt(2)) / math.sqrt(cells)
    return np.asarray(np.minimum(np.sqrt(n_kept), single))


def efpa_scores(exact: Floats, eps: float) -> Floats:
    """Return the expected length of the error for each number of coefficients kept."""
    energy = np.append(np.cumsum(exact[:0:-1] ** 2)[::-1], 0.0)
    noise = np.sqrt(2.0 * np.arange(1, exact.size + 1)) * efpa_moves(exact.size) / eps
    return np.asarray(np.sqrt(energy) + noise)


# --- one axis or two


AHP_FIRST: Final = 0.85
_AHP_THRESHOLD: Final = 0.35


def ahp(counts: Integers, eps: float) -> Floats:
    """Clusters of cells whose noisy counts are alike, each counted once more as a whole.

    Return for every cell an equal part of the noisy count of its cluster.

    Theorem
        ε-differentially private where neighbours have one row more or fewer: 0.85 ε for counts by
        cell, of which the clusters are made, and 0.15 ε for counts of clusters, given them.
    Sensitivity
        A row is in one cell and in one cluster: 1 in L1 for either, as clusters are released before
        they are counted.
    Noise
        Discrete Laplace. First counts below ``0.35 log(n)`` noise scales are taken for 0; the
        others, sorted, are cut where the squared deviations within a cluster would grow by more
        than the noise of one cluster more, ``2/ε²``, by its cells.
    Numerics
        exact: integer noise. Clusters are made of released counts in floats.
    Source
        Zhang, Chen, Xu, Meng, Xie (2014), "Towards accurate histogram publication under
        differential privacy", SDM; the two constants are those of the code of Hay et al. (2016),
        DPBench.
    """
    cells = counts.ravel()
    first, second = 1 / (AHP_FIRST * eps), 1 / ((1 - AHP_FIRST) * eps)
    rough = noisy(cells, first)
    rough[rough < _AHP_THRESHOLD * math.log(cells.size) * first] = 0.0
    order = np.argsort(-rough, kind="stable")
    cluster = np.empty(cells.size, dtype=np.int64)
    cluster[order] = clusters(rough[order], 2 * second**2)
    sizes = np.bincount(cluster)
    sums = np.zeros(sizes.size, dtype=np.int64)
    np.add.at(sums, cluster, cells)
    means = noisy(sums, second) / sizes
    return np.asarray(means[cluster].reshape(counts.shape))


def clusters(values: Floats, noise: float) -> Integers:
    """Return the number of the cluster of each sorted value, cut greedily from the first on.

    >>> clusters(np.array([9.0, 9.0, 2.0, 1.0, 0.0]), 4.0).tolist()
    [0, 0, 1, 1, 1]
    """
    counts = np.zeros(values.size, dtype=np.int64)
    size, mean, number = 1, float(values[0]), 0
    for place, value in enumerate(values[1:].tolist(), start=1):
        # Squared deviations that the value adds, and noise over cells that it saves.
        added = (value - mean) ** 2 * size / (size + 1)
        saved = noise / size + noise - noise / (size + 1)
        if added <= saved:
            mean += (value - mean) / (size + 1)
            size += 1
        else:
            size, mean, number = 1, value, number + 1
        counts[place] = number
    return counts


# --- two axes


def quadtree(counts: Integers, eps: float) -> Floats:
    """A tree of squares in squares, in which finer levels have more of the budget.

    Return counts by cell of the least squares table of a tree of squares.

    Theorem
        ε-differentially private where neighbours have one row more or fewer: the shares of the
        levels add up to ε and depend on no row.
    Sensitivity
        A row is in one square of each level: 1 in L1 a level.
    Noise
        Discrete Laplace of scale ``1/ε_i`` on level i from the root on, ``ε_i`` proportional to
        ``2^(i/3)``, down to single cells.
    Numerics
        exact: integers on squares; least squares in floats follows the release.
    Source
        Cormode, Procopiuc, Srivastava, Shen, Yu (2012), "Differentially private spatial
        decompositions", ICDE.
    """
    return noisy_tree(counts, eps, quadtree_shares)


def quadtree_shares(height: int) -> Floats:
    """Return the shares of the levels, the root first."""
    weights = np.cbrt(2.0) ** np.arange(height + 1)
    return np.asarray(weights / weights.sum())


def ugrid(counts: Integers, eps: float) -> Floats:
    """A grid of blocks, so many as the number of rows can fill, and rows spread evenly in each.

    Return for every cell an equal part of the noisy count of its block.

    Theorem
        ε-differentially private where neighbours have one row more or fewer: ε/20 for the number of
        rows, which decides the grid, and the rest for its counts, given the grid.
    Sensitivity
        A row more or fewer moves the total by 1, and the count of one block by 1.
    Noise
        Discrete Laplace on the total N and on each block; ``√(N ε/10)`` blocks along each axis.
    Numerics
        exact: integers.
    Source
        Qardaji, Yang, Li (2013), "Differentially private grids for geospatial data", ICDE. There N
        is known; here it is bought.
    """
    total = float(noisy(counts.sum(keepdims=True).ravel(), 1 / (TOTAL * eps))[0])
    left = (1 - TOTAL) * eps
    n_wanted = math.sqrt(max(total, 0.0) * left / 10)
    edges = [edges_of(cells, n_wanted) for cells in counts.shape]
    return spread_evenly(noisy(sums_of(counts, edges), 1 / left), edges)


def edges_of(cells: int, n_wanted: float) -> Integers:
    """Return the ends of nearly equal blocks of cells, one block at least."""
    n_cells = min(max(math.ceil(n_wanted), 1), cells)
    return np.arange(n_cells + 1) * cells // n_cells


def sums_of(counts: Integers, edges: Sequence[Integers]) -> Integers:
    """Return the counts of the blocks between the ends on each axis."""
    for axis, ends in enumerate(edges):
        counts = np.add.reduceat(counts, ends[:-1], axis=axis)
    return counts


def spread_evenly(blocks: Floats, edges: Sequence[Integers]) -> Floats:
    """Return for every cell an equal part of what its block has."""
    for axis, ends in enumerate(edges):
        sizes = np.diff(ends)
        wide = np.expand_dims(sizes, tuple(other for other in range(blocks.ndim) if other != axis))
        blocks = (blocks / wide).repeat(sizes, axis=axis)
    return blocks


def agrid(counts: Integers, eps: float) -> Floats:
    """A coarse grid, each block of which is cut finer by how many rows it seems to hold.

    Return for every cell a part of its fine block that agrees with the coarse one.

    Theorem
        ε-differentially private where neighbours have one row more or fewer: ε/20 for the number of
        rows, half of the rest for the coarse blocks, given that, and half for the fine ones, given
        the coarse counts. Fine blocks of all coarse ones are disjoint, and cost once.
    Sensitivity
        A row more or fewer moves the total by 1, one coarse block by 1, and one fine block by 1.
    Noise
        Discrete Laplace. ``max(10, √(N ε/10)/4)`` coarse blocks along each axis, and in one of N'
        rows ``√(N' ε/10)`` fine ones, ε being what is left after the total. The fine counts of a
        coarse block and its own are made to agree by least squares.
    Numerics
        exact: integers; what follows the release is in floats.
    Source
        Qardaji, Yang, Li (2013), "Differentially private grids for geospatial data", ICDE. There N
        is known; here it is bought.
    """
    total = float(noisy(counts.sum(keepdims=True).ravel(), 1 / (TOTAL * eps))[0])
    half = (1 - TOTAL) * eps / 2
    coarse = max(10.0, math.sqrt(max(total, 0.0) * half / 5) / 4)
    edges = [edges_of(cells, coarse) for cells in counts.shape]
    wholes = noisy(sums_of(counts, edges), 1 / half).ravel()
    places = [
        tuple(slice(*pair) for pair in ends)
        for ends in product(*(pairwise(edge.tolist()) for edge in edges))
    ]
    finer = np.sqrt(np.maximum(wholes, 0.0) * half / 5)
    within = [
        [edges_of(cells, n_wanted) for cells in counts[place].shape]
        for place, n_wanted in zip(places, finer, strict=True)
    ]
    exact = [
        sums_of(counts[place], cells_within)
        for place, cells_within in zip(places, within, strict=True)
    ]
    fine = noisy(np.concatenate([line.ravel() for line in exact]), 1 / half)
    ends = np.cumsum([line.size for line in exact])[:-1]
    estimates = np.empty(counts.shape)
    for place, edges_within, n_rows, part, table in zip(
        places, within, wholes, np.split(fine, ends), exact, strict=True
    ):
        # The sum of the parts has so many times the variance of the whole.
        part += (n_rows - part.sum()) / (part.size + 1)
        estimates[place] = spread_evenly(part.reshape(table.shape), edges_within)
    return estimates


LINE: Final = {"greedyh": greedyh, "mwem": mwem, "ahp": ahp, "efpa": efpa}
PLANE: Final = {"quadtree": quadtree, "ugrid": ugrid, "agrid": agrid, "ahp": ahp}
