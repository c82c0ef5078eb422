"""Released pairs that a model does not contain, compared with it; and the errors to expect.

*Theorem.* Let y be the released component of a pair outside every clique, with noise covariance
``σ² C``, and μ the model's expected counts. If the population has the distribution of the model,
``C μ`` given, ``T = |y − C μ|²`` has the mean ``tr Σ`` and the variance ``2 tr Σ²`` of a quadratic
form in normal variables with ``Σ = σ² C + C diag(μ) C``, up to the error of μ itself. *Proof.* The
noise is Gaussian and independent of the rows, whose counts have at most the covariance
``diag(μ)``. The tail is that of the multiple of chi-square with these two moments (Satterthwaite
1946).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from dpmodels.postprocess.graphical.measurements import Residuals, centred_table
from dpmodels.postprocess.graphical.model import GraphicalModel
from dpmodels.postprocess.residuals import Term, cells, unlike


@dataclass(frozen=True)
class PairComparison:
    """A released pair that no clique contains, beside the model.

    Attributes
    ----------
    term : Term
        The two variables.
    distance : float
        Root mean squared difference of the exact from the model's counts over the cells of the
        component, in rows, with the noise taken off; 0 where the noise explains it.
    statistic, df, pvalue : float
        Squared distance in units of its expectation, times `df`: chi-square with `df` degrees of
        freedom if the model holds in the population.
    """

    term: Term
    distance: float
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
