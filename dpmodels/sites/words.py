"""Vectors of integers modulo ``2**(64 words)``, as 64-bit words, lowest first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

BITS = 64
LOW = 2**BITS - 1


def to_words(integers: NDArray[Any], words: int) -> Words:
    """Reduce integers of any size.

    Parameters
    ----------
    integers : ndarray of int (dtype object), shape (size,)
        Of either sign.
    words : int
        Words each.

    Returns
    -------
    ndarray of uint64, shape (words, size)

    Examples
    --------
    >>> to_words(np.array([-1, 5], dtype=object), 1).tolist()
    [[18446744073709551615, 5]]
    """
    wide = integers.astype(object)
    parts = [np.array((wide >> BITS * word) & LOW, dtype=np.uint64) for word in range(words)]
    return np.stack(parts)


def from_words(reduced: Words) -> NDArray[Any]:
    """Return the integers nearest to zero, of dtype object.

    Examples
    --------
    >>> from_words(to_words(np.array([-(2**90), 3], dtype=object), 2)).tolist()
    [-1237940039285380274899124224, 3]
    """
    words, size = reduced.shape
    wide: NDArray[Any] = np.zeros(size, dtype=object)
    for word in range(words):
        wide = wide + (reduced[word].astype(object) << BITS * word)
    half = 1 << BITS * words - 1
    return np.where(wide >= half, wide - 2 * half, wide)


def add(total: Words, other: Words) -> None:
    """Add in place, modulo the modulus."""
    carry: Any = None
    for line, own in zip(total, other, strict=True):
        line += own
        over = line < own
        if carry is not None:
            line += carry
            over |= line < carry
        carry = over.astype(np.uint64)


def negative(reduced: Words) -> Words:
    """Return what adds up to zero with a vector."""
    turned = ~reduced
    one = np.zeros_like(turned)
    one[0] = 1
    add(turned, one)
    return turned
