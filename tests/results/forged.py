"""Files of results as an enemy would write them: a release, or a request, of their own."""

from dataclasses import replace

from dpmodels.results.store import replay, saved_of


def with_release(fit, **changes):
    """Load a file whose release has other fields than that of a fit."""
    forged = replace(fit, release=replace(fit.release, **changes))
    object.__setattr__(forged, "request", fit.request)
    return replay(saved_of(forged))


def with_request(fit, **changes):
    """Load a file whose request is another than that of a fit."""
    forged = replace(fit)
    object.__setattr__(forged, "request", replace(fit.request, **changes))
    return replay(saved_of(forged))
