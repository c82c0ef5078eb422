"""Levels that nobody declared, released where their noisy counts are large enough.

Both claim (ε, δ) = (1, .01). The mended twin counts as the other does, and
releases a level by the rule of `dpmodels.mechanisms.counts.partition`.

`bare_threshold`
    A level is released if its count with discrete Laplace noise of scale 1/ε
    exceeds log(1/(2δ))/ε. That is the tail of the noise alone; the row itself
    counts one more, and 1 + log(1/(2δ))/ε is the threshold for continuous
    noise [1]_. A level that one row alone has is released with probability
    .036, and never where the row is not there: δ is .036, whatever ε. With
    the 1 the discrete noise still has δ = .013: its steps are not those of
    the formula. Right is the least k with a mass of at most δ at k [2]_.
`rows_for_persons`
    A table of persons with four rows each, noise and threshold of rows. All
    four may name one level, and one that a single person has is released with
    probability .27: δ is .27, whatever ε. Right is noise of scale 4/ε and a
    threshold that four rows of one person exceed with probability below δ.

References
----------
.. [1] Korolova, A., Kenthapadi, K., Mishra, N. and Ntoulas, A. (2009). "Releasing
   search queries and clicks privately." WWW 2009.
.. [2] Desfontaines, D., Voss, J., Gipson, B. and Mandayam, C. (2022).
   "Differentially private partition selection." PoPETs 2022(1).
"""

import math
from functools import partial

import numpy as np

from dpmodels.audit.neighbours import Pair
from dpmodels.noise.discrete import least_bound
from dpmodels.typing import Floats
from exhibits.exhibit import Batched, Exhibit

EPS, DELTA = 1.0, 0.01
ROWS = 4  # of a person
TAIL = math.log(1 / (2 * DELTA)) / EPS
LEAST = least_bound(1 / EPS, DELTA)
# Of four rows, where noise has the scale 4/ε: the least bound of a quarter of δ and of ε, and the
# three rows more of the same person.
LEAST_OF_PERSONS = least_bound(ROWS / EPS, DELTA / (ROWS * math.exp(EPS))) + ROWS - 1


def _noise(
    scale: float, limit: float, size: tuple[int, int], generator: np.random.Generator
) -> Floats:
    """Draw two-sided geometric noise within a bound."""
    result = np.full(size, np.nan)
    while (beyond := ~(np.abs(result) <= limit)).any():
        large = (2, int(beyond.sum()))
        up, down = generator.geometric(-math.expm1(-1 / scale), large)
        result[beyond] = up - down
    return result


def _released(
    rows: Floats,
    generator: np.random.Generator,
    runs: int,
    *,
    scale: float,
    most: float,
    threshold: float,
) -> Floats:
    """Release the counts of levels 0 and 1 that are large enough, 0 else: shape (runs, 2)."""
    counts = np.array([(rows == level).sum() for level in (0, 1)], dtype=np.float64)
    noisy = counts + _noise(scale, most, (runs, 2), generator)
    return np.where((noisy > threshold) & (counts > 0), noisy, 0.0)


_BARE = Exhibit(
    name="bare_threshold",
    fault="a threshold that leaves out the row itself",
    source="a slip with stability histograms",
    recipe=Batched(partial(_released, scale=1 / EPS, most=np.inf, threshold=TAIL)),
    pair=Pair(
        np.array([0.0] * 30 + [1.0]),
        np.array([0.0] * 30),
        adjacency="add-remove",
        name="a level of one row's own",
    ),
    loss=math.inf,
    eps=EPS,
    delta=DELTA,
)
_PERSONS = Exhibit(
    name="rows_for_persons",
    fault="sensitivity of rows, where persons have four",
    source="a slip with persons who have several rows",
    recipe=Batched(partial(_released, scale=1 / EPS, most=LEAST, threshold=LEAST)),
    pair=Pair(
        np.array([[0.0] * ROWS] * 30 + [[1.0] * ROWS] * 21),
        np.array([[0.0] * ROWS] * 30 + [[1.0] * ROWS] * 20),
        adjacency="add-remove",
        name="a person more, with four rows of one level",
    ),
    loss=math.inf,
    eps=EPS,
    delta=DELTA,
)

EXHIBITS = {value.name: value for value in (_BARE, _PERSONS)}
CORRECT = {
    _BARE.name: _BARE.mended(
        Batched(partial(_released, scale=1 / EPS, most=LEAST, threshold=LEAST)),
        "Desfontaines, Voss, Gipson and Mandayam (2022)",
    ),
    _PERSONS.name: _PERSONS.mended(
        Batched(
            partial(_released, scale=ROWS / EPS, most=LEAST_OF_PERSONS, threshold=LEAST_OF_PERSONS)
        ),
        "group privacy: noise and threshold for all rows of a person",
    ),
}
