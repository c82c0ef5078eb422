"""An exhibit: a recipe with a known fault, a claim, and the rows that give it away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpmodels.audit.neighbours import Pair
from dpmodels.noise import source
from dpmodels.typing import Floats

# From rows, a generator and a number of runs to releases, shape (runs, k).
Draw = Callable[[Floats, np.random.Generator, int], Floats]

STEP: Final = 2.0**-20  # a choice: far below every noise here, far above the bits that leak


@dataclass(frozen=True)
class Batched:
    """A recipe that makes any number of releases in one pass of numpy.

    Its random numbers are ordinary ones, seeded afresh from
    `dpmodels.noise.source`: good enough to exhibit a fault, not to protect a
    row. `law` is that of the noise, if it is of a whole curve ("gaussian").
    Releases are rounded to multiples of `step`, without which every recipe
    would have the holes of floating-point noise besides its own fault; None
    leaves them as they are.

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

    Examples
    --------
    >>> from exhibits import EXHIBITS
    >>> EXHIBITS["budget_slip"].eps, EXHIBITS["budget_slip"].loss
    (1.0, 2.0)
    """

    name: str
    fault: str  # what is wrong; empty where nothing is
    source: str  # where it was published, or where the right form is proved
    recipe: Batched
    pair: Pair
    # The least eps at which (eps, delta) is true of this pair; infinite where there is none; a
    # bound for a recipe without a fault.
    loss: float
    # What is claimed.
    eps: float = 1.0
    delta: float = 0.0
    runs: int = 20_000  # a side; they convict the fault at 95 percent

    @property
    def adjacency(self) -> str:
        """How the rows differ: "replace" or "add-remove"."""
        return self.pair.adjacency

    def mended(self, recipe: Batched, source: str, loss: float | None = None) -> Exhibit:
        """Return the same claim about the same pair, without the fault; loses eps unless told."""
        lost = self.eps if loss is None else loss
        return replace(self, fault="", source=source, recipe=recipe, loss=lost)


LAPLACE: Final = "Laplace noise of scale L1 sensitivity / eps"


def upper(matrices: Floats) -> Floats:
    """List the entries on and above the diagonal: shape (..., d, d) to (..., d(d+1)/2)."""
    above, across = np.triu_indices(matrices.shape[-1])
    return matrices[..., above, across]
