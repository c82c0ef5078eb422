"""Functions of higher layers that lower ones call, bound when the package is imported."""

from __future__ import annotations

from collections.abc import Callable

from dpmodels.entry_point import deferred


def mechanism_check() -> Callable[..., object]:
    """Return the function behind ``dp.mechanisms.check``, which runs an audit."""
    from dpmodels.audit.mechanism_check import checked_mechanism

    return checked_mechanism


deferred["check"] = mechanism_check
