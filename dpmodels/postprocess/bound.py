"""Released moments held to what is public of their products: some are 0, some are equal.

The exact moments of rows ``a`` are ``Σ c_k L_k`` with public matrices L where each product of two
entries is a multiple of one of few functions of a row, of which ``c_k`` are the sums. Weighted
least squares of the released entries on these is linear: it takes off noise, adds no bias, and
what noise is left has a known covariance. An entry whose function no other entry has stays as it
was released.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.typing import Floats

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Whole = NDArray[np.int_]
# The function that is 0 for every row.
NONE = -1
# A column whose origin lies farther from its middle, in half-ranges, would lose digits.
FARTHEST = 100.0
# Of the largest eigenvalue: a smaller one is taken for 0.
_NOTHING = 1e-13


class Identities(NamedTuple):
    """What is public of the products of the entries of a row ``a = (1, z)``.

    `functions`, shape (size, size), says which function of a row each product of two entries of
    ``(1, z) + shift`` is, and ``NONE`` where it is 0; it is `factor[i] * factor[j]` times it;
    `shift` and `factor` have the shape (size,).
    """

    functions: Whole
    factor: Floats
    shift: Floats


@dataclass(frozen=True)
class BoundNoise:
    """The noise ``Σ ε_k L_k`` that is left in bound entries, ε of the given covariance.

    Entry ``(left, right)`` of ``B L_k Bᵀ``, where B adds `shift` times the constant to a row, is
    `values`, for every place of `function` that is k.
    """

    left: Whole
    right: Whole
    function: Whole
    values: Floats
    shift: Floats
    covariance: Floats

    def _moved(self, vectors: Floats) -> Floats:
        """Return ``B⁻ᵀ v``, columns by columns."""
        moved = np.array(vectors)
        moved[0] -= self.shift @ vectors
        return moved

    def sums(self, left: Floats, right: Floats) -> Floats:
        """Return ``lᵀ L_k r`` for columns l and r alike, shape (functions, columns)."""
        from scipy.sparse import csr_array

        one, other = self._moved(left), self._moved(right)
        places = np.arange(len(self.function))
        shape = (len(self.covariance), len(places))
        spread = csr_array((self.values, (self.function, places)), shape=shape)
        return np.asarray(spread @ (one[self.left] * other[self.right]))

    def weighted(self, weights: Floats) -> Floats:
        """Return ``Σ W_ij (L_k)_ij`` for a symmetric W, shape (functions,)."""
        moved = self._moved(self._moved(weights).T)
        each = self.values * moved[self.left, self.right]
        return np.bincount(self.function, each, minlength=len(self.covariance)).astype(np.float64)

    def slope(self, g: Floats) -> Floats:
        """Return ``L_k g`` by columns, shape (size, functions)."""
        out = np.zeros((len(g), len(self.covariance)))
        np.add.at(out, (self.left, self.function), self.values * self._moved(g)[self.right])
        return np.asarray(out - np.outer(self.shift, out[0]))

    def matrix(self, coefficients: Floats) -> Floats:
        """Return ``Σ c_k L_k``, shape (size, size)."""
        size = len(self.shift)
        out = np.zeros((size, size))
        np.add.at(out, (self.left, self.right), self.values * coefficients[self.function])
        out -= np.outer(self.shift, out[0])
        return np.asarray(out - np.outer(out[:, 0], self.shift))

    def mean(self, weights: Floats) -> Floats:
        """Return the mean of ``E W E`` over the noise E, for a symmetric W."""
        from scipy.sparse import csr_array

        moved, size = self._moved(self._moved(weights).T), len(self.shift)
        out = np.zeros((size, size))
        order = np.argsort(self.left, kind="stable")
        lefts, starts = np.unique(self.left[order], return_index=True)
        for left, own in zip(lefts, np.split(order, starts[1:]), strict=True):
            rights, place = np.unique(self.right[own], return_inverse=True)
            shape = (len(rights), len(self.covariance))
            row = csr_array((self.values[own], (place, self.function[own])), shape=shape)
            across = np.asarray((row @ self.covariance).T @ moved[rights])
            each = self.values * across[self.function, self.right]
            out[left] = np.bincount(self.left, each, minlength=size)
        out -= np.outer(self.shift, out[0])
        return np.asarray(out - np.outer(out[:, 0], self.shift))


def bind(
    moments: Floats, variance: Floats, known: Identities
) -> tuple[Floats, Floats, BoundNoise | None]:
    """Hold noisy moments to identities.

    `moments` of rows a, with independent noise of the given `variance`, both of shape (size, size).
    Return them anew, the variance of entries that stay as released (0 elsewhere), and the noise of
    the others; None where no entry is bound.
    """
    near = np.abs(known.shift) <= FARTHEST
    left, right = np.triu_indices(len(moments))
    function = known.functions[left, right]
    usable = near[left] & near[right]
    times = np.bincount(function[usable & (function != NONE)], minlength=function.max() + 1)
    bound = usable & ((function == NONE) | (times[function] > 1))
    if not bound.any():
        return moments, variance, None
    # What a bound entry says, it says beside the sums of its two columns.
    apart = np.isin(np.arange(len(moments)), [0, *left[bound].tolist(), *right[bound].tolist()])
    bound |= (left == 0) & apart[right]
    free = ~bound & apart[left] & apart[right]
    known = known._replace(shift=np.where(apart, known.shift, 0.0))
    others = left[free], right[free]
    left, right = left[bound], right[bound]
    numbers = np.unique(known.functions[left, right])
    numbers = numbers[numbers != NONE]
    ways = _ways(left, right, known, numbers)
    sd = np.sqrt(variance[left, right])
    whitened = ways.multiply(1 / sd[:, None]).tocsr()
    lengths = np.sqrt(np.asarray(whitened.multiply(whitened).sum(axis=0)).ravel())
    whitened = whitened.multiply(1 / lengths[None, :]).tocsr()
    values, vectors = np.linalg.eigh((whitened.T @ whitened).toarray())
    kept = values > _NOTHING * values[-1]
    root = vectors[:, kept] / np.sqrt(values[kept]) / lengths[:, None]
    covariance = root @ root.T
    sums = covariance @ (lengths * (whitened.T @ (moments[left, right] / sd)))
    noise = BoundNoise(*_places((left, right), others, known, numbers), known.shift, covariance)
    held, rest = moments.copy(), variance.copy()
    held[left, right] = held[right, left] = noise.matrix(sums)[left, right]
    rest[left, right] = rest[right, left] = 0.0
    return held, rest, noise


def _ways(left: Whole, right: Whole, known: Identities, numbers: Whole) -> csr_array:
    """Return entries of the moments of a as combinations of functions, sparse."""
    from scipy.sparse import csr_array

    shift = known.shift
    origin = np.zeros_like(left)
    parts = (
        (left, right, np.ones(len(left))),
        (origin, right, -shift[left]),
        (origin, left, -shift[right]),
        (origin, origin, shift[left] * shift[right]),
    )
    rows, columns, values = _functions(parts, known, numbers)
    return csr_array((values, (rows, columns)), shape=(len(left), len(numbers)))


def _functions(
    parts: Iterable[tuple[Whole, Whole, Floats]], known: Identities, numbers: Whole
) -> tuple[Whole, Whole, Floats]:
    """Return of weighted sums of products which one, which function, and how much of it."""
    found = []
    for one, other, weight in parts:
        function = known.functions[one, other]
        value = weight * known.factor[one] * known.factor[other]
        used = np.flatnonzero((function != NONE) & (value != 0))
        found.append((used, np.searchsorted(numbers, function[used]), value[used]))
    which, function, value = (np.concatenate(each) for each in zip(*found, strict=True))
    return which, function, value


def _places(
    bound: tuple[Whole, Whole], free: tuple[Whole, Whole], known: Identities, numbers: Whole
) -> tuple[Whole, Whole, Whole, Floats]:
    """Say where each function stands in the moments of a with its shift.

    Of entries that stay as released what the shift brings is taken off again.
    """
    one, other = free
    origin, shift = np.zeros_like(one), known.shift
    which, function, value = _functions([(*bound, np.ones(len(bound[0])))], known, numbers)
    brought = (
        (origin, other, shift[one]),
        (origin, one, shift[other]),
        (origin, origin, -shift[one] * shift[other]),
    )
    more, another, further = _functions(brought, known, numbers)
    left = np.concatenate([bound[0][which], one[more]])
    right = np.concatenate([bound[1][which], other[more]])
    function, value = np.concatenate([function, another]), np.concatenate([value, further])
    off = left != right
    return (
        np.concatenate([left, right[off]]),
        np.concatenate([right, left[off]]),
        np.concatenate([function, function[off]]),
        np.concatenate([value, value[off]]),
    )
