"""A graphical model of one table: its expected counts by clique, and in any other margin.

*Theorem.* For potentials θ_c of the cliques of a junction tree, ``p(x) ∝ exp Σ_c θ_c(x_c)``, two
passes of sums over separators give log Z and all clique margins exactly. *Proof.* Separators
contain all that a clique shares with earlier ones, so sums may be taken from the last clique to
the first, each over variables that occur nowhere else (Lauritzen and Spiegelhalter 1988).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmodels.errors import ArgumentError
from dpmodels.postprocess.graphical.structure import JunctionTree
from dpmodels.postprocess.residuals import Term, cells, summed
from dpmodels.typing import Floats

# Cells of a margin that is made by summing out: a choice.
MOST_CELLS = 2_000_000


@dataclass(frozen=True)
class GraphicalModel:
    """Expected counts of a table under a graphical model.

    Attributes
    ----------
    tree : JunctionTree
        Cliques; variables in no common clique are independent given those between them.
    n_rows : float
        The sum of all counts.
    tables : tuple of ndarray
        Expected counts by clique, in rows; positive, and equal where cliques meet.
    """

    tree: JunctionTree
    n_rows: float
    tables: tuple[Floats, ...]

    def contains(self, term: Term) -> bool:
        """Return whether a term is in one clique, so that no independence is assumed."""
        return self.tree.clique_of(term) is not None

    def table(self, term: Term) -> Floats:
        """Return the expected counts of a margin of increasing variables, in rows.

        If no clique contains the term, other variables are summed out one by one; ArgumentError if
        that needs a table of more than 2,000,000 cells.
        """
        clique = self.tree.clique_of(term)
        if clique is not None:
            return summed(self.tables[clique], self.tree.cliques[clique], term)
        return _summed_out(self, term)


def _summed_out(model: GraphicalModel, term: Term) -> Floats:
    """Return a margin as a product of conditional tables, summed over all other variables."""
    tree, sizes = model.tree, model.tree.sizes
    factors: list[tuple[Term, Floats]] = []
    for k in _between(tree, term):
        clique, separator = tree.cliques[k], tree.separators[k]
        table = model.tables[k] / model.n_rows
        if factors:
            below = summed(table, clique, separator)
            table = table / expanded(below, separator, clique)
        factors.append((clique, table))
    while True:
        joined = {i: _scope(i, factors) for factor, _ in factors for i in factor if i not in term}
        if not joined:
            return _product(factors, term, sizes) * model.n_rows
        i = min(joined, key=lambda j: (cells(joined[j], sizes), j))
        touched = [factor for factor in factors if i in factor[0]]
        rest = tuple(j for j in joined[i] if j != i)
        factors = [factor for factor in factors if i not in factor[0]]
        factors.append((rest, _product(touched, rest, sizes)))


def _between(tree: JunctionTree, term: Term) -> list[int]:
    """Return positions of the cliques that a margin depends on, the first always among them."""
    needed = {0}
    for i in term:
        k = tree.clique_of((i,))
        while k is not None and k > 0 and k not in needed:
            needed.add(k)
            k = tree.parents[k]
    return sorted(needed)


def _scope(i: int, factors: list[tuple[Term, Floats]]) -> Term:
    return tuple(sorted({j for factor, _ in factors if i in factor for j in factor}))


def _product(factors: list[tuple[Term, Floats]], term: Term, sizes: tuple[int, ...]) -> Floats:
    """Return the product of tables, summed to a term."""
    scope = tuple(sorted({*term, *(j for factor, _ in factors for j in factor)}))
    if cells(scope, sizes) > MOST_CELLS:
        raise ArgumentError(
            f"a margin needs a table of {cells(scope, sizes):,} cells; at most {MOST_CELLS:,} are "
            "made. Use fewer variables, or compute from synthetic rows"
        )
    product = np.ones([sizes[i] for i in scope])
    for factor, table in factors:
        product = product * expanded(table, factor, scope)
    return summed(product, scope, term)


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
