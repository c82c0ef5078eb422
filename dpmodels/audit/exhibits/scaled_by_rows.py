"""A column centred and scaled by its own rows before the noise.

What was published
    `center(x)` and `scale(x)` of formula languages, patsy's among them, take
    mean and standard deviation from the rows. Whoever builds a design with
    them and then noises its moments with the sensitivity of one row believes
    that one row moves one row.
Why it is wrong
    It moves all of them. 30 of 60 rows lie at .01 and 30 at 0: the first
    stand one standard deviation above the mean, and their standardised values
    add up to 30. One row of the others moves to 1: mean and standard deviation
    follow it, and the 30 rows that did not change now add up to -2.7. The
    noise has scale 4/ε, for values cut at ±2 standard deviations; the release
    moves by 32.7, and the true ε is 8.2ε.
The right form
    A public centre and half-width, here .5 and .5.
"""

from dataclasses import replace

import numpy as np

from dpmodels.audit.exhibits.exhibit import Batched, Exhibit
from dpmodels.audit.pair import Pair
from dpmodels.typing import Floats

EPS = 1.0


def _total_of_marked(rows: Floats, values: Floats) -> float:
    return float((rows[:, 1] * values).sum())


def standardised_total(rows: Floats) -> float:
    """Standardise column 0 by its rows, cut at ±2, and add up the rows that column 1 marks."""
    x = rows[:, 0]
    return _total_of_marked(rows, np.clip((x - x.mean()) / x.std(), -2.0, 2.0))


def _by_rows(rows: Floats, generator: np.random.Generator, runs: int) -> Floats:
    return standardised_total(rows) + generator.laplace(0.0, 4 / EPS, (runs, 1))


def _by_declaration(rows: Floats, generator: np.random.Generator, runs: int) -> Floats:
    values = np.clip((rows[:, 0] - 0.5) / 0.5, -1.0, 1.0)
    return _total_of_marked(rows, values) + generator.laplace(0.0, 2 / EPS, (runs, 1))


def _rows(last: float) -> Floats:
    rows = np.zeros((60, 2))
    rows[:30] = 0.01, 1.0
    rows[-1, 0] = last
    return rows


EXHIBIT = Exhibit(
    name="scaled_by_rows",
    fault="a row moves the centre and the scale of all others",
    source="center() and scale() of formula languages",
    recipe=Batched(_by_rows),
    pair=Pair(rows=_rows(0.0), neighbour=_rows(1.0), name="an outlier in the other group"),
    eps=EPS,
    delta=0.0,
    runs=20_000,
    loss=abs(standardised_total(_rows(0.0)) - standardised_total(_rows(1.0))) * EPS / 4,
)
CORRECT = replace(
    EXHIBIT,
    fault="",
    source="Laplace noise of scale L1 sensitivity / eps",
    recipe=Batched(_by_declaration),
    loss=0.0,
)
