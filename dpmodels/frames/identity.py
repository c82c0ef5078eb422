"""Keyed hashes of canonical ids, by which the records of a person are counted.

A merge of two persons is not a mere loss of accuracy: adding one of them can displace rows of the
other, which is more than the guarantee allows for, and the number of persons that "replace" prints
may differ between neighbours. So `dpmodels.person_ids` alone merges ids, besides collisions of 128
bits, whose probability for n ids is below ``n**2 / 2**127``. The hashes are keyed by a secret, so
that nobody can choose ids that meet in the table of counts: whole numbers are encrypted, which is
fast and merges no two of them; all other ids are hashed by SipHash.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.person_ids import EXACT, canonical_id, canonical_texts

Words = NDArray[np.uint64]

# Whole numbers of up to so many digits are encrypted: they fit in a block of 128 bits.
_DIGITS: Final = 38
# After each text in a digest, and before those characters in a text.
_END: Final = "\0"
_ESCAPE: Final = "\1"


class Keys(NamedTuple):
    """Keyed hashes of n ids, two words each, and which cells have an id, shapes (n,)."""

    high: Words
    low: Words
    known: NDArray[np.bool_]

    def put(self, positions: Any, keys: Keys) -> None:
        """Set some of the keys."""
        for target, values in zip(self, keys, strict=True):
            target[positions] = values

    def take(self, positions: Any) -> Keys:
        """Return some of the keys."""
        return Keys(self.high[positions], self.low[positions], self.known[positions])


def person_keys(cells: NDArray[Any], secret: bytes, missing: Sequence[str] = ()) -> Keys:
    """Return the keyed hashes of the ids of cells of any dtype, shape (n,).

    `secret` has 16 bytes or more; `missing` are canonical ids that stand for no person. It never
    raises and never warns.
    """
    if isinstance(cells, np.ma.MaskedArray):
        keys = person_keys(np.ma.getdata(cells), secret, missing)
        return keys._replace(known=keys.known & ~np.ma.getmaskarray(cells))
    keys = _of_column(cells, secret)
    if missing:
        none = _of_ids(list(missing), secret)
        keys.known[np.isin(keys.high, none.high) & np.isin(keys.low, none.low)] = False
    return keys


def cell_bytes(cells: NDArray[Any]) -> bytes:
    """Return what cells of any dtype hold, the same bytes however they are divided into blocks.

    It never raises.
    """
    missing = np.ma.getmaskarray(cells)
    if cells.dtype.kind not in "OUST":
        records = np.zeros(len(cells), [("missing", bool), ("cell", cells.dtype)])
        records["missing"], records["cell"] = missing, np.ma.getdata(cells)
        return records.tobytes()
    texts = cells.tolist()
    try:
        whole = _END.join(texts) + _END
    except TypeError:
        texts = [cell if type(cell) is str else canonical_id(cell) for cell in texts]
        whole = _END.join(texts) + _END
    if whole.count(_END) != len(texts) or _ESCAPE in whole:
        whole = "".join(_escaped(text) + _END for text in texts)
    return whole.encode("utf-8", "surrogatepass")


def _escaped(text: str) -> str:
    """Return a text without the sign at which one ends, different for different texts."""
    doubled = str.replace(text, _ESCAPE, 2 * _ESCAPE)
    return doubled.replace(_END, _ESCAPE + "0")


def _nobody(rows: int) -> Keys:
    return Keys(np.zeros(rows, np.uint64), np.zeros(rows, np.uint64), np.zeros(rows, bool))


def _of_column(cells: NDArray[Any], secret: bytes) -> Keys:
    match cells.dtype.kind:
        case "i" | "u" | "f":
            return _of_numbers(cells, secret)
        case "O" | "U" | "S" | "T":
            return _of_objects(cells.tolist(), secret)
        case "b" | "M":
            distinct, codes = np.unique(cells, return_inverse=True)
            return _of_ids(list(map(canonical_id, distinct)), secret).take(codes)
    return _nobody(len(cells))


def _of_numbers(cells: NDArray[Any], secret: bytes) -> Keys:
    """Return the keys of numbers: whole ones are encrypted, the texts of others are hashed."""
    if cells.dtype.kind != "f":
        return _encrypted(_blocks(cells), secret)
    values = cells.astype(np.float64, copy=False)
    with np.errstate(invalid="ignore"):
        whole = (np.abs(values) < EXACT) & (np.trunc(values) == values)
    keys = _nobody(len(values))
    keys.put(whole, _encrypted(_blocks(values[whole].astype(np.int64)), secret))
    others = ~whole & (values == values)
    if others.any():
        distinct, codes = np.unique(values[others], return_inverse=True)
        texts = np.fromiter(map(repr, distinct.tolist()), object, len(distinct))
        keys.put(others, _hashed(texts, secret).take(codes))
    return keys


def _of_objects(cells: list[Any], secret: bytes) -> Keys:
    """Return the keys of Python objects: integers by their values, all else by their texts."""
    import pandas as pd

    whole = np.fromiter((type(cell) is int for cell in cells), bool, len(cells))
    if whole.any():
        try:
            numbers = np.fromiter(compress(cells, whole), np.int64)
        except OverflowError:
            whole[:] = False
    texts = [cell if type(cell) is str else canonical_id(cell) for cell in compress(cells, ~whole)]
    codes, distinct = pd.factorize(np.fromiter(texts, object, len(texts)))
    hashed = _of_ids(canonical_texts(distinct.tolist()), secret).take(codes)
    if not whole.any():
        return hashed
    keys = _nobody(len(cells))
    keys.put(~whole, hashed)
    keys.put(whole, _of_numbers(numbers, secret))
    return keys


def _of_ids(ids: list[str], secret: bytes) -> Keys:
    """Return the keys of canonical ids; the empty one is nobody's."""
    keys = _hashed(np.fromiter(ids, object, len(ids)), secret)
    whole = [at for at, text in enumerate(ids) if text[:1] < ":" and _is_whole(text)]
    if whole:
        blocks = b"".join(int(ids[at]).to_bytes(16, "little", signed=True) for at in whole)
        keys.put(whole, _encrypted(blocks, secret))
    return keys


