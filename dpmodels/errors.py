"""The errors of the package: they speak of declarations, never of values in rows.

Every message says what was declared, what was expected and what to write instead. All of them are
raised before a row is read and before a budget is charged, unless the class says otherwise.
"""

import sys
from numbers import Real
from typing import Final

# Whole numbers of fewer digits are quoted.
LARGEST: Final = 2**200


def said(value: object) -> str:
    """Quote a word or a number; of anything else, which might hold rows, name the type.

    Of a whole number of very many digits the size is named.
    """
    if isinstance(value, int) and abs(value) >= LARGEST:
        return f"{'-' * (value < 0)}2**{value.bit_length() - 1} or beyond"
    return repr(value) if isinstance(value, str | Real | None) else type(value).__name__


def shorten(text: str, width: int = 60) -> str:
    """Return text fit for an error message."""
    return text if len(text) <= width else f"{text[: width - 4]} ..."


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
    """A formula names a variable that the codebook does not declare."""


class FrameError(DPModelsError, ValueError):
    """The data cannot be read as declared: columns or container, never cells."""


class ArgumentError(DPModelsError, ValueError):
    """An argument of a verb lies outside what the verb accepts."""


class BudgetError(DPModelsError, ValueError):
    """A privacy budget, or its fit with a mechanism, makes no sense."""


class BudgetWarning(DPModelsError, UserWarning):
    """A budget that will very likely not tell what is asked; told before it is charged.

    A warning, which only a filter makes an error: ``warnings.simplefilter("error",
    dp.errors.BudgetWarning)`` stops such calls before the charge, ``"ignore"`` silences it. It
    follows from public facts and a guess of what rows are like, which it states; never from a row.
    """


class OutsideWarning(DPModelsError, UserWarning):
    """Public rows lie outside the codebook's bounds; told with their number.

    Of rows that a user gives to a released fit and that are not private: those of a fit are held in
    the bounds without a word, since a count of them would tell of a row.
    """


class LedgerError(DPModelsError):
    """A ledger refuses a release: what it would cost is more than what is left."""


class MechanismError(DPModelsError, RuntimeError):
    """A user-supplied mechanism failed on exact moments; the budget stays spent.

    It comes after the charge. The text is fixed and quotes neither a value nor the message of the
    exception, which could hold values of rows.
    """


class PrivacyError(DPModelsError, TypeError):
    """Something was asked that would carry private values out of the house."""


class NotAvailable(DPModelsError, AttributeError):
    """A quantity does not exist for this result; the message gives the reason."""
