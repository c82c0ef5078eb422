"""A draw from finitely many things with probabilities proportional to exp(-x), exactly."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.noise.protocol import Entropy
from dpmodels.noise.uniform import Uniform, ceil_divide, exp_enclosure, uniform_integer

# Cumulative probabilities in float64 are this close to the true ones: for up to 2**20 terms
# sums err by less than 2**-33 of themselves, exponentials of what counts by far less.
_MARGIN = 2.0**-30
# Bits of a word of the source.
_WORD = 64
# Whole numbers below are sorted as machine integers, which is faster.
_LARGEST = 2**63


def draw_finite(levels: NDArray[Any], unit: Fraction, entropy: Entropy) -> int:
    """Draw an index with probability proportional to ``exp(-unit * levels[index])``.

    Where a uniform number is farther from the cumulative probabilities in float64 than these can
    err, it decides; else exact enclosures of the exponentials and further bits do. The law is
    exact either way.

    `levels`, shape (things,), are whole numbers of any size, at most ``2**20`` of them; `unit` is
    above 0.
    """
    above = levels - levels.min()
    if above.max() < _LARGEST:
        above = above.astype(np.int64)
    values, times = np.unique(above, return_counts=True)
    with np.errstate(over="ignore", under="ignore"):
        weights = times * np.exp(-(float(unit) * values.astype(np.float64)))
    sums = np.cumsum(weights)
    bounds = sums / sums[-1]
    word = int(entropy.words(1)[0])
    uniform = word * 2.0**-_WORD
    place = int(np.searchsorted(bounds[:-1], uniform, side="right"))
    if np.abs(bounds[:-1] - uniform).min(initial=1.0) <= _MARGIN:
        place = _decided(Uniform(word, _WORD, entropy), values.tolist(), times.tolist(), unit)
    alike = np.flatnonzero(above == values[place])
    return int(alike[uniform_integer(len(alike), entropy)])


def _decided(uniform: Uniform, values: list[int], times: list[int], unit: Fraction) -> int:
    """Find the first cumulative probability above a uniform number, by exact comparisons."""
    known: dict[int, list[tuple[int, int]]] = {}

    def sums(bits: int) -> list[tuple[int, int]]:
        if bits not in known:
            low = high = 0
            known[bits] = []
            for value, count in zip(values, times, strict=True):
                ends = exp_enclosure(unit * value, bits + _WORD)
                low, high = low + count * ends[0], high + count * ends[1]
                known[bits].append((low, high))
        return known[bits]

    def share(place: int) -> Callable[[int], tuple[int, int]]:
        def enclosed(bits: int) -> tuple[int, int]:
            (low, high), (least, most) = sums(bits)[place], sums(bits)[-1]
            return (low << bits) // most, ceil_divide(high << bits, least)

        return enclosed

    first, last = 0, len(values) - 1
    while first < last:
        middle = (first + last) // 2
        if uniform.below(share(middle)):
            last = middle
        else:
            first = middle + 1
    return first


def draw_ranked(
    levels: NDArray[Any], unit: Fraction, count: int, entropy: Entropy
) -> NDArray[np.int64]:
    """Draw `count` different indices, best first, each as `draw_finite` draws of those left.

    The same law as the `count` smallest of ``unit * levels`` less standard Gumbel noise, in their
    order (Durfee and Rogers 2019, Lemma 4.2), exactly.

    `levels` is as for `draw_finite`; `count`, from 1, is at most their number.
    """
    left = np.arange(len(levels))
    drawn = np.empty(count, dtype=np.int64)
    for place in range(count):
        own = draw_finite(levels[left], unit, entropy)
        drawn[place] = left[own]
        left = np.delete(left, own)
    return drawn
