"""A verb on rows of several sites, as a recipe: what those see who put all they know together.

The pair of neighbours is the first site's rows; the others are made up and the
same for both. The last sites collude with the aggregator: what they added
themselves, noise and masks, they take off again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from dpmodels.audit.handed import numbers
from dpmodels.audit.house import HouseRecipe, house_recipe
from dpmodels.audit.neighbours import worst_pairs
from dpmodels.audit.pair import Pair
from dpmodels.codebook import codebook
from dpmodels.models.cov import dp_cov
from dpmodels.noise import Entropy, seeded, source
from dpmodels.sites import PROTOCOLS, Cape, DPdisPCA, Full, Parties, SecureSum, SiteProtocol
from dpmodels.sites.keys import PairStream, pair_key, public_bytes
from dpmodels.sites.payload import draw, pack, scales
from dpmodels.sites.protocol import Trust
from dpmodels.sites.summing import words_needed
from dpmodels.sites.words import Words, add, from_words, negative, to_words
from dpmodels.typing import Floats, Integers

SITES: Final = ("north", "east", "south")
_KEY_WORDS: Final = 4


class Joined(NamedTuple):
    """What a protocol is given: all of a joint release but its randomness."""

    strategy: Any
    statistics: tuple[Any, ...]
    names: tuple[str, ...]
    plan: Any


View = Callable[[Any, Joined, Entropy], Floats]


def result_alone(protocol: SiteProtocol, own: Joined, entropy: Entropy) -> Floats:
    """Return what everybody sees: the numbers of the joint release."""
    return numbers(protocol.release(own.strategy, own.statistics, own.names, own.plan, entropy))


def noisy_integers(protocol: Full, own: Joined, entropy: Entropy) -> Floats:
    """Return what the first site sends; the others' say nothing of its rows."""
    sent = protocol.send(pack(own.statistics[0], own.plan), own.plan, entropy)
    return sent.astype(np.float64)


def leading_root(protocol: DPdisPCA, own: Joined, entropy: Entropy) -> Floats:
    """Return the number of rows and the leading part that the first site sends."""
    sent = protocol.root(own.strategy.release(own.statistics[0], own.plan, entropy), own.plan)
    return np.append(sent.root @ sent.root.T, sent.complete)


def honest_sum(protocol: SecureSum, own: Joined, entropy: Entropy) -> Floats:
    """Return the sum without the colluders' noise; single vectors are uniform."""
    return _coalition(protocol, own, entropy, None)


def honest_vectors(protocol: Cape, own: Joined, entropy: Entropy) -> Floats:
    """Return the same, and each honest vector without the masks that colluders share."""
    return _coalition(protocol, own, entropy, protocol.pair_noise)


PairNoise = Callable[[Any, PairStream, int], Integers]


def _coalition(
    protocol: Any, own: Joined, entropy: Entropy, pair_noise: PairNoise | None
) -> Floats:
    plan, most = own.plan, len(own.names)
    payloads = [pack(one, plan) for one in own.statistics]
    words = words_needed(plan, [one.rows for one in payloads])
    keys = [_key(entropy) for _ in own.names]
    public, honest = [public_bytes(key) for key in keys], most - protocol.colluders
    seeds = [int(seed) for seed in entropy.words(most)]
    sent = [
        protocol.send(one, plan, place, keys[place], public, b"", words, seeded(seeds[place]))
        for place, one in enumerate(payloads)
    ]
    total = from_words(_added(sent))
    scale = scales(plan) * protocol.share(plan, most)
    for place in range(honest, most):
        total = total - payloads[place].exact - draw(scale, seeded(seeds[place])).astype(object)
    seen = [total]
    for place in range(honest) if pair_noise else ():
        assert pair_noise is not None
        for told in set(protocol.partners(place, most)) & set(range(honest, most)):
            secret = PairStream(pair_key(keys[told], public[place], b""))
            add(sent[place], negative(to_words(pair_noise(plan, secret, most), words)))
        seen.append(from_words(sent[place]))
    return np.concatenate(seen).astype(np.float64)


def _key(entropy: Entropy) -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(entropy.words(_KEY_WORDS).tobytes())


