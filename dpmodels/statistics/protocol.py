"""The protocol of a loss of the margin."""

from __future__ import annotations

from typing import Protocol

from dpmodels.statistics.double_double import Pair
from dpmodels.typing import Floats


class Loss(Protocol):
    """A convex loss of the margin that falls with slope at most 1."""

    @property
    def name(self) -> str:
        """The loss in a word."""

    @property
    def length(self) -> float:
        """Longest gradient of a row, in units of the loss's."""

    @property
    def smoothness(self) -> float:
        """Largest curvature of a row."""

    @property
    def bell(self) -> bool:
        """Whether a row of slope q, whatever its length, bends by at most ``q (1 - q)``."""

    @property
    def path(self) -> tuple[Loss, ...]:
        """Losses ever closer to this one, which is the last: the first is easy to minimise."""

    def value(self, margins: Floats) -> Floats:
        """Return the loss."""

    def slope(self, margins: Floats) -> Floats:
        """Return how steeply the loss falls, in [0, 1]."""

    def precise_slope(self, margins: Pair) -> Pair:
        """Return how steeply the loss falls with an error below 2**-77."""

    def bend(self, margins: Floats) -> Floats:
        """Return the curvature, in [0, smoothness]."""

    @property
    def score(self) -> str:
        """What :meth:`miss` is called."""

    def miss(self, margins: Floats) -> Floats:
        """Return the prediction error of each row, in [0, 1]; 0 is best."""

    def largest_difference(self, spread: float) -> float:
        """Bound the difference of misses at margins that differ by at most `spread`."""
