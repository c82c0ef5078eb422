"""Errors of margins that a fitted model can be expected to have by the noise of its release.

A release is simulated from the model: the components that were measured inside its cliques, of its
own expected counts, with noise of the known distribution. A model is fitted to it, and its margins
are compared with those it was drawn from. What the graph leaves out is not part of these errors.
"""

from __future__ import annotations

from itertools import combinations, islice
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from dpmodels.errors import ArgumentError
from dpmodels.noise import Entropy
from dpmodels.postprocess.graphical.fit import fit_model
from dpmodels.postprocess.graphical.measurements import Residuals, centred_table
from dpmodels.postprocess.graphical.model import GraphicalModel
from dpmodels.postprocess.graphical.sampling import uniform
from dpmodels.postprocess.residuals import Term
from dpmodels.typing import Floats

# Margins of each number of columns that are compared, and steps of the fit: choices.
MOST_MARGINS, MOST_STEPS = 60, 80


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
    expected, independent = [], []
    for n_columns in (1, 2, 3):
        errors = [
            _errors(model, simulated, term) for term in _terms(len(released.sizes), n_columns)
        ]
        available = [pair for pair in errors if pair is not None]
        means = np.mean(available, axis=0) if available else np.full(2, np.nan)
        expected.append(float(means[0]))
        independent.append(float(means[1]))
    return MarginErrors(tuple(expected), tuple(independent))


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
