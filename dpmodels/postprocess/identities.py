"""Released moments constrained by public identities: some products are 0, some are equal.

If each product of two entries of a row ``a`` is a multiple of one of a few functions of the row,
with sums ``c_k``, the exact moments are ``Σ c_k L_k`` with public matrices L. Weighted least
squares of the released entries on these is linear: it removes noise without bias, and the
remaining noise has a known covariance. An entry whose function no other entry shares stays as
released.
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
# Index of the function that is 0 for every row.
NONE = -1
# A column whose origin lies farther from its middle, in half-ranges, would lose digits.
FARTHEST = 100.0
# Fraction of the largest eigenvalue below which eigenvalues are taken as 0.
_NOTHING = 1e-13


class Identities(NamedTuple):
    """Public identities between the products of the entries of a row ``a = (1, z)``.

    The product of entries i and j of ``(1, z) + shift`` is ``factor[i] * factor[j]`` times the
    function of a row with the index ``functions[i, j]``, or 0 where that is ``NONE``. `functions`
    has the shape (size, size), `shift` and `factor` (size,).
    """

    functions: Whole
    factor: Floats
    shift: Floats


@dataclass(frozen=True)
class BoundNoise:
    """The remaining noise ``Σ ε_k L_k`` in constrained entries, ε of the given covariance.

    Entry ``(left, right)`` of ``B L_k Bᵀ``, where B adds `shift` times the constant to a row, is
    `values` at each position where `function` is k.
    """

    left: Whole
    right: Whole
    function: Whole
    values: Floats
    shift: Floats
    covariance: Floats

    def _unshifted(self, vectors: Floats) -> Floats:
        """Return ``B⁻ᵀ v`` for each column v."""
        unshifted = np.array(vectors)
        unshifted[0] -= self.shift @ vectors
        return unshifted

    def sums(self, left: Floats, right: Floats) -> Floats:
        """Return ``lᵀ L_k r`` for paired columns l and r, shape (functions, columns)."""
        from scipy.sparse import csr_array

        left_vectors, right_vectors = self._unshifted(left), self._unshifted(right)
        positions = np.arange(len(self.function))
        shape = (len(self.covariance), len(positions))
        incidence = csr_array((self.values, (self.function, positions)), shape=shape)
        return np.asarray(incidence @ (left_vectors[self.left] * right_vectors[self.right]))

    def weighted(self, weights: Floats) -> Floats:
        """Return ``Σ W_ij (L_k)_ij`` for a symmetric W, shape (functions,)."""
        unshifted = self._unshifted(self._unshifted(weights).T)
        terms = self.values * unshifted[self.left, self.right]
        return np.bincount(self.function, terms, minlength=len(self.covariance)).astype(np.float64)

    def slope(self, g: Floats) -> Floats:
        """Return ``L_k g`` by columns, shape (size, functions)."""
        out = np.zeros((len(g), len(self.covariance)))
        np.add.at(out, (self.left, self.function), self.values * self._unshifted(g)[self.right])
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

        unshifted, size = self._unshifted(self._unshifted(weights).T), len(self.shift)
        out = np.zeros((size, size))
        order = np.argsort(self.left, kind="stable")
        lefts, starts = np.unique(self.left[order], return_index=True)
        for left, positions in zip(lefts, np.split(order, starts[1:]), strict=True):
            rights, column = np.unique(self.right[positions], return_inverse=True)
            shape, at = (len(rights), len(self.covariance)), (column, self.function[positions])
            row = csr_array((self.values[positions], at), shape=shape)
            across = np.asarray((row @ self.covariance).T @ unshifted[rights])
            terms = self.values * across[self.function, self.right]
            out[left] = np.bincount(self.left, terms, minlength=size)
        out -= np.outer(self.shift, out[0])
        return np.asarray(out - np.outer(out[:, 0], self.shift))


def bind_identities(
    moments: Floats, variance: Floats, identities: Identities
) -> tuple[Floats, Floats, BoundNoise | None]:
    """Constrain noisy moments by identities.

    `moments` of rows a, with independent noise of the given `variance`, both of shape (size, size).
    Returns the constrained moments, the variance of entries that stay as released (0 elsewhere),
    and the noise of the others; None if no entry is constrained.
    """
    is_precise = np.abs(identities.shift) <= FARTHEST
    left, right = np.triu_indices(len(moments))
    function = identities.functions[left, right]
    usable = is_precise[left] & is_precise[right]
    times = np.bincount(function[usable & (function != NONE)], minlength=function.max() + 1)
    bound = usable & ((function == NONE) | (times[function] > 1))
    if not bound.any():
        return moments, variance, None
    # A constrained entry involves the sums of its two columns.
    touched = np.isin(np.arange(len(moments)), [0, *left[bound].tolist(), *right[bound].tolist()])
    bound |= (left == 0) & touched[right]
    free = ~bound & touched[left] & touched[right]
    identities = identities._replace(shift=np.where(touched, identities.shift, 0.0))
    free_entries = left[free], right[free]
    left, right = left[bound], right[bound]
    numbers = np.unique(identities.functions[left, right])
    numbers = numbers[numbers != NONE]
    combinations = _combinations(left, right, identities, numbers)
    sd = np.sqrt(variance[left, right])
    whitened = combinations.multiply(1 / sd[:, None]).tocsr()
    lengths = np.sqrt(np.asarray(whitened.multiply(whitened).sum(axis=0)).ravel())
    whitened = whitened.multiply(1 / lengths[None, :]).tocsr()
    values, vectors = np.linalg.eigh((whitened.T @ whitened).toarray())
    is_nonzero = values > _NOTHING * values[-1]
    root = vectors[:, is_nonzero] / np.sqrt(values[is_nonzero]) / lengths[:, None]
    covariance = root @ root.T
    sums = covariance @ (lengths * (whitened.T @ (moments[left, right] / sd)))
    positions = _positions((left, right), free_entries, identities, numbers)
    noise = BoundNoise(*positions, identities.shift, covariance)
    fitted, free_variance = moments.copy(), variance.copy()
    fitted[left, right] = fitted[right, left] = noise.matrix(sums)[left, right]
    free_variance[left, right] = free_variance[right, left] = 0.0
    return fitted, free_variance, noise


def _combinations(left: Whole, right: Whole, identities: Identities, numbers: Whole) -> csr_array:
    """Return entries of the moments of a as combinations of functions, sparse."""
    from scipy.sparse import csr_array

    shift = identities.shift
    origin = np.zeros_like(left)
    parts = (
        (left, right, np.ones(len(left))),
        (origin, right, -shift[left]),
        (origin, left, -shift[right]),
        (origin, origin, shift[left] * shift[right]),
    )
    rows, columns, values = _functions(parts, identities, numbers)
    return csr_array((values, (rows, columns)), shape=(len(left), len(numbers)))


def _functions(
    parts: Iterable[tuple[Whole, Whole, Floats]], identities: Identities, numbers: Whole
) -> tuple[Whole, Whole, Floats]:
    """Return the nonzero terms of weighted sums of products: sum, function and coefficient."""
    entries = []
    for left, right, weight in parts:
        function = identities.functions[left, right]
        value = weight * identities.factor[left] * identities.factor[right]
        used = np.flatnonzero((function != NONE) & (value != 0))
        entries.append((used, np.searchsorted(numbers, function[used]), value[used]))
    entry, function, value = (np.concatenate(pieces) for pieces in zip(*entries, strict=True))
    return entry, function, value


def _positions(
    bound: tuple[Whole, Whole], free: tuple[Whole, Whole], identities: Identities, numbers: Whole
) -> tuple[Whole, Whole, Whole, Floats]:
    """Return the positions and coefficients of each function in the moments of shifted rows.

    For entries that stay as released the terms of the shift are subtracted again.
    """
    free_left, free_right = free
    origin, shift = np.zeros_like(free_left), identities.shift
    entry, function, value = _functions([(*bound, np.ones(len(bound[0])))], identities, numbers)
    shift_terms = (
        (origin, free_right, shift[free_left]),
        (origin, free_left, shift[free_right]),
        (origin, origin, -shift[free_left] * shift[free_right]),
    )
    free_entry, free_function, free_value = _functions(shift_terms, identities, numbers)
    left = np.concatenate([bound[0][entry], free_left[free_entry]])
    right = np.concatenate([bound[1][entry], free_right[free_entry]])
    function, value = np.concatenate([function, free_function]), np.concatenate([value, free_value])
    off = left != right  # The diagonal
    pairs = ((left, right), (right, left), (function, function), (value, value))
    left, right, function, value = (np.concatenate([x, other[off]]) for x, other in pairs)
    return left, right, function, value
