"""A histogram above exp(-g(m)), its exact cumulative masses, and both as arrays.

The magnitudes 0, 1, 2, ... are cut into blocks of w = 2^shift. Block j covers [j w, (j+1) w) at
the constant height exp(-g(j w)), the maximum of exp(-g) there. Everything from
``cut = blocks * w`` on is one more block, the tail, under the geometric envelope exp(-g(cut))
exp(-slope(cut) E), E = m - cut, which lies above exp(-g) because g is convex; its mass is
exp(-g(cut)) divided by 1 - exp(-slope(cut)).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from dpmodels.noise.uniform import ceil_divide, ceil_shift, exp_enclosure
from dpmodels.typing import Floats, Integers

# Of the leading bits, those that look a block up: a choice, 32 kB.
_GUIDE_BITS = 14
# Beyond the leading bits, so that few blocks are left open: a choice.
_SPARE_BITS = 32
# No block has this number.
UNDECIDED = -1
# More than the precision asked for: a choice, which only sums of a few hundred terms use up.
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
    blocks = 1
    while law.exponent(blocks << shift) < _CUT_EXPONENT:
        blocks += 1
    return Envelope(law, shift, blocks)


@lru_cache(maxsize=256)
def thresholds(envelope: Envelope, bits: int) -> tuple[tuple[int, int], ...]:
    """Enclose the probabilities that a proposal falls before block 1, 2, ..., before the tail.

    One pair for each block: ``low <= 2^bits C <= high``, C the envelope's mass up to and including
    the block over its whole mass.
    """
    precision = bits + _GUARD_BITS
    law = envelope.law
    heights = [
        exp_enclosure(law.exponent(block << envelope.shift), precision)
        for block in range(envelope.blocks + 1)
    ]
    below = list(accumulate(low << envelope.shift for low, _ in heights[:-1]))
    above = list(accumulate(high << envelope.shift for _, high in heights[:-1]))
    ratio_low, ratio_high = exp_enclosure(law.slope(envelope.cut), precision)
    one = 1 << precision
    tail_low = (heights[-1][0] << precision) // (one - ratio_low)
    tail_high = ceil_divide(heights[-1][1] << precision, one - ratio_high)
    total_low, total_high = below[-1] + tail_low, above[-1] + tail_high
    return tuple(
        ((low << bits) // total_high, ceil_divide(high << bits, total_low))
        for low, high in zip(below, above, strict=True)
    )


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
        block[crossed] = _certain_block(
            self.floors, self.ceilings, choose[crossed], choose[crossed]
        )
        return block


def tabulate(envelope: Envelope) -> Table:
    """Tabulate an envelope."""
    enclosures = thresholds(envelope, LEADING_BITS + _SPARE_BITS)
    floors = np.array([low >> _SPARE_BITS for low, _ in enclosures], dtype=np.int64)
    ceilings = np.array([ceil_shift(high, _SPARE_BITS) for _, high in enclosures], dtype=np.int64)
    size = 1 << LEADING_BITS - _GUIDE_BITS
    first = np.arange(1 << _GUIDE_BITS, dtype=np.int64) * size
    law, width = envelope.law, 1 << envelope.shift
    starts = range(0, envelope.cut, width)
    return Table(
        envelope=envelope,
        guide=_certain_block(floors, ceilings, first, first + (size - 1)).astype(np.int16),
        floors=floors,
        ceilings=ceilings,
        slopes=np.array([float(law.slope(start) * width) for start in starts]),
        bend=float(law.quadratic * width**2),
    )


def _certain_block(
    floors: Integers,
    ceilings: Integers,
    first: NDArray[np.integer],
    last: NDArray[np.integer],
) -> Integers:
    """Give the block of every uniform with leading bits from first to last, if it is one block."""
    least = np.searchsorted(ceilings, first, side="right")
    most = np.searchsorted(floors, last, side="right")
    return np.where((least == most) & (least < floors.size), least, UNDECIDED).astype(np.int64)
