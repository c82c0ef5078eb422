"""Protocols between sites: who is trusted, a check and one joint release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

from dpmodels.mechanisms.protocol import AnyStrategy, PlanOfStrategy
from dpmodels.noise import Entropy
from dpmodels.privacy import Guarantee
from dpmodels.released import AnyRelease
from dpmodels.statistics import Statistic
from dpmodels.typing import Exact, Floats

if TYPE_CHECKING:
    from dpmodels.sites.key_file import Secrets


# What takes any mechanism; there are no files of it.
POOLED = "with sites= in one process protocol='pooled', where an aggregator is trusted"
# What sites are called, the exact answers of all, and what each of them sent.
Names = tuple[str, ...]
Statistics = tuple[Statistic, ...]
Parts = Sequence[Exact]


class Joint(NamedTuple):
    """A joint release: of which mechanism, by which plan, and the sites that take part."""

    strategy: AnyStrategy
    plan: PlanOfStrategy
    names: Names


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
    # Whether sites can add the noise of many rounds, each after the public answers before.
    many_rounds: ClassVar[bool] = False
    # Whether the distribution of the released noise is known.
    lawful: ClassVar[bool] = True

    def participants(self, names: Names) -> Names:
        """Name the sites that take part; refuse too few of them."""
        return names

    def check(self, joint: Joint) -> None:
        """Refuse what the protocol cannot release, before a row is read or charged."""

    def in_rounds(self, strategy: AnyStrategy) -> bool:
        """Whether sites add the noise of a strategy's rounds, one after the other."""
        return False

    def planning(
        self, plan_of: Callable[[Guarantee], PlanOfStrategy], sites: int
    ) -> Callable[[Guarantee], PlanOfStrategy]:
        """Return a function that plans a strategy of rounds for the noise of all sites."""
        raise NotImplementedError

    def release(self, joint: Joint, statistics: Statistics, entropy: Entropy) -> AnyRelease:
        """Release the sum over the sites; called once, after the ledger was charged."""
        ...

    def view(self, joint: Joint, statistics: Statistics, entropy: Entropy) -> Floats | None:
        """Return what an aggregator and all colluders know of the honest sites' rows.

        The rows that an audit changes are the first site's, the last collude.
        None where that is the joint release alone.
        """
        return None


class MessageProtocol(SiteProtocol, Protocol):
    """One whose sites can be different organisations, each of which sends one message."""

    # Whether sites need keys and each other's cards.
    keyed: ClassVar[bool] = False

    def part(
        self, joint: Joint, statistic: Statistic, secrets: Secrets | None, entropy: Entropy
    ) -> Exact:
        """Return what one site sends: noisy or masked, uint64 words or float64."""
        ...

    def shape(self, plan: PlanOfStrategy) -> tuple[str, tuple[int, ...]]:
        """Return "words" or "floats", and the shape of what each site sends."""
        ...

    def whole(self, joint: Joint, parts: Parts, rows: Sequence[int]) -> AnyRelease:
        """Make the release of what all sites sent, at no further cost."""
        ...
