"""The envelope as arrays, for deciding many proposals at once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmodels.noise.enclosure import ceil_shift
from dpmodels.noise.envelope import Envelope, thresholds
from dpmodels.noise.proposal import LEADING_BITS
from dpmodels.typing import Floats, Integers

_GUIDE_BITS = 14
_GUARD_BITS = 32
UNDECIDED = -1


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
    enclosures = thresholds(envelope, LEADING_BITS + _GUARD_BITS)
    floors = np.array([low >> _GUARD_BITS for low, _ in enclosures], dtype=np.int64)
    ceilings = np.array([ceil_shift(high, _GUARD_BITS) for _, high in enclosures], dtype=np.int64)
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
