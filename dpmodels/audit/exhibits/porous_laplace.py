"""Laplace noise in floating point, whose holes show what it was added to.

What was published
    Textbooks and libraries drew Laplace noise as the inverse distribution
    function of a uniform double, and added it in doubles. Mironov (2012)
    showed that the set of doubles that can come out depends on the value.
Why it is wrong
    Doubles lie denser near zero. 1 plus any double is a multiple of 2⁻⁵³ once
    rounded, wherever it falls. 0 plus the noise is the noise itself, with all
    its low bits. So a release that is no multiple of 2⁻⁵³ tells 0 from 1 for
    certain. Between 2⁻ʲ⁻¹ and 2⁻ʲ doubles are multiples of 2⁻⁵³⁻ʲ, of which
    one in 2ʲ is a multiple of 2⁻⁵³: at ε = 1 such a release comes with
    probability near Σ (1 - 2⁻ʲ) P(2⁻ʲ⁻¹ < |noise| < 2⁻ʲ), about .27. No ε is
    enough.
The right form
    Integer noise on a public lattice: two-sided geometric noise on multiples
    of 2⁻¹⁰, whose outputs lie on the same lattice whatever the rows.

References
----------
Mironov, I. (2012). "On significance of the least significant bits for
differential privacy." CCS 2012.
Ghosh, A., Roughgarden, T. and Sundararajan, M. (2012). "Universally
utility-maximizing privacy mechanisms." SIAM Journal on Computing 41(6).
"""

import math
from dataclasses import replace

import numpy as np

from dpmodels.audit.exhibits.exhibit import Batched, Exhibit
from dpmodels.audit.pair import Pair
from dpmodels.typing import Floats

EPS = 1.0
_LATTICE = 2.0**10


def _porous(rows: Floats, generator: np.random.Generator, runs: int) -> Floats:
    """Release a sum with noise sign(u) ln(1 - 2|u|)/ε for u uniform: shape (runs, 1)."""
    uniform = generator.random((runs, 1)) - 0.5
    noise = -np.sign(uniform) * np.log1p(-2 * np.abs(uniform)) / EPS
    return np.asarray(rows.sum() + noise)


def _lattice(rows: Floats, generator: np.random.Generator, runs: int) -> Floats:
    """Release a sum of values on a lattice, with noise on it: shape (runs, 1)."""
    step = -math.expm1(-EPS / _LATTICE)
    up, down = generator.geometric(step, (2, runs, 1))
    return np.asarray(np.rint(rows * _LATTICE).sum() + up - down) / _LATTICE


EXHIBIT = Exhibit(
    name="porous_laplace",
    fault="the doubles that can come out depend on the rows",
    source="Mironov (CCS 2012)",
    recipe=Batched(_porous, step=None),
    pair=Pair(rows=np.array([0.0]), neighbour=np.array([1.0]), name="a value of 0 against 1"),
    eps=EPS,
    delta=0.0,
    runs=20_000,
    loss=math.inf,
)
CORRECT = replace(
    EXHIBIT,
    fault="",
    source="Ghosh, Roughgarden and Sundararajan (2012)",
    recipe=Batched(_lattice),
    loss=EPS,
)
