"""Tight composition of what was charged, asked again after every answer.

What slipped
    A ledger of (ε, δ) accepts a release while the tight composition of all
    releases so far stays within (ε, δ). For releases fixed beforehand that is
    right, and the best there is. Here the analyst chooses the second release
    after seeing the first answer.
Why it is wrong
    Of several second releases, each of which composes with the first to just
    (ε, δ), one spends its δ where the first answer was small, another where it
    was large. Choosing between them by the answer spends both. At ε = .5,
    δ = .05: a count by geometric noise at .1; if it is 2 or more, the count
    again by geometric noise at .5619, else by Gaussian noise of μ = .4815. Both
    compositions cost .4999. The true δ at ε = .5 of two rows against one is
    .0654.
The right form
    A filter, which holds for choices made after answers. A ledger's leaves room
    for .4 or for μ = .4326 after the first charge.

References
----------
Rogers, R., Roth, A., Ullman, J. and Vadhan, S. (2016). "Privacy odometers and
filters: pay-as-you-go composition." NeurIPS 2016.
"""

import math
from functools import partial
from typing import Final

import numpy as np
from scipy.optimize import brentq

from dpmodels.audit.neighbours import Pair
from dpmodels.privacy import gaussian_delta
from dpmodels.typing import Floats
from exhibits.exhibit import Batched, Exhibit

EPS: Final = 0.5
DELTA: Final = 0.05
FIRST: Final = 0.1
# What the second release may cost, by tight composition and by a ledger's filter.
TIGHT: Final = (0.5619, 0.4815)
FILTERED: Final = (0.4, 0.4326)


def spent_delta(eps: float, second: tuple[float, float]) -> float:
    """Return the least delta at eps, above that of the first answer, of both answers.

    Of two rows against one; `second` is the eps of the geometric and the mu of the Gaussian noise.
    """
    pure, mu = second
    first, again = (1 / (1 + math.exp(-value)) for value in (FIRST, pure))
    losses = ((pure, again), (-pure, 1 - again))
    total = sum(mass * max(-math.expm1(eps - FIRST - loss), 0.0) for loss, mass in losses)
    return first * total + (1 - first) * gaussian_delta(eps + FIRST, 1 / mu)


def _answers(
    rows: Floats, generator: np.random.Generator, runs: int, *, second: tuple[float, float]
) -> Floats:
    """Return the privacy loss that an analyst computes from both answers, shape (runs, 1)."""
    pure, mu = second
    count = len(rows) - 1
    large = count + _geometric(generator, FIRST, runs) >= 1
    again = count + _geometric(generator, pure, runs) >= 1
    normal = count + generator.standard_normal(runs) / mu
    loss = np.where(large, np.where(again, pure, -pure), mu * mu * (normal - 0.5))
    return (np.where(large, FIRST, -FIRST) + loss)[:, None]


def _geometric(generator: np.random.Generator, eps: float, runs: int) -> Floats:
    share = -math.expm1(-eps)
    return np.asarray(generator.geometric(share, runs) - generator.geometric(share, runs), float)


def _loss(second: tuple[float, float]) -> float:
    return float(brentq(lambda eps: spent_delta(eps, second) - DELTA, FIRST, 2.0))


_TIGHT = Exhibit(
    name="tight_filter",
    fault="budgets chosen after answers, added up as if fixed before",
    source="ledgers that ask an accountant for the total",
    recipe=Batched(partial(_answers, second=TIGHT)),
    pair=Pair(np.ones(2), np.ones(1), adjacency="add-remove", name="a row more"),
    eps=EPS,
    delta=DELTA,
    runs=200_000,
    loss=_loss(TIGHT),
)

EXHIBITS = {_TIGHT.name: _TIGHT}
CORRECT = {
    _TIGHT.name: _TIGHT.mended(
        Batched(partial(_answers, second=FILTERED)),
        "dpmodels.privacy.filters",
        loss=_loss(FILTERED),
    )
}
