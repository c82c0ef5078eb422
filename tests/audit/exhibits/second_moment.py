"""Noise on a second moment: of the wrong kind, in the wrong place, or of too small a size.

Gaussian noise, the right form
    S = Σ x xᵀ of rows in the unit ball moves by at most √2 in Frobenius norm
    if a row is replaced. Symmetric noise of standard deviation σ on the
    diagonal and σ/√2 off it is spherical in the coordinates where that norm is
    the Euclidean one, so σ = √2 m, with m the least noise for a shift of 1,
    is (ε, δ)-private: Gaussian differential privacy with μ = 1/m [1]_ [2]_.
`add_remove_sensitivity`
    σ = m. 1 is how far S moves when a row is added or removed. The DPdisPCA
    slides use 1/n for neighbours "differing in a single point" among a known
    n. True μ = √2/m.
`halved_noise`
    σ = m/√2. True μ = 2/m.
`bare_diagonal`
    No noise on the diagonal, which then tells how much of column j there is.
    No ε is enough.
`bare_triangle`
    Noise on and above the diagonal only, and the whole matrix released: every
    entry below is exact. No ε is enough.
`symmetrised_triangle`
    Noise T on and above the diagonal, each of standard deviation σ, and then
    (T + Tᵀ)/2, which halves it off the diagonal, where σ/√2 is called for.
    Rows at 45 degrees differ there only: true μ = √2/m. (A full square of
    noise, symmetrised the same way, is right.)

Positive noise for a positive matrix, `wishart_icassp` and `wishart_aaai`
    Add to S a Wishart matrix W with d + 1 degrees of freedom, and call S + W
    ε-differentially private: the noise is symmetric, keeps the matrix positive
    definite and needs no δ. Imtiaz and Sarwate [3]_, `dp_pca_sn` of the package
    dp-stats and `Wishart` of early diffprivlib draw W = Z Zᵀ with Z of shape
    (d, d + 1) and entries of standard deviation 1/(2ε); Jiang, Xie and Zhang
    [4]_ draw W of scale 3/(2nε) I for S/n. Sarwate retracted the first in April
    2017 and named the second as equally wrong.
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

A typing error, `regression_diagonal`
    `LinearRegression` of diffprivlib perturbs the entries of XᵀX (the
    functional mechanism of Zhang and others, 2012). For a diagonal entry it
    takes as sensitivity the largest of `[bounds[0], bounds[0]]`, squared: the
    lower bound twice. With bounds (0, b) it is 0 and so is the noise: the sum
    of squares of every column is released as it is. No ε is enough. Right is
    the larger of the two bounds, squared. Folding the noisy entry at zero is
    post-processing in both.

References
----------
.. [1] Dwork, Talwar, Thakurta and Zhang (2014). "Analyze Gauss: optimal bounds
   for privacy-preserving principal component analysis." STOC 2014.
.. [2] Dong, Roth and Su (2022). "Gaussian differential privacy." JRSS B 84(1).
.. [3] Imtiaz, H. and Sarwate, A. D. (2016). "Symmetric matrix perturbation for
   differentially-private principal component analysis." ICASSP 2016, 2339-2343.
   Retracted: Sarwate, A. D., "Retraction for ...", ergodicity.net, 7 April 2017.
.. [4] Jiang, W., Xie, C. and Zhang, Z. (2016). "Wishart mechanism for
   differentially private principal components analysis." AAAI 2016;
   arXiv:1511.05680.
"""

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dpmodels.audit.neighbours import Pair
from dpmodels.privacy import ApproxDP, gaussian_eps, gaussian_multiplier
from dpmodels.typing import Floats
from exhibits.exhibit import LAPLACE, Batched, Exhibit, upper

EPS, DELTA = 1.0, 1e-5
MULTIPLIER = gaussian_multiplier(ApproxDP(EPS, DELTA))
SIGMA = math.sqrt(2) * MULTIPLIER


@dataclass(frozen=True)
class Scales:
    """Standard deviations of the symmetric noise, by place."""

    diagonal: float
    above: float
    below: float


def _noised(rows: Floats, generator: np.random.Generator, runs: int, *, scales: Scales) -> Floats:
    """Release all entries of S with the noise of each place: shape (runs, d²)."""
    columns = rows.shape[1]
    above = np.triu(generator.standard_normal((runs, columns, columns)))
    symmetric = above + np.triu(above, 1).swapaxes(1, 2)
    values = np.ones((columns, columns))
    sizes = (
        scales.diagonal * np.eye(columns)
        + scales.above * np.triu(values, 1)
        + scales.below * np.tril(values, -1)
    )
    return (rows.T @ rows + sizes * symmetric).reshape(runs, -1)


def _recipe(scales: Scales) -> Batched:
    return Batched(partial(_noised, scales=scales), law="gaussian")


def _spherical(sigma: float) -> Scales:
    return Scales(sigma, sigma / math.sqrt(2), sigma / math.sqrt(2))


def _pair(first: tuple[float, float], second: tuple[float, float], name: str) -> Pair:
    alternatives = [[0.6, 0.8], [0.8, -0.6]]
    return Pair(np.array([first, *alternatives]), np.array([second, *alternatives]), name=name)


