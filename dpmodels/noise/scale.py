"""One check for the scale of a law."""

import math

from dpmodels.arguments import real
from dpmodels.errors import ArgumentError, said


def checked_scale(name: str, value: object, lowest: float, highest: float) -> float:
    """Give the scale as a float, or refuse it.

    Both ends are powers of two, and allowed.

    ArgumentError if `value` is not a real number in [lowest, highest].
    """
    number = real(value)
    if not lowest <= number <= highest:
        raise ArgumentError(
            f"{name}={said(value)}: expected a number from 2^{math.log2(lowest):.0f} to "
            f"2^{math.log2(highest):.0f} lattice steps; change the lattice step so that it "
            f"lies there"
        )
    return number
