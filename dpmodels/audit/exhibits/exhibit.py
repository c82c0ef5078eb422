"""An exhibit: a recipe with a known fault, a claim, and the rows that give it away."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpmodels.audit.pair import Pair
from dpmodels.noise import source
from dpmodels.typing import Floats

Draw = Callable[[Floats, np.random.Generator, int], Floats]

STEP: Final = 2.0**-20


@dataclass(frozen=True)
class Batched:
    """A recipe that makes any number of releases in one pass of numpy.

    Its random numbers are ordinary ones, seeded afresh from
    `dpmodels.noise.source`: good enough to exhibit a fault, not to protect a
    row.

    Parameters
    ----------
    draw : callable
        Takes the rows, a generator and the number of runs, and gives the
        releases, shape (runs, k).
    law : {"gaussian", None}
        The law of the noise that is claimed with eps and delta, if it is one
        of a whole curve.
    step : float or None
        Releases are rounded to multiples of this power of 2, without which
        every recipe would have the holes of floating-point noise besides its
        own fault; None leaves them as they are.

    Examples
    --------
    >>> count = Batched(lambda rows, generator, runs: np.full((runs, 1), float(len(rows))))
    >>> count(np.zeros(3)), count.batch(np.zeros(3), 2).shape
    (array([3.]), (2, 1))
    """

    draw: Draw
    law: str | None = None
    step: float | None = STEP

    def __call__(self, rows: Floats) -> Floats:
        """Make one release, shape (k,)."""
        return np.asarray(self.batch(rows, 1)[0])

    def batch(self, rows: Floats, runs: int) -> Floats:
        """Make independent releases, shape (runs, k)."""
        values = self.draw(rows, np.random.default_rng(source().words(4)), runs)
        return values if self.step is None else np.rint(values / self.step) * self.step


@dataclass(frozen=True)
class Exhibit:
    """A recipe, what it claims, and a pair of neighbours that tests the claim.

    Parameters
    ----------
    name : str
    fault : str
        What is wrong, in a few words; empty where nothing is.
    source : str
        Where it was published, or where the right form is proved.
    recipe : Batched
    pair : Pair
    eps, delta : float
        The guarantee that is claimed.
    runs : int
        How many releases a side convict the fault at 95 percent.
    loss : float
        The least eps at which (eps, delta) is true of this pair; infinite
        where there is none. A bound for a recipe without a fault.

    Examples
    --------
    >>> from dpmodels.audit.exhibits import EXHIBITS
    >>> EXHIBITS["budget_slip"].eps, EXHIBITS["budget_slip"].loss
    (1.0, 2.0)
    """

    name: str
    fault: str
    source: str
    recipe: Batched
    pair: Pair
    eps: float
    delta: float
    runs: int
    loss: float

    @property
    def adjacency(self) -> str:
        """How neighbours differ: "replace" or "add-remove"."""
        return self.pair.adjacency
