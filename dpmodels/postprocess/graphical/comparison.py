"""How far a fitted model is off: pairs it does not contain, and errors of margins by its noise.

*Pairs.* The squared distance of a released pair from the model's is compared with the multiple of
chi-square that has the moments of its noise and of sampling (Theorem 74 e; Satterthwaite 1946).

*Errors of margins.* A release is simulated from the model: the components that were measured inside
its cliques, of its own expected counts, with noise of the known distribution. A model is fitted to
it, and its margins are compared with those it was drawn from. What the graph leaves out is not part
of these errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations, islice
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, ndtri

from dpmodels.errors import ArgumentError
from dpmodels.noise import Entropy
from dpmodels.postprocess.graphical.fit import fit_model
from dpmodels.postprocess.graphical.measurements import Residuals, centred_table
from dpmodels.postprocess.graphical.model import GraphicalModel
from dpmodels.postprocess.graphical.sampling import uniform
from dpmodels.postprocess.residuals import Term, cells, unlike
from dpmodels.typing import Floats

# Margins of each number of columns that are compared, and steps of the fit: choices.
MOST_MARGINS, MOST_STEPS = 60, 80


@dataclass(frozen=True)
class PairComparison:
    """A released pair that no clique contains, beside the model."""

    term: Term
    # Root mean squared difference of the exact from the model's counts over the cells of the
    # component, in rows, with the noise taken off; 0 where the noise explains it.
    distance: float
    # Squared distance in units of its expectation, times `df`: chi-square if the model holds.
    statistic: float
    df: float
    pvalue: float


def compare_unused(released: Residuals, model: GraphicalModel) -> tuple[PairComparison, ...]:
    """Compare all released pairs that no clique contains with the model.

    Conditional independence is what the model assumes of them. Their components were not fitted, so
    their noise is independent of the model's.
    """
    pairs = (pair for pair in released.pairs if not model.contains(pair))
    return tuple(_compared(pair, released, model) for pair in pairs)


def _compared(pair: Term, released: Residuals, model: GraphicalModel) -> PairComparison:
    counts, variance = model.table(pair), released.sds[pair] ** 2
    squares = float(((released.tables[pair] - centred_table(counts)) ** 2).sum())
    size = cells(pair, released.sizes)
    noise_df = size * unlike(pair, released.sizes)
    # Traces of C diag(μ) C and of its square: C is a Kronecker product of centring matrices.
    roots = [(np.eye(n) - 1 / n) ** 2 for n in counts.shape]
    sampling = float(counts.sum()) * unlike(pair, released.sizes)
    squared = float((counts * (roots[0] @ counts @ roots[1])).sum())
    mean = variance * noise_df + sampling
    spread = variance**2 * noise_df + 2 * variance * sampling + squared
    df = mean**2 / spread
    statistic = squares / mean * df
    excess = math.sqrt(max(squares - variance * noise_df, 0.0) / size)
    return PairComparison(pair, excess, statistic, df, float(chdtrc(df, statistic)))


class MarginErrors(NamedTuple):
    """Mean errors by number of columns, 1 to 3: shares of the rows that are misplaced, in [0, 1].

    `expected` is by the noise; `independent` that of independent columns with the simulated margins
    of one column, if the model is right.
    """

    expected: tuple[float, ...]
    independent: tuple[float, ...]


def expected_errors(model: GraphicalModel, released: Residuals, entropy: Entropy) -> MarginErrors:
    """Simulate a release from a model, and compare the model of it with this one."""
    simulated = fit_model(_simulated(model, released, entropy), model.tree, most_steps=MOST_STEPS)
    means = []
    for n_columns in (1, 2, 3):
        terms = _terms(len(released.sizes), n_columns)
        errors = [pair for term in terms if (pair := _errors(model, simulated, term))]
        means.append(np.mean(errors, axis=0).tolist() if errors else [math.nan, math.nan])
    return MarginErrors(*zip(*means, strict=True))


def _simulated(model: GraphicalModel, released: Residuals, entropy: Entropy) -> Residuals:
    inside = {part: sd for part, sd in released.sds.items() if model.contains(part) or not part}
    tables = {}
    for part, sd in inside.items():
        counts = model.table(part) if part else np.array(model.n_rows)
        noise = sd * ndtri(uniform(counts.size, entropy) * (1 - 2e-16) + 1e-16)
        tables[part] = centred_table(counts + noise.reshape(counts.shape))
    return Residuals(released.sizes, tables, inside)


def _terms(n_variables: int, n_columns: int) -> list[Term]:
    """Return some margins of `n_columns` variables, evenly among all of them."""
    terms = list(islice(combinations(range(n_variables), n_columns), 200_000))
    step = max(1, len(terms) // MOST_MARGINS)
    return terms[::step][:MOST_MARGINS]


def _errors(
    model: GraphicalModel, simulated: GraphicalModel, term: Term
) -> tuple[float, float] | None:
    """Return the errors of the simulated margin and of the independent one; None if too large."""
    try:
        exact, noisy = (fitted.table(term) / fitted.n_rows for fitted in (model, simulated))
    except ArgumentError:
        return None
    independent: Floats = np.ones(())
    for i in term:
        independent = np.multiply.outer(independent, simulated.table((i,)) / model.n_rows)
    return tuple(float(np.abs(exact - table).sum() / 2) for table in (noisy, independent))  # type: ignore[return-value]
