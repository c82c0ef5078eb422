"""Arguments as users write them, held against what is expected of them.

A refusal says what was declared, what was expected and what to write instead; of what is neither a
text nor a number it names the type alone. `more` ends the message.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import TypeGuard, TypeVar

import numpy as np

from dpmodels.errors import ArgumentError, said

_Word = TypeVar("_Word", bound=str | None)


def real(given: object) -> float:
    """Return a finite number, nan for anything else; texts and truth values are no numbers.

    >>> real(2), real("2"), real(True), real(10**400)
    (2.0, nan, nan, nan)
    """
    try:
        number = float(given) if isinstance(given, Real) else math.nan
    except OverflowError:
        return math.nan
    return number if math.isfinite(number) and not isinstance(given, bool) else math.nan


def finite(name: str, given: object, more: str = "") -> float:
    """Return a finite number."""
    number = real(given)
    if math.isnan(number):
        raise ArgumentError(f"{name}={said(given)}: expected a finite number{more}")
    return number


def between(name: str, given: object, least: float, most: float, more: str = "") -> float:
    """Return a number from `least` to `most`, both allowed."""
    number = real(given)
    if not least <= number <= most:
        raise ArgumentError(
            f"{name}={said(given)}: expected a number from {least:g} to {most:g}{more}"
        )
    return number


def share(name: str, given: object, more: str = "") -> float:
    """Return a number between 0 and 1, neither allowed."""
    number = real(given)
    if not 0 < number < 1:
        raise ArgumentError(f"{name}={said(given)}: expected a number between 0 and 1{more}")
    return number


def whole(name: str, given: object, least: int, most: int | None = None, more: str = "") -> int:
    """Return a whole number from `least` to `most`, both allowed; floats are none.

    >>> whole("steps", 0, 1, 10_000, "; write steps=20")
    Traceback (most recent call last):
    ...
    dpmodels.errors.ArgumentError: steps=0: expected a whole number from 1 to 10,000; write steps=20
    """
    number = isinstance(given, int | np.integer) and not isinstance(given, bool)
    if not number or not least <= given <= (math.inf if most is None else most):  # type: ignore[operator]
        up_to = "" if most is None else f" to {most:,}"
        raise ArgumentError(
            f"{name}={said(given)}: expected a whole number from {least}{up_to}{more}"
        )
    return int(given)  # type: ignore[call-overload,no-any-return]


def several(given: object) -> TypeGuard[Iterable[object]]:
    """Whether many are listed; a text is one, and so is an array without a dimension.

    >>> several([0.5]), several("ab"), several(np.array(0.5))
    (True, False, False)
    """
    listed = isinstance(given, Iterable) and not isinstance(given, str | bytes)
    return listed and getattr(given, "ndim", 1) > 0


def text(name: str, given: object, what: str = "a text") -> str:
    """Return a text, which is `what` one writes."""
    if not isinstance(given, str):
        raise ArgumentError(f"{name}={said(given)}: expected {what}")
    return given


def truth(name: str, given: object) -> bool:
    """Return a truth value."""
    if not isinstance(given, bool):
        raise ArgumentError(f"{name}={said(given)}: expected True or False")
    return given


def word(name: str, given: object, words: Iterable[_Word], more: str = "") -> _Word:
    """Return the one of `words` that was given; None may be one of them.

    >>> word("scale", "unit", ("range", "sd", None))
    Traceback (most recent call last):
    ...
    dpmodels.errors.ArgumentError: scale='unit': expected "range", "sd" or None
    """
    known = tuple(words)
    for one in known:
        if isinstance(given, str | None) and given == one:
            return one
    *first, last = (f'"{one}"' if one else "None" for one in known)
    expected = f"{', '.join(first)} or {last}" if first else last
    raise ArgumentError(f"{name}={said(given)}: expected {expected}{more}")
