"""The errors of the package, and how they leave it: they quote declarations, never values in rows.

Every message says what was declared, what was expected and what to write instead. All of them are
raised before a row is read and before a budget is charged, unless the class says otherwise.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import wraps
from numbers import Real
from typing import Final, ParamSpec, TypeVar

# Whole numbers of fewer digits are quoted.
LARGEST: Final = 2**200
# Names are alike if two letters of three agree, as where one of three is mistyped.
ALIKE: Final = 0.66
# What other packages call the task of a verb.
ELSEWHERE: Final = {
    **dict.fromkeys(("anova", "aov", "ols", "regression"), "lm"),
    **dict.fromkeys(("logistic", "logit", "poisson"), "glm"),
    **dict.fromkeys(("chisq", "count", "counts", "crosstab", "freq", "tabulate"), "table"),
    **dict.fromkeys(("coxph", "kaplan_meier", "survival"), "survfit"),
    **dict.fromkeys(("cor", "corr"), "cov"),
    **dict.fromkeys(("iqr", "median", "percentile"), "quantile"),
    "describe": "summary",
    "prcomp": "pca",
    "sd": "var",
}


def quoted(value: object) -> str:
    """Quote a text or a number; of other values, which might hold rows, name the type.

    Very long whole numbers are described by their size.
    """
    if isinstance(value, int) and abs(value) >= LARGEST:
        return f"{'-' * (value < 0)}2**{value.bit_length() - 1} or beyond"
    return repr(value) if isinstance(value, str | Real | None) else type(value).__name__


def shorten(text: str, width: int = 60) -> str:
    """Return text fit for an error message."""
    return text if len(text) <= width else f"{text[: width - 4]} ..."


def did_you_mean(name: object, options: Iterable[object]) -> str:
    """Return a suggestion for a misspelled name, with a space before it; empty if none is near.

    Upper and lower case are alike, and so is the beginning of a name; a verb may be written dp_...
    or by its name elsewhere.

    >>> did_you_mean("Vsits", ["visits", "age"]), did_you_mean("epsilon", ["eps", "person"])
    (" (did you mean 'visits'?)", " (did you mean 'eps'?)")
    >>> did_you_mean("dp_lm", ["lm", "glm"])
    " (did you mean 'lm'?)"
    >>> did_you_mean("dp_logit", ["dp_hist", "dp_glm"])
    " (did you mean 'dp_glm'?)"
    >>> did_you_mean("zzz", ["visits"])
    ''
    """
    folded = {_folded(option): option for option in options if isinstance(option, str) and option}
    text = _folded(name) if isinstance(name, str) else ""
    text = ELSEWHERE[text] if ELSEWHERE.get(text) in folded else text
    matches = [
        option
        for option in folded
        if option[: len(text)] == text[: len(option)] and min(len(option), len(text)) > 2
    ]
    matches = matches or get_close_matches(text, folded, n=3, cutoff=ALIKE)
    matches = [text] if text in folded else matches
    near = " or ".join(repr(folded[match]) for match in matches if folded[match] != name)
    return f" (did you mean {near}?)" if near else ""


def _folded(name: str) -> str:
    return name.strip().casefold().removeprefix("dp_")


# Warnings that were printed, by text, file and line, with Python's memory of the calling module;
# and how many at most.
REMEMBERED: Final = 1_000
_printed: Final = dict[tuple[str, str, int], object]()


def warn(text: str, category: type[Warning]) -> None:
    """Warn of the line that calls the package: once, unless a filter asks for more.

    Python alone forgets what it printed when filters change, as they do within pandas. A notebook
    gives a module a new memory for every cell that runs.
    """
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("dpmodels"):
        frame, level = frame.f_back, level + 1
    if _is_once(text, category, frame.f_globals.get("__name__", ""), frame.f_lineno):
        place = (text, frame.f_code.co_filename, frame.f_lineno)
        memory = frame.f_globals.setdefault("__warningregistry__", {})
        if _printed.get(place) is memory:
            return
        if len(_printed) >= REMEMBERED:
            _printed.clear()
        _printed[place] = memory
    warnings.warn(text, category, stacklevel=level)


def _is_once(text: str, category: type[Warning], module: str, line: int) -> bool:
    actions = (
        action
        for action, message, kind, name, number in warnings.filters
        if issubclass(category, kind) and number in (0, line)
        if (not message or message.match(text)) and (not name or name.match(module))
    )
    return next(actions, "default") in ("default", "module", "once")


class DPModelsError(Exception):
    """Base of every error the package raises on purpose."""


class CodebookError(DPModelsError, ValueError):
    """A public fact about a variable is missing or cannot be used."""


class FormulaError(DPModelsError, ValueError):
    """A formula asks for something that is not row-wise, bounded and known."""


class UnknownVariable(CodebookError, FormulaError):
    """A formula names a variable, `name`, that the codebook does not declare."""

    def __init__(self, message: str, name: str = "") -> None:
        super().__init__(message)
        self.name = name


class FrameError(DPModelsError, ValueError):
    """The data cannot be read as declared: columns or container, never cells."""


class ArgumentError(DPModelsError, ValueError):
    """An argument of a verb lies outside what the verb accepts."""


class BudgetError(DPModelsError, ValueError):
    """A privacy budget is invalid, or does not fit the mechanism."""


class BudgetWarning(DPModelsError, UserWarning):
    """A budget that is very likely too small for a useful result; issued before the charge.

    A warning, which only a filter makes an error: ``warnings.simplefilter("error",
    dp.errors.BudgetWarning)`` stops such calls before the charge, ``"ignore"`` silences it. It
    uses public facts and an assumption about rows that it states, never a row.
    """


class OutsideWarning(DPModelsError, UserWarning):
    """Public rows lie outside the codebook's bounds; the message has their number.

    It concerns public rows that a user gives to a released fit, counted without noise. Of rows of
    the fit itself, ``fit.clipped()`` has noisy counts.
    """


class RoundOpen(DPModelsError):
    """A round of an exchange has no public answer yet; its argument says what is missing."""


class LedgerError(DPModelsError):
    """A ledger refuses a release: what it would cost is more than what is left."""


class GatewayError(DPModelsError, ConnectionError):
    """A gateway cannot be reached, refuses the token, or has no answer to a job.

    A job that was accepted may have charged its purse: see ``table.register()``. `status` is that
    of the answer over HTTP.
    """

    def __init__(self, message: str, status: int = 503) -> None:
        super().__init__(message)
        self.status = status


class MechanismError(DPModelsError, RuntimeError):
    """A user-supplied mechanism failed on exact moments; the budget stays spent.

    It comes after the charge. The text is fixed and quotes neither a value nor the message of the
    exception, which could hold values of rows.
    """


class PrivacyError(DPModelsError, TypeError):
    """An operation would expose private values."""


class NotAvailable(DPModelsError, AttributeError):
    """A quantity does not exist for this result; the message gives the reason."""


class SyntheticWarning(DPModelsError, UserWarning):
    """The data of a verb are rows that :meth:`SynthResult.rows` drew.

    Their privacy noise is not counted in any error that the verb reports. Rows are recognised by
    the metadata of a pandas frame.
    """

    KEY: Final = "dpmodels.synthetic"


# Public functions that take rows: their exceptions keep no variables of inner frames.
#
# Debuggers, error trackers and verbose tracebacks print the local variables of every frame that an
# exception passed, and those of the package hold cells and exact statistics.

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
