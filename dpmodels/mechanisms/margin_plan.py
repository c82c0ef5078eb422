"""What a release of margins is planned from, and how far one row moves their components."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpmodels.postprocess.residuals import Term, cells, components, largest, subsets, unlike
from dpmodels.privacy import Adjacency, Event, Guarantee
from dpmodels.typing import Floats

# Of so many variables all sets are tried where a row is replaced; of more there is a bound.
MOST_TRIED = 14
# Steps towards the least of a convex function, of which any point gives a bound.
STEPS = 400
# Covers the rounding of the bound, in units of the sum of all weights.
SLACK = 1e-9


@dataclass(frozen=True)
class MarginFacts:
    """Public facts a plan may use; none of them is learnt from a row."""

    sizes: tuple[int, ...]  # Levels of each variable, with one for what is missing or unlisted
    terms: tuple[Term, ...]  # Margins that were asked for
    adjacency: Adjacency

    @cached_property
    def components(self) -> tuple[Term, ...]:
        """What the margins are made of; where it is public, the number of rows is none of it."""
        return components(self.terms)[int(self.adjacency.n_public) :]

    @cached_property
    def largest(self) -> tuple[Term, ...]:
        """Margins that all others are sums of."""
        return largest(self.terms)


@dataclass(frozen=True)
class MarginPlan:
    """A calibrated release: everything but the data."""

    guarantee: Guarantee  # What was asked and will hold
    events: tuple[Event, ...]  # What the ledger is charged
    facts: MarginFacts  # What the plan was made for
    measured: tuple[Term, ...]  # What noise is added to
    units: tuple[int, ...]  # Of a row, in each of them
    scales: tuple[float, ...]  # Of the noise of a cell, in these units
    noise_sds: tuple[float, ...]  # Its standard deviation, in rows


def all_cells(facts: MarginFacts, variances: Mapping[Term, float]) -> float:
    """Return the sum of the noise variances of all cells of all margins that were asked for.

    `variances` are those of a cell of each component before it is centred.
    """
    shares = _shares(facts)
    return math.fsum(variances[part] * shares[part] for part in facts.components)


def best_variances(facts: MarginFacts) -> dict[Term, float]:
    """Return the variances of components, up to a factor, whose sum over all cells is least.

    At a cost of ``Σ p_A/σ_A²`` the sum ``Σ v_A σ_A²`` is least for ``σ_A² ∝ √(p_A/v_A)``.
    """
    shares = _shares(facts)
    return {part: math.sqrt(unlike(part, facts.sizes) / shares[part]) for part in facts.components}


def _shares(facts: MarginFacts) -> dict[Term, float]:
    """Return what the variance of each component adds to that of all cells, v_A."""
    found = dict.fromkeys(components(facts.terms), 0.0)
    for term in facts.terms:
        size = cells(term, facts.sizes)
        for part in subsets(term):
            rest = size / cells(part, facts.sizes)
            found[part] += size * unlike(part, facts.sizes) / rest**2
    return found


def squared_sensitivity(facts: MarginFacts, variances: Mapping[Term, float]) -> float:
    """Return how far a row moves all components, squared, each in units of its variance.

    A row more or fewer adds ``⊗_{i∈A} (e − 1/n_i)`` to that of A, of squared length
    ``p_A = Π (1 − 1/n_i)``, whatever its levels. If a row is replaced by one that differs from it
    in the variables D, the component of A moves by a square of
    ``2 (p_A − Π_{i∈A∖D} (1 − 1/n_i) Π_{i∈A∩D} (−1/n_i))``: the sum over A, at its largest.
    """
    weights = {part: 1 / variances[part] for part in facts.components}
    alone = math.fsum(weights[part] * unlike(part, facts.sizes) for part in weights)
    if not facts.adjacency.n_public:
        return alone
    used = sorted({i for part in weights for i in part})
    least = _least(weights, facts.sizes) if len(used) <= MOST_TRIED else math.inf
    if len(used) > MOST_TRIED:
        least = _bound(weights, facts.sizes) - SLACK * math.fsum(weights.values())
    return 2 * (alone - least)


def _least(weights: Mapping[Term, float], sizes: tuple[int, ...]) -> float:
    """Return the least of ``Σ w_A Π_{i∈A} g_i`` over all sets of variables, tried one by one.

    ``g_i`` is ``1 − 1/n_i`` outside a set and ``−1/n_i`` inside. An axis a variable: first whether
    it is in A, then whether it is in the set.
    """
    used = sorted({i for part in weights for i in part})
    table = np.zeros((2,) * len(used))
    for part, weight in weights.items():
        table[tuple(int(i in part) for i in used)] = weight
    for axis, i in enumerate(used):
        without, within = np.moveaxis(table, axis, 0)
        both = [without + (1 - 1 / sizes[i]) * within, without - within / sizes[i]]
        table = np.stack(both, axis=axis)
    return float(table.min())


def _bound(weights: Mapping[Term, float], sizes: tuple[int, ...]) -> float:
    """Return a number that ``Σ w_A Π_{i∈A} g_i`` is not below for any set of variables.

    Terms of three variables and more are bounded one by one. Of one and two it is
    ``g'Wg/2 + l'g``, and as ``g_i² = (1 − 2/n_i) g_i + (1 − 1/n_i)/n_i`` at both of its values, it
    is with any λ that makes ``W + λI`` positive semidefinite a convex function less a number. That
    is nowhere in the box below its tangent at any point.
    """
    used = sorted({i for part in weights for i in part})
    at = {i: place for place, i in enumerate(used)}
    inverse = 1 / np.array([sizes[i] for i in used], dtype=np.float64)
    matrix, slope, rest = np.zeros((len(used), len(used))), np.zeros(len(used)), 0.0
    for part, weight in weights.items():
        if len(part) == 1:
            slope[at[part[0]]] += weight
        elif len(part) == 2:
            one, two = at[part[0]], at[part[1]]
            matrix[one, two] = matrix[two, one] = weight
        else:
            most = max(inverse[at[i]] / (1 - inverse[at[i]]) for i in part)
            rest -= weight * unlike(part, sizes) * most
    added = max(-float(np.linalg.eigvalsh(matrix)[0]), 0.0) * (1 + SLACK)
    convex = matrix + added * np.eye(len(used))
    slope = slope - added * (1 - 2 * inverse) / 2
    low, high = -inverse, 1 - inverse
    point = _descended(convex, slope, low, high)
    gradient = convex @ point + slope
    tangent = point @ convex @ point / 2 + slope @ point - gradient @ point
    tangent += np.minimum(gradient * low, gradient * high).sum()
    return float(tangent - added * (high * inverse).sum() / 2) + rest


def _descended(matrix: Floats, slope: Floats, low: Floats, high: Floats) -> Floats:
    """Return a point near the least of a convex quadratic function in a box."""
    step = 1 / max(float(np.linalg.eigvalsh(matrix)[-1]), 1e-300)
    point = ahead = (low + high) / 2
    for count in range(1, STEPS):
        moved = np.clip(ahead - step * (matrix @ ahead + slope), low, high)
        ahead = moved + (count - 1) / (count + 2) * (moved - point)
        point = moved
    return np.asarray(point)
