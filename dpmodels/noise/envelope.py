"""A histogram above exp(-g(m)), and its exact cumulative masses.

The magnitudes 0, 1, 2, ... are cut into blocks of w = 2^shift. Block j covers
[j w, (j+1) w) at the constant height exp(-g(j w)), the maximum of exp(-g)
there. Everything from ``cut = blocks * w`` on is one more block, the tail,
under the geometric envelope exp(-g(cut)) exp(-slope(cut) E), E = m - cut,
which lies above exp(-g) because g is convex; its mass is exp(-g(cut)) divided
by 1 - exp(-slope(cut)).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

from dpmodels.noise.enclosure import ceil_divide, exp_enclosure
from dpmodels.noise.law import Law

_GUARD_BITS = 96
# Tail mass of the order exp(-32): rare enough to draw one by one.
_CUT_EXPONENT = 32


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

    The width w is the largest power of two with g(8 w) <= 1 (at least 1), so
    that a few per cent of the proposals are refused; the cut is the first
    block boundary with g >= 32.
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

    One pair for each block: ``low <= 2^bits C <= high``, C the envelope's mass up to and
    including the block over its whole mass.
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
