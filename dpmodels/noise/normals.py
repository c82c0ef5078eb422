"""Uniform and normal floats: idealised, not exact.

The integer samplers of this folder have their laws exactly. The laws on a sphere have no lattice
to live on; they are drawn in floating point from the numbers made here, and what is proved of them
holds of the real numbers that these floats stand for. A uniform is the midpoint of one of 2^52
equal cells, a normal its quantile: no draw is infinite, none lies beyond 8.3, and the tail left
out has probability 2^-52.
"""

import numpy as np
from scipy.special import ndtri

from dpmodels.noise.protocol import Entropy
from dpmodels.typing import Floats


def uniforms(count: int, entropy: Entropy) -> Floats:
    """Draw floats uniform on the open interval (0, 1), one word each.

    They are odd multiples of 2^-53: never 0, never 1.
    """
    # With 53 bits the largest midpoint would round to 1.
    cells: Floats = (entropy.words(count) >> np.uint64(12)).astype(np.float64)
    return (cells + 0.5) * 2.0**-52


def normals(count: int, entropy: Entropy) -> Floats:
    """Draw standard normal floats, one word each. They are finite and at most 8.3 in size."""
    quantiles: Floats = ndtri(uniforms(count, entropy))
    return quantiles
