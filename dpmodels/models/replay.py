"""From a request to its specification, and from a saved request and release to the result."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from inspect import signature
from typing import Any

from dpmodels.errors import FrameError, shorten
from dpmodels.released import AnyRelease
from dpmodels.report import Report
from dpmodels.request import Request
from dpmodels.results.base import Printed, lay_out, report_of
from dpmodels.results.call import Spec
from dpmodels.results.store import Saved, read_parts, replay
from dpmodels.verbs import VERBS, Verb, exported, verb_names


def verb_of(name: str) -> Verb | None:
    """Return a verb by its name, None where there is no such verb."""
    if name not in VERBS and name in exported():
        import_module(f"dpmodels.models.{exported()[name]}")
    return VERBS.get(name)


def all_verbs() -> dict[str, Verb]:
    """Return the verbs that charge a ledger, by name; all of their modules are imported."""
    verbs = {name: verb_of(name) for name in verb_names()}
    return {name: verb for name, verb in verbs.items() if verb is not None and verb.charges}


def specified(request: Request, release: AnyRelease) -> Spec[object]:
    """Return the specification of a request from a file; typed errors if it is not valid.

    The release is that of the result: what is derived from another result is laid out from it.
    """
    if request.parent is not None:
        above = specified(request.parent, release)
        parent: Any = above.result(above.call, release)
        return replace(parent.derived(request), sizes=above.sizes)
    verb = verb_of(request.verb)
    if verb is None:
        raise FrameError(f"request.verb: {shorten(repr(request.verb))} is not a verb")
    parameters = signature(verb.function).parameters
    strange = next((word for word in request.options if word not in parameters), None)
    if strange is not None:
        raise FrameError(
            f"request.options: {shorten(repr(strange))} is not a parameter of the verb"
        )
    spec: Spec[object] = verb.spec(replace(request, options={**verb.options, **request.options}))
    return spec if spec.adapted is None else spec.adapted(release)


@replay.register
def replayed(saved: Saved) -> object:
    """Return the result of a saved request and release; FrameError where they do not agree."""
    request, release, ledger, reason = read_parts(saved)
    return result_of(request, specified(request, release), release, ledger, reason)


def result_of(
    request: Request, spec: Spec[object], release: AnyRelease, ledger: str, reason: str
) -> Any:
    """Return the result of a release from a file, once it is known to be one of the request."""
    from dpmodels.results.validate import require_release

    require_release(spec, release)
    result = spec.of(release, ledger, reason)
    object.__setattr__(result, "request", request)
    return result


@lay_out.register
def lay_out_printed(result: Printed) -> Report:
    """Return the report of a result, once the reports of all kinds are registered.

    A thread that prints while another one imports the reports waits until all are there.
    """
    from dpmodels import reports as reports

    return report_of(result)
