"""Canonical ids: two records belong to one person if and only if theirs are equal.

A canonical id is a text that follows from the cell alone, whichever software read the file:

- whole numbers of any type, and floats that are whole and below 2**53, are their decimal digits;
- other floats are their ``repr``; logical values are ``"True"`` and ``"False"``; dates and times
  are in ISO 8601, a date alone at midnight, in local time where there is a zone;
- text, and bytes as UTF-8, are in Unicode's normal form C, without white space, byte order marks
  and control characters at the ends. Case and leading zeros are kept.

So ``7``, ``7.0`` and ``"7"`` are one id; ``"007"``, ``"1.10"``, ``"12E007"``, ``"NA"`` and
``"TRUE"`` are ids of their own. Nulls, NaN and text that is empty once stripped are missing. Any
other cell, such as a list, is not an id.
"""

from __future__ import annotations

import datetime as dt
import unicodedata
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from typing import Any, Final, SupportsFloat, SupportsInt
from uuid import UUID

import numpy as np

# White space, byte order marks and control characters.
_ENDS: Final = "\ufeff" + "".join(
    char for char in map(chr, range(0x3001)) if char.isspace() or unicodedata.category(char) == "Cc"
)
# Whole floats from here on stand for several whole numbers.
EXACT: Final = 2**53
# A choice: decimals of larger exponents are not written out.
_LARGEST_EXPONENT: Final = 10_000
# Python refuses to print longer integers.
_PRINTED_BITS: Final = 2048


def canonical_id(cell: object) -> str:
    """Return the canonical id of a cell, empty where it is missing or cannot be an id.

    It never raises.

    >>> canonical_id(7), canonical_id(7.0), canonical_id(" 7"), canonical_id("007")
    ('7', '7', '7', '007')
    >>> canonical_id(1.5), canonical_id("NA"), canonical_id(" "), canonical_id(float("nan"))
    ('1.5', 'NA', '', '')
    """
    kind = type(cell)
    if cell is None:
        return ""
    try:
        for base, read in _READERS:
            if type.__subclasscheck__(base, kind):
                return read(cell)
    except Exception:
        return ""
    return ""


def canonical_texts(texts: list[str]) -> list[str]:
    """Return the canonical ids of texts."""
    together = "".join(texts)
    if together.isascii() and together.isprintable():
        return [text.strip(" ") for text in texts] if " " in together else texts
    return [_of_text(text) for text in texts]


def _of_text(text: str) -> str:
    return (text if text.isascii() else unicodedata.normalize("NFC", text)).strip(_ENDS)


def _of_bytes(cell: bytes) -> str:
    return _of_text(bytes.decode(cell, "utf-8", "surrogateescape"))


def _of_integer(cell: SupportsInt) -> str:
    number = int(cell)
    return str(number) if number.bit_length() < _PRINTED_BITS else str(Decimal(number))


def _of_float(cell: SupportsFloat) -> str:
    value = float(cell)
    if value.is_integer() and abs(value) < EXACT:
        return str(int(value))
    return repr(value) if value == value else ""


def _of_decimal(cell: Decimal) -> str:
    if not cell.is_finite():
        return "" if cell.is_nan() else repr(float(cell))
    # The context of the thread would round.
    exact = Context(prec=len(cell.as_tuple().digits), Emin=MIN_EMIN, Emax=MAX_EMAX)
    short = cell.normalize(exact)
    if not short:
        return "0"
    return f"{short:f}" if abs(short.adjusted()) < _LARGEST_EXPONENT else str(short)


def _of_fraction(cell: Fraction) -> str:
    numerator = _of_integer(cell.numerator)
    return numerator if cell.denominator == 1 else f"{numerator}/{_of_integer(cell.denominator)}"


def _of_time(cell: Any) -> str:
    import pandas as pd

    time: Any = pd.Timestamp(cell)
    return "" if time is pd.NaT else time.tz_localize(None).isoformat().removesuffix("T00:00:00")


# Order matters: bool is a type of int, numpy.timedelta64 of numpy.integer, datetime of date.
_READERS: Final[tuple[tuple[type, Callable[[Any], str]], ...]] = (
    (str, lambda cell: _of_text(str.__str__(cell))),
    (bool, bool.__repr__),
    (int, lambda cell: _of_integer(int.__int__(cell))),
    (float, lambda cell: _of_float(float.__float__(cell))),
    (bytes, _of_bytes),
    (np.bool_, lambda cell: repr(bool(cell))),
    (np.timedelta64, lambda _: ""),
    (np.integer, _of_integer),
    (np.floating, _of_float),
    (np.datetime64, _of_time),
    (Decimal, _of_decimal),
    (Fraction, _of_fraction),
    (UUID, UUID.__str__),
    (dt.datetime, _of_time),
    (dt.date, dt.date.isoformat),
)
