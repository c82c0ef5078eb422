"""Public functions that take rows: their exceptions keep no variables of inner frames.

Debuggers, error trackers and verbose tracebacks print the local variables of every frame that an
exception passed, and those of the package hold cells and exact statistics.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
# Functions of higher layers that lower ones call; `dpmodels.bindings` fills it.
deferred: Final[dict[str, Callable[[], Callable[..., object]]]] = {}


def entry_point(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Return a function whose exceptions keep neither its arguments nor any inner variable.

    Frames of the caller, and those of an exception that the caller is handling, are left alone.

    >>> @entry_point
    ... def total(cells):
    ...     return sum(cells)
    >>> try:
    ...     total(["a cell"])
    ... except TypeError as error:
    ...     [list(frame.f_locals) for frame, _ in traceback.walk_tb(error.__traceback__)][1:]
    [['function'], []]
    """

    @wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        handled = sys.exc_info()[1]
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            del args, kwargs
            _clear(error, handled)
            raise
        finally:
            del handled

    return call


def _clear(error: BaseException, handled: BaseException | None) -> None:
    """Clear the finished frames of an exception and of all that it was raised from.

    A context that ``raise ... from None`` hides is dropped, as its message may quote a cell.
    """
    pending: list[BaseException | None] = [error]
    visited = {id(None), id(handled)} - {id(error)}
    while pending:
        part = pending.pop()
        if part is None or id(part) in visited:
            continue
        visited.add(id(part))
        traceback.clear_frames(part.__traceback__)
        pending += [part.__cause__, part.__context__, *getattr(part, "exceptions", ())]
        if part.__suppress_context__ and part.__context__ is not handled:
            part.__context__ = None
