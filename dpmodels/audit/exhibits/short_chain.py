"""A Markov chain that starts at the answer and is stopped before it leaves.

What was published
    The exponential mechanism for a direction u has density proportional to
    exp(ε/2 u'Su) and is often approximated by a chain of Metropolis or Gibbs
    steps. Started at the leading eigenvector of the rows, "to save the
    burn-in", and stopped after a few, it looks excellent in a table of captured
    energy.
Why it is wrong
    The guarantee is that of the limit. Ten steps of at most 0.1 each end within
    1 radian of the start, which is the exact eigenvector: a row that turns the
    eigenvector by 90 degrees turns the region of what can come out. No ε is
    enough, and δ is above .95.
The right form
    In the plane 2θ follows a von Mises law, which can be drawn exactly. Its
    loss for this pair is ε/2.

References
----------
Chaudhuri, K., Sarwate, A. D. and Sinha, K. (2012). "Near-optimal
differentially private principal components." NeurIPS 25, where a chain is used
and its convergence left open.
"""

import math
from dataclasses import replace

import numpy as np

from dpmodels.audit.exhibits.exhibit import Batched, Exhibit
from dpmodels.audit.exhibits.matrices import projectors, scatter
from dpmodels.audit.pair import Pair
from dpmodels.typing import Floats

EPS = 1.0
STEPS, LONGEST = 10, 0.1


def _axis(rows: Floats) -> tuple[float, float]:
    """Give the angle of the leading eigenvector and the concentration of 2θ about twice it."""
    values, vectors = np.linalg.eigh(scatter(rows))
    return math.atan2(vectors[1, 1], vectors[0, 1]), EPS / 4 * float(values[1] - values[0])


def _metropolis(rows: Floats, generator: np.random.Generator, runs: int) -> Floats:
    start, concentration = _axis(rows)
    away = np.zeros(runs)
    for _ in range(STEPS):
        proposed = away + generator.uniform(-LONGEST, LONGEST, runs)
        rise = concentration * (np.cos(2 * proposed) - np.cos(2 * away))
        away = np.where(np.log(generator.random(runs)) < rise, proposed, away)
    return projectors(start + away)


def _exact(rows: Floats, generator: np.random.Generator, runs: int) -> Floats:
    start, concentration = _axis(rows)
    return projectors(start + generator.vonmises(0.0, concentration, runs) / 2)


EXHIBIT = Exhibit(
    name="short_chain",
    fault="a chain starts at the eigenvector of the rows and is stopped after ten steps",
    source="a practice with the chain of Chaudhuri, Sarwate and Sinha (2012)",
    recipe=Batched(_metropolis),
    pair=Pair(
        rows=np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]),
        neighbour=np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]),
        name="a row turned by 90 degrees",
    ),
    eps=EPS,
    delta=0.0,
    runs=20_000,
    loss=math.inf,
)
CORRECT = replace(
    EXHIBIT,
    fault="",
    source="the von Mises law of the doubled angle",
    recipe=Batched(_exact),
    loss=EPS / 2,
)
