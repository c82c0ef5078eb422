"""A site that writes its part of a joint release, for others to combine."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import ArgumentError
from dpmodels.noise import Entropy, simulating
from dpmodels.privacy import Charge
from dpmodels.sites.cape import Cape
from dpmodels.sites.dpdispca import DPdisPCA
from dpmodels.sites.full import Full
from dpmodels.sites.key_file import Seat
from dpmodels.sites.letter import Letter, canonical, key_claim
from dpmodels.sites.payload import pack, scales, unpack
from dpmodels.sites.protocol import Trust
from dpmodels.sites.secure_sum import SecureSum
from dpmodels.sites.words import to_words
from dpmodels.statistics import Statistic

# A site does not know how many rows the others have; two words hold any sum.
WORDS = 2
SENT: dict[str, type[Any]] = {
    "full": Full,
    "dpdispca": DPdisPCA,
    "cape": Cape,
    "secure_sum": SecureSum,
}
Sent = Full | DPdisPCA | Cape | SecureSum


@dataclass
class Outgoing:
    """Writes one site's letter in place of a joint release.

    Parameters
    ----------
    protocol : Full, DPdisPCA, Cape or SecureSum
        How the sites release together.
    terms : dict
        What all sites agree on.
    site : str
        The site's name.
    seat : Seat or None
        The site among the others, for protocols that need keys.
    letter : Letter, optional
        What was written; None before.
    charged : Charge
        What was charged for it; of nothing before.
    """

    protocol: Sent
    terms: dict[str, Any]
    site: str
    seat: Seat | None
    letter: Letter | None = field(default=None, repr=False)
    charged: Charge = field(default_factory=Charge, repr=False)

    passes_noise: ClassVar[bool] = True

    @property
    def claims(self) -> tuple[tuple[str, str], ...]:
        """What a ledger lets a site use once: its name in a session, and its key."""
        session = ("session", f"{self.terms['session']}, site {self.site}")
        return (session,) if self.seat is None else (session, key_claim(self.terms, self.site))

    def keep(self, charged: Charge) -> None:
        """Hold the charge until the letter is on the disk."""
        self.charged = charged

    @property
    def trust(self) -> Trust:
        """The protocol's."""
        return self.protocol.trust

    def seats(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Name all sites, as the protocol does."""
        return self.protocol.seats(names)

    def check(self, strategy: Any, plan: Any, names: tuple[str, ...]) -> None:
        """Refuse what the protocol refuses, given all sites."""
        self.protocol.check(strategy, plan, names if self.seat is None else self.seat.names)

    def release(
        self,
        strategy: Any,
        statistics: tuple[Statistic, ...],
        names: tuple[str, ...],
        plan: Any,
        entropy: Entropy,
    ) -> Any:
        """Keep what the site sends; return a release of zeros, which tells nothing."""
        (statistic,) = statistics
        terms = {**self.terms, "basis": statistic.fingerprint.digest}
        values = self._values(strategy, statistic, plan, terms, entropy)
        _, rows = statistic.cross()
        self.letter = Letter(
            terms=terms,
            site=self.site,
            rows=rows if plan.facts.adjacency.n_public else None,
            values=values.astype(values.dtype.newbyteorder("<")).tobytes(),
            shape=values.shape,
            kind="floats" if values.dtype == np.float64 else "words",
            number=secrets.token_hex(16),
            simulated=simulating(),
        )
        return unpack(strategy, np.zeros(len(scales(plan)), dtype=object), plan, 0, 1.0)

    def _values(
        self, strategy: Any, statistic: Statistic, plan: Any, terms: dict[str, Any], own: Entropy
    ) -> NDArray[Any]:
        protocol = self.protocol
        if isinstance(protocol, DPdisPCA):
            root = protocol.root(strategy.release(statistic, plan, own), plan)
            total = np.zeros(0) if root.total is None else root.total
            return np.concatenate([[root.complete], total, root.root.ravel()])
        payload = pack(statistic, plan)
        if isinstance(protocol, Full):
            return to_words(protocol.send(payload, plan, own), WORDS)
        if self.seat is None:
            raise ArgumentError(f"protocol={protocol.trust.name!r} needs the site's key")
        seat, session = self.seat, canonical(terms)
        return protocol.send(
            payload, plan, seat.place, seat.private, seat.public, session, WORDS, own
        )


def protocol_terms(protocol: Sent) -> dict[str, Any]:
    """Return a protocol as plain values."""
    return {"name": protocol.trust.name, **asdict(protocol)}
