"""One check for the scale of a law."""

import math
from numbers import Real

from dpmodels.errors import ArgumentError


def checked_scale(name: str, value: object, lowest: float, highest: float) -> float:
    """Give the scale as a float, or refuse it.

    Parameters
    ----------
    name : str
        What the caller calls it.
    value : object
        What the caller wrote.
    lowest, highest : float
        Powers of two, both allowed.

    Returns
    -------
    float

    Raises
    ------
    ArgumentError
        If `value` is not a real number in [lowest, highest].
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ArgumentError(f"{name} is of type {type(value).__name__}; write a real number.")
    number = float(value)
    if not lowest <= number <= highest:
        raise ArgumentError(
            f"{name} is {number!r}; write a number from 2^{math.log2(lowest):.0f} to "
            f"2^{math.log2(highest):.0f} lattice steps, or change the lattice step so that it "
            f"lies there."
        )
    return number
