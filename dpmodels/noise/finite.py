"""Exact draws from finite sets: exponential weights, coins, randomised responses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from itertools import accumulate

import numpy as np

from dpmodels.noise.uniform import Entropy, Uniform, ceil_divide, exp_enclosure, uniform_integer
from dpmodels.typing import Flags, Integers, Numbers, Scalars

# Cumulative probabilities in float64 are this close to the true ones: for up to 2**20 terms
# sums err by less than 2**-33 of themselves, exponentials of what counts by far less.
_MARGIN = 2.0**-30
# Bits of a word of the source.
_WORD = 64
# Whole numbers below are sorted as machine integers, which is faster.
_LARGEST = 2**63


def draw_finite(levels: Scalars, unit: Fraction, entropy: Entropy) -> int:
    """Draw an index with probability proportional to ``exp(-unit * levels[index])``.

    Where a uniform number is farther from the cumulative probabilities in float64 than these can
    err, it decides; else exact enclosures of the exponentials and further bits do. The law is
    exact either way.

    `levels`, shape (n,), are whole numbers of any size, at most ``2**20`` of them; `unit` is
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
    enclosures: dict[int, list[tuple[int, int]]] = {}

    def sums(bits: int) -> list[tuple[int, int]]:
        if bits not in enclosures:
            low = high = 0
            enclosures[bits] = []
            for value, count in zip(values, times, strict=True):
                bounds = exp_enclosure(unit * value, bits + _WORD)
                low, high = low + count * bounds[0], high + count * bounds[1]
                enclosures[bits].append((low, high))
        return enclosures[bits]

    def share(place: int) -> Callable[[int], tuple[int, int]]:
        def enclosed(bits: int) -> tuple[int, int]:
            (low, high), (total_low, total_high) = sums(bits)[place], sums(bits)[-1]
            return (low << bits) // total_high, ceil_divide(high << bits, total_low)

        return enclosed

    first, last = 0, len(values) - 1
    while first < last:
        middle = (first + last) // 2
        if uniform.below(share(middle)):
            last = middle
        else:
            first = middle + 1
    return first


def draw_ranked(levels: Numbers, unit: Fraction, count: int, entropy: Entropy) -> Integers:
    """Draw `count` different indices, best first, each as `draw_finite` draws of those left.

    The same law as the `count` smallest of ``unit * levels`` less standard Gumbel noise, in their
    order (Durfee and Rogers 2019, Lemma 4.2), exactly.

    `levels` is as for `draw_finite`; `count`, from 1, is at most their number.
    """
    left = np.arange(len(levels))
    indices = np.empty(count, dtype=np.int64)
    for place in range(count):
        choice = draw_finite(levels[left], unit, entropy)
        indices[place] = left[choice]
        left = np.delete(left, choice)
    return indices


# Coins that show heads with probability exp(-x), exactly, and draws by permute-and-flip.

# Probabilities and uniform numbers in float64 are this close to the true ones.
_COINS_MARGIN = 2.0**-40


def exp_coins(levels: Scalars, unit: Fraction, entropy: Entropy) -> Flags:
    """Toss a coin a level, which shows heads with probability ``exp(-unit * level)``.

    Where a uniform number is farther from that in float64 than the two can err, it decides; else
    an exact enclosure and further bits do.

    `levels`, shape (n,), are whole numbers from 0 of any size; `unit` is above 0.
    """
    with np.errstate(over="ignore", under="ignore"):
        chances = np.exp(-(float(unit) * levels.astype(np.float64)))
    words = entropy.words(len(levels))
    uniforms = words * 2.0**-_WORD
    heads = uniforms < chances
    for place in np.flatnonzero(np.abs(uniforms - chances) <= _COINS_MARGIN).tolist():
        enclosed = partial(exp_enclosure, unit * int(levels[place]))
        heads[place] = Uniform(int(words[place]), _WORD, entropy).below(enclosed)
    return np.asarray(heads)


