"""Exact draws from a histogram envelope, many at once.

Every proposal is two 64-bit words. The first holds the sign and, in its low bits, the offset
inside a block of dyadic width; the second holds the leading 32 bits of two uniforms, which choose
the block and accept the candidate. A proposal is decided here only where 32 bits and float64
arithmetic decide it for certain; every other one (a few in 2^32) goes to `exact_proposal`, which
reads the same bits and as many more as it needs. So the law of the draws is the law of the exact
routine: no floating-point error is left in it.

**The error bound.** Let p = exp(-d) be the probability of acceptance, where d = y (slope + bend y)
and y = offset/width. The floats y, slope and bend have relative error at most u = 2^-53 each, and
all terms are positive, so the two products and the sum leave d with relative error at most 6.1 u.
With blocks chosen by `fit_envelope`, either the width is 1 and d = 0 is computed without error, or
g(8 w) <= 1 gives sqrt(quadratic) w <= 1/8 and linear w <= 1/8, and the last block starts where g <
32, whence d < 2 (sqrt(32)/8) + 1/8 + 1/64 < 2. So the argument moves p by a relative 2 * 6.1 u <
2^-49. NumPy's float64 exp is within 4 units in the last place, 2^-50 (the tests compare it with
exact values). Scaling by 2^32 is exact, and subtracting the 32 bits costs 2^-53 * 2^32. The sum is
below 2^-47 * 2^32, against a declared `MARGIN` of 2^-40 * 2^32, for every scale.
"""

import numpy as np

from dpmodels.arguments import whole
from dpmodels.noise.envelope import LEADING_BITS, UNDECIDED, Table
from dpmodels.noise.proposal import exact_proposal
from dpmodels.noise.protocol import Entropy
from dpmodels.typing import Floats, Integers

# 2^7 times the bound proved above.
MARGIN = 2.0**-40
# Proposals at a time, and how many more than are wanted, as a few per cent are refused: choices.
_BATCH = 2**15
_OVERSAMPLING = 1.08


def draw(table: Table, size: int, entropy: Entropy, *, margin: float = MARGIN) -> Integers:
    """Draw independent integers from the law of a table.

    The number of rounds depends on the random words and the law only.

    `margin` bounds the absolute error of a computed acceptance probability: a larger one sends
    more proposals to the exact routine, from 1 on all of them, and changes no draw. ArgumentError
    if `size` is not an integer of at least 0.
    """
    whole("size", size, 0)
    draws = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        count = min(_BATCH, int((size - filled) * _OVERSAMPLING) + 16)
        kept = _propose(table, count, entropy, margin)[: size - filled]
        draws[filled : filled + kept.size] = kept
        filled += kept.size
    return draws


def _propose(table: Table, count: int, entropy: Entropy, margin: float) -> Integers:
    """Make proposals and return the accepted ones, in order."""
    words = entropy.words(2 * count)
    place = words[:count].view(np.int64)
    choose, accept = words[count:].view(np.uint32).reshape(2, count)
    shift = table.envelope.shift

    block = table.find(choose)
    value = place & ((1 << shift) - 1)
    lead = acceptance(table, block, value)
    lead *= 2.0**LEADING_BITS
    lead -= accept
    slack = margin * 2.0**LEADING_BITS
    accepted = lead >= 1.0 + slack
    undecided = (lead > -slack) ^ accepted
    undecided |= block == UNDECIDED

    value |= block << shift
    sign = place >> 63
    value ^= sign
    accepted &= value != -1
    value -= sign
    for index in np.flatnonzero(undecided):
        exact = exact_proposal(
            table.envelope, int(place[index]), int(choose[index]), int(accept[index]), entropy
        )
        accepted[index] = exact is not None
        value[index] = exact or 0
    return value[accepted]


def acceptance(table: Table, block: Integers, offset: Integers) -> Floats:
    """Compute probabilities of acceptance, within `MARGIN`.

    Candidates are a block and an offset inside it, each of shape (count,).
    """
    y = np.multiply(offset, 2.0**-table.envelope.shift, dtype=np.float64)
    rise: Floats = y * -table.bend
    rise -= table.slopes[block]
    rise *= y
    np.exp(rise, out=rise)
    return rise
