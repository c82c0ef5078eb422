"""Contribution bounding: how many of its person's places each row takes.

A person has a public number of places. Where they are shared evenly, each of its rows takes as many
as whole numbers allow; else each of its rows takes one while there are any. Which of its rows get
more than the others is drawn by a secret and the person's key, all with the same chance. So the
places that the rows of a person take depend on the secret, its key, its number of rows and their
ranks, and on no other person; a row without an id takes none and changes nothing.

No person takes more than its places: rows beyond the number at the first reading take none, and the
ranks of the others differ. If a digest shows that a later reading had other persons, nothing is
released.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import compress
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.column_roles import EXACT, canonical_id, canonical_texts
from dpmodels.errors import FrameError
from dpmodels.frames.protocol import Cells, Coded, unfinished
from dpmodels.typing import Array, Integers

# Keyed hashes of canonical ids, by which the records of a person are counted.
#
# A merge of two persons is not a mere loss of accuracy: adding one of them can displace rows of
# the other, which is more than the guarantee allows for, and the number of persons that "replace"
# prints may differ between neighbours. So `dpmodels.column_roles` alone merges ids, besides
# collisions of 128 bits, whose probability for n ids is below ``n**2 / 2**127``. The hashes are
# keyed by a secret, so that nobody can choose ids that meet in the table of counts: whole numbers
# are encrypted, which is fast and merges no two of them; all other ids are hashed by SipHash.

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
    has_id: NDArray[np.bool_]

    def put(self, positions: list[int] | slice | NDArray[np.integer], keys: Keys) -> None:
        """Set some of the keys."""
        for target, values in zip(self, keys, strict=True):
            target[positions] = values

    def take(self, positions: list[int] | slice | NDArray[np.integer]) -> Keys:
        """Return some of the keys."""
        return Keys(self.high[positions], self.low[positions], self.has_id[positions])


def person_keys(cells: Cells, secret: bytes, missing: Sequence[str] = ()) -> Keys:
    """Return the keyed hashes of the ids of cells of any dtype, shape (n,).

    `secret` has 16 bytes or more; `missing` are canonical ids that stand for no person. It never
    raises and never warns.
    """
    if isinstance(cells, Coded):
        cells = cells.compact()
        keys = _nobody(len(cells.entries) + 1)
        keys.put(slice(-1), person_keys(cells.entries, secret, missing))
        return keys.take(cells.positions)
    if isinstance(cells, np.ma.MaskedArray):
        keys = person_keys(np.ma.getdata(cells), secret, missing)
        return keys._replace(has_id=keys.has_id & ~np.ma.getmaskarray(cells))
    keys = _of_column(cells, secret)
    if missing:
        missing_keys = _of_ids(list(missing), secret)
        keys.has_id[np.isin(keys.high, missing_keys.high) & np.isin(keys.low, missing_keys.low)] = (
            False
        )
    return keys


def cell_bytes(cells: NDArray[np.generic]) -> bytes:
    """Return what cells of any dtype hold, the same bytes however they are divided into blocks.

    It never raises.
    """
    missing = np.ma.getmaskarray(cells)
    if cells.dtype.kind == "V":  # Records within a cell are missing values, whatever they hold
        return bytes(len(cells))
    if cells.dtype.kind not in "OUST":
        records = np.zeros(len(cells), [("missing", bool), ("cell", cells.dtype)])
        records["missing"], records["cell"] = missing, np.ma.getdata(cells)
        return records.tobytes()
    texts = cells.tolist()
    try:
        joined = _END.join(texts) + _END
    except TypeError:
        texts = [cell if type(cell) is str else canonical_id(cell) for cell in texts]
        joined = _END.join(texts) + _END
    if joined.count(_END) != len(texts) or _ESCAPE in joined:
        joined = "".join(_escaped(text) + _END for text in texts)
    return joined.encode("utf-8", "surrogatepass")


def _escaped(text: str) -> str:
    """Return a text without the sign at which one ends, different for different texts."""
    doubled = str.replace(text, _ESCAPE, 2 * _ESCAPE)
    return doubled.replace(_END, _ESCAPE + "0")


def _nobody(n_rows: int) -> Keys:
    return Keys(np.zeros(n_rows, np.uint64), np.zeros(n_rows, np.uint64), np.zeros(n_rows, bool))


def _of_column(cells: Array, secret: bytes) -> Keys:
    match cells.dtype.kind:
        case "i" | "u" | "f":
            return _of_numbers(cells, secret)
        case "c":  # One complex cell gives all numbers of a column this type
            return _of_numbers(np.where(cells.imag == 0, cells.real, np.nan), secret)
        case "O" | "U" | "S" | "T":
            # Integers by their values, all else by their texts.
            import pandas as pd

            objects: list[object] = cells.tolist()
            is_integer = np.fromiter((type(cell) is int for cell in objects), bool, len(cells))
            if is_integer.any():
                try:
                    numbers = np.fromiter(compress(objects, is_integer), np.int64)
                except OverflowError:
                    is_integer[:] = False
            texts = [
                cell if type(cell) is str else canonical_id(cell)
                for cell in compress(objects, ~is_integer)
            ]
            # Of texts alone pandas compares half a surrogate pair by its repr
            codes, distinct = pd.factorize(np.array([*texts, None], object))
            hashed = _of_ids(canonical_texts(distinct.tolist()), secret).take(codes[:-1])
            if not is_integer.any():
                return hashed
            keys = _nobody(len(cells))
            keys.put(~is_integer, hashed)
            keys.put(is_integer, _of_numbers(numbers, secret))
            return keys
        case "b" | "M":
            distinct, codes = np.unique(cells, return_inverse=True)
            return _of_ids(list(map(canonical_id, distinct)), secret).take(codes)
    return _nobody(len(cells))


def _of_numbers(cells: Array, secret: bytes) -> Keys:
    """Return the keys of numbers: whole ones are encrypted, the texts of others are hashed."""
    if cells.dtype.kind != "f":
        return _encrypted(_blocks(cells), secret)
    with np.errstate(over="ignore", invalid="ignore"):
        values = cells.astype(np.float64, copy=False)
        is_whole = (np.abs(values) < EXACT) & (np.trunc(values) == values)
    keys = _nobody(len(values))
    keys.put(is_whole, _encrypted(_blocks(values[is_whole].astype(np.int64)), secret))
    is_hashed = ~is_whole & (values == values)
    if is_hashed.any():
        distinct, codes = np.unique(values[is_hashed], return_inverse=True)
        texts = np.fromiter(map(repr, distinct.tolist()), object, len(distinct))
        keys.put(is_hashed, _hashed(texts, secret).take(codes))
    return keys


def _of_ids(ids: list[str], secret: bytes) -> Keys:
    """Return the keys of canonical ids; the empty id stands for no person."""
    keys = _hashed(np.fromiter(ids, object, len(ids)), secret)
    positions = [
        position for position, text in enumerate(ids) if text[:1] < ":" and _is_whole(text)
    ]
    if positions:
        blocks = b"".join(
            int(ids[position]).to_bytes(16, "little", signed=True) for position in positions
        )
        keys.put(positions, _encrypted(blocks, secret))
    return keys


def _is_whole(text: str) -> bool:
    """Whether a canonical id is the decimal digits of a number that is encrypted."""
    digits = text.removeprefix("-")
    short = digits.isdigit() and digits.isascii() and len(digits) <= _DIGITS
    return short and (digits[0] != "0" or text == "0")


def _blocks(numbers: Array) -> Words:
    """Return whole numbers as signed integers of 128 bits, little-endian, shape (n, 2)."""
    blocks = np.empty((len(numbers), 2), dtype="<u8")
    blocks[:, 0] = numbers.astype(np.uint64, copy=False)
    blocks[:, 1] = (numbers < 0) * np.uint64(2**64 - 1)
    return blocks


def _encrypted(blocks: Words | bytes, secret: bytes) -> Keys:
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import AES
    from cryptography.hazmat.primitives.ciphers.modes import ECB

    cipher = Cipher(AES(secret[:16]), ECB()).encryptor()
    blocks = np.frombuffer(blocks, dtype=np.uint64).reshape(-1, 2)
    words = np.empty((len(blocks) + 1, 2), dtype=np.uint64)
    cipher.update_into(blocks.view(np.uint8).data, words.view(np.uint8).data)
    return Keys(words[:-1, 0], words[:-1, 1], np.ones(len(blocks), dtype=bool))


def _hashed(texts: NDArray[np.generic], secret: bytes) -> Keys:
    """Hash texts by SipHash, under a key for each word; the empty text stands for no person."""
    import pandas as pd

    has_id = texts.astype(bool)
    words = secret.hex()[:16], secret.hex()[16:32]
    try:
        high, low = (pd.util.hash_array(texts, hash_key=key, categorize=False) for key in words)
    except UnicodeEncodeError:
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        texts = np.fromiter(encoded, object, len(encoded))
        high, low = (pd.util.hash_array(texts, hash_key=key, categorize=False) for key in words)
    return Keys(high, low, has_id)


# Keys numbered in the order in which they come, in a few arrays.

_LEAST: Final = 2**10  # A choice: slots of an empty table


def mixed(words: Words) -> Words:
    """Return 64 bits that all bits of a word have a part in: the end of SplitMix64."""
    words = (words ^ words >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ words >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return words ^ words >> np.uint64(31)


class Numbering:
    """A hash table with open addressing, asked for a block of keys at a time.

    It has at least two slots for each key: 16 bytes for the key, 8 to 16 for its slots.
    """

    __slots__ = ("_high", "_low", "_salt", "_slots", "size")

    def __init__(self, salt: int) -> None:
        self.size = 0
        self._salt = np.uint64(salt)
        self._slots = np.full(_LEAST, -1, dtype=np.int32)
        self._high = np.zeros(_LEAST // 2, dtype=np.uint64)
        self._low = np.zeros(_LEAST // 2, dtype=np.uint64)

    @property
    def high(self) -> Words:
        """The first words of the keys, by their numbers."""
        return self._high[: self.size]

    @property
    def room(self) -> int:
        """How many keys fit."""
        return len(self._high)

    def salted(self) -> Words:
        """Return a word for each of the keys, by their numbers, made of the key and the salt."""
        return mixed(mixed(self.high ^ self._salt) ^ self._low[: self.size])

    def numbers(self, high: Words, low: Words) -> Integers:
        """Return the numbers of keys, shape (n,); new ones get the next."""
        self._make_room(len(high))
        slots = self._first(high, low)
        numbers = self._numbers_at(slots, high, low)
        unresolved = np.flatnonzero(numbers < 0)
        while len(unresolved):
            settled = unresolved[self._won(slots[unresolved])]
            new = self.size + np.arange(len(settled))
            self._slots[slots[settled]] = new
            self._high[new], self._low[new] = high[settled], low[settled]
            self.size += len(settled)
            numbers[unresolved] = self._numbers_at(
                slots[unresolved], high[unresolved], low[unresolved]
            )
            unresolved = unresolved[numbers[unresolved] < 0]
            slots[unresolved] = slots[unresolved] + 1 & len(self._slots) - 1
        return numbers

    def _numbers_at(self, slots: Integers, high: Words, low: Words) -> Integers:
        """Return the numbers of keys that are at their slots, else -1."""
        numbers = self._slots[slots].astype(np.int64)
        positions = np.maximum(numbers, 0)
        numbers[(self._high[positions] != high) | (self._low[positions] != low)] = -1
        return numbers

    def _first(self, high: Words, low: Words) -> Integers:
        slots = (high ^ low) >> np.uint64(65 - len(self._slots).bit_length())
        return slots.view(np.int64)

    def _won(self, slots: Integers) -> Integers:
        """Choose one key for each empty slot."""
        claiming = np.flatnonzero(self._slots[slots] < 0)
        claims = -2 - np.arange(len(claiming), dtype=np.int32)
        self._slots[slots[claiming]] = claims
        return np.asarray(claiming[self._slots[slots[claiming]] == claims])

    def _make_room(self, n_new: int) -> None:
        """Double the table until the new keys fit."""
        if self.size + n_new <= self.room:
            return
        n_slots = len(self._slots)
        while n_slots < 2 * (self.size + n_new):
            n_slots *= 2
        for name in ("_high", "_low"):
            grown = np.zeros(n_slots // 2, dtype=np.uint64)
            grown[: self.size] = getattr(self, name)[: self.size]
            setattr(self, name, grown)
        self._slots = np.full(n_slots, -1, dtype=np.int32)
        slots_of_keys = self._first(self._high[: self.size], self._low[: self.size])
        unresolved = np.arange(self.size)
        while len(unresolved):
            winners = self._won(slots_of_keys[unresolved])
            self._slots[slots_of_keys[unresolved[winners]]] = unresolved[winners]
            unresolved = np.delete(unresolved, winners)
            slots_of_keys[unresolved] = slots_of_keys[unresolved] + 1 & n_slots - 1


# Bytes of the secret: 16 name persons, 8 draw among their rows.
SECRET_BYTES: Final = 24
# Odd numbers of no meaning, one a round of shuffling.
_ODD: Final = (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0x8CB92BA72F3D8DD7, 0xF1357AEA2E62A9C5)


class PersonRows(NamedTuple):
    """Rows of persons that count, shapes (n,)."""

    rows: NDArray[np.intp]  # Which of those that were read, by how many places they take
    persons: Array  # Their numbers, from 0
    places: NDArray[np.uint8]  # How many each takes


class Persons:
    """Numbers of rows by person, in memory as long as the rows are read."""

    __slots__ = (
        "_cache",
        "_digests",
        "_even",
        "_first",
        "_missing",
        "_n_read",
        "_names",
        "_places",
        "_secret",
        "_seeds",
        "_totals",
    )

    def __init__(
        self, places: int, secret: bytes, *, even: bool, missing: Sequence[str] = ()
    ) -> None:
        self._places = places
        self._missing = missing  # Canonical ids that stand for no person
        self._even = even
        self._secret = secret
        self._names = Numbering(int.from_bytes(secret[16:SECRET_BYTES], "little"))
        self._n_read = np.zeros(0, dtype=np.int64)
        self._totals: Integers | None = None  # As many as the first reading saw
        self._seeds: Words = np.zeros(0, dtype=np.uint64)
        self._cache = PersonCache()
        self._digests = sha256(), sha256()
        self._first = b""

    def __repr__(self) -> str:
        return "<Persons, not shown>"

    @property
    def number(self) -> int:
        """How many persons there are."""
        return self._names.size

    def count(self, cells: Cells, counted: NDArray[np.bool_]) -> None:
        """Count each person's rows that are `counted`; persons without any are registered too."""
        self._cache.add(self._ranks(cells, counted))

    def again(self) -> None:
        """Start a new reading, after all rows were counted."""
        if self._totals is None:
            self._totals, self._first = self._n_read.copy(), self._digest()
            self._seeds = self._names.salted()
        self._n_read[:] = 0
        self._digests = sha256(), sha256()
        self._cache.again(self._places_of)

    def taken(self, cells: Cells, counted: NDArray[np.bool_]) -> PersonRows:
        """Return the persons of rows and the places they take, after all were counted."""
        cached = self._cache.next(len(cells))
        if cached is None:
            ranks = self._ranks(cells, counted)
            cached = ranks.persons, self._places_of(ranks)
        else:
            self._update_digests(cells, counted)
        return _those(*cached)

    def require_same(self) -> None:
        """Refuse rows that are, at the end of a reading, not those of the first: a FrameError."""
        if self._digest() != self._first:
            raise FrameError(
                unfinished("the rows changed between two readings: give data that stay as they are")
            )

    def first(self, cells: Cells, counted: NDArray[np.bool_]) -> PersonRows:
        """Return the same for rows read once: a person's first rows take one place each."""
        ranks = self._ranks(cells, counted)
        places = (ranks.persons >= 0) & (ranks.positions < self._places)
        return _those(ranks.persons, places.view(np.uint8))

    def _places_of(self, ranks: RowRanks) -> NDArray[np.uint8]:
        """Return the places that rows take, once it is known how many their persons have."""
        assert self._totals is not None
        places = np.zeros(len(ranks.persons), dtype=np.uint8)
        rows = np.flatnonzero(ranks.persons >= 0)
        person, position = ranks.persons[rows], ranks.positions[rows].astype(np.int64)
        total = self._totals[person]
        if (position >= total).any():
            is_counted = position < total
            rows, person, position, total = (
                values[is_counted] for values in (rows, person, position, total)
            )
        base, extra = np.divmod(self._places, total) if self._even else (0, self._places)
        uneven = np.flatnonzero((extra > 0) & (extra < total))
        seed = self._seeds[person[uneven]]
        position[uneven] = shuffled(position[uneven], total[uneven], seed)
        places[rows] = base + (position < extra)
        return places

    def _digest(self) -> bytes:
        """Return a digest of whose rows were read."""
        return b"".join(digest.digest() for digest in self._digests)

    def _update_digests(self, cells: Cells, counted: NDArray[np.bool_]) -> None:
        """Update the digests with the ids of rows, and which of them count."""
        if isinstance(cells, Coded):
            high, low, has_id = person_keys(cells, self._secret)
            self._digests[0].update(np.stack([high * has_id, low * has_id], axis=1).data)
        else:
            self._digests[0].update(cell_bytes(cells))
        self._digests[1].update(counted.data)

    def _ranks(self, cells: Cells, counted: NDArray[np.bool_]) -> RowRanks:
        """Return the persons of the rows that count, and the rank of each row."""
        self._update_digests(cells, counted)
        high, low, has_id = person_keys(cells, self._secret, self._missing)
        rows = np.flatnonzero(has_id)
        numbers = self._names.numbers(high[rows], low[rows])
        if self._names.room > len(self._n_read):
            self._n_read = np.pad(self._n_read, (0, self._names.room - len(self._n_read)))
        rows, numbers = rows[counted[rows]], numbers[counted[rows]]
        packed = np.sort(numbers << 32 | rows)
        person, row = packed >> 32, packed & 2**32 - 1
        starts = np.flatnonzero(np.r_[True, person[1:] != person[:-1]][: len(numbers)])
        sizes = np.diff(np.append(starts, len(numbers)))
        persons, positions = np.full((2, len(cells)), -1, dtype=np.int64)
        persons[row] = person
        positions[row] = np.arange(len(numbers)) - np.repeat(starts, sizes) + self._n_read[person]
        self._n_read[person[starts]] += sizes
        return RowRanks(persons, positions)


