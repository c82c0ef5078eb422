"""All rows at one trusted aggregator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import ClassVar

from dpmodels.errors import ArgumentError, quoted
from dpmodels.noise import Entropy
from dpmodels.released import AnyRelease
from dpmodels.sites.packing import shared_by
from dpmodels.sites.protocol import Joint, Names, SiteProtocol, Statistics, Trust


@dataclass(frozen=True)
class Pooled(SiteProtocol):
    """A trusted aggregator adds statistics without noise and releases their sum by any mechanism.

    The sum is exact, bit for bit that of one table, but for the sums of losses that ``"objective"``
    and ``"output"`` minimise: these are rounded, as for one table, and idealised.

    Examples
    --------
    >>> Pooled().trust.name
    'pooled'
    """

    trust: ClassVar[Trust] = Trust(
        name="pooled",
        sees="statistics of each site without noise: it is trusted",
        holds="all who see the result, but not the aggregator",
        source="disjoint rows: parallel composition",
    )

    def release(self, joint: Joint, statistics: Statistics, entropy: Entropy) -> AnyRelease:
        """Release the sum with the noise of one release."""
        release = joint.strategy.release(reduce(add, statistics), joint.plan, entropy)
        return shared_by(release, self.trust, joint.names)


# One site alone, for comparison.


@dataclass(frozen=True)
class Local(SiteProtocol):
    """One site releases from its own rows; the others are not read.

    Parameters
    ----------
    site : str, optional
        Which; by default the first that is named.

    Examples
    --------
    >>> Local("B").participants(("A", "B"))
    ('B',)
    """

    site: str | None = None

    trust: ClassVar[Trust] = Trust(
        name="local",
        sees="the release of one site; no other site takes part",
        holds="all but the site itself",
        source="one curator",
    )

    def participants(self, names: Names) -> Names:
        """Name the one site."""
        if self.site is None:
            return names[:1]
        if not isinstance(self.site, str) or self.site not in names:
            options = ", ".join(map(repr, names))
            raise ArgumentError(f"Local(site={quoted(self.site)}): expected one of {options}")
        return (self.site,)

    def release(self, joint: Joint, statistics: Statistics, entropy: Entropy) -> AnyRelease:
        """Release the one statistic."""
        release = joint.strategy.release(statistics[0], joint.plan, entropy)
        return shared_by(release, self.trust, joint.names)