_HALF = math.sqrt(0.5)
_ORTHOGONAL = _pair((1.0, 0.0), (0.0, 1.0), "a row turned by 90 degrees")
_DIAGONALS = _pair((_HALF, _HALF), (_HALF, -_HALF), "a row turned from 45 to -45 degrees")

_ADD_REMOVE = Exhibit(
    name="add_remove_sensitivity",
    fault="rows are replaced, and the sensitivity is that of a row added",
    source="DPdisPCA slides",
    recipe=_recipe(_spherical(MULTIPLIER)),
    pair=_ORTHOGONAL,
    delta=DELTA,
    runs=50_000,
    loss=gaussian_eps(DELTA, MULTIPLIER / math.sqrt(2)),
)
_HALVED = replace(
    _ADD_REMOVE,
    name="halved_noise",
    fault="half the noise",
    source="a slip",
    recipe=_recipe(_spherical(SIGMA / 2)),
    loss=gaussian_eps(DELTA, MULTIPLIER / 2),
)
_BARE_DIAGONAL = replace(
    _HALVED,
    name="bare_diagonal",
    fault="no noise on the diagonal",
    recipe=_recipe(replace(_spherical(SIGMA), diagonal=0.0)),
    loss=math.inf,
    runs=20_000,
)
_BARE_TRIANGLE = replace(
    _BARE_DIAGONAL,
    name="bare_triangle",
    fault="no noise below the diagonal",
    recipe=_recipe(replace(_spherical(SIGMA), below=0.0)),
    pair=_DIAGONALS,
)
_SYMMETRISED = replace(
    _ADD_REMOVE,
    name="symmetrised_triangle",
    fault="a triangle of noise averaged with its transpose",
    source="a slip",
    recipe=_recipe(Scales(SIGMA, SIGMA / 2, SIGMA / 2)),
    pair=_DIAGONALS,
)
_GAUSSIAN = (_ADD_REMOVE, _HALVED, _BARE_DIAGONAL, _BARE_TRIANGLE, _SYMMETRISED)


def wishart(rows: Floats, generator: np.random.Generator, runs: int, *, scale: float) -> Floats:
    """Release S + Z Zᵀ, entries of Z of standard deviation `scale`: shape (runs, d(d+1)/2)."""
    columns = rows.shape[1]
    factor = scale * generator.standard_normal((runs, columns, columns + 1))
    return upper(rows.T @ rows + factor @ factor.swapaxes(1, 2))


def _laplace(rows: Floats, generator: np.random.Generator, runs: int) -> Floats:
    exact = upper(rows.T @ rows)
    return exact + generator.laplace(0.0, (rows.shape[1] + 1) / EPS, (runs, exact.size))


_OTHERS = np.array([[0.6, 0.0, 0.8], [0.0, -0.8, 0.6], [0.5, 0.5, 0.0]])
_ICASSP = Exhibit(
    name="wishart_icassp",
    fault="noise that is a positive matrix",
    source="Imtiaz and Sarwate (ICASSP 2016), retracted 2017; dp-stats, dp_pca_sn",
    recipe=Batched(partial(wishart, scale=1 / (2 * EPS))),
    pair=Pair(
        rows=np.vstack([[1.0, 0.0, 0.0], _OTHERS]),
        neighbour=np.vstack([[0.0, 0.0, 0.0], _OTHERS]),
        name="a row of length 1 against none",
    ),
    loss=math.inf,
)
_AAAI = replace(
    _ICASSP,
    name="wishart_aaai",
    source="Jiang, Xie and Zhang (AAAI 2016)",
    recipe=Batched(partial(wishart, scale=math.sqrt(3 / (2 * EPS)))),
)

LOWER, UPPER = 0.0, 1.0


def _moments(rows: Floats, generator: np.random.Generator, runs: int, *, bound: float) -> Floats:
    """Release the entries of XᵀX for two columns, each with ε/3: shape (runs, 3)."""
    scale = 3 / EPS * np.array([bound**2, UPPER**2 - LOWER**2, bound**2])
    noisy = upper(rows.T @ rows) + scale * generator.laplace(size=(runs, 3))
    noisy[:, [0, 2]] = np.abs(noisy[:, [0, 2]])
    return noisy


_FEW = np.array([[0.2, 0.9], [0.5, 0.1], [0.7, 0.3]])
_DIAGONAL = Exhibit(
    name="regression_diagonal",
    fault="the sensitivity of a square is taken from the lower bound twice",
    source="diffprivlib, LinearRegression",
    recipe=Batched(partial(_moments, bound=LOWER)),
    pair=Pair(
        np.vstack([_FEW, [1.0, 1.0]]),
        np.vstack([_FEW, [0.0, 0.0]]),
        name="a row at the upper bounds against one at the lower",
    ),
    loss=math.inf,
)

EXHIBITS = {value.name: value for value in (_ICASSP, _AAAI, *_GAUSSIAN, _DIAGONAL)}
CORRECT = {
    **{
        value.name: value.mended(Batched(_laplace), LAPLACE, loss=0.25)
        for value in (_ICASSP, _AAAI)
    },
    **{
        value.name: value.mended(
            _recipe(_spherical(SIGMA)), "Gaussian noise, spherical in the Frobenius norm"
        )
        for value in _GAUSSIAN
    },
    _DIAGONAL.name: _DIAGONAL.mended(Batched(partial(_moments, bound=UPPER)), LAPLACE),
}
