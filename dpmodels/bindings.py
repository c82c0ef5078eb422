"""What the package binds when it is imported: functions of higher layers, and suggestions."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from threading import get_ident
from typing import Final

import lazy_loader

from dpmodels.errors import NotAvailable, deferred, did_you_mean


def mechanism_check() -> Callable[..., object]:
    """Return the function behind ``dp.mechanisms.check``, which runs an audit."""
    from dpmodels.audit.mechanism_check import checked_mechanism

    return checked_mechanism


def public_reader() -> Callable[..., object]:
    """Return the function by which ``rows(public=)`` of a synthetic table reads public rows."""
    from dpmodels.design.columns import public_columns

    return public_columns


# The threads that turned the search for garbage off, to turn it on again.
_pausing: Final = set[int]()


def _collect_in_child() -> None:
    """Search for garbage in a fork, in which those threads do not exist."""
    if _pausing:
        _pausing.clear()
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_collect_in_child)


def attach(
    name: str, file: str
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a module with a stub.

    Modules are imported when a name is first used; a misspelled name is answered by the nearest.
    Meanwhile there is no search for garbage, since what modules make stays.
    """
    get, list_names, names = lazy_loader.attach_stub(name, file)

    def get_or_suggest(attribute: str) -> object:
        is_collecting = gc.isenabled()
        if is_collecting:
            _pausing.add(get_ident())
            gc.disable()
        try:
            return get(attribute)
        except AttributeError:
            if attribute in names or attribute.startswith("__"):
                raise
            hint = did_you_mean(attribute, names)
            raise NotAvailable(f"{name} has no {attribute}{hint}; see dir({name})") from None
        finally:
            if is_collecting:
                gc.enable()
                _pausing.discard(get_ident())

    return get_or_suggest, list_names, names


deferred["check"] = mechanism_check
deferred["public rows"] = public_reader
