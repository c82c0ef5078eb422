"""What a protocol between sites is: a trust card, a check and one joint release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from numpy.typing import NDArray

from dpmodels.noise import Entropy
from dpmodels.statistics import Statistic
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from dpmodels.sites.key_file import Seat

# What sites are called, the exact answers of all, and what each of them sent.
Names = tuple[str, ...]
Statistics = tuple[Statistic, ...]
Parts = Sequence[NDArray[Any]]


@dataclass(frozen=True)
class Trust:
    """Who may see what."""

    name: str  # The word that selects the protocol
    sees: str  # What the aggregator sees of a site
    holds: str  # Against whom the guarantee holds
    source: str  # Where the protocol comes from


class SiteProtocol(Protocol):
    """A way for disjoint sites to make one release."""

    trust: ClassVar[Trust]
    # Whether sites add noise themselves, so that it has to be Gaussian.
    passes_noise: ClassVar[bool] = False
    # Whether the noise in what is released is of a known law.
    lawful: ClassVar[bool] = True

    def seats(self, names: Names) -> Names:
        """Name the sites that take part; refuse too few of them."""
        return names

    def check(self, strategy: Any, plan: Any, names: Names) -> None:
        """Refuse what the protocol cannot release, before a row is read or charged."""

    def release(
        self, strategy: Any, statistics: Statistics, names: Names, plan: Any, entropy: Entropy
    ) -> Any:
        """Release the sum over the sites; called once, after the ledger was charged."""
        ...

    def view(
        self, strategy: Any, statistics: Statistics, plan: Any, entropy: Entropy
    ) -> Floats | None:
        """Return what an aggregator and all colluders know of the honest sites' rows.

        The rows that an audit changes are the first site's, the last collude.
        None where that is the joint release alone.
        """
        return None


class LetterProtocol(SiteProtocol, Protocol):
    """One whose sites can be different organisations, each of which sends one letter."""

    # Whether sites need keys and each other's cards.
    keyed: ClassVar[bool] = False

    def part(
        self,
        strategy: Any,
        statistic: Statistic,
        plan: Any,
        seat: Seat | None,
        session: bytes,
        entropy: Entropy,
    ) -> NDArray[Any]:
        """Return what one site sends: noisy or masked, uint64 words or float64."""
        ...

    def shape(self, plan: Any) -> tuple[str, tuple[int, ...]]:
        """Return "words" or "floats", and the shape of what each site sends."""
        ...

    def whole(
        self, strategy: Any, parts: Parts, names: Names, rows: Sequence[int], plan: Any
    ) -> Any:
        """Make the release of what all sites sent, at no further cost."""
        ...
