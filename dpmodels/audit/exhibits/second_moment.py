"""Gaussian noise on a second moment, put in the wrong place or in too small a size.

The right form
    S = Σ x xᵀ of rows in the unit ball moves by at most √2 in Frobenius norm
    if a row is replaced. Symmetric noise of standard deviation σ on the
    diagonal and σ/√2 off it is spherical in the coordinates where that norm is
    the Euclidean one, so σ = √2 m, with m the least noise for a shift of 1,
    is (ε, δ)-private: Gaussian differential privacy with μ = 1/m.
The faults
    `add_remove_sensitivity`: σ = m. 1 is how far S moves when a row is added
    or removed. The DPdisPCA slides use 1/n for neighbours "differing in a
    single point" among a known n. True μ = √2/m.
    `halved_noise`: σ = m/√2. True μ = 2/m.
    `bare_diagonal`: no noise on the diagonal, which then tells how much of
    column j there is. No ε is enough.
    `bare_triangle`: noise on and above the diagonal only, and the whole
    matrix released: every entry below is exact. No ε is enough.
    `symmetrised_triangle`: noise T on and above the diagonal, each of
    standard deviation σ, and then (T + Tᵀ)/2, which halves it off the
    diagonal, where σ/√2 is called for. Rows at 45 degrees differ there only:
    true μ = √2/m. (A full square of noise, symmetrised the same way, is
    right.)

References
----------
Dwork, Talwar, Thakurta and Zhang (2014), "Analyze Gauss: optimal bounds for
privacy-preserving principal component analysis." STOC 2014, for the symmetric
noise. Dong, Roth and Su (2022), "Gaussian differential privacy", JRSS B 84(1),
for μ.
"""

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dpmodels.audit.exhibits.exhibit import Batched, Exhibit
from dpmodels.audit.exhibits.matrices import scatter
from dpmodels.audit.pair import Pair
from dpmodels.privacy import ApproxDP, gaussian_eps, gaussian_multiplier
from dpmodels.typing import Floats

EPS = 1.0
DELTA = 1e-5
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
    one = np.ones((columns, columns))
    sizes = (
        scales.diagonal * np.eye(columns)
        + scales.above * np.triu(one, 1)
        + scales.below * np.tril(one, -1)
    )
    return (scatter(rows) + sizes * symmetric).reshape(runs, -1)


def _recipe(scales: Scales) -> Batched:
    return Batched(partial(_noised, scales=scales), law="gaussian")


def _spherical(sigma: float) -> Scales:
    return Scales(sigma, sigma / math.sqrt(2), sigma / math.sqrt(2))


def _pair(first: tuple[float, float], second: tuple[float, float], name: str) -> Pair:
    others = [[0.6, 0.8], [0.8, -0.6]]
    return Pair(rows=np.array([first, *others]), neighbour=np.array([second, *others]), name=name)


_HALF = math.sqrt(0.5)
_ORTHOGONAL = _pair((1.0, 0.0), (0.0, 1.0), "a row turned by 90 degrees")
_DIAGONALS = _pair((_HALF, _HALF), (_HALF, -_HALF), "a row turned from 45 to -45 degrees")

ADD_REMOVE = Exhibit(
    name="add_remove_sensitivity",
    fault="rows are replaced, and the sensitivity is that of a row added",
    source="DPdisPCA slides",
    recipe=_recipe(_spherical(MULTIPLIER)),
    pair=_ORTHOGONAL,
    eps=EPS,
    delta=DELTA,
    runs=50_000,
    loss=gaussian_eps(DELTA, MULTIPLIER / math.sqrt(2)),
)
HALVED = replace(
    ADD_REMOVE,
    name="halved_noise",
    fault="half the noise",
    source="a slip",
    recipe=_recipe(_spherical(SIGMA / 2)),
    loss=gaussian_eps(DELTA, MULTIPLIER / 2),
)
BARE_DIAGONAL = replace(
    ADD_REMOVE,
    name="bare_diagonal",
    fault="no noise on the diagonal",
    source="a slip",
    recipe=_recipe(replace(_spherical(SIGMA), diagonal=0.0)),
    loss=math.inf,
    runs=20_000,
)
BARE_TRIANGLE = replace(
    ADD_REMOVE,
    name="bare_triangle",
    fault="no noise below the diagonal",
    source="a slip",
    recipe=_recipe(replace(_spherical(SIGMA), below=0.0)),
    pair=_DIAGONALS,
    loss=math.inf,
    runs=20_000,
)
SYMMETRISED = replace(
    ADD_REMOVE,
    name="symmetrised_triangle",
    fault="a triangle of noise averaged with its transpose",
    source="a slip",
    recipe=_recipe(Scales(SIGMA, SIGMA / 2, SIGMA / 2)),
    pair=_DIAGONALS,
)
CORRECT = {
    exhibit.name: replace(
        exhibit,
        fault="",
        source="Gaussian noise, spherical in the Frobenius norm",
        recipe=_recipe(_spherical(SIGMA)),
        loss=EPS,
    )
    for exhibit in (ADD_REMOVE, HALVED, BARE_DIAGONAL, BARE_TRIANGLE, SYMMETRISED)
}
