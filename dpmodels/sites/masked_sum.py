"""What protocols share whose sites send noisy integers under masks that cancel in the sum."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from dpmodels.noise import Entropy
from dpmodels.sites.payload import AnyPlan, Payload, pack, scales
from dpmodels.sites.protocol import LetterProtocol, Names, Statistics
from dpmodels.sites.summing import WORDS, Words, sent_by_all
from dpmodels.statistics import Statistic

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    from dpmodels.sites.key_file import Seat


class MaskedSum(LetterProtocol):
    """Pairs of sites share secrets; what a site sends, and what all make of it, is its own."""

    passes_noise: ClassVar[bool] = True
    keyed: ClassVar[bool] = True

    @abstractmethod
    def send(
        self,
        payload: Payload,
        plan: AnyPlan,
        place: int,
        private: X25519PrivateKey,
        public: Sequence[bytes],
        session: bytes,
        words: int,
        entropy: Entropy,
    ) -> Words:
        """Return what a site sends, its noise under masks, shape (words, numbers).

        The private key is for this release only; `place` is the site's in the order of the public
        keys, and the session what is released, the same words at all sites.
        """

    def release(
        self, strategy: Any, statistics: Statistics, names: Names, plan: Any, entropy: Entropy
    ) -> Any:
        """Run all sites and the aggregator in this process, with fresh keys."""
        sent, rows = sent_by_all(self.send, statistics, plan, entropy)
        return self.whole(strategy, sent, names, rows, plan)

    def part(
        self,
        strategy: Any,
        statistic: Statistic,
        plan: AnyPlan,
        seat: Seat | None,
        session: bytes,
        entropy: Entropy,
    ) -> Words:
        """Return what the site sends, in words for any number of rows."""
        assert seat is not None
        return self.send(
            pack(statistic, plan),
            *(plan, seat.place, seat.private, seat.public, session, WORDS, entropy),
        )

    def shape(self, plan: AnyPlan) -> tuple[str, tuple[int, ...]]:
        """Return that of the integers in words."""
        return "words", (WORDS, len(scales(plan)))
