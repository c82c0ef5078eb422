"""Uniform random numbers that are only ever known as far as a decision needs."""

from collections.abc import Callable
from dataclasses import dataclass, field

from dpmodels.noise.enclosure import ceil_shift
from dpmodels.noise.protocol import Entropy

_GUARD_BITS = 32


@dataclass(slots=True)
class Uniform:
    """A real number uniform on [0, 1), of which the leading bits are known.

    The number lies in ``[head, head + 1) * 2^-length``; further words of the
    entropy are its further bits. Comparing it with a real threshold p has
    probability exactly p, although neither is ever known in full.
    """

    head: int = field(repr=False)  # The known bits, ``0 <= head < 2^length``
    length: int  # How many they are
    entropy: Entropy  # Where further bits come from

    def below(self, threshold: Callable[[int], tuple[int, int]]) -> bool:
        """Decide whether the number is below a threshold, learning bits as needed.

        `threshold` gives, for a number of bits b, integers ``low <= 2^b p <= high`` that close
        in on p as b grows; True has probability p.
        """
        while True:
            low, high = threshold(self.length + _GUARD_BITS)
            if self.head >= ceil_shift(high, _GUARD_BITS):
                return False
            if self.head < low >> _GUARD_BITS:
                return True
            self.head = self.head << 64 | int(self.entropy.words(1)[0])
            self.length += 64


def uniform_integer(bound: int, entropy: Entropy) -> int:
    """Draw an integer uniform on [0, bound), exactly, by rejection."""
    bits = (bound - 1).bit_length()
    count = -(-bits // 64)
    while True:
        words = int.from_bytes(entropy.words(count).tobytes(), "little")
        candidate = words & ((1 << bits) - 1)
        if candidate < bound:
            return candidate
