"""What a source of randomness is."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Entropy(Protocol):
    """A source of independent, uniform 64-bit words."""

    def words(self, count: int) -> NDArray[np.uint64]:
        """Give the next words of the source.

        Parameters
        ----------
        count : int
            How many, at least 0.

        Returns
        -------
        ndarray of uint64, shape (count,)
            A new array, the caller's own.
        """
        ...
