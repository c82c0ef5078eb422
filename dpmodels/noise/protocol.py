"""What a source of randomness is."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Entropy(Protocol):
    """A source of independent, uniform 64-bit words."""

    def words(self, count: int) -> NDArray[np.uint64]:
        """Give the next words of the source.

        The array, shape (count,), is new and the caller's own.
        """
