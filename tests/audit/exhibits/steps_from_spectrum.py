"""A private power method that counts its steps by the spectrum it is to protect.

What was published
    Hardt and Price (2014) multiply a frame by S and add noise, L times, L
    growing with λ_k/(λ_k - λ_{k+1}) of an upper bound. `dp_pca_ppm` of
    dp-stats takes λ from the rows: L = round(10 λ_k log d/(λ_k - λ_{k+1})),
    then σ = √(4 k L log(1/δ))/ε.
Why it is wrong
    L is a function of the rows without noise. Whoever sees it, in a returned
    count, a log or a clock, learns an eigenvalue ratio exactly; so does, with
    more work, whoever sees how far the directions scatter, since σ grows with
    L. The exhibit returns the count, as estimators with an `n_iter_` do: with
    S = diag(3, 0) it is 7, with one row turned, S = diag(2, 1), it is 14. No ε
    is enough. (With S = diag(1, 1) it divides by zero.)
The right form
    A public number of steps L, and noise for √L times the sensitivity, which
    for a unit vector is 1.

References
----------
Hardt, M. and Price, E. (2014). "The noisy power method: a meta algorithm with
applications." NeurIPS 27.
"""

import math

import numpy as np

from dpmodels.audit.neighbours import Pair
from dpmodels.privacy import ApproxDP, gaussian_multiplier
from dpmodels.typing import Floats
from exhibits.exhibit import Batched, Exhibit, upper

EPS, DELTA = 1.0, 1e-2
STEPS = 7


def _power(
    moment: Floats, generator: np.random.Generator, runs: int, steps: int, sigma: float
) -> Floats:
    """Run noisy power steps from (1, 1)/√2; release u u' and their number: shape (runs, 4)."""
    distance = np.full((runs, 2), math.sqrt(0.5))
    for _ in range(steps):
        distance = distance @ moment + sigma * generator.standard_normal((runs, 2))
        distance /= np.linalg.norm(distance, axis=1, keepdims=True)
    projector = upper(distance[:, :, None] * distance[:, None, :])
    return np.column_stack([projector, np.full(runs, float(steps))])


def steps_by_spectrum(moment: Floats) -> int:
    """Count the steps as dp-stats does, for one component of S, shape (d, d)."""
    second, first = np.linalg.eigvalsh(moment)[-2:]
    return round(10 * float(first / (first - second)) * math.log(len(moment)))


def _by_spectrum(rows: Floats, generator: np.random.Generator, runs: int) -> Floats:
    moment = rows.T @ rows
    steps = steps_by_spectrum(moment)
    sigma = math.sqrt(4 * steps * math.log(1 / DELTA)) / EPS
    return _power(moment, generator, runs, steps, sigma)


def _by_declaration(rows: Floats, generator: np.random.Generator, runs: int) -> Floats:
    sigma = math.sqrt(STEPS) * gaussian_multiplier(ApproxDP(EPS, DELTA))
    return _power(rows.T @ rows, generator, runs, STEPS, sigma)


_STEPS = Exhibit(
    name="steps_from_spectrum",
    fault="the number of steps is a function of the rows",
    source="dp-stats, dp_pca_ppm",
    recipe=Batched(_by_spectrum),
    pair=Pair(
        np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]),
        np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]),
        name="a row turned by 90 degrees",
    ),
    eps=EPS,
    delta=DELTA,
    loss=math.inf,
)

EXHIBITS = {_STEPS.name: _STEPS}
CORRECT = {
    _STEPS.name: _STEPS.mended(
        Batched(_by_declaration), "Hardt and Price (2014), a public number of steps"
    )
}
