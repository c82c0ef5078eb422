"""A graphical model of one table: its expected counts by clique, and in any other margin.

Two passes of sums over the separators of a junction tree give log Z and the margins of all cliques
(Theorem 74 c; Lauritzen and Spiegelhalter 1988).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from string import ascii_letters

import numpy as np

from dpmodels.errors import ArgumentError
from dpmodels.postprocess.graphical.structure import JunctionTree
from dpmodels.postprocess.residuals import Sizes, Term, cells, summed
from dpmodels.typing import Floats

# Cells of a margin that is made by summing out: a choice.
MOST_CELLS = 2_000_000
# A path of einsum: the two tables at once, by a product of matrices.
PAIRWISE = ("einsum_path", (0, 1))

Factor = tuple[Term, Floats]


@dataclass(frozen=True)
class GraphicalModel:
    """Expected counts of a table under a graphical model."""

    tree: JunctionTree  # Variables in no common clique are independent given those between them
    n_rows: float  # The sum of all counts
    # Expected counts by clique, in rows; 0 for missing values that are not detected, positive
    # elsewhere, and equal where cliques meet.
    tables: tuple[Floats, ...]

    def contains(self, term: Term) -> bool:
        """Return whether a term is in one clique, so that no independence is assumed."""
        return self.tree.clique_of(term) is not None

    def table(self, term: Term) -> Floats:
        """Return the expected counts of a margin of increasing variables, in rows.

        If no clique contains the term, other variables are summed out; ArgumentError if that needs
        a table of more than 2,000,000 cells.
        """
        clique = self.tree.clique_of(term)
        if clique is not None:
            return summed(self.tables[clique], self.tree.cliques[clique], term)
        return _summed_out(self, term)


def _summed_out(model: GraphicalModel, term: Term) -> Floats:
    """Return a margin by messages between the cliques that join a term, from the last to the first.

    A message is the distribution, given the separator, of the term's variables beyond it.
    """
    tree = model.tree
    positions = _between(tree, term)
    messages: dict[int, list[Factor]] = {k: [] for k in positions}
    for k in reversed(positions):
        separator = () if k == positions[0] else tree.separators[k]
        table = model.tables[k] / model.n_rows
        factor, waiting = (tree.cliques[k], table), messages.pop(k)
        while waiting:
            message = waiting.pop()
            needed = {*term, *separator}.union(*(part for part, _ in waiting))
            factor = _contracted(factor, message, needed, tree.sizes)
        if k == positions[0]:
            break
        below = summed(table, tree.cliques[k], separator)
        scope = tuple(i for i in factor[0] if i in separator or i in term)
        # Where a separator has no rows, nor has the clique.
        divisor = expanded(np.where(below > 0, below, 1.0), separator, scope)
        messages[tree.parents[k]].append((scope, summed(factor[1], factor[0], scope) / divisor))
    return summed(factor[1], factor[0], term) * model.n_rows


def _between(tree: JunctionTree, term: Term) -> list[int]:
    """Return positions of the cliques that join those of a term, each after the one it meets."""
    needed = set()
    for i in term:
        k = tree.clique_of((i,))
        while k is not None and k >= 0 and k not in needed:
            needed.add(k)
            k = tree.parents[k]
    positions = sorted(needed, reverse=True)
    n_children = Counter(tree.parents[k] for k in positions)
    while len(positions) > 1 and n_children[positions[-1]] == 1:
        beyond = set(tree.cliques[positions[-1]]) - set(tree.separators[positions[-2]])
        if beyond.intersection(term):
            break
        positions.pop()
    return positions[::-1]


def _contracted(left: Factor, right: Factor, needed: set[int], sizes: Sizes) -> Factor:
    """Return the product of two tables, summed over variables that are not needed."""
    scope = tuple(sorted({i for i in (*left[0], *right[0]) if i in needed}))
    if cells(scope, sizes) > MOST_CELLS:
        raise ArgumentError(
            f"a margin needs a table of {cells(scope, sizes):,} cells; at most {MOST_CELLS:,} are "
            "made. Use fewer variables, or compute from synthetic rows"
        )
    letters = dict(zip(sorted({*left[0], *right[0]}), ascii_letters, strict=False))
    names = ("".join(letters[i] for i in part) for part in (left[0], right[0], scope))
    product = np.einsum("{},{}->{}".format(*names), left[1], right[1], optimize=PAIRWISE)
    return scope, np.asarray(product)


def expanded(table: Floats, part: Term, term: Term) -> Floats:
    """Return a table of a part of a term's variables with an axis for each of the term's."""
    position = iter(table.shape)
    return table.reshape([next(position) if i in part else 1 for i in term])


def log_margins(tree: JunctionTree, potentials: list[Floats]) -> tuple[list[Floats], float]:
    """Return the logarithms of all clique margins of ``exp(sum of potentials)``, and of its sum."""
    beliefs = list(potentials)
    upward: list[Floats] = [np.zeros(())] * len(beliefs)
    for k in range(len(beliefs) - 1, 0, -1):
        clique, separator, parent = tree.cliques[k], tree.separators[k], tree.parents[k]
        upward[k] = log_summed(beliefs[k], clique, separator)
        above = tree.cliques[parent]
        beliefs[parent] = beliefs[parent] + expanded(upward[k], separator, above)
    for k in range(1, len(beliefs)):
        clique, separator, parent = tree.cliques[k], tree.separators[k], tree.parents[k]
        downward = log_summed(beliefs[parent], tree.cliques[parent], separator) - upward[k]
        beliefs[k] = beliefs[k] + expanded(downward, separator, clique)
    log_total = float(log_summed(beliefs[0], tree.cliques[0], ()))
    return beliefs, log_total


def log_summed(table: Floats, term: Term, part: Term) -> Floats:
    """Return the logarithm of the margin of a table of logarithms."""
    axes = tuple(k for k, i in enumerate(term) if i not in part)
    peak = table.max(axis=axes, keepdims=True)
    total = np.log(np.exp(table - peak).sum(axis=axes, keepdims=True)) + peak
    return np.asarray(total.reshape([table.shape[k] for k, i in enumerate(term) if i in part]))
