"""Checks of arguments as users write them.

An error says what was declared, what was expected and what to write instead; of values that are
neither text nor numbers it names only the type. `advice` ends the message.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from inspect import BoundArguments, Parameter, Signature, formatannotation, signature, unwrap
from numbers import Integral, Real
from types import FunctionType, UnionType
from typing import (
    Literal,
    ParamSpec,
    TypeGuard,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from dpmodels.errors import ArgumentError, DPModelsError, did_you_mean, quoted

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Option = TypeVar("_Option", bound=str | None)
_BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)

_DECLARED = '; write codebook=dp.codebook(age=(0, 100), sex=["F", "M"])'
# What to write for parameters that users of other packages expect of a verb.
_INSTEAD = {
    **dict.fromkeys(("bounds", "levels", "lower", "range", "upper"), _DECLARED),
    **dict.fromkeys(("random_state", "rng", "seed"), "; runs repeat in dp.simulation(seed=1)"),
    **dict.fromkeys(("alpha", "conf_level", "level"), "; write fit.conf_int(level=0.9)"),
    "bins": "; write breaks=10",
    "weights": "; sampling weights are declared by dp.design(weights=...)",
}


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


def bound(
    name: str, parameters: Signature, args: Sequence[object], kwargs: Mapping[str, object]
) -> BoundArguments:
    """Bind the arguments of a call, or say which are unknown, too many, repeated or missing."""
    with suppress(TypeError):
        return parameters.bind(*args, **kwargs)
    declared = parameters.parameters
    by_place = [key for key, parameter in declared.items() if parameter.kind in _BY_PLACE]
    unknown = [key for key in kwargs if key not in declared]
    repeated = [key for key in by_place[: len(args)] if key in kwargs]
    if unknown and not any(value.kind is value.VAR_KEYWORD for value in declared.values()):
        instead = _INSTEAD.get(unknown[0], "") if "codebook" in declared else ""
        meant = did_you_mean(unknown[0], declared) or instead
        problem = f"has no parameter {unknown[0]}={meant}:"
    elif len(args) > len(by_place):
        example = ", such as codebook=" if "codebook" in {*declared} - {*by_place} else ""
        problem = f"takes {_listed(by_place)} by position: write all else by name{example};"
    elif repeated:
        problem = f"has {repeated[0]} by position and by name: write one of them;"
    else:
        problem = f"needs {_missing(declared, {*by_place[: len(args)], *kwargs})}=:"
    raise ArgumentError(f"{name} {problem} see help({name})")


def _listed(by_place: Iterable[str]) -> str:
    return " and ".join(key for key in by_place if key != "self") or "no argument"


def _missing(declared: Mapping[str, Parameter], present: set[str]) -> str:
    """Return the first parameter without a default that is not present."""
    required = (key for key, value in declared.items() if value.default is value.empty)
    return next(key for key in required if key not in present)


def _accepts(annotation: object, argument: object) -> bool:
    """Whether an argument may be of the annotated type; what cannot be decided may."""
    kind = get_origin(annotation) or annotation
    if kind in (Union, UnionType):
        return any(_accepts(part, argument) for part in get_args(annotation))
    if kind is Literal:
        return isinstance(argument, str | int | None) and argument in get_args(annotation)
    kind = Real if kind is float else Integral if kind is int else kind
    if not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return True
    return isinstance(argument, kind)


def _refusal(
    name: str, function: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
) -> ArgumentError | None:
    """Return the error of a call if an argument is missing, unknown or of another type."""
    try:
        arguments = bound(name, signature(function), args, kwargs).arguments
    except ArgumentError as error:
        return error
    annotations = {}
    with suppress(NameError, TypeError):  # Types that are for annotations alone
        annotations = get_type_hints(unwrap(function))
    for parameter, annotation in annotations.items():
        if parameter not in arguments or _accepts(annotation, arguments[parameter]):
            continue
        entry = re.search(rf"^ *{parameter} : (.+)$", function.__doc__ or "", re.MULTILINE)
        documented = re.split(", (?:optional|default)", entry[1])[0] if entry else ""
        annotated = re.sub(r"\w+\.", "", formatannotation(annotation))
        return ArgumentError(
            f"{parameter}={quoted(arguments[parameter])}: expected "
            f"{documented or annotated}; see help({name})"
        )
    return None


def checked_keywords(name: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Decorate a function of that name: an error of Python's becomes one that names the argument.

    An argument is missing, unknown or of another type then. Calls that succeed are not checked.

    >>> @checked_keywords("dp.total")
    ... def total(cells: list[int]) -> int:
    ...     return sum(cells)
    >>> total(3)
    Traceback (most recent call last):
    ...
    dpmodels.errors.ArgumentError: cells=3: expected list[int]; see help(dp.total)
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            try:
                return function(*args, **kwargs)
            except DPModelsError:
                raise
            except (TypeError, AttributeError, LookupError, ValueError):
                refusal = _refusal(name, function, args, kwargs)
                if refusal is None:
                    raise
                raise refusal from None

        vars(call)["checked"] = True
        return call

    return decorate


def checked_methods(cls: type[_R]) -> type[_R]:
    """Decorate the public methods of a class, and those that it inherits, in the same way."""
    for owner in cls.__mro__:
        is_ours = owner.__module__.startswith("dpmodels")
        is_fit = owner.__module__.startswith("dpmodels.results")
        for name, member in list(vars(owner).items()) if is_ours else ():
            is_bound = isinstance(member, classmethod | staticmethod)
            function = member.__func__ if is_bound else member
            is_public = isinstance(function, FunctionType) and not name.startswith("_")
            if is_public and "checked" not in vars(function):
                known_as = f"fit.{name}" if is_fit else function.__qualname__
                method = checked_keywords(known_as)(function)
                setattr(owner, name, type(member)(method) if is_bound else method)
    return cls


def checked_fields(name: str) -> Callable[[type[_R]], type[_R]]:
    """Decorate a class, of that name to its users, and its methods in the same way."""

    def decorate(cls: type[_R]) -> type[_R]:
        cls.__init__ = checked_keywords(name)(cls.__init__)  # type: ignore[method-assign]
        return checked_methods(cls)

    return decorate