def _is_whole(text: str) -> bool:
    """Whether a canonical id is the decimal digits of a number that is encrypted."""
    digits = text.removeprefix("-")
    short = digits.isdigit() and digits.isascii() and len(digits) <= _DIGITS
    return short and (digits[0] != "0" or text == "0")


def _blocks(whole: NDArray[Any]) -> bytes:
    """Return whole numbers as signed integers of 128 bits, little-endian."""
    blocks = np.zeros((len(whole), 2), dtype="<u8")
    blocks[:, 0] = whole.astype(np.uint64)
    blocks[whole < 0, 1] = 2**64 - 1
    return blocks.tobytes()


def _encrypted(blocks: bytes, secret: bytes) -> Keys:
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import AES
    from cryptography.hazmat.primitives.ciphers.modes import ECB

    cipher = Cipher(AES(secret[:16]), ECB()).encryptor()
    words = np.frombuffer(cipher.update(blocks), dtype=np.uint64).reshape(-1, 2)
    return Keys(words[:, 0].copy(), words[:, 1].copy(), np.ones(len(words), dtype=bool))


def _hashed(texts: NDArray[Any], secret: bytes) -> Keys:
    """Hash texts by SipHash, under a key for each word; the empty one is nobody's."""
    import pandas as pd

    known = texts.astype(bool)
    words = secret.hex()[:16], secret.hex()[16:32]
    try:
        high, low = (pd.util.hash_array(texts, hash_key=key, categorize=False) for key in words)
    except UnicodeEncodeError:
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        texts = np.fromiter(encoded, object, len(encoded))
        high, low = (pd.util.hash_array(texts, hash_key=key, categorize=False) for key in words)
    return Keys(high, low, known)
