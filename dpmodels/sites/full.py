"""Each site releases its noisy moments or counts; the aggregator adds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpmodels.mechanisms.protocol import AnyStrategy, PlanOfStrategy
from dpmodels.noise import Entropy
from dpmodels.released import AnyRelease
from dpmodels.sites.key_file import Participant
from dpmodels.sites.protocol import (
    AnyPlan,
    MessageProtocol,
    Names,
    Parts,
    Payload,
    Statistics,
    Trust,
    checked_weights,
    draw,
    pack,
    require_gaussian,
    scales,
    shared_by,
    site_weights,
    unpack,
    weighted,
)
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

    def check(self, strategy: AnyStrategy, plan: PlanOfStrategy, names: Names) -> None:
        """Refuse strategies without Gaussian noise, and weights that make no sense."""
        require_gaussian(strategy, plan, self.trust.name)
        checked_weights(self.weights, plan, self.trust.name)

    def release(
        self,
        strategy: AnyStrategy,
        statistics: Statistics,
        names: Names,
        plan: PlanOfStrategy,
        entropy: Entropy,
    ) -> AnyRelease:
        """Release each site's, and add."""
        payloads = [pack(statistic, plan) for statistic in statistics]
        releases = [
            unpack(strategy, self.send(payload, plan, entropy), plan, payload.rows, 1.0)
            for payload in payloads
        ]
        return self.join(releases, names, plan)

    def send(self, payload: Payload, plan: AnyPlan, entropy: Entropy) -> Exact:
        """Return what a site sends: its integers with the planned noise."""
        noisy: Exact = payload.exact + draw(scales(plan), entropy).astype(object)
        return noisy

    def view(
        self, strategy: AnyStrategy, statistics: Statistics, plan: PlanOfStrategy, entropy: Entropy
    ) -> Floats:
        """Return what the first site sends; the others' say nothing of its rows."""
        return self.send(pack(statistics[0], plan), plan, entropy).astype(np.float64)

    def part(
        self,
        strategy: AnyStrategy,
        statistic: Statistic,
        plan: AnyPlan,
        participant: Participant | None,
        session: bytes,
        entropy: Entropy,
    ) -> Exact:
        """Return the site's noisy integers."""
        return to_words(self.send(pack(statistic, plan), plan, entropy), WORDS)

    def shape(self, plan: AnyPlan) -> tuple[str, tuple[int, ...]]:
        """Return the shape of the integers as words."""
        return "words", (WORDS, len(scales(plan)))

    def whole(
        self, strategy: AnyStrategy, parts: Parts, names: Names, rows: Sequence[int], plan: AnyPlan
    ) -> AnyRelease:
        """Add what the sites sent."""
        pairs = zip(map(from_words, parts), rows, strict=True)
        releases = [unpack(strategy, noisy, plan, count, 1.0) for noisy, count in pairs]
        return self.join(releases, names, plan)

    def join(self, releases: Any, names: Names, plan: PlanOfStrategy) -> AnyRelease:
        """Add what the sites released, at no further cost."""
        counts = [0 if release.rows is None else release.rows for release in releases]
        total = weighted(releases, site_weights(self.weights, counts))
        return shared_by(total, self.trust, names, len(scales(plan)))
