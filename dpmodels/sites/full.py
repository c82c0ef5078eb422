"""Each site releases its noisy moments or counts; the aggregator adds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from dpmodels.noise import Entropy
from dpmodels.sites.message import checked_weights, shared_by, site_weights, weighted
from dpmodels.sites.payload import (
    AnyPlan,
    Payload,
    draw,
    pack,
    require_gaussian,
    scales,
    unpack,
)
from dpmodels.sites.protocol import Trust
from dpmodels.statistics import Statistic


@dataclass(frozen=True)
class Full:
    """Releases of the sites, added up: S times the noise variance of one release.

    Parameters
    ----------
    weights : {"rows", "sites"}
        Whether a site counts in proportion to its rows, or as much as any.

    Examples
    --------
    >>> Full().trust.holds
    'all but the site itself, whoever of them collude'
    """

    weights: str = "rows"

    trust: ClassVar[Trust] = Trust(
        name="full",
        sees="the noisy moments or counts of each site",
        holds="all but the site itself, whoever of them collude",
        source="one release a site; disjoint rows compose in parallel",
    )
    passes_noise: ClassVar[bool] = True

    def seats(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Name all sites."""
        return names

    def check(self, strategy: Any, plan: Any, names: tuple[str, ...]) -> None:
        """Refuse strategies without Gaussian noise, and weights that make no sense."""
        require_gaussian(strategy, plan, self.trust.name)
        checked_weights(self.weights, plan, self.trust.name)

    def release(
        self,
        strategy: Any,
        statistics: tuple[Statistic, ...],
        names: tuple[str, ...],
        plan: Any,
        entropy: Entropy,
    ) -> Any:
        """Release each site's, and add."""
        payloads = [pack(own, plan) for own in statistics]
        releases = [
            unpack(strategy, self.send(own, plan, entropy), plan, own.rows, 1.0) for own in payloads
        ]
        return self.join(releases, names, plan)

    def send(self, payload: Payload, plan: AnyPlan, entropy: Entropy) -> NDArray[Any]:
        """Return what a site sends: its integers with the planned noise."""
        noisy: NDArray[Any] = payload.exact + draw(scales(plan), entropy).astype(object)
        return noisy

    def join(self, releases: Any, names: tuple[str, ...], plan: Any) -> Any:
        """Add what the sites released, at no further cost."""
        own = [0 if one.rows is None else one.rows for one in releases]
        total = weighted(releases, site_weights(self.weights, own))
        return shared_by(total, self.trust, names, len(scales(plan)))
