"""A keyed checksum of rows, by which passes over the partitions of a cluster are compared.

*Claim.* Let two sequences of parts of rows differ in the number, the length or a bit of a
part, and let the keys be uniform. Then their checksums are equal with a chance below ``2**-32``.

*Proof.* Let w be the 64-bit words of the first column that differs, w' those of the other sequence,
and k, l the keys of its positions. The column enters the digest as ``Σ k w`` and ``Σ l ⌊w/2**32⌋``
modulo ``2**64``. If some words differ in their lower halves, then the difference d of one pair is
divisible by at most ``2**31``, and given all other keys ``k d`` takes each of its values with a
chance of at most ``2**(31 - 64)``. Otherwise upper halves alone differ, by less than ``2**32``, and
the same holds of the second sum. Everything else enters the digest as it is, and two BLAKE2b
digests of 128 bits are equal with a chance that is negligible beside this.

The keys follow from a salt, which is drawn once for all passes over some rows. It goes to the
workers with the public recipe, and is never released.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import FrameError
from dpmodels.frames.identity import cell_bytes
from dpmodels.frames.protocol import unfinished
from dpmodels.typing import Array

_SALT_BYTES: Final = 16
_HALF: Final = np.uint64(32)
# A choice: keys of fewer positions are not drawn.
_FEW: Final = 2**12


class Checksum:
    """A checksum of a partition: its number, and the parts of its rows in their order."""

    __slots__ = ("_digest", "_salt", "n_rows")

    def __init__(self, salt: bytes, number: int) -> None:
        self._salt = salt
        self._digest = blake2b(number.to_bytes(8, "little"), key=salt, digest_size=_SALT_BYTES)
        self.n_rows = 0  # The places that the rows take

    def __repr__(self) -> str:
        return "<Checksum, not shown>"

    def add(self, n_rows: int, taken: int, columns: Iterable[Array | None]) -> None:
        """Add a part: its number of rows, the places they take, and what is used of them."""
        self.n_rows += taken
        self._digest.update(n_rows.to_bytes(8, "little"))
        for column in columns:
            self._digest.update(b"" if column is None else self._of_column(column))

    @property
    def value(self) -> int:
        """A number from 0 to 2**128 - 1, of what was read so far."""
        return int.from_bytes(self._digest.digest(), "little")

    def _of_column(self, column: Array) -> bytes:
        if column.dtype.itemsize != 8 or column.dtype == object:
            return cell_bytes(column)
        words = np.ascontiguousarray(column).view(np.uint64)
        keys = _keys(self._salt, len(words))
        sums = np.einsum("i,i", keys[0], words), np.einsum("i,i", keys[1], words >> _HALF)
        return b"".join(int(total).to_bytes(8, "little") for total in sums)


def _keys(salt: bytes, n_rows: int) -> NDArray[np.uint64]:
    """Return the keys of positions, shape (2, n_rows)."""
    return _drawn(salt, 1 << max(n_rows - 1, _FEW).bit_length())[:, :n_rows]


@lru_cache(maxsize=4)
def _drawn(salt: bytes, size: int) -> NDArray[np.uint64]:
    words = np.random.Philox(key=int.from_bytes(salt, sys.byteorder)).random_raw(2 * size)
    return np.asarray(words, dtype=np.uint64).reshape(2, size)


class Readings:
    """What the passes over rows of a cluster have in common; shows nothing of the rows.

    The statistics that wait are measured in the next pass, together.
    """

    __slots__ = ("_first", "_n_rows", "salt", "waiting")

    def __init__(self) -> None:
        self.salt = secrets.token_bytes(_SALT_BYTES)
        self.waiting: list[Any] = []
        self._n_rows: int | None = None
        self._first: tuple[int, int] | None = None

    def __repr__(self) -> str:
        return "<Readings, not shown>"

    @property
    def n_read(self) -> int | None:
        """How many places the rows take, None before the first pass."""
        return None if self._first is None else self._first[0]

    def n_rows(self, count: Callable[[], int]) -> int:
        """Return how many places the rows take, counted once."""
        if self._n_rows is None:
            self._n_rows = count()
        return self._n_rows

    def require_same(self, n_rows: int, checksum: int) -> None:
        """Refuse rows that are not those of the first pass: a FrameError after the charge."""
        self._first = self._first or (n_rows, checksum)
        if self._first != (n_rows, checksum) or self._n_rows not in (None, n_rows):
            raise FrameError(
                unfinished(
                    "the rows of the Dask DataFrame changed between two passes: pass rows that are "
                    "the same whenever they are computed, such as files or data.persist()"
                )
            )
