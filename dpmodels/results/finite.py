"""Numbers that users write beside the formula."""

from __future__ import annotations

import math
from numbers import Real as Number

from dpmodels.errors import ArgumentError, said


def finite(given: object, word: str) -> float:
    """Return a finite number, or say of which argument it is none.

    Parameters
    ----------
    given : object
        What the user wrote; truth values and strings are no numbers.
    word : str
        The argument, for the message.

    Raises
    ------
    ArgumentError
        If it is not a finite real number.
    """
    try:
        number = float(given) if isinstance(given, Number) else math.nan
    except OverflowError:
        number = math.inf
    if isinstance(given, bool) or not math.isfinite(number):
        raise ArgumentError(f"{word}= holds {said(given)}: expected finite numbers")
    return number
