"""Positive noise for a positive matrix: the Wishart mechanisms.

What was published
    Add to the second moment S = Σ x xᵀ of rows in the unit ball a Wishart
    matrix W with d + 1 degrees of freedom, and call S + W ε-differentially
    private: the noise is symmetric, keeps the matrix positive definite and
    needs no δ. Imtiaz and Sarwate (ICASSP 2016), `dp_pca_sn` of the package
    dp-stats and `Wishart` of early diffprivlib draw W = Z Zᵀ with Z of shape
    (d, d + 1) and entries of standard deviation 1/(2ε); Jiang, Xie and Zhang
    (AAAI 2016) draw W of scale 3/(2nε) I for S/n. Sarwate retracted the first
    in April 2017 and named the second as equally wrong.
Why it is wrong
    The ratio of the densities was bounded where both are positive. They are
    not positive at the same places: S + W lies in the cone of matrices above
    S. For neighbours S = B + x xᵀ and S' = B an output O of the second that
    leaves the cone above B + x xᵀ can never come from the first. With entries
    of variance s², 1/(xᵀ W⁻¹ x) is s² χ² with 2 degrees of freedom for every
    d and every unit vector x, and W - x xᵀ is positive exactly where
    xᵀ W⁻¹ x <= 1. So the probability of leaving the cone is

        1 - exp(-1/(2 s²)) = 1 - exp(-2 ε²)    for s = 1/(2ε),
        1 - exp(-1/(2 s²)) = 1 - exp(-ε/3)     for s² = 3/(2ε),

    .865 and .283 at ε = 1, against zero: no ε is enough, and no δ below these.
The right form
    Laplace noise on the entries on and above the diagonal, of scale
    (d + 1)/ε: replacing a row moves them by at most d + 1 in L1.

References
----------
Imtiaz, H. and Sarwate, A. D. (2016). "Symmetric matrix perturbation for
differentially-private principal component analysis." ICASSP 2016, 2339-2343.
Retracted: Sarwate, A. D., "Retraction for ...", ergodicity.net, 7 April 2017.
Jiang, W., Xie, C. and Zhang, Z. (2016). "Wishart mechanism for differentially
private principal components analysis." AAAI 2016; arXiv:1511.05680.
"""

import math
from dataclasses import replace
from functools import partial

import numpy as np

from dpmodels.audit.exhibits.exhibit import Batched, Exhibit
from dpmodels.audit.exhibits.matrices import scatter, upper
from dpmodels.audit.pair import Pair
from dpmodels.typing import Floats

EPS = 1.0


def wishart(rows: Floats, generator: np.random.Generator, runs: int, *, scale: float) -> Floats:
    """Release S + Z Zᵀ, entries of Z of standard deviation `scale`: shape (runs, d(d+1)/2)."""
    columns = rows.shape[1]
    factor = scale * generator.standard_normal((runs, columns, columns + 1))
    return upper(scatter(rows) + factor @ factor.swapaxes(1, 2))


def _laplace(rows: Floats, generator: np.random.Generator, runs: int) -> Floats:
    exact = upper(scatter(rows))
    return exact + generator.laplace(0.0, (rows.shape[1] + 1) / EPS, (runs, exact.size))


_OTHERS = np.array([[0.6, 0.0, 0.8], [0.0, -0.8, 0.6], [0.5, 0.5, 0.0]])
ICASSP = Exhibit(
    name="wishart_icassp",
    fault="noise that is a positive matrix",
    source="Imtiaz and Sarwate (ICASSP 2016), retracted 2017; dp-stats, dp_pca_sn",
    recipe=Batched(partial(wishart, scale=1 / (2 * EPS))),
    pair=Pair(
        rows=np.vstack([[1.0, 0.0, 0.0], _OTHERS]),
        neighbour=np.vstack([[0.0, 0.0, 0.0], _OTHERS]),
        name="a row of length 1 against none",
    ),
    eps=EPS,
    delta=0.0,
    runs=20_000,
    loss=math.inf,
)
AAAI = replace(
    ICASSP,
    name="wishart_aaai",
    source="Jiang, Xie and Zhang (AAAI 2016)",
    recipe=Batched(partial(wishart, scale=math.sqrt(3 / (2 * EPS)))),
)
CORRECT = replace(
    ICASSP,
    fault="",
    source="Laplace noise of scale L1 sensitivity / eps",
    recipe=Batched(_laplace),
    loss=0.25,
)
