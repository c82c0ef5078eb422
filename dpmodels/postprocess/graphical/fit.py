"""Fit a graphical model to released residual components: the dual of a penalised likelihood.

Of components y_A with noise of sd σ_A, centred by C_A, the minimum over λ of the convex function
``n log Z(λ) − Σ λ_A·y_A + (τ/2) Σ σ_A² |C_A λ_A|²`` has the distribution p_λ that minimises ``n
KL(p ‖ q) + Σ_A |y_A − C_A m_A(p)|²/(2 τ σ_A²)``, m_A(p) its components (Theorem 74 c).

With τ = 1 the second term is the exact log-likelihood of the noise. A smaller τ trusts the release
more than the base measure q, the product of released one-way margins: of :func:`strength` and less
that with the smaller estimate of the error, by Stein's identity (Theorem 109).

Source: McKenna, Miklau and Sheldon (2021), "Winning the NIST Contest", for models of noisy margins;
Stein, C. (1981), "Estimation of the Mean of a Multivariate Normal Distribution", Annals of
Statistics, for estimates of errors; this package for the dual in residual components.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from functools import cached_property

import numpy as np

from dpmodels.noise import derived
from dpmodels.postprocess.graphical.measurements import (
    Residuals,
    centred_table,
    on_simplex,
    without_missing,
)
from dpmodels.postprocess.graphical.model import GraphicalModel, expanded, log_margins
from dpmodels.postprocess.graphical.structure import JunctionTree
from dpmodels.postprocess.residuals import Term, cells, shape, summed
from dpmodels.typing import Floats

# Steps of the minimisation, past corrections that it remembers, and the gradient where it ends, in
# noise sds: choices.
MOST_STEPS, CORRECTIONS, TOLERANCE = 300, 20, 0.05
# τ where the noise sd of a cell is 30 rows, its limits, and the smallest sd: choices, by simulated
# tables (benchmarks/synth.py, "penalty").
PENALTY, PENALTY_SD = 0.03, 30.0
LEAST_PENALTY, MOST_PENALTY, SMALLEST_SD = 0.003, 0.2, 1e-9
# What τ is multiplied by where this lowers the estimated error, how often, and steps of the fits
# for this, and of those to other noise: choices, by simulated tables.
LESS, MOST_TIMES, CHOICE_STEPS, PROBE_STEPS = 0.3, 2, 40, 20
# Rows that a level of the base measure has at least.
LEAST_ROWS = 0.5


def fit_model(
    released: Residuals,
    tree: JunctionTree,
    *,
    penalty: float | None = None,
    most_steps: int = MOST_STEPS,
) -> GraphicalModel:
    """Fit expected counts by clique to the released components inside of cliques.

    Missing values that are not detected above the noise have counts of 0. `penalty` is τ, by
    default that of :func:`strength`, or less if that lowers the estimated error.
    """
    # Hostile releases have numbers whose sums overflow.
    with np.errstate(over="ignore", invalid="ignore"):
        complete = without_missing(released)
        problem = Dual(complete, replace(tree, sizes=complete.sizes), penalty)
        start = None
        if penalty is None and tree.edges:
            problem, start = problem.with_least_error()
        model = problem.model(problem.solved(most_steps, start))
    tables = []
    for clique, table in zip(tree.cliques, model.tables, strict=True):
        tables.append(np.zeros(shape(clique, released.sizes)))
        tables[-1][tuple(map(slice, table.shape))] = table
    return GraphicalModel(tree, model.n_rows, tuple(tables))


def strength(released: Residuals, tree: JunctionTree) -> float:
    """Return τ by a public rule, tuned on simulated tables only.

    It falls with the mean noise sd of the cells of the edges, and has a limit on both sides.
    """
    if not tree.edges:
        return PENALTY
    variance = float(np.mean([released.cell_variance(pair) for pair in tree.edges]))
    ratio = PENALTY_SD / max(math.sqrt(variance), SMALLEST_SD)
    return min(max(PENALTY * ratio, LEAST_PENALTY), MOST_PENALTY)


def one_way_base(released: Residuals) -> dict[int, Floats]:
    """Return positive one-way margins: nonnegative, with half a row a level at least."""
    n_rows = released.n_rows
    return {
        i: np.maximum(on_simplex(released.table((i,)), n_rows), LEAST_ROWS)
        for i in range(len(released.sizes))
    }


class Dual:
    """The convex function of λ, by component, and its minimum."""

    def __init__(
        self, released: Residuals, tree: JunctionTree, penalty: float | None = None
    ) -> None:
        self.tree, self.n_rows = tree, released.n_rows
        placed = ((part, tree.clique_of(part)) for part in released.tables if part)
        cliques = {part: k for part, k in placed if k is not None}
        self.parts, self._cliques = tuple(cliques), tuple(cliques.values())
        sizes = [cells(part, tree.sizes) for part in self.parts]
        self._slices = [slice(end - n, end) for n, end in zip(sizes, np.cumsum(sizes), strict=True)]
        self._shapes = [released.tables[part].shape for part in self.parts]
        self._values = np.concatenate([released.tables[part].ravel() for part in self.parts])
        sds = np.array([released.sds[part] for part in self.parts])
        tau = strength(released, tree) if penalty is None else penalty
        self._sds = np.repeat(sds, sizes)
        self._penalties = tau * self._sds**2
        self._tolerance = TOLERANCE * float(sds.min()) / self.n_rows
        self._base = self._log_base(one_way_base(released))

    def _log_base(self, base: Mapping[int, Floats]) -> list[Floats]:
        """Return the logarithm of the base measure, each variable in one clique."""
        logs = [np.zeros((1,) * len(clique)) for clique in self.tree.cliques]
        for i, weights in base.items():
            k = self.tree.clique_of((i,))
            assert k is not None
            log_weights = np.log(weights / weights.sum())
            logs[k] = logs[k] + expanded(log_weights, (i,), self.tree.cliques[k])
        sizes = self.tree.sizes
        cliques = zip(logs, self.tree.cliques, strict=True)
        return [np.broadcast_to(log, [sizes[i] for i in clique]) for log, clique in cliques]

    @property
    def size(self) -> int:
        """Number of multipliers."""
        return len(self._values)

    def by_component(self, multipliers: Floats) -> list[Floats]:
        """Return the multipliers of each of `parts`."""
        pieces = zip(self._slices, self._shapes, strict=True)
        return [multipliers[at].reshape(shape) for at, shape in pieces]

    def stacked(self, tables: Mapping[Term, Floats]) -> Floats:
        """Return multipliers of `parts` one after another; 0 for those without a table."""
        shapes = zip(self.parts, self._shapes, strict=True)
        return np.concatenate([tables.get(part, np.zeros(of)).ravel() for part, of in shapes])

    def margins(self, multipliers: Floats) -> tuple[list[Floats], float]:
        """Return expected counts by clique, and log Z."""
        potentials = list(self._base)
        tables = self.by_component(multipliers)
        for part, k, table in zip(self.parts, self._cliques, tables, strict=True):
            potentials[k] = potentials[k] + expanded(table, part, self.tree.cliques[k])
        logs, log_total = log_margins(self.tree, potentials)
        return [np.exp(log - log_total) * self.n_rows for log in logs], log_total

    def value(self, multipliers: Floats) -> tuple[float, Floats]:
        """Return the function a row, and its gradient; both for multipliers that are centred."""
        tables, log_total = self.margins(multipliers)
        penalised = self._penalties * multipliers
        gradient = penalised - self._values
        for part, k, at in zip(self.parts, self._cliques, self._slices, strict=True):
            counts = summed(tables[k], self.tree.cliques[k], part)
            gradient[at] += centred_table(counts).ravel()
        value = self.n_rows * log_total - multipliers @ self._values + multipliers @ penalised / 2
        return float(value) / self.n_rows, gradient / self.n_rows

    def solved(self, most_steps: int, start: Floats | None = None) -> Floats:
        """Return the multipliers at the minimum, by L-BFGS."""
        from scipy.optimize import minimize

        result = minimize(
            self.value,
            np.zeros(self.size) if start is None else start,
            jac=True,
            method="L-BFGS-B",
            options={
                "maxiter": most_steps,
                "maxfun": 2 * most_steps,
                "maxcor": CORRECTIONS,
                "gtol": self._tolerance,
                "ftol": 1e-12,
            },
        )
        return np.asarray(result.x)

    def with_least_error(self) -> tuple[Dual, Floats]:
        """Return the problem with a penalty that the estimated error prefers, and near its end."""
        dual, solution = self, self.solved(CHOICE_STEPS)
        error = self.error(solution)
        for _ in range(MOST_TIMES):
            other = copy(dual)
            other._penalties = LESS * dual._penalties
            of_other = other.solved(CHOICE_STEPS, solution)
            if not (error_of_other := other.error(of_other)) < error:
                break
            dual, solution, error = other, of_other, error_of_other
        return dual, solution

    def error(self, solution: Floats) -> float:
        """Return Stein's estimate of the squared error, in noise variances, less a constant."""
        signs, other = self._signs, copy(self)
        other._values = self._values + self._sds * signs
        missed = self._missed(solution)
        moved = other._missed(other.solved(PROBE_STEPS, solution)) - missed
        return float(missed @ missed - 2 * signs @ moved)

    @cached_property
    def _signs(self) -> Floats:
        """Signs that no release determines, which stand for other noise."""
        words = derived(b"signs", 0).words(self.size)
        tables = map(centred_table, self.by_component(np.where(words % 2, 1.0, -1.0)))
        return np.concatenate([table.ravel() for table in tables])

    def _missed(self, multipliers: Floats) -> Floats:
        """Return the released less the fitted components, in noise sds."""
        missed = self._penalties * multipliers - self.n_rows * self.value(multipliers)[1]
        return np.asarray(missed / np.maximum(self._sds, SMALLEST_SD))

    def model(self, multipliers: Floats) -> GraphicalModel:
        """Return the model of these multipliers."""
        return GraphicalModel(self.tree, self.n_rows, tuple(self.margins(multipliers)[0]))
