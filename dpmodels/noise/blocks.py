"""Exact draws from a histogram above a law, many at once.

**The histogram** stands above exp(-g(m)). The magnitudes 0, 1, 2, ... are cut into blocks of
w = 2^shift. Block j covers [j w, (j+1) w) at the constant height exp(-g(j w)), the maximum of
exp(-g) there. Everything from ``cut = blocks * w`` on is one more block, the tail, under the
geometric envelope exp(-g(cut)) exp(-slope(cut) E), E = m - cut, which lies above exp(-g) because g
is convex; its mass is exp(-g(cut)) divided by 1 - exp(-slope(cut)).

**A proposal** is two 64-bit words. The first holds the sign and, in its low bits, the offset
inside a block of dyadic width; the second holds the leading 32 bits of two uniforms, which choose
the block and accept the candidate. A proposal is decided by arrays only where 32 bits and float64
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

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from dpmodels.arguments import integer
from dpmodels.noise.uniform import (
    Entropy,
    Uniform,
    ceil_divide,
    ceil_shift,
    exp_enclosure,
    uniform_integer,
)
from dpmodels.typing import Floats, Integers

# Of the leading bits, those that look a block up: a choice, 32 kB.
_GUIDE_BITS = 14
# Beyond the leading bits, so that few blocks are left open: a choice.
_SPARE_BITS = 32
# No block has this number.
UNDECIDED = -1
# More than the precision asked for: a choice, of which products and sums along 512 blocks, each
# some units more than the last, use up at most 32.
_GUARD_BITS = 96
# Half a word for each of two uniforms.
LEADING_BITS = 32
# Tail mass of the order exp(-32): rare enough to draw one by one.
_CUT_EXPONENT = 32


@dataclass(frozen=True, slots=True)
class Law:
    """The law P(x) proportional to exp(-g(|x|)) on the integers, g(m) = linear m + quadratic m².

    Neither is below 0, nor both 0: the discrete Laplace law is (1/b, 0), the discrete Gaussian (0,
    1/(2 sigma²)).
    """

    linear: Fraction
    quadratic: Fraction

    def exponent(self, magnitude: int) -> Fraction:
        """Give g(magnitude): convex, increasing, 0 at 0."""
        return magnitude * (self.linear + self.quadratic * magnitude)

    def slope(self, magnitude: int) -> Fraction:
        """Give the derivative of g at a magnitude."""
        return self.linear + 2 * self.quadratic * magnitude


@dataclass(frozen=True, slots=True)
class Envelope:
    """Blocks above one law."""

    law: Law
    shift: int  # Base-2 logarithm of the block width
    blocks: int  # Number of blocks before the tail, at least 1

    @property
    def cut(self) -> int:
        """The first magnitude of the tail."""
        return self.blocks << self.shift

    def drop(self, block: int, offset: int) -> Fraction:
        """Give g at an offset inside a block minus g at the block's start."""
        start = block << self.shift
        return self.law.exponent(start + offset) - self.law.exponent(start)


def fit_envelope(law: Law) -> Envelope:
    """Choose the blocks of a law.

    The width w is the largest power of two with g(8 w) <= 1 (at least 1), so that a few per cent
    of the proposals are refused; the cut is the first block boundary with g >= 32.
    """
    shift = 0
    while law.exponent(16 << shift) <= 1:
        shift += 1
    # g(16 w) > 1 and g is convex: 32 times as far it is above 32.
    blocks = bisect_left(
        range(16 * _CUT_EXPONENT),
        True,
        key=lambda block: law.exponent(block << shift) >= _CUT_EXPONENT,
    )
    return Envelope(law, shift, blocks)