def _those(persons: Array, places: NDArray[np.uint8]) -> PersonRows:
    """Leave out rows that take no place; sort the others by the places they take."""
    order = np.argsort(places, kind="stable")
    rows = order[np.count_nonzero(places == 0) :]
    return PersonRows(rows, persons[rows], places[rows])


def shuffled(position: Integers, total: Integers, seed: Words) -> Integers:
    """Return the new positions of 0, ..., total - 1 under a shuffle by a seed.

    For each total and seed it is a permutation: one of the next power of two,
    walked until it comes back below the total, then a rotation that makes all
    positions equally likely.
    """
    position_bits, end = position.astype(np.uint64), total.astype(np.uint64)
    bits = np.frexp(total - 1.0)[1].astype(np.uint64)
    _stir(position_bits, bits, seed)
    beyond = np.flatnonzero(position_bits >= end)
    while len(beyond):
        subset = position_bits[beyond]
        _stir(subset, bits[beyond], seed[beyond])
        position_bits[beyond] = subset
        beyond = beyond[subset >= end[beyond]]
    return ((position_bits + (seed >> np.uint64(16)) % end) % end).astype(np.int64)


def _stir(values: Words, bits: Words, seed: Words) -> None:
    """Permute numbers of so many bits in place: each step can be taken back."""
    mask, half = (np.uint64(1) << bits) - np.uint64(1), bits + np.uint64(1) >> np.uint64(1)
    for odd in _ODD:
        word = seed * np.uint64(odd)
        values *= word >> np.uint64(32) | np.uint64(1)
        values += word >> np.uint64(8)
        values &= mask
        values ^= values >> half


