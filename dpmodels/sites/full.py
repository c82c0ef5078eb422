"""Each site releases its noisy moments or counts; the aggregator adds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmodels.noise import Entropy
from dpmodels.released import AnyRelease
from dpmodels.sites import packing
from dpmodels.sites.key_file import Secrets
from dpmodels.sites.protocol import Joint, MessageProtocol, Parts, Statistics, Trust
from dpmodels.sites.summing import WORDS, from_words, to_words
from dpmodels.statistics import Statistic
from dpmodels.typing import Exact, Floats


@dataclass(frozen=True)
class Full(MessageProtocol):
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

    trust: ClassVar[Trust] = Trust(
        name="full",
        sees="the noisy moments or counts of each site",
        holds="any coalition without the site itself",
        source="one release a site; disjoint rows compose in parallel",
    )
    passes_noise: ClassVar[bool] = True

    def check(self, joint: Joint) -> None:
        """Refuse strategies without Gaussian noise, and weights that make no sense."""
        packing.require_gaussian(joint.strategy, joint.plan, self.trust.name)
        packing.checked_weights(self.weights, joint.plan, self.trust.name)

    def release(self, joint: Joint, statistics: Statistics, entropy: Entropy) -> AnyRelease:
        """Release each site's, and add."""
        payloads = [packing.pack(statistic, joint.plan) for statistic in statistics]
        sent = (self.send(payload, joint.plan, entropy) for payload in payloads)
        return self._joined(joint, sent, [payload.rows for payload in payloads])

    def send(self, payload: packing.Payload, plan: packing.AnyPlan, entropy: Entropy) -> Exact:
        """Return what a site sends: its integers with the planned noise."""
        noisy: Exact = payload.exact + packing.draw(packing.scales(plan), entropy).astype(object)
        return noisy

    def view(self, joint: Joint, statistics: Statistics, entropy: Entropy) -> Floats:
        """Return what the first site sends; the others' say nothing of its rows."""
        payload = packing.pack(statistics[0], joint.plan)
        return self.send(payload, joint.plan, entropy).astype(np.float64)

    def part(
        self, joint: Joint, statistic: Statistic, secrets: Secrets | None, entropy: Entropy
    ) -> Exact:
        """Return the site's noisy integers."""
        return to_words(self.send(packing.pack(statistic, joint.plan), joint.plan, entropy), WORDS)

    def shape(self, plan: packing.AnyPlan) -> tuple[str, tuple[int, ...]]:
        """Return the shape of the integers as words."""
        return "words", (WORDS, len(packing.scales(plan)))

    def whole(self, joint: Joint, parts: Parts, rows: Sequence[int]) -> AnyRelease:
        """Add what the sites sent."""
        return self._joined(joint, map(from_words, parts), rows)

    def _joined(self, joint: Joint, sent: Iterable[Exact], rows: Sequence[int]) -> AnyRelease:
        """Add the noisy integers of all sites, at no further cost."""
        strategy, plan, names = joint
        pairs = zip(sent, rows, strict=True)
        releases = [packing.unpack(strategy, noisy, plan, count, 1.0) for noisy, count in pairs]
        counts = [0 if release.rows is None else release.rows for release in releases]
        total = packing.weighted(releases, packing.site_weights(self.weights, counts))
        return packing.shared_by(total, self.trust, names, len(packing.scales(plan)))
