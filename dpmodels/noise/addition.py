"""Noise added to exact integers: by one curator, or by all sites of a joint release."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NoReturn

import numpy as np

from dpmodels.errors import PrivacyError
from dpmodels.noise.discrete import discrete_gaussian
from dpmodels.noise.uniform import Entropy
from dpmodels.typing import Exact, Integers

Part = tuple[Exact, float]
"""Exact integers, shape (size,), and the scale of the noise in each."""
Draw = Callable[[float, int, Entropy], Integers]


class NoiseOfSites(ABC):
    """Stands for a source of entropy where sites add the noise, round by round.

    A mechanism's noise is all its randomness then: what it does between rounds is a function of
    public answers, which every site can compute.
    """

    def words(self, count: int) -> NoReturn:
        """Refuse words: no randomness of a joint release is drawn in one place."""
        raise PrivacyError(
            "sites add Gaussian noise to sums of integers, and this mechanism draws other random "
            "numbers: write mechanism='auto'"
        )

    @abstractmethod
    def answer(self, parts: Sequence[Part]) -> list[Exact]:
        """Return the public answer of one round: the integers of each part with Gaussian noise."""


def noisy_sums(parts: Sequence[Part], draw: Draw, entropy: Entropy | NoiseOfSites) -> list[Exact]:
    """Add noise to the parts of one round, which are released together.

    `draw` gives the noise of a scale, size and source; the sums are Python integers, or fractions
    where sites need finer steps.
    """
    if isinstance(entropy, NoiseOfSites):
        if draw is not discrete_gaussian:
            entropy.words(0)
        return entropy.answer(parts)
    return [
        np.asarray(exact + draw(scale, exact.size, entropy).astype(object).reshape(exact.shape))
        for exact, scale in parts
    ]
