"""Files of results as an enemy would write them: a release, or a request, of their own."""

from dataclasses import replace

from dpmodels.results.store import replay, saved_of


def with_release(fit, **changes):
    """Load a file whose release has other fields than that of a fit."""
    other = replace(fit, release=replace(fit.release, **changes))
    object.__setattr__(other, "request", fit.request)
    return replay(saved_of(other))


def with_request(fit, **changes):
    """Load a file whose request is another than that of a fit."""
    other = replace(fit)
    object.__setattr__(other, "request", replace(fit.request, **changes))
    return replay(saved_of(other))