# Persons and places of rows, cached from the first reading for the later ones.

# A choice: tables of so many rows at most, in 8 bytes a row at the first reading, then in 5.
_MOST_ROWS: Final = 2**24


class RowRanks(NamedTuple):
    """Persons of n rows, -1 for none, and the rank of each row within its person."""

    persons: Array
    positions: Array


class PersonCache:
    """Persons and places by row, as long as the rows are few enough to be kept."""

    __slots__ = ("_at", "_persons", "_places", "_ranks", "_rows")

    def __init__(self) -> None:
        self._ranks: list[RowRanks] = []
        self._rows = 0
        self._at = 0
        self._persons: Integers = np.zeros(0, dtype=np.int32)
        self._places: NDArray[np.uint8] | None = None

    def add(self, ranks: RowRanks) -> None:
        """Take note of rows of the first reading."""
        self._rows += len(ranks.persons)
        if self._rows > _MOST_ROWS:
            self._ranks = []
        else:
            self._ranks.append(RowRanks(*(values.astype(np.int32) for values in ranks)))

    def again(self, draw: Callable[[RowRanks], NDArray[np.uint8]]) -> None:
        """Start at the first row; after the first reading the places of all are drawn."""
        if self._places is None and self._rows <= _MOST_ROWS:
            places = [draw(ranks) for ranks in self._ranks]
            self._places = np.concatenate([np.zeros(0, dtype=np.uint8), *places])
            self._persons = np.concatenate(
                [self._persons, *(ranks.persons for ranks in self._ranks)]
            )
            self._ranks = []
        self._at = 0

    def next(self, n_rows: int) -> tuple[Array, NDArray[np.uint8]] | None:
        """Return persons and places of the next rows, None where they are not kept.

        Rows that the first reading did not see have no person.
        """
        if self._places is None:
            return None
        block = slice(self._at, self._at + n_rows)
        self._at += n_rows
        persons, places = self._persons[block], self._places[block]
        n_missing = n_rows - len(places)
        if n_missing:
            persons = np.pad(persons, (0, n_missing), constant_values=-1)
            places = np.pad(places, (0, n_missing))
        return persons, places
