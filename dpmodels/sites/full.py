"""Each site releases its noisy moments or counts; the aggregator adds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmodels.mechanisms.protocol import AnyStrategy, PlanOfStrategy
from dpmodels.noise import Entropy
from dpmodels.released import AnyRelease
from dpmodels.sites import packing, protocol
from dpmodels.sites.key_file import Participant
from dpmodels.sites.summing import WORDS, from_words, to_words
from dpmodels.statistics import Statistic
from dpmodels.typing import Exact, Floats


@dataclass(frozen=True)
class Full(protocol.MessageProtocol):
    """Releases of the sites, added up: S times the noise variance of one release.

    Parameters
    ----------
    weights : {"rows", "sites"}
        Whether a site counts in proportion to its rows, or as much as any: of
        moments alone, and where numbers of rows are public.

    Examples
    --------
    >>> Full().trust.holds
    'any coalition without the site itself'
    """

    weights: str = "rows"

    trust: ClassVar[protocol.Trust] = protocol.Trust(
        name="full",
        sees="the noisy moments or counts of each site",
        holds="any coalition without the site itself",
        source="one release a site; disjoint rows compose in parallel",
    )
    passes_noise: ClassVar[bool] = True

    def check(self, strategy: AnyStrategy, plan: PlanOfStrategy, names: protocol.Names) -> None:
        """Refuse strategies without Gaussian noise, and weights that make no sense."""
        packing.require_gaussian(strategy, plan, self.trust.name)
        packing.checked_weights(self.weights, plan, self.trust.name)

    def release(
        self,
        strategy: AnyStrategy,
        statistics: protocol.Statistics,
        names: protocol.Names,
        plan: PlanOfStrategy,
        entropy: Entropy,
    ) -> AnyRelease:
        """Release each site's, and add."""
        payloads = [packing.pack(statistic, plan) for statistic in statistics]
        releases = [
            packing.unpack(strategy, self.send(payload, plan, entropy), plan, payload.rows, 1.0)
            for payload in payloads
        ]
        return self.join(releases, names, plan)

    def send(self, payload: packing.Payload, plan: packing.AnyPlan, entropy: Entropy) -> Exact:
        """Return what a site sends: its integers with the planned noise."""
        noisy: Exact = payload.exact + packing.draw(packing.scales(plan), entropy).astype(object)
        return noisy

    def view(
        self,
        strategy: AnyStrategy,
        statistics: protocol.Statistics,
        plan: PlanOfStrategy,
        entropy: Entropy,
    ) -> Floats:
        """Return what the first site sends; the others' say nothing of its rows."""
        return self.send(packing.pack(statistics[0], plan), plan, entropy).astype(np.float64)

    def part(
        self,
        strategy: AnyStrategy,
        statistic: Statistic,
        plan: packing.AnyPlan,
        participant: Participant | None,
        session: bytes,
        entropy: Entropy,
    ) -> Exact:
        """Return the site's noisy integers."""
        return to_words(self.send(packing.pack(statistic, plan), plan, entropy), WORDS)

    def shape(self, plan: packing.AnyPlan) -> tuple[str, tuple[int, ...]]:
        """Return the shape of the integers as words."""
        return "words", (WORDS, len(packing.scales(plan)))

    def whole(
        self,
        strategy: AnyStrategy,
        parts: protocol.Parts,
        names: protocol.Names,
        rows: Sequence[int],
        plan: packing.AnyPlan,
    ) -> AnyRelease:
        """Add what the sites sent."""
        pairs = zip(map(from_words, parts), rows, strict=True)
        releases = [packing.unpack(strategy, noisy, plan, count, 1.0) for noisy, count in pairs]
        return self.join(releases, names, plan)

    def join(
        self, releases: Sequence[packing.Summed], names: protocol.Names, plan: PlanOfStrategy
    ) -> AnyRelease:
        """Add what the sites released, at no further cost."""
        counts = [0 if release.rows is None else release.rows for release in releases]
        total = packing.weighted(releases, packing.site_weights(self.weights, counts))
        return packing.shared_by(total, self.trust, names, len(packing.scales(plan)))
