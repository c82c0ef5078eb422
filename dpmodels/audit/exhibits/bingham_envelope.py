"""A rejection step that divides where it must multiply.

What was published
    Kent, Ganeiber and Mardia draw a direction u with density proportional to
    exp(-u'Au) by proposing from an angular central Gaussian law, whose density
    is proportional to (u'Ωu)^{-d/2}, Ω = I + 2A/b, and accepting with
    probability exp(-u'Au) (u'Ωu)^{d/2}/M. diffprivlib's `Bingham` and
    OpenDP's eigenvector sampler divide by (u'Ωu)^{d/2}, as if the envelope
    were not there to be taken off: the exponential mechanism of Chaudhuri,
    Sarwate and Sinha, private as the paper has it, is served by another law.
Why it is wrong
    What comes out has density proportional to exp(-u'Au) (u'Ωu)^{-d}, which is
    more concentrated. With q = u'Au the exponent -q has become
    -q - d log(1 + 2q/b), about twice to three times as steep.
The arithmetic
    d = 2, ε = 1, A = (ε/2)(λ₁ I - S). S = I gives the uniform law; one row
    turned by 90 degrees gives S = diag(2, 0), b = 1 + √2, and a density at the
    second axis that is e^{-1.727} times the uniform: the true ε of this pair is
    1.727. For the right law it is .562. (diffprivlib halves the exponent once
    more; its loss at ε = 1 is 1.24 for d = 4 and 12.6 for d = 50.)

References
----------
Kent, J. T., Ganeiber, A. M. and Mardia, K. V. (2018). "A new unified approach
for the simulation of a wide class of directional distributions." Journal of
Computational and Graphical Statistics 27(2), 291-301.
Chaudhuri, K., Sarwate, A. D. and Sinha, K. (2012). "Near-optimal
differentially private principal components." NeurIPS 25.
"""

import math
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.optimize import brentq

from dpmodels.audit.exhibits.exhibit import Batched, Exhibit
from dpmodels.audit.exhibits.matrices import scatter, upper
from dpmodels.audit.pair import Pair
from dpmodels.typing import Floats

EPS = 1.0


def envelope(gaps: Floats) -> float:
    """Find the b of the envelope: Σ 1/(b + 2 gap) = 1, for the eigenvalues of A, shape (d,)."""
    found = brentq(lambda b: float((1 / (b + 2 * gaps)).sum()) - 1, 0.5, gaps.size + 1.0)
    return float(found)


def _direction(rows: Floats, generator: np.random.Generator, runs: int, *, power: float) -> Floats:
    """Release u u' for a direction, the envelope raised to d times `power`: shape (runs, 3)."""
    moment = scatter(rows)
    columns = len(moment)
    exponent = EPS / 2 * (np.linalg.eigvalsh(moment)[-1] * np.eye(columns) - moment)
    b = envelope(np.linalg.eigvalsh(exponent))
    root = np.linalg.cholesky(np.linalg.inv(np.eye(columns) + 2 / b * exponent))
    largest = -(columns - b) / 2 + columns / 2 * math.log(columns / b)
    kept: list[Floats] = []
    while sum(map(len, kept)) < runs:
        proposed = generator.standard_normal((runs, columns)) @ root.T
        proposed /= np.linalg.norm(proposed, axis=1, keepdims=True)
        q = ((proposed @ exponent) * proposed).sum(axis=1)
        accept = np.exp(-q + columns * power * np.log1p(2 * q / b) - largest)
        kept.append(proposed[generator.random(runs) < accept])
    found = np.concatenate(kept)[:runs]
    return upper(found[:, :, None] * found[:, None, :])


def log_density(angles: Floats, gap: float, *, power: float) -> Floats:
    """Give the log density in the plane, relative to the uniform, by the angle to the first axis.

    `gap` is the difference of the eigenvalues of S. The integral is a sum over
    equidistant angles, which for a periodic function converges geometrically.
    """
    b = envelope(EPS / 2 * np.array([0.0, gap]))

    def weight(places: Floats) -> Floats:
        q = EPS / 2 * gap * np.sin(places) ** 2
        density: Floats = np.exp(-q) * (1 + 2 * q / b) ** (2 * power - 1)
        return density

    circle = np.linspace(0.0, math.pi, 512, endpoint=False)
    return np.asarray(np.log(weight(angles) / weight(circle).mean()))


def _loss(power: float) -> float:
    return float(np.abs(log_density(np.array([0.0, math.pi / 2]), 2.0, power=power)).max())


EXHIBIT = Exhibit(
    name="bingham_envelope",
    fault="the envelope is divided by twice instead of being taken off",
    source="diffprivlib, Bingham; OpenDP, the eigenvector sampler of PCA",
    recipe=Batched(partial(_direction, power=-0.5)),
    pair=Pair(
        rows=np.array([[1.0, 0.0], [0.0, 1.0]]),
        neighbour=np.array([[1.0, 0.0], [1.0, 0.0]]),
        name="a row turned by 90 degrees",
    ),
    eps=EPS,
    delta=0.0,
    runs=200_000,
    loss=_loss(-0.5),
)
CORRECT = replace(
    EXHIBIT,
    fault="",
    source="Kent, Ganeiber and Mardia (2018)",
    recipe=Batched(partial(_direction, power=0.5)),
    loss=_loss(0.5),
)