def draw_flipped(levels: Scalars, unit: Fraction, count: int, entropy: Entropy) -> Integers:
    """Draw `count` different indices by permute-and-flip, each among those that are left.

    Candidates take turns in a random order; the first whose coin shows heads is drawn. That of the
    lowest level always does. The order is independent of the coins, so the first of those that show
    heads is any of them with equal probability: all coins are tossed at once, and one is drawn.

    `levels` and `unit` are as for `exp_coins`, but that levels may be below 0; `count`, from 1, is
    at most their number.
    """
    left = np.arange(len(levels))
    indices = np.empty(count, dtype=np.int64)
    for place in range(count):
        remaining = levels[left]
        heads = np.flatnonzero(exp_coins(remaining - remaining.min(), unit, entropy))
        chosen = heads[uniform_integer(len(heads), entropy)]
        indices[place] = left[chosen]
        left = np.delete(left, chosen)
    return indices


# Coins and dice of an exact law, many at once: what a randomised answer is drawn with.
#
# A uniform number of 64 bits decides a coin, or a die, wherever it lies apart from every threshold;
# where it does not, once in 2^62 draws, further bits do. No floating-point number enters.

Threshold = Callable[[int], tuple[int, int]]
"""From a number of bits b to integers ``low <= 2^b p <= high`` about a probability p."""

# More than the precision asked for, as the quotient below loses some.
_GUARD_BITS = 8


def rational(share: Fraction, bits: int) -> tuple[int, int]:
    """Enclose ``2^bits share``."""
    shifted = share.numerator << bits
    return shifted // share.denominator, ceil_divide(shifted, share.denominator)


def truthful(eps: Fraction, levels: int, bits: int) -> tuple[int, int]:
    """Enclose ``2^bits (exp(eps) - 1) / (exp(eps) + levels - 1)``.

    With ``e = exp(-eps)`` it is ``(1 - e) / (1 + (levels - 1) e)``, which falls as e rises.
    """
    wide = bits + levels.bit_length() + _GUARD_BITS
    low, high = exp_enclosure(eps, wide)
    unit, n_other = 1 << wide, levels - 1
    lower = ((unit - high) << bits) // (unit + n_other * high)
    return max(lower, 0), ceil_divide((unit - low) << bits, unit + n_other * low)


def lying(eps: Fraction, bits: int) -> tuple[int, int]:
    """Enclose ``2^bits / (exp(eps) + 1)``, a lie of two levels: ``e / (1 + e)``, e = exp(-eps)."""
    wide = bits + _GUARD_BITS
    low, high = exp_enclosure(eps, wide)
    unit = 1 << wide
    return (low << bits) // (unit + low), ceil_divide(high << bits, unit + high)


def coins(share: Threshold, size: int, entropy: Entropy) -> Flags:
    """Throw coins that show True with a probability, exactly; shape (size,)."""
    words = entropy.words(size)
    low, high = share(_WORD)
    heads = words < np.uint64(low)
    undecided = ~heads if high >> _WORD else ~heads & (words < np.uint64(high))
    for place in np.flatnonzero(undecided).tolist():
        heads[place] = Uniform(int(words[place]), _WORD, entropy).below(share)
    return heads


def throws(law: Sequence[Fraction], size: int, entropy: Entropy) -> Integers:
    """Throw dice with sides 0, 1, ... of rational probabilities, exactly; shape (size,)."""
    sums = list(accumulate(law))[:-1]
    floors, ceilings = (
        np.array(bounds, dtype=np.uint64)
        for bounds in zip(*(rational(cumulative, _WORD) for cumulative in sums), strict=True)
    )
    words = entropy.words(size)
    last_faces = np.searchsorted(floors, words, side="right")
    faces = np.searchsorted(ceilings, words, side="right")
    for place in np.flatnonzero(last_faces > faces).tolist():
        uniform = Uniform(int(words[place]), _WORD, entropy)
        while faces[place] < last_faces[place]:
            if uniform.below(partial(rational, sums[faces[place]])):
                break
            faces[place] += 1
    return faces.astype(np.int64)


def responses(
    truths: Integers, truth_share: Threshold, law: Sequence[Fraction], entropy: Entropy
) -> Integers:
    """Answer with the truth if a coin shows heads, else with the throw of a die.

    Both are thrown for every row. A negative truth is missing: the die always answers it.
    """
    is_truthful = coins(truth_share, len(truths), entropy)
    thrown = throws(law, len(truths), entropy)
    return np.where(is_truthful & (truths >= 0), truths, thrown)
