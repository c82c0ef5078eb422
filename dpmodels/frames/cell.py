"""One cell, whatever its type: a text, a number, or nothing.

A cell is read by the type it is built on, with that type's own code. What a foreign class defines
(`__float__`, `__hash__`, `__eq__`, `__class__`) is not asked, since it might raise, warn or print.
"""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np

MISSING: Final = float("nan")

# The spellings that pandas, polars and R write for logical values. pandas.read_csv
# gives them as bool or as text according to the *other* rows of the column.
_LOGICAL: Final = {
    "True": 1.0,
    "TRUE": 1.0,
    "true": 1.0,
    "False": 0.0,
    "FALSE": 0.0,
    "false": 0.0,
}


def plain(cell: object) -> str | float:
    """Read a cell as a text or a number; NaN where it is neither.

    Text and bytes (UTF-8, undecodable bytes replaced) as str; integers, floats, logical values,
    decimals and fractions as the nearest float, a complex number as its real part if it has no
    other. NaN for all else: None and the missing values of every library, dates, sequences,
    integers beyond the range of float, foreign objects.

    >>> import numpy as np
    >>> plain("F"), plain(True), plain(np.int8(3)), plain(10**400), plain([1.0])
    ('F', 1.0, 3.0, nan, nan)
    """
    kind = type(cell)
    try:
        for base, read in _READERS:
            if type.__subclasscheck__(base, kind):
                return read(cell)
    except Exception:
        return MISSING
    return MISSING


def number(text: str) -> float:
    """Read the number that a text spells; NaN where it spells none.

    >>> number("1.50"), number("True"), number("F")
    (1.5, 1.0, nan)
    """
    try:
        return float(text)
    except ValueError:
        return _LOGICAL.get(text, MISSING)


def _real(cell: complex) -> float:
    return float(cell.real) if cell.imag == 0 else MISSING


def _decoded(cell: bytes) -> str:
    return bytes.decode(cell, "utf-8", "replace")


def _missing(_: object) -> float:
    return MISSING


# Order matters: numpy.timedelta64 counts as an integer type, numpy.complex128 as complex.
_READERS: Final[tuple[tuple[type, Callable[[Any], str | float]], ...]] = (
    (str, str.__str__),
    (float, float.__float__),
    (int, int.__float__),
    (bytes, _decoded),
    (np.bool_, float),
    (np.timedelta64, _missing),
    (np.integer, float),
    (np.floating, float),
    (complex, _real),
    (np.complexfloating, _real),
    (Decimal, Decimal.__float__),
    (Fraction, Fraction.__float__),
)
