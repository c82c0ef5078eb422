"""Randomised answers that lie too rarely for what they claim.

Both claim ε = 1 for everything that one respondent answers.

`random_for_lie`
    Warner's device [1]_ lies with probability q = 1/(1 + e^ε). Where the coin
    of probability q does not say "lie" but "say anything", yes and no alike,
    half of what it asks for is the truth: a lie has probability q/2, and the
    answer yes the odds (2 - q)/q, which is 1 + 2 e^ε. The loss is 1.862. Right
    is to say anything with probability 2q.
`questions_at_full_eps`
    Two questions, each answered with the q of the whole ε. Answers of one
    respondent add up: the loss is 2. Right is the q of ε/2 for each [2]_.

References
----------
.. [1] Warner, S. L. (1965). "Randomized response: a survey technique for eliminating
   evasive answer bias." JASA 60(309), 63-69.
.. [2] Dwork, C. and Roth, A. (2014). "The Algorithmic Foundations of Differential
   Privacy", Theorem 3.16.
"""

import math
from functools import partial

import numpy as np

from dpmodels.audit.neighbours import Pair
from dpmodels.typing import Floats
from exhibits.exhibit import Batched, Exhibit

EPS = 1.0


def lie_of(eps: float) -> float:
    """Return how often Warner's device lies."""
    return 1 / (1 + math.exp(eps))


def _answered(rows: Floats, generator: np.random.Generator, runs: int, *, lie: float) -> Floats:
    """Answer each question of one respondent, 0 or 1, with a lie of a probability."""
    lies = generator.uniform(size=(runs, rows.size)) < lie
    return np.where(lies, 1 - rows.ravel(), rows.ravel())


_RANDOM = Exhibit(
    name="random_for_lie",
    fault="a random answer with the probability of a lie",
    source="a slip with Warner's device",
    recipe=Batched(partial(_answered, lie=lie_of(EPS) / 2)),
    pair=Pair(np.array([1.0]), np.array([0.0]), name="one respondent's answer"),
    loss=math.log1p(2 * math.exp(EPS)),
    eps=EPS,
)
_TWICE = Exhibit(
    name="questions_at_full_eps",
    fault="the whole eps for each of two questions",
    source="a slip with several randomised questions",
    recipe=Batched(partial(_answered, lie=lie_of(EPS))),
    pair=Pair(np.array([[1.0, 1.0]]), np.array([[0.0, 0.0]]), name="one respondent's two answers"),
    loss=2 * EPS,
    eps=EPS,
)

EXHIBITS = {value.name: value for value in (_RANDOM, _TWICE)}
CORRECT = {
    _RANDOM.name: _RANDOM.mended(Batched(partial(_answered, lie=lie_of(EPS))), "Warner (1965)"),
    _TWICE.name: _TWICE.mended(
        Batched(partial(_answered, lie=lie_of(EPS / 2))), "Dwork and Roth (2014), Theorem 3.16"
    ),
}
