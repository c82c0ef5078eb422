"""The errors of the package: messages quote declarations, never values in rows.

Every message says what was declared, what was expected and what to write instead. All of them are
raised before a row is read and before a budget is charged, unless the class says otherwise.
"""

import sys
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Real
from typing import Final

# Whole numbers of fewer digits are quoted.
LARGEST: Final = 2**200


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

    >>> did_you_mean("Vsits", ["visits", "age"]), did_you_mean("epsilon", ["eps", "person"])
    (" (did you mean 'visits'?)", " (did you mean 'eps'?)")
    >>> did_you_mean("dp_lm", ["lm", "glm"])
    " (did you mean 'lm'?)"
    >>> did_you_mean("zzz", ["visits"])
    ''
    """
    folded = {
        option.strip().casefold(): option
        for option in options
        if isinstance(option, str) and option
    }
    text = name.strip().casefold() if isinstance(name, str) else ""
    text = text.removeprefix("dp_") if text.removeprefix("dp_") in folded else text
    matches = [option for option in folded if _begins(option, text)]
    matches = [text] if text in folded else matches or get_close_matches(text, folded, n=3)
    near = " or ".join(repr(folded[match]) for match in matches if folded[match] != name)
    return f" (did you mean {near}?)" if near else ""


def _begins(first: str, second: str) -> bool:
    """Whether one of two names is the beginning of the other."""
    short, long = sorted((first, second), key=len)
    return len(short) > 2 and long.startswith(short)


def frames_up() -> int:
    """Return how many frames up the caller of the package is, for the line that a warning names."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("dpmodels"):
        frame, level = frame.f_back, level + 1
    return level


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
