"""Checks of arguments as users write them.

An error says what was declared, what was expected and what to write instead; of values that are
neither text nor numbers it names only the type. `advice` ends the message.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import wraps
from inspect import signature
from numbers import Real
from typing import ParamSpec, TypeGuard, TypeVar

import numpy as np

from dpmodels.errors import ArgumentError, did_you_mean, quoted

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Option = TypeVar("_Option", bound=str | None)


def real(argument: object) -> float:
    """Return a finite number, nan for anything else; texts and truth values are not numbers.

    >>> real(2), real("2"), real(True), real(10**400)
    (2.0, nan, nan, nan)
    """
    try:
        number = float(argument) if isinstance(argument, Real) else math.nan
    except OverflowError:
        return math.nan
    return number if math.isfinite(number) and not isinstance(argument, bool) else math.nan


def finite(name: str, argument: object, advice: str = "") -> float:
    """Return a finite number."""
    number = real(argument)
    if math.isnan(number):
        raise ArgumentError(f"{name}={quoted(argument)}: expected a finite number{advice}")
    return number


def between(name: str, argument: object, minimum: float, maximum: float, advice: str = "") -> float:
    """Return a number from `minimum` to `maximum`, both allowed."""
    number = real(argument)
    if not minimum <= number <= maximum:
        raise ArgumentError(
            f"{name}={quoted(argument)}: expected a number from {minimum:g} to {maximum:g}{advice}"
        )
    return number


def fraction(name: str, argument: object, advice: str = "") -> float:
    """Return a number between 0 and 1, neither allowed."""
    number = real(argument)
    if not 0 < number < 1:
        raise ArgumentError(f"{name}={quoted(argument)}: expected a number between 0 and 1{advice}")
    return number


def integer(
    name: str, argument: object, minimum: int, maximum: int | None = None, advice: str = ""
) -> int:
    """Return a whole number from `minimum` to `maximum`, both allowed; floats are refused.

    >>> integer("steps", 0, 1, 10_000, "; write steps=20")
    Traceback (most recent call last):
    ...
    dpmodels.errors.ArgumentError: steps=0: expected a whole number from 1 to 10,000; write steps=20
    """
    is_integer = isinstance(argument, int | np.integer) and not isinstance(argument, bool)
    if not is_integer or not minimum <= argument <= (math.inf if maximum is None else maximum):  # type: ignore[operator]
        up_to = "" if maximum is None else f" to {maximum:,}"
        raise ArgumentError(
            f"{name}={quoted(argument)}: expected a whole number from {minimum}{up_to}{advice}"
        )
    return int(argument)  # type: ignore[call-overload,no-any-return]


def lists_values(argument: object) -> TypeGuard[Iterable[object]]:
    """Whether an argument lists values; a text and an array without a dimension do not.

    >>> lists_values([0.5]), lists_values("ab"), lists_values(np.array(0.5))
    (True, False, False)
    """
    is_iterable = isinstance(argument, Iterable) and not isinstance(argument, str | bytes)
    return is_iterable and getattr(argument, "ndim", 1) > 0


def text(name: str, argument: object, what: str = "a text") -> str:
    """Return a text; `what` is expected, for the message."""
    if not isinstance(argument, str):
        raise ArgumentError(f"{name}={quoted(argument)}: expected {what}")
    return argument


def boolean(name: str, argument: object) -> bool:
    """Return a truth value."""
    if not isinstance(argument, bool):
        raise ArgumentError(f"{name}={quoted(argument)}: expected True or False")
    return argument


def option(name: str, argument: object, allowed: Iterable[_Option], advice: str = "") -> _Option:
    """Return the one of the `allowed` values that was given; None may be one of them.

    >>> option("scale", "unit", ("range", "sd", None))
    Traceback (most recent call last):
    ...
    dpmodels.errors.ArgumentError: scale='unit': expected "range", "sd" or None
    >>> option("vcov", "hc", ("iid", "HC"))
    Traceback (most recent call last):
    ...
    dpmodels.errors.ArgumentError: vcov='hc' (did you mean 'HC'?): expected "iid" or "HC"
    """
    options = tuple(allowed)
    for option in options:
        if isinstance(argument, str | None) and argument == option:
            return option
    *first, last = (f'"{option}"' if option else "None" for option in options)
    expected = f"{', '.join(first)} or {last}" if first else last
    meant = did_you_mean(argument, options)
    raise ArgumentError(f"{name}={quoted(argument)}{meant}: expected {expected}{advice}")


def known_parameters(name: str, parameters: Iterable[str], kwargs: Iterable[str]) -> None:
    """Refuse keywords that are not parameters of the function of that name.

    >>> known_parameters("dp.options", ("ledger", "person"), ("ledgr",))
    Traceback (most recent call last):
    ...
    dpmodels.errors.ArgumentError: dp.options has no parameter ledgr= (did you mean 'ledger'?): see
    help(dp.options)
    """
    expected = tuple(parameters)
    for keyword in kwargs:
        if keyword not in expected:
            raise ArgumentError(
                f"{name} has no parameter {keyword}={did_you_mean(keyword, expected)}: see "
                f"help({name})"
            )


def checked_keywords(name: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Decorate a function of that name to refuse unknown keywords with a suggestion."""

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        parameters = tuple(signature(function).parameters)

        @wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            known_parameters(name, parameters, kwargs)
            return function(*args, **kwargs)

        return call

    return decorate


def checked_fields(name: str) -> Callable[[type[_R]], type[_R]]:
    """Decorate a class to refuse unknown keywords in the same way."""

    def decorate(cls: type[_R]) -> type[_R]:
        cls.__init__ = checked_keywords(name)(cls.__init__)  # type: ignore[method-assign]
        return cls

    return decorate