@lru_cache(maxsize=256)
def thresholds(envelope: Envelope, bits: int) -> tuple[tuple[int, int], ...]:
    """Enclose the probabilities that a proposal falls before block 1, 2, ..., before the tail.

    One pair for each block: ``low <= 2^bits C <= high``, C the envelope's mass up to and including
    the block over its whole mass.
    """
    precision = bits + _GUARD_BITS
    law = envelope.law
    heights = _heights(envelope, precision)
    below = list(accumulate(low << envelope.shift for low, _ in heights[:-1]))
    above = list(accumulate(high << envelope.shift for _, high in heights[:-1]))
    ratio_low, ratio_high = exp_enclosure(law.slope(envelope.cut), precision)
    unit = 1 << precision
    tail_low = (heights[-1][0] << precision) // (unit - ratio_low)
    tail_high = ceil_divide(heights[-1][1] << precision, unit - ratio_high)
    total_low, total_high = below[-1] + tail_low, above[-1] + tail_high
    return tuple(
        ((low << bits) // total_high, ceil_divide(high << bits, total_low))
        for low, high in zip(below, above, strict=True)
    )


def _heights(envelope: Envelope, precision: int) -> list[tuple[int, int]]:
    """Enclose 2^precision exp(-g) at the start of every block and of the tail.

    A height is the last one times a ratio, a ratio the last one times exp(-2 quadratic w²); every
    product is rounded down below and up above.
    """
    law, width = envelope.law, 1 << envelope.shift
    height = 1 << precision, 1 << precision
    ratio = exp_enclosure(law.exponent(width), precision)
    bend = exp_enclosure(2 * law.quadratic * width**2, precision)
    heights = [height]
    for _ in range(envelope.blocks):
        height = _product(height, ratio, precision)
        ratio = _product(ratio, bend, precision)
        heights.append(height)
    return heights


def _product(first: tuple[int, int], second: tuple[int, int], precision: int) -> tuple[int, int]:
    """Enclose the product of two enclosed numbers."""
    return first[0] * second[0] >> precision, ceil_shift(first[1] * second[1], precision)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """What the leading 32 bits say for certain about the block of a proposal."""

    envelope: Envelope
    # Shape (2^14,): the block that the leading 14 bits decide, or `UNDECIDED`.
    guide: NDArray[np.int16]
    floors: Integers  # Shape (blocks,): integer bounds on the cumulative thresholds times 2^32
    ceilings: Integers
    slopes: Floats
    # At a fraction y of block j the exponent has risen by ``y * (slopes[j] + bend * y)``; both
    # are the nearest floats.
    bend: float

    def find(self, choose: NDArray[np.uint32]) -> Integers:
        """Find the blocks of proposals.

        Shape (count,); it is `UNDECIDED` where 32 bits leave it open or the proposal falls into
        the tail.
        """
        cells = (choose >> np.uint32(LEADING_BITS - _GUIDE_BITS)).astype(np.intp)
        block = self.guide[cells].astype(np.int64)
        crossed = np.flatnonzero(block == UNDECIDED)
        if crossed.size:
            leading = choose[crossed]
            block[crossed] = _certain_block(self.floors, self.ceilings, leading, leading)
        return block


def tabulate(envelope: Envelope) -> Table:
    """Tabulate an envelope."""
    enclosures = thresholds(envelope, LEADING_BITS + _SPARE_BITS)
    floors = np.array([low >> _SPARE_BITS for low, _ in enclosures], dtype=np.int64)
    ceilings = np.array([ceil_shift(high, _SPARE_BITS) for _, high in enclosures], dtype=np.int64)
    size = 1 << LEADING_BITS - _GUIDE_BITS
    first = np.arange(1 << _GUIDE_BITS, dtype=np.int64) * size
    law, width = envelope.law, 1 << envelope.shift
    slope, step = law.linear * width, 2 * law.quadratic * width**2
    # Of one denominator: quotients of integers are the nearest floats.
    start, rise = slope.numerator * step.denominator, step.numerator * slope.denominator
    unit = slope.denominator * step.denominator
    return Table(
        envelope=envelope,
        guide=_certain_block(floors, ceilings, first, first + (size - 1)).astype(np.int16),
        floors=floors,
        ceilings=ceilings,
        slopes=np.array([(start + rise * block) / unit for block in range(envelope.blocks)]),
        bend=float(law.quadratic * width**2),
    )


def _certain_block(
    floors: Integers, ceilings: Integers, first: NDArray[np.integer], last: NDArray[np.integer]
) -> Integers:
    """Give the block of every uniform with leading bits from first to last, if it is one block."""
    first_block = np.searchsorted(ceilings, first, side="right")
    last_block = np.searchsorted(floors, last, side="right")
    return np.where(
        (first_block == last_block) & (first_block < floors.size), first_block, UNDECIDED
    ).astype(np.int64)


def exact_proposal(
    envelope: Envelope, place: int, choose: int, accept: int, entropy: Entropy
) -> int | None:
    """Decide one proposal from its words, with further words where those do not suffice.

    `place` is a signed 64-bit word: its sign is the sign of the draw, its lowest bits are the
    offset inside the block. `choose` and `accept` are the leading 32 bits of the uniforms that
    choose the block and accept the candidate; None where it is refused.
    """
    block = _find_block(envelope, Uniform(choose, LEADING_BITS, entropy))
    if block == envelope.blocks:
        magnitude = tail_magnitude(envelope, entropy)
    else:
        offset = place & ((1 << envelope.shift) - 1)
        is_accepted = Uniform(accept, LEADING_BITS, entropy).below(
            partial(exp_enclosure, envelope.drop(block, offset))
        )
        magnitude = (block << envelope.shift) + offset if is_accepted else None
    if magnitude is None or place >= 0:
        return magnitude
    return -magnitude or None


def tail_magnitude(envelope: Envelope, entropy: Entropy) -> int | None:
    """Propose a magnitude of the tail: geometric beyond the cut, thinned to the law.

    None where it is refused.
    """
    law = envelope.law
    excess = geometric(law.slope(envelope.cut), entropy)
    return envelope.cut + excess if _bernoulli(law.quadratic * excess**2, entropy) else None


def geometric(rate: Fraction, entropy: Entropy) -> int:
    """Draw E >= 0 with P(E = e) proportional to exp(-rate e), exactly.

    With rate = a/b: a residue U uniform on [0, b) kept with probability exp(-U/b), plus b times a
    geometric count of ratio exp(-1), has probabilities proportional to exp(-x/b); dividing by a
    and rounding down gives the ratio exp(-a/b).

    Source: Canonne, Kamath, Steinke (2020), The Discrete Gaussian for Differential Privacy: how
    its discrete Laplace sampler draws the magnitude.
    """
    while True:
        residue = uniform_integer(rate.denominator, entropy)
        if _bernoulli(Fraction(residue, rate.denominator), entropy):
            break
    turns = 0
    while _bernoulli(Fraction(1), entropy):
        turns += 1
    return (residue + turns * rate.denominator) // rate.numerator


def _find_block(envelope: Envelope, uniform: Uniform) -> int:
    first, last = 0, envelope.blocks
    while first < last:
        middle = (first + last) // 2
        if uniform.below(partial(_threshold, envelope, middle)):
            last = middle
        else:
            first = middle + 1
    return first


def _threshold(envelope: Envelope, index: int, bits: int) -> tuple[int, int]:
    return thresholds(envelope, bits)[index]


def _bernoulli(exponent: Fraction, entropy: Entropy) -> bool:
    """Give True with probability exp(-exponent)."""
    return Uniform(0, 0, entropy).below(partial(exp_enclosure, exponent))


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
    integer("size", size, 0)
    draws = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        count = min(_BATCH, int((size - filled) * _OVERSAMPLING) + 16)
        accepted = _propose(table, count, entropy, margin)[: size - filled]
        draws[filled : filled + accepted.size] = accepted
        filled += accepted.size
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
