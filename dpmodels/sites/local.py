"""One site alone, for comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dpmodels.errors import ArgumentError, said
from dpmodels.noise import Entropy
from dpmodels.sites.payload import shared_by
from dpmodels.sites.protocol import Names, SiteProtocol, Statistics, Trust


@dataclass(frozen=True)
class Local(SiteProtocol):
    """One site releases from its own rows; the others are not read.

    Parameters
    ----------
    site : str, optional
        Which; by default the first that is named.

    Examples
    --------
    >>> Local("B").seats(("A", "B"))
    ('B',)
    """

    site: str | None = None

    trust: ClassVar[Trust] = Trust(
        name="local",
        sees="the release of one site; no other site takes part",
        holds="all but the site itself",
        source="one curator",
    )

    def seats(self, names: Names) -> Names:
        """Name the one site."""
        if self.site is None:
            return names[:1]
        if not isinstance(self.site, str) or self.site not in names:
            known = ", ".join(map(repr, names))
            raise ArgumentError(f"Local(site={said(self.site)}): expected one of {known}")
        return (self.site,)

    def release(
        self, strategy: Any, statistics: Statistics, names: Names, plan: Any, entropy: Entropy
    ) -> Any:
        """Release the one statistic."""
        return shared_by(strategy.release(statistics[0], plan, entropy), self.trust, names)
