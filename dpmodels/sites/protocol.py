"""What a protocol between sites is: a trust card, a check and one joint release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from dpmodels.noise import Entropy
from dpmodels.statistics import Statistic


@dataclass(frozen=True)
class Trust:
    """Who may see what.

    Attributes
    ----------
    name : str
        The word that selects the protocol.
    sees : str
        What the aggregator sees of a site.
    holds : str
        Against whom the guarantee holds.
    source : str
        Where the protocol comes from.
    """

    name: str
    sees: str
    holds: str
    source: str


class SiteProtocol(Protocol):
    """A way for disjoint sites to make one release."""

    @property
    def trust(self) -> Trust:
        """Who may see what."""
        ...

    @property
    def passes_noise(self) -> bool:
        """Whether sites add noise themselves, so that it has to be Gaussian."""
        ...

    def seats(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Name the sites that take part; refuse too few of them."""
        ...

    def check(self, strategy: Any, plan: Any, names: tuple[str, ...]) -> None:
        """Refuse what the protocol cannot release, before a row is read or charged."""
        ...

    def release(
        self,
        strategy: Any,
        statistics: tuple[Statistic, ...],
        names: tuple[str, ...],
        plan: Any,
        entropy: Entropy,
    ) -> Any:
        """Release the sum over the sites; called once, after the ledger was charged."""
        ...
