"""Who a cell names: a key of 128 bits, made of that cell and a secret alone.

A person must never be two because of how a file was written, for each of the two would be protected
apart; that two persons are taken for one costs accuracy alone. So cells that any software may write
for one another name one person: numbers are compared in double precision, logical values are the
numbers 0 and 1, and a text that spells a number is that number: ``7``, ``7.0``, ``"7"`` and
``"007"``, and whole numbers beyond 2**53 that are next to each other. Bytes are the text they
encode, a UUID is its text. Numbers that matter to the last digit are told apart by a letter.

Nobody is named by what is missing, by what is no number and no text (a date, a list, any object),
and by numbers that are not finite, to which software turns what it cannot hold. Each number has a
key of its own; of n texts two have the same with a chance below ``n**2 / 2**127``.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.frames.convert import MISSING, number, plain, plain_cells, to_float
from dpmodels.typing import Floats

Words = NDArray[np.uint64]

# What R, databases and pandas write where there is nothing.
_NOTHING: Final = frozenset(
    ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "<NA>", "NaT", "#N/A")
)
# After each text, and before those of its own.
_END: Final = "\0"
_ESCAPE: Final = "\1"
# With these letters begin texts that may be inf, nan, True or False, or say that there is nothing.
_MAY_SPELL: Final = "iInNtTfF"
_LETTERS: Final = np.array(
    [chr(code).isalpha() and chr(code) not in _MAY_SPELL for code in range(128)] + [False]
)


class Keys(NamedTuple):
    """Keys of n cells, two words each, and which of them name anybody, shapes (n,)."""

    high: Words
    low: Words
    known: NDArray[np.bool_]


def person_keys(cells: NDArray[Any], secret: bytes) -> Keys:
    """Return whom cells of any dtype name, shape (n,); `secret` is of 16 bytes or more.

    It never raises and never warns.
    """
    if isinstance(cells, np.ma.MaskedArray):
        own = person_keys(np.ma.getdata(cells), secret)
        return own._replace(known=own.known & ~np.ma.getmaskarray(cells))
    if cells.dtype.kind not in "OUST":
        return _of_numbers(to_float(cells))
    import pandas as pd

    listed = plain_cells(cells)
    codes, found = pd.factorize(np.fromiter(listed, object, len(listed)))
    # The last is nobody, whom the code -1 stands for.
    high, low, known = _of_objects(np.append(found, [None]), secret)
    return Keys(high[codes], low[codes], known[codes])


def written(cells: NDArray[Any]) -> bytes:
    """Return what cells of any dtype say, the same bytes however they are divided into blocks.

    A number among texts is written as a text that names the same person. It never raises.
    """
    if cells.dtype.kind not in "OUST":
        return np.ma.filled(to_float(cells), MISSING).tobytes()
    texts = cells.tolist()
    try:
        whole = _END.join(texts) + _END
    except TypeError:
        # Python does not write whole numbers of thousands of digits: numbers are said as floats.
        own = plain_cells(cells)
        texts = [one if isinstance(one, str) else repr(plain(one)) for one in own]
        whole = _END.join(texts) + _END
    if whole.count(_END) != len(texts) or _ESCAPE in whole:
        whole = "".join(_escaped(one) + _END for one in texts)
    return whole.encode("utf-8", "surrogatepass")


def _escaped(text: str) -> str:
    """Return a text without the sign at which one ends, different for different texts."""
    doubled = str.replace(text, _ESCAPE, 2 * _ESCAPE)
    return doubled.replace(_END, _ESCAPE + "0")


def _of_numbers(values: Floats) -> Keys:
    # Of the two zeros one is left.
    high, low = (values + 0.0).view(np.uint64), np.zeros(len(values), dtype=np.uint64)
    return Keys(high, low, np.isfinite(values))


def _of_objects(found: NDArray[Any], secret: bytes) -> Keys:
    """Return the keys of texts, numbers and None."""
    is_text = np.array([type(one) is str for one in found], dtype=bool)
    texts, values = found[is_text], np.full(len(found), MISSING)
    spelled, nothing = _spelled(texts)
    values[is_text] = spelled
    values[~is_text] = np.fromiter(map(_number, found[~is_text]), np.float64)
    own = _of_numbers(values)
    named = np.flatnonzero(is_text)[np.isnan(spelled) & ~nothing]
    one, other = secret.hex()[:16], secret.hex()[16:32]
    own.high[named] = _hashed(found[named], one)
    own.low[named] = _hashed(found[named], other) | np.uint64(1)
    own.known[named] = True
    return own


def _number(cell: object) -> float:
    value = plain(cell)
    return value if isinstance(value, float) else MISSING


def _spelled(texts: NDArray[Any]) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the numbers that texts spell, nan where none, and which texts say nothing.

    ``"1_2"`` spells a number in Python only.
    """
    first = texts.astype("U1").view(np.uint32)
    values, nothing = np.full(len(texts), MISSING), np.zeros(len(texts), dtype=bool)
    maybe = np.flatnonzero(~_LETTERS[np.minimum(first, 128)])
    values[maybe] = [MISSING if "_" in text else number(text) for text in texts[maybe]]
    nothing[maybe] = [text in _NOTHING for text in texts[maybe]]
    return values, nothing


def _hashed(texts: NDArray[Any], key: str) -> Words:
    """Return 64 bits of SipHash for each text, whose key is 16 characters."""
    import pandas as pd

    try:
        return pd.util.hash_array(texts, hash_key=key, categorize=False)
    except UnicodeEncodeError:
        encoded = [str.encode(text, "utf-8", "surrogatepass") for text in texts]
        cells = np.fromiter(encoded, object, len(encoded))
        return pd.util.hash_array(cells, hash_key=key, categorize=False)
