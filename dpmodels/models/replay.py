"""From a request to its specification, and from a saved request and release to the result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from inspect import signature, unwrap
from pkgutil import iter_modules
from typing import Any, Final, TypeVar

from dpmodels import models
from dpmodels.errors import FrameError, shorten
from dpmodels.question import Question
from dpmodels.results.netcdf import Saved
from dpmodels.results.spec import Spec
from dpmodels.results.store import read_parts, replay
from dpmodels.results.validate import require_release

SpecFunction = TypeVar("SpecFunction", bound=Callable[[Question], Spec[Any]])
# The function of each verb that makes the specification of a request.
SPECS: Final[dict[str, Callable[[Question], Spec[Any]]]] = {}


def spec_of(verb: str) -> Callable[[SpecFunction], SpecFunction]:
    """Register the function that makes the specification of a verb's requests.

    It stands in the module ``dpmodels.models.<verb>``, beside the function ``dp_<verb>``.
    """

    def register(function: SpecFunction) -> SpecFunction:
        SPECS[verb] = function
        return function

    return register


def specified(request: Question, release: Any) -> Spec[Any]:
    """Return the specification of a request from a file; typed errors for what is not a request.

    The release is that of the result: what is derived from another result is laid out from it.
    """
    if request.parent is not None:
        above = specified(request.parent, release)
        parent = above.result(above.call, release)
        derived: Spec[Any] = parent.derived(request)
        return derived
    options = _options(request.words, _verb(request.verb))
    return SPECS[request.verb](replace(request, words=options))


def _verb(name: str) -> Callable[..., Any]:
    """Return the function of a verb, whose module registers its specification."""
    if name not in SPECS and name in {module.name for module in iter_modules(models.__path__)}:
        import_module(f"dpmodels.models.{name}")
    if name not in SPECS:
        raise FrameError(f"request.verb: {shorten(repr(name))} is not a verb")
    function: Callable[..., Any] = getattr(sys.modules[SPECS[name].__module__], f"dp_{name}")
    return function


def _options(words: Mapping[str, Any], function: Callable[..., Any]) -> dict[str, Any]:
    """Return the arguments of a verb, with the defaults of those that are not stated."""
    strange = next((word for word in words if word not in signature(function).parameters), None)
    if strange is not None:
        raise FrameError(f"request.words: {shorten(repr(strange))} is not a parameter of the verb")
    usual = {name: own.default for name, own in signature(unwrap(function)).parameters.items()}
    return {**usual, **words}


@replay.register
def replayed(saved: Saved) -> Any:
    """Return the result of a saved request and release; FrameError where they do not agree."""
    request, release, ledger, reason = read_parts(saved)
    return result_of(request, specified(request, release), release, ledger, reason)


def result_of(request: Question, spec: Spec[Any], release: Any, ledger: str, reason: str) -> Any:
    """Return the result of a release from a file, once it is known to be one of the request."""
    require_release(spec, release)
    result = spec.of(release, ledger, reason)
    object.__setattr__(result, "request", request)
    return result
