"""Correlated Gaussian noise: large at each site, cancelling in the sum of all.

Theorem
    A site sends ``x_s + g_s + e_s`` with ``Σ_s e_s = 0``. Here ``e_s`` is made of
    pairs: of two sites with a secret the first adds, and the second takes off,
    one discrete Gaussian of scale ``r σ`` or more. The pairs form a ring of sites, each
    with the nearest ``⌈(t+1)/2⌉`` on either side, which stays connected when t
    colluding sites reveal all they know. What is left in the view of an
    aggregator with the t sites is noise of the honest sites and of their
    pairs; :mod:`dpmodels.sites.summing` proves how much of the budget the pairs
    leak, ``(h - 1)/r²``, and ``g_s`` pays for it.
Noise
    ``g_s``: independent discrete Gaussians of the planned scale over the root
    of the number of honest sites, ``h = S - t``, made larger for the leak;
    ``r`` is ``1024 √h`` where that fits 64 bits, and the leak 10⁻⁶. Pairs draw
    at the power of 2 above ``r σ``: floats that differ in the last bit between
    two machines would give two draws, which do not cancel.
Against secure_sum
    To whoever knows no secret of a pair, the vector of one site is itself a
    release with noise far above the planned; a secret that comes out takes off
    noise instead of a mask of everything. Both draw on a stream cipher, so both
    hold as long as X25519, HKDF and AES-256 do.
Source
    Imtiaz, Mohammadi and Sarwate (2019), "Distributed differentially private
    computation of functions with correlated noise", arXiv:1904.10059, for the
    scheme; the pairs, and the price of what all vectors show together, are this
    package's. Were ``e_s`` given the variance ``(1 - 1/S)τ²`` and ``g_s`` ``τ²/S``,
    so that each vector has the noise τ of one site alone, the vectors of all
    sites together would cost ``2S/(S + 1)`` times the zCDP parameter of their
    sum. Here the correlated part is larger, which no result shows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.noise import Entropy
from dpmodels.sites import packing, protocol, summing
from dpmodels.sites.key_file import PairStream, Secrets
from dpmodels.typing import Floats, Integers

# Correlated noise over the planned one, a choice: the leak is then 10⁻⁶ of the budget.
RATIO = 1024.0
# The scale at which it stays in 64 bits: at 2^58 a draw is outside with probability exp(-512).
LARGEST_SCALE = 2.0**57
MOST_LEAK = 0.1  # Of the budget, a choice


@dataclass(frozen=True)
class Cape(summing.MaskedSum):
    """Noise shares under correlated noise that cancels at the aggregator.

    Parameters
    ----------
    colluders : int, default 1
        Sites that may share all they know with the aggregator or each other;
        0 as for :class:`SecureSum`.

    Examples
    --------
    >>> Cape().partners(0, 5), Cape(colluders=3).partners(0, 6)
    ((1, 4), (1, 2, 4, 5))
    """

    colluders: int = 1

    cancels: ClassVar[str] = "the noise of the others does"
    trust: ClassVar[protocol.Trust] = protocol.Trust(
        name="cape",
        sees="each site's vector under its own and correlated noise, and their sum",
        holds="the aggregator with up to t of the sites, all of whom follow the protocol",
        source="Imtiaz, Mohammadi and Sarwate (2019), correlated noise in pairs",
    )

    def participants(self, names: protocol.Names) -> protocol.Names:
        """Name all sites; refuse fewer than two."""
        summing.honest_sites(len(names), self.trust.name, self.colluders)
        if len(names) < 2:
            raise ArgumentError("protocol='cape' needs two sites or more for noise to cancel")
        return names

    def check(self, joint: protocol.Joint) -> None:
        """Refuse strategies without Gaussian noise on integers, and noise beyond 64 bits."""
        packing.require_gaussian(joint.strategy, joint.plan, self.trust.name)
        self.share(joint.plan, len(joint.names))

    def partners(self, place: int, sites: int) -> tuple[int, ...]:
        """Return the places of the sites that a site shares noise with."""
        reach = min(math.ceil((self.colluders + 1) / 2), sites // 2)
        neighbours = {(place + step) % sites for step in range(-reach, reach + 1)}
        return tuple(sorted(neighbours - {place}))

    def ratio(self, plan: packing.AnyPlan, sites: int) -> float:
        """Return the scale of correlated noise over the planned one."""
        target = RATIO * math.sqrt(sites - self.colluders)
        return min(target, LARGEST_SCALE / float(packing.scales(plan).max()))

    def share(self, plan: packing.AnyPlan, sites: int) -> float:
        """Return the scale of each site's own noise over the planned one.

        BudgetError if correlated noise large enough does not fit 64 bits.
        """
        honest = sites - self.colluders
        leak = (honest - 1) / self.ratio(plan, sites) ** 2
        if leak > MOST_LEAK:
            raise BudgetError(
                "protocol='cape': the budget asks for noise so large that correlated noise far "
                "above it does not fit 64 bits; give a larger eps, or write protocol='secure_sum'"
            )
        return summing.noise_share(honest, packing.multiplier(plan), packing.scales(plan), leak)

    def view(
        self, joint: protocol.Joint, statistics: protocol.Statistics, entropy: Entropy
    ) -> Floats:
        """Return the honest sum, and each honest vector without the masks that colluders share."""
        return summing.coalition_view(self, joint, statistics, entropy, self.pair_noise)

    def send(
        self,
        payload: packing.Payload,
        plan: packing.AnyPlan,
        secrets: Secrets,
        words: int,
        entropy: Entropy,
    ) -> summing.Words:
        """Return what a site sends; as of :class:`SecureSum`, with correlated noise for masks."""
        place, sites = secrets.site.place, len(secrets.site.public)

        def mask(partner: int) -> summing.Words:
            return summing.to_words(self.pair_noise(plan, secrets.stream(partner), sites), words)

        masks = summing.pair_masks(place, self.partners(place, sites), mask)
        return summing.masked(payload, plan, self.share(plan, sites), masks, words, entropy)

    def pair_noise(self, plan: packing.AnyPlan, secret: PairStream, sites: int) -> Integers:
        """Draw what the first of two sites adds and the second takes off."""
        _, power = np.frexp(packing.scales(plan) * self.ratio(plan, sites))
        return packing.draw(np.ldexp(1.0, power), secret)
