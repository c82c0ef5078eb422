"""The sum of noisy integers, and nothing else: masks of every pair of sites cancel in it.

Theorem
    A site sends ``x_s + g_s + Σ_{j>s} m_sj - Σ_{j<s} m_js`` modulo ``2⁶⁴`` (or
    ``2¹²⁸``, by public facts), where ``m_sj`` is a keystream under the secret
    of sites s and j. For whoever lacks the secrets of honest pairs, the
    vectors of the honest sites are uniform but for their sum; so the view of
    an aggregator with t colluding sites is that sum, whose noise
    :mod:`dpmodels.sites.summing` makes large enough for the planned guarantee.
    The masks hide as long as X25519, HKDF and AES-256 do; the guarantee of the
    released result rests on the noise alone.
Noise
    ``g_s``: independent discrete Gaussians of the planned scale over the root
    of the least number of honest sites in a sum, :meth:`SecureSum.honest`.
Drop-out
    Without a site's vector the masks of its pairs do not cancel: the sum is
    refused. In an exchange of rounds ``dropouts=`` sites may be missing in each
    round (:mod:`dpmodels.sites.quorum`).
Source
    Bonawitz et al. (2017), "Practical secure aggregation for privacy-preserving
    machine learning", CCS.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import ClassVar

import numpy as np

from dpmodels.errors import ArgumentError
from dpmodels.mechanisms.protocol import AnyStrategy, PlanOfStrategy
from dpmodels.noise import Entropy
from dpmodels.privacy import Guarantee
from dpmodels.privacy.events import all_gaussian
from dpmodels.released import AnyRelease
from dpmodels.sites import packing, summing
from dpmodels.sites.joint_rounds import Coalition, InOneProcess, in_rounds, planning
from dpmodels.sites.key_file import Secrets
from dpmodels.sites.protocol import Joint, Names, Statistics, Trust
from dpmodels.sites.quorum import least_honest
from dpmodels.sites.summing import noise_share, pair_masks
from dpmodels.typing import Floats

# What a coalition sees of rounds is padded to a multiple of so many numbers: a choice.
PADDED = 256


@dataclass(frozen=True)
class SecureSum(summing.MaskedSum):
    """Pairwise masked sum.

    Parameters
    ----------
    colluders : int, default 1
        Sites that may share all they know with the aggregator or each other. With
        0 the guarantee holds against an aggregator that knows no site's
        noise, but not against a site that sees the result.
    dropouts : int, default 0
        Of an exchange of rounds: sites that may be missing in each round. The noise of the least
        number of honest sites in a sum suffices, see :mod:`dpmodels.sites.quorum`.

    Examples
    --------
    >>> SecureSum(colluders=2).trust.name
    'secure_sum'
    """

    colluders: int = 1
    dropouts: int = 0

    many_rounds: ClassVar[bool] = True
    cancels: ClassVar[str] = "the masks of the others do"
    trust: ClassVar[Trust] = Trust(
        name="secure_sum",
        sees="the sum of all noisy vectors; from each site uniform random numbers",
        holds="the aggregator with up to t of the sites, all of whom follow the protocol",
        source="Bonawitz et al. (2017)",
    )

    def participants(self, names: Names) -> Names:
        """Name all sites; refuse fewer than two."""
        summing.honest_sites(len(names), self.trust.name, self.colluders, self.dropouts)
        if len(names) < 2:
            raise ArgumentError("protocol='secure_sum' needs two sites or more to hide in a sum")
        if self.dropouts and self.honest(len(names)) < 1:
            raise ArgumentError(
                f"dropouts={self.dropouts} of {len(names)} sites with colluders={self.colluders}: "
                "fewer must be allowed, or two groups of sites could each open another's masks"
            )
        return names

    def check(self, joint: Joint) -> None:
        """Refuse strategies without Gaussian noise on integers."""
        if not self.in_rounds(joint.strategy):
            packing.require_gaussian(joint.strategy, joint.plan, self.trust.name)

    def in_rounds(self, strategy: AnyStrategy) -> bool:
        """Whether a strategy asks for several sums, or for a transform of them."""
        return in_rounds(strategy)

    def planning(
        self, plan_of: Callable[[Guarantee], PlanOfStrategy], sites: int
    ) -> Callable[[Guarantee], PlanOfStrategy]:
        """Return a function that plans a strategy of rounds for the noise of all sites."""
        return planning(plan_of, sites, self.honest(sites), self.trust.name)

    def release(self, joint: Joint, statistics: Statistics, entropy: Entropy) -> AnyRelease:
        """Run all sites and the aggregator in this process."""
        if not self.in_rounds(joint.strategy):
            return super().release(joint, statistics, entropy)
        strategy, plan, names = joint
        sites = len(names)
        noise = InOneProcess(sites, self.honest(sites), plan.events, entropy)
        release = strategy.release(reduce(add, statistics), plan, noise)
        return self.joined(release, names, noise.numbers, noise.rounds)

    def joined(
        self,
        release: AnyRelease,
        names: Names,
        numbers: int,
        rounds: int,
        missed: Collection[str] = (),
    ) -> AnyRelease:
        """Record who saw what in the rounds of a release, for which each site sent so many."""
        sums = "the noisy sum" if rounds == 1 else f"the noisy sums of {rounds} rounds"
        if missed:
            sums += f" (some without {', '.join(map(repr, sorted(missed)))})"
        sees = f"{sums}, as all sites do; from each site uniform random numbers"
        trust = replace(self.trust, sees=sees)
        word, holds = packing.WORD * summing.WORDS, packing.coalition(self.colluders)
        return packing.shared_by(release, trust, names, numbers, word, holds)

    def share(self, plan: packing.AnyPlan, sites: int) -> float:
        """Return the scale of each site's noise over the planned one."""
        return noise_share(self.honest(sites), packing.multiplier(plan), packing.scales(plan))

    def honest(self, sites: int) -> int:
        """Return the least number of sites in a sum that do not collude."""
        return least_honest(sites - self.colluders, self.dropouts)

    def view(self, joint: Joint, statistics: Statistics, entropy: Entropy) -> Floats:
        """Return the honest sums, of rounds padded by zeros; single vectors are uniform."""
        if not self.in_rounds(joint.strategy):
            return summing.coalition_view(self, joint, statistics, entropy)
        sites, plan = len(statistics), joint.plan
        assert all_gaussian(plan.events)
        noise = Coalition(sites, self.honest(sites), plan.events, entropy)
        joint.strategy.release(reduce(add, statistics), plan, noise)
        seen = np.array(noise.seen)
        return np.pad(seen, (0, -len(seen) % PADDED))

    def send(
        self,
        payload: packing.Payload,
        plan: packing.AnyPlan,
        secrets: Secrets,
        words: int,
        entropy: Entropy,
    ) -> summing.Words:
        """Return what a site sends: its noisy integers under uniform words."""
        masks = self.masks(secrets, (words, payload.exact.size))
        share = self.share(plan, len(secrets.site.public))
        return summing.masked(payload, plan, share, masks, words, entropy)

    def masks(self, secrets: Secrets, shape: tuple[int, int]) -> list[summing.Words]:
        """Return a site's masks of all pairs; the session is what all release, once."""

        def mask(partner: int) -> summing.Words:
            return secrets.stream(partner).words(shape[0] * shape[1]).reshape(shape)

        place, sites = secrets.site.place, range(len(secrets.site.public))
        return pair_masks(place, [site for site in sites if site != place], mask)
