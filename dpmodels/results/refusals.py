"""What no result gives away, and what to write instead."""

from __future__ import annotations

from typing import NoReturn

from dpmodels.errors import NotAvailable

NOT_PICKLED = "results are not pickled; write fit.save(path) and dp.load(path)"

NO_SCORE = (
    "is not available: accuracy on the private rows is not released with the coefficients; for "
    "public rows compare predict(newdata) with their response"
)


class Refused:
    """An attribute that a result does not have: reading it says why, and what to write.

    ``hasattr`` says no of it, since :class:`NotAvailable` is an ``AttributeError``.
    """

    def __init__(self, why: str) -> None:
        self._why = why

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, fit: object, owner: type | None = None) -> NoReturn:
        raise NotAvailable(f"{self._name} {self._why}")


def per_row(instead: str) -> tuple[Refused, Refused, Refused]:
    """Refuse ``scores, fittedvalues, resid``: functions of single private rows."""
    why = (
        "of the private rows would give the rows away and do not exist in this result; for public "
        f"rows use {instead}"
    )
    return Refused(why), Refused(why), Refused(why)
