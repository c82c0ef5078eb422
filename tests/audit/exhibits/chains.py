r"""Noise for single states of a chain, which hides none of them.

Both release how often a lazy symmetric chain of two states was in either, with Laplace noise, and
claim that the state at the middle time is hidden with ε = 1. "Rows" are that state: the rest of the
series is drawn by the chain, given it. So the two laws to be distinguished are the conditional laws
of Pufferfish privacy [1]_, and no two tables are neighbours.

`noise_for_one_state`
    Noise of scale 2/ε, right where states are independent: one state moves both counts by 2
    together. Under a chain that stays with probability .95 the states about it mostly moved with
    it. Right is the quilt's scale [2]_.

*Loss.* With t the inverse of half the scale, the largest ratio of the two laws of what is released
is that far out, where it is ``E exp(t C)`` given one state over that given the other, C how often
it occurs. A side of the series is a product of matrices, and both sides are alike.

References
----------
.. [1] Kifer, D. and Machanavajjhala, A. (2014). "Pufferfish: A Framework for Mathematical Privacy
   Definitions." TODS 39(1).
.. [2] Song, S., Wang, Y. and Chaudhuri, K. (2017). "Pufferfish Privacy Mechanisms for Correlated
   Data." SIGMOD.
"""

import math
from functools import partial

import numpy as np

from dpmodels.audit.neighbours import Pair
from dpmodels.privacy.chain import lazy, markov_chain
from dpmodels.privacy.quilts import quilt_scale
from dpmodels.typing import Floats
from exhibits.exhibit import Batched, Exhibit

EPS = 1.0
STAY = 0.95
SIDE = 40  # times before the middle one, and as many after
STEPS = 2 * SIDE + 1


def loss_of(scale: float) -> float:
    """Return the largest log ratio of what is released, of the noise scale of a count."""
    tilted = lazy(2, STAY) @ np.diag([1.0, math.exp(2 / scale)])
    side = np.linalg.matrix_power(tilted, SIDE) @ np.ones(2)
    return 2 / scale + 2 * math.log(side[1] / side[0])


def _counted(rows: Floats, generator: np.random.Generator, runs: int, *, scale: float) -> Floats:
    """Draw both sides of the middle state, count its two states, and add noise."""
    mask = generator.uniform(size=(runs, 2, SIDE)) >= STAY
    states = (rows.ravel()[0] + np.cumsum(mask, axis=2)) % 2
    ones = rows.ravel()[0] + states.sum(axis=(1, 2))
    counts = np.column_stack([STEPS - ones, ones])
    return np.asarray(counts + generator.laplace(scale=scale, size=counts.shape))


_SCALE = 2 * quilt_scale(markov_chain([0, 1], stay=STAY, initial="stationary"), STEPS, EPS).scale
_ONE = Exhibit(
    name="noise_for_one_state",
    fault="noise for one state of a chain, as if the others did not depend on it",
    source="Song, Wang and Chaudhuri (2017), Section 1",
    recipe=Batched(partial(_counted, scale=2 / EPS)),
    pair=Pair(np.array([1.0]), np.array([0.0]), name="the state at the middle time"),
    loss=loss_of(2 / EPS),
    eps=EPS,
)

EXHIBITS = {_ONE.name: _ONE}
CORRECT = {
    _ONE.name: _ONE.mended(
        Batched(partial(_counted, scale=_SCALE)),
        "Song, Wang and Chaudhuri (2017), Theorem 4.3",
        loss_of(_SCALE),
    )
}
