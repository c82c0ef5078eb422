"""The law of a quadratic distance that was minimised over parameters left free.

Let ``Q(g) = |Ω(g)^{-½} M g|²`` be least over a linear family of vectors g. Where the noise ``Ω(g)``
grows with g alike in all directions Q is a ratio of quadratic forms, its least value the smallest
of the roots of ``M'M`` in the metric of the noise, and M g of mean zero for one g of the family.
With k free parameters of p the roots then have the density of a noncentral Wishart matrix, in
which, once the k noncentral ones are large, the smallest root y, given the others κ, is distributed
as

    ``y^{(p-k)/2 - 1} e^{-y/2} Π √(κ_i - y)``, ``0 < y < min κ``,

the χ² of ``p - k`` degrees of freedom where the κ are large, and smaller than it where they are
not: the χ² refuses too little where the free parameters are weakly identified. Noise that is
symmetric, or of several parts, grows with g not quite alike in all directions; there this is an
approximation.

Guggenberger, P., Kleibergen, F. and Mavroeidis, S. (2019). "A more powerful subvector Anderson
Rubin test in linear instrumental variables regression." Quantitative Economics 10, 487-526.
Muirhead, R. J. (1982). "Aspects of Multivariate Statistical Theory." Wiley, section 9.5.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import chdtri, xlogy

from dpmodels.typing import Floats

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)
# Of the root of y: beyond, the density has fallen by a factor of 10¹⁷.
_BEYOND = 9.0
# A root as far as this from the least changes its law by less than a thousandth.
_FAR = 1e4
# From here on a distance is as good as infinite.
_REFUSED = 500.0


def as_chi_squared(value: float, gaps: Floats, conditions: int) -> float:
    """Return the number that has the χ²'s tail where a least distance has its own.

    `gaps` tell how far the other roots lie above the least distance `value`, shape (free
    parameters,), positive at a minimum. At least `value`; as good as `value` where the gaps are
    large.
    """
    near = gaps[gaps < _FAR]
    # A gap that is not positive is that of no minimum.
    if not len(near) or near.min() <= 0 or not 0 < value < _REFUSED:
        return value
    roots = value + near
    middle = math.sqrt(value)
    top = min(math.sqrt(float(roots.min())), math.hypot(middle, _BEYOND))
    ends = np.concatenate([np.linspace(0.0, middle, 3), np.linspace(middle, top, 4)[1:]])
    half = np.diff(ends)[:, None] / 2
    z = ends[:-1, None] + half * (1 + _NODES)
    mass = (half * _WEIGHTS * _density(z, value, roots, conditions)).sum(axis=1)
    tail = float(mass[2:].sum() / mass.sum())
    return max(value, float(chdtri(conditions, tail))) if tail > 0 else _REFUSED


def _density(z: Floats, value: float, roots: Floats, conditions: int) -> Floats:
    """Return the density of the root of y, in units of the largest."""
    shape = np.log1p(-np.minimum(z[..., None] ** 2 / roots, 1 - 1e-15)).sum(axis=-1) / 2
    power = xlogy(conditions - 1.0, z) + shape - (z**2 - value) / 2
    return np.asarray(np.exp(power - power.max()))
