"""Coins and dice of an exact law, many at once: what a randomised answer is drawn with.

A uniform number of 64 bits decides a coin, or a die, wherever it lies apart from every threshold;
where it does not, once in 2^62 draws, further bits do. No floating-point number enters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from dpmodels.noise.protocol import Entropy
from dpmodels.noise.uniform import Uniform, ceil_divide, exp_enclosure
from dpmodels.typing import Integers

Threshold = Callable[[int], tuple[int, int]]
"""From a number of bits b to integers ``low <= 2^b p <= high`` about a probability p."""

_WORD = 64
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
    one, others = 1 << wide, levels - 1
    least = ((one - high) << bits) // (one + others * high)
    return max(least, 0), ceil_divide((one - low) << bits, one + others * low)


def lying(eps: Fraction, bits: int) -> tuple[int, int]:
    """Enclose ``2^bits / (exp(eps) + 1)``, a lie of two levels: ``e / (1 + e)``, e = exp(-eps)."""
    wide = bits + _GUARD_BITS
    low, high = exp_enclosure(eps, wide)
    one = 1 << wide
    return (low << bits) // (one + low), ceil_divide(high << bits, one + high)


def coins(share: Threshold, size: int, entropy: Entropy) -> NDArray[np.bool_]:
    """Throw coins that show True with a probability, exactly; shape (size,)."""
    words = entropy.words(size)
    low, high = share(_WORD)
    shown = words < np.uint64(low)
    undecided = ~shown if high >> _WORD else ~shown & (words < np.uint64(high))
    for place in np.flatnonzero(undecided).tolist():
        shown[place] = Uniform(int(words[place]), _WORD, entropy).below(share)
    return shown


def throws(law: Sequence[Fraction], size: int, entropy: Entropy) -> Integers:
    """Throw dice with sides 0, 1, ... of rational probabilities, exactly; shape (size,)."""
    sums = list(accumulate(law))[:-1]
    floors, ceilings = (
        np.array(ends, dtype=np.uint64)
        for ends in zip(*(rational(one, _WORD) for one in sums), strict=True)
    )
    words = entropy.words(size)
    most = np.searchsorted(floors, words, side="right")
    found = np.searchsorted(ceilings, words, side="right")
    for place in np.flatnonzero(most > found).tolist():
        uniform = Uniform(int(words[place]), _WORD, entropy)
        while found[place] < most[place]:
            if uniform.below(partial(rational, sums[found[place]])):
                break
            found[place] += 1
    return found.astype(np.int64)


def responses(
    truths: Integers, asked: Threshold, law: Sequence[Fraction], entropy: Entropy
) -> Integers:
    """Answer each with the truth where its coin asks for it, else as its die says.

    Both are thrown for everybody. A truth below 0 is none, and always answered by the die.
    """
    shown = coins(asked, len(truths), entropy)
    thrown = throws(law, len(truths), entropy)
    return np.where(shown & (truths >= 0), truths, thrown)
