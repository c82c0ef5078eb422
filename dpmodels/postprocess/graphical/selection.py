"""Which variables a graphical model joins: pairs that the model so far misses, by released tables.

The graph grows from independent variables. A model is fitted to it, and what the model misses of a
pair is the part that stands above the noise: over its k cells ``Σ max(|D| − 1.5 sd, 0)``, D the
released table less the model's; less what noise alone gives: its mean and 3 standard deviations,
``(.0586 k + 3 · .2056 √k) sd``, or of many pairs what one of them is expected to exceed by noise.
Pairs are joined by what is missed over a power of the cells that they add to the cliques, some at a
time; then the model is fitted again, until it misses nothing or the cliques are large enough.

Source: McKenna, Mullins, Sheldon and Miklau (2022), "AIM", Proc. VLDB, for tables chosen by what a
model misses of exact counts, at a cost; this package for released tables, without one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv

from dpmodels.errors import ArgumentError
from dpmodels.postprocess.graphical.fit import Dual
from dpmodels.postprocess.graphical.measurements import Residuals, without_missing
from dpmodels.postprocess.graphical.model import GraphicalModel
from dpmodels.postprocess.graphical.structure import JunctionTree, structure_of
from dpmodels.postprocess.residuals import Term, cells
from dpmodels.typing import Floats

# Cells of a clique, and of all cliques: choices, by simulated tables and their time.
MOST_CELLS, MOST_MODEL_CELLS = 50_000, 150_000
# The power of the cells that a pair adds; of the edges so far, how many are added at a time, and
# the fewest; how many pairs are tried for that; steps of a fit: choices, by simulated tables.
CELLS_POWER, GROWTH, FEWEST, TRIED, STEPS = 0.3, 0.15, 4, 40, 30
# The penalty of these fits, small enough that it moves no table by more than its noise: a choice.
WEAK_PENALTY = 0.003
# Noise sds that a cell's dependence must exceed, and standard deviations of the sum that the excess
# must: choices, by simulated tables.
THRESHOLD, CLEAR_SDS = 1.5, 3.0
# Edges that noise alone is expected to give if all columns are independent: a choice, by simulated
# tables (benchmarks/synth.py, "constants").
FALSE_EDGES = 1.0
# Mean and standard deviation of max(|z| - 1.5, 0), z standard normal.
MEAN_EXCESS, SD_EXCESS = 0.0586, 0.2056


class Limits(NamedTuple):
    """Most cells of a clique, and of all cliques together."""

    clique: int = MOST_CELLS
    model: int = MOST_MODEL_CELLS

    def allow(self, tree: JunctionTree) -> bool:
        """Return whether a tree is small enough."""
        return model_cells(tree) <= self.model and self.clique >= max(
            cells(clique, tree.sizes) for clique in tree.cliques
        )


DEFAULT_LIMITS = Limits()


def choose_structure(released: Residuals, limits: Limits = DEFAULT_LIMITS) -> JunctionTree:
    """Choose a graph from released pairs, by what a model misses of them.

    Missing values that are not detected above the noise have no cells.
    """
    complete = without_missing(released)
    tree = structure_of((), complete.sizes)
    multipliers: dict[Term, Floats] = {}
    while True:
        dual = Dual(complete, tree, WEAK_PENALTY)
        solution = dual.solved(STEPS, dual.stacked(multipliers))
        multipliers = dict(zip(dual.parts, dual.by_component(solution), strict=True))
        missed = missed_pairs(complete, dual.model(solution))
        larger = _forest(missed, tree, limits) if not tree.edges else _joined(missed, tree, limits)
        if larger is tree:
            return replace(tree, sizes=released.sizes)
        tree = larger


def missed_pairs(released: Residuals, model: GraphicalModel) -> dict[Term, float]:
    """Return how far each pair is from a model above its noise, in rows; those above 0."""
    missed, pairs = {}, released.pairs
    for pair in pairs:
        if model.contains(pair):
            continue
        try:
            expected = model.table(pair)
        except ArgumentError:
            continue
        sd = math.sqrt(released.cell_variance(pair))
        excess = np.maximum(np.abs(released.table(pair) - expected) - THRESHOLD * sd, 0.0).sum()
        above = float(excess) - excess_by_noise(expected.size, len(pairs)) * sd
        if above > 0:
            missed[pair] = above
    return missed


def excess_by_noise(n_cells: int, n_pairs: int) -> float:
    """Return the sum of excesses over cells, in noise sds, that dependence has to exceed.

    The sum has about the gamma distribution with its mean and variance.
    """
    mean, sd = MEAN_EXCESS * n_cells, SD_EXCESS * math.sqrt(n_cells)
    quantile = gammaincinv((mean / sd) ** 2, 1 - min(FALSE_EDGES / n_pairs, 1.0)) * sd**2 / mean
    return max(mean + CLEAR_SDS * sd, float(quantile))


def _forest(missed: Mapping[Term, float], tree: JunctionTree, limits: Limits) -> JunctionTree:
    """Return a tree without edges with a spanning forest of pairs that miss most."""
    root = list(range(len(tree.sizes)))
    for pair in sorted(missed, key=lambda pair: (-missed[pair], pair)):
        left, right = (root[i] for i in pair)
        if left != right and (larger := _with_pair(tree, pair, limits)):
            tree, root = larger, [left if i == right else i for i in root]
    return tree


def _joined(missed: Mapping[Term, float], tree: JunctionTree, limits: Limits) -> JunctionTree:
    """Return a tree with some further pairs; the same one if none fits."""
    scores: dict[Term, float] = {}
    before = model_cells(tree)
    for pair in sorted(missed, key=lambda pair: (-missed[pair], pair)):
        if larger := _with_pair(tree, pair, limits):
            scores[pair] = missed[pair] / max(model_cells(larger) - before, 1) ** CELLS_POWER
        if len(scores) == TRIED:
            break
    n_new = max(FEWEST, int(GROWTH * len(tree.edges)))
    for pair in sorted(scores, key=lambda pair: (-scores[pair], pair)):
        larger = None if tree.clique_of(pair) is not None else _with_pair(tree, pair, limits)
        if larger is not None and n_new:
            tree, n_new = larger, n_new - 1
    return tree


def _with_pair(tree: JunctionTree, pair: Term, limits: Limits) -> JunctionTree | None:
    """Return a tree with one more edge, and those that keep it chordal; None if it is too large."""
    larger = structure_of((*tree.cliques, pair), tree.sizes, most_cells=None)
    return larger if limits.allow(larger) else None


def model_cells(tree: JunctionTree) -> int:
    """Return the number of cells of all cliques."""
    return sum(cells(clique, tree.sizes) for clique in tree.cliques)