def _added(sent: list[Words]) -> Words:
    total = np.zeros_like(sent[0])
    for one in sent:
        add(total, one)
    return total


# A protocol without a line is attacked by its result.
VIEWS: Final[Mapping[str, View]] = {
    "full": noisy_integers,
    "dpdispca": leading_root,
    "cape": honest_vectors,
    "secure_sum": honest_sum,
}


@dataclass
class _Watched:
    """A protocol that notes what it is given."""

    protocol: SiteProtocol
    seen: Joined | None = None

    @property
    def trust(self) -> Trust:
        return self.protocol.trust

    @property
    def passes_noise(self) -> bool:
        return self.protocol.passes_noise

    def seats(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return self.protocol.seats(names)

    def check(self, strategy: Any, plan: Any, names: tuple[str, ...]) -> None:
        self.protocol.check(strategy, plan, names)

    def release(
        self,
        strategy: Any,
        statistics: tuple[Any, ...],
        names: tuple[str, ...],
        plan: Any,
        entropy: Entropy,
    ) -> Any:
        self.seen = Joined(strategy, statistics, names, plan)
        return self.protocol.release(strategy, statistics, names, plan, entropy)


@dataclass(frozen=True, repr=False)
class JointRecipe(HouseRecipe):
    """A verb on the rows of the first of several sites; the others hold the same few.

    Attributes
    ----------
    protocol : SiteProtocol
        How they release together.
    others : table
        Rows of each other site.
    """

    protocol: SiteProtocol
    others: Any

    def _parties(self, rows: Any, protocol: SiteProtocol) -> Parties:
        seated = protocol.seats(SITES)
        return Parties(seated, (rows, *(self.others for _ in seated[1:])), protocol)

    def __call__(self, rows: Any) -> Any:
        """Run the verb, with the rows at the first site."""
        return self.verb(self.formula, self._parties(rows, self.protocol), **self.words)

    def batch(self, rows: Any, runs: int) -> Floats:
        """Run the verb once, and the protocol as often as asked.

        Returns
        -------
        ndarray, shape (runs, k)
        """
        own, entropy = self.joined(rows), source()
        view: View = VIEWS.get(self.protocol.trust.name, result_alone)
        return np.stack([view(self.protocol, own, entropy) for _ in range(runs)])

    def joined(self, rows: Any) -> Joined:
        """Run the verb once and return what the protocol was given."""
        watched = _Watched(self.protocol)
        self.verb(self.formula, self._parties(rows, watched), **self.words)
        assert watched.seen is not None
        return watched.seen


class JointLine(NamedTuple):
    """A protocol, ready to be audited; as :class:`dpmodels.audit.registry.Audited`.

    Attributes
    ----------
    name : str
    verb : JointRecipe
    pair : Pair
    small, full : int
        Releases a side in a small audit and in a full one.
    """

    name: str
    verb: JointRecipe
    pair: Pair
    small: int
    full: int


def joint_line(protocol: SiteProtocol, small: int = 200, full: int = 6_000) -> JointLine:
    """Put a protocol behind a small formula.

    Examples
    --------
    >>> joint_line(SecureSum(colluders=2)).name
    'dp_cov gauss, secure_sum by 3 sites'
    """
    asked = partial(dp_cov, "~ a", center=False, mechanism="gauss", **_WORDS)
    recipe = house_recipe(asked)
    pairs = worst_pairs(recipe.formula, recipe.codebook, recipe.adjacency.name)
    pair = next(one for one in pairs if one.name == _GONE)
    own = JointRecipe(recipe.verb, recipe.formula, recipe.words, protocol, {"a": [0.5, -0.25]})
    return JointLine(
        f"dp_cov gauss, {protocol.trust.name} by {len(SITES)} sites", own, pair, small, full
    )


_WORDS: Final[dict[str, Any]] = {"codebook": codebook(a=(-1, 1)), "eps": 1.0, "delta": 1e-5}
_GONE: Final = "a row against none, few others"

# Every protocol of the package's table, as it is without words of its own.
JOINT: Final = tuple(joint_line(kind()) for kind in PROTOCOLS.values())
