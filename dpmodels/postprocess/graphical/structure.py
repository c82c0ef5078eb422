"""Chordal graphs of variables as junction trees of their cliques."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import combinations

from dpmodels.errors import ArgumentError
from dpmodels.postprocess.residuals import Sizes, Term, cells, largest

# Cells of a declared clique: a choice.
MOST_CELLS = 20_000


@dataclass(frozen=True)
class JunctionTree:
    """Cliques of a chordal graph, each after the one it meets."""

    sizes: tuple[int, ...]  # Levels of each variable
    cliques: tuple[Term, ...]  # Every variable is in one of them
    parents: tuple[int, ...]  # Of an earlier clique that contains the separator; -1 for the first
    separators: tuple[Term, ...]  # What each clique has in common with all earlier ones

    @cached_property
    def edges(self) -> tuple[Term, ...]:
        """Pairs of variables that are in one clique."""
        return tuple(sorted({pair for term in self.cliques for pair in combinations(term, 2)}))

    def clique_of(self, term: Term) -> int | None:
        """Return the position of the first clique that contains a term; None if none does."""
        if not term:
            return 0
        positions = (k for k in self._positions[term[0]] if set(term) <= set(self.cliques[k]))
        return next(positions, None)

    @cached_property
    def _positions(self) -> Mapping[int, list[int]]:
        positions: dict[int, list[int]] = {i: [] for i in range(len(self.sizes))}
        for k, clique in enumerate(self.cliques):
            for i in clique:
                positions[i].append(k)
        return positions


def structure_of(
    terms: Iterable[Term], sizes: tuple[int, ...], most_cells: int | None = MOST_CELLS
) -> JunctionTree:
    """Return the junction tree of declared terms, with edges added until it is chordal.

    Variables that no term mentions are cliques of their own. ArgumentError if a clique has more
    than `most_cells` cells; None means no limit.
    """
    cliques = _cliques(terms, sizes)
    size = max(cells(clique, sizes) for clique in cliques)
    if most_cells is not None and size > most_cells:
        raise ArgumentError(
            f"structure= joins variables in a table of {size:,} cells; at most {most_cells:,} are "
            "fitted. Write fewer terms, or cut numbers into fewer cells"
        )
    return junction_tree(cliques, sizes)


def _cliques(terms: Iterable[Term], sizes: Sizes) -> list[Term]:
    """Return cliques of a chordal graph with all terms, by elimination: the last one first.

    Each time the variable is eliminated that adds the fewest edges, then makes the smallest table.
    """
    neighbours: dict[int, set[int]] = {i: set() for i in range(len(sizes))}
    for term in terms:
        for i in term:
            neighbours[i] |= set(term) - {i}
    fills = {i: _fill(i, neighbours, sizes) for i in neighbours}
    waiting = list(fills.values())
    heapify(waiting)
    cliques: list[Term] = []
    while waiting:
        fill = heappop(waiting)
        i = fill[-1]
        if fills.get(i) != fill:
            continue
        del fills[i]
        joined = neighbours.pop(i)
        cliques.append(tuple(sorted((i, *joined))))
        for j in joined:
            edges, size, _ = fills[j]
            # Each edge that would have been added from i is one less.
            fills[j] = (edges + len(joined) - len(neighbours[j]), size // sizes[i], j)
            neighbours[j] |= joined
            neighbours[j] -= {i, j}
        changed = joined.union(*(neighbours[j] for j in joined)) if fill[0] else joined
        for j in changed:
            if fill[0]:
                fills[j] = _fill(j, neighbours, sizes)
            heappush(waiting, fills[j])
    return cliques[::-1]


def _fill(i: int, neighbours: Mapping[int, set[int]], sizes: Sizes) -> tuple[int, int, int]:
    """Return how many edges eliminating a variable adds, then the cells of the table it makes.

    In a chordal graph there is always a variable that adds none.
    """
    pairs = combinations(sorted(neighbours[i]), 2)
    added = sum(k not in neighbours[j] for j, k in pairs)
    return added, cells((i, *neighbours[i]), sizes), i


def junction_tree(cliques: Iterable[Term], sizes: Sizes) -> JunctionTree:
    """Order the cliques of a chordal graph so that each meets all earlier ones in one of them.

    They are taken by a spanning tree of largest separators, which has this property.
    """
    terms = largest(cliques)
    ranked = sorted(terms, key=lambda term: (cells(term, sizes), term))
    containing: dict[int, list[int]] = {i: [] for i in range(len(sizes))}
    for rank, term in enumerate(ranked):
        for i in term:
            containing[i].append(rank)
    ordered: list[Term] = []
    closest = dict.fromkeys(range(len(ranked)), (0, 0))
    waiting = [(0, -rank) for rank in closest]
    heapify(waiting)
    heappush(waiting, (-len(sizes), -ranked.index(terms[-1])))
    parents, separators = [], []
    while waiting:
        rank = -heappop(waiting)[1]
        if rank not in closest:
            continue
        clique, parent = ranked[rank], closest.pop(rank)[1]
        separator = set(clique).intersection(ordered[parent]) if ordered else set()
        parents.append(parent if ordered else -1)
        separators.append(tuple(sorted(separator)))
        for other in {other for i in clique for other in containing[i] if other in closest}:
            shared = len(set(ranked[other]).intersection(clique))
            if shared > closest[other][0]:
                closest[other] = (shared, len(ordered))
                heappush(waiting, (-shared, -other))
        ordered.append(clique)
    return JunctionTree(tuple(sizes), tuple(ordered), tuple(parents), tuple(separators))
