"""All rows at one trusted aggregator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, ClassVar

from dpmodels.noise import Entropy
from dpmodels.sites.payload import shared_by
from dpmodels.sites.protocol import Names, SiteProtocol, Statistics, Trust


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

    def release(
        self, strategy: Any, statistics: Statistics, names: Names, plan: Any, entropy: Entropy
    ) -> Any:
        """Release the sum with the noise of one release."""
        release = strategy.release(reduce(add, statistics), plan, entropy)
        return shared_by(release, self.trust, names)
