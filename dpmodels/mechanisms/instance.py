"""An instance of a strategy in place of its name."""

from __future__ import annotations

from typing import Any

from dpmodels.errors import ArgumentError


def checked_instance(mechanism: object, example: str) -> Any:
    """Return a strategy that was given as an instance. ArgumentError if it is none."""
    methods = (getattr(mechanism, name, None) for name in ("plan", "measure", "release"))
    if not isinstance(mechanism, type) and all(map(callable, methods)):
        return mechanism
    raise ArgumentError(
        f"mechanism= is of type {type(mechanism).__name__}; expected a name or an instance "
        f"such as {example}"
    )
