"""One proposal, decided exactly with integers: what the fast path leaves undecided."""

from fractions import Fraction
from functools import partial

from dpmodels.noise.envelope import LEADING_BITS, Envelope, thresholds
from dpmodels.noise.protocol import Entropy
from dpmodels.noise.uniform import Uniform, exp_enclosure, uniform_integer


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
        kept = Uniform(accept, LEADING_BITS, entropy).below(
            partial(exp_enclosure, envelope.drop(block, offset))
        )
        magnitude = (block << envelope.shift) + offset if kept else None
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
