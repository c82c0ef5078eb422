"""What sites wrote, read and made one release, at no further cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import FrameError
from dpmodels.noise import Entropy
from dpmodels.outside import LONGEST
from dpmodels.sites.dpdispca import DPdisPCA, Root
from dpmodels.sites.full import Full
from dpmodels.sites.letter import Letter
from dpmodels.sites.outgoing import WORDS, Sent
from dpmodels.sites.payload import scales, unpack
from dpmodels.sites.protocol import Trust
from dpmodels.sites.words import from_words
from dpmodels.statistics import Statistic


@dataclass(frozen=True)
class Incoming:
    """Makes a joint release of letters; the rows it is given are none.

    Parameters
    ----------
    protocol : Full, DPdisPCA, Cape or SecureSum
        How the sites released.
    letters : tuple of Letter
        Of all sites, in the order of their names.
    """

    protocol: Sent
    letters: tuple[Letter, ...]

    passes_noise: ClassVar[bool] = True

    @property
    def trust(self) -> Trust:
        """The protocol's."""
        return self.protocol.trust

    def seats(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Name all sites, as the protocol does."""
        return self.protocol.seats(names)

    def check(self, strategy: Any, plan: Any, names: tuple[str, ...]) -> None:
        """Refuse what the protocol refuses."""
        self.protocol.check(strategy, plan, tuple(own.site for own in self.letters))

    def release(
        self,
        strategy: Any,
        statistics: tuple[Statistic, ...],
        names: tuple[str, ...],
        plan: Any,
        entropy: Entropy,
    ) -> Any:
        """Combine the letters; of `statistics` only the public facts are used."""
        letters, protocol = self.letters, self.protocol
        basis = statistics[0].fingerprint.digest
        if any(own.terms["basis"] != basis for own in letters):
            raise FrameError(
                "the sites wrote integers on another lattice than these terms give: they used "
                "another version of dpmodels"
            )
        sites = tuple(own.site for own in letters)
        rows = [0 if own.rows is None else own.rows for own in letters]
        size = len(scales(plan))
        if isinstance(protocol, DPdisPCA):
            release = self._roots(strategy, sites, rows, plan)
        elif isinstance(protocol, Full):
            noisy = [from_words(_words(own, size)) for own in letters]
            pairs = zip(noisy, rows, strict=True)
            own_releases = [unpack(strategy, one, plan, count, 1.0) for one, count in pairs]
            release = protocol.join(own_releases, sites, plan)
        else:
            sent = [_words(own, size) for own in letters]
            release = protocol.join(strategy, plan, sites, sent, rows)
        shared = replace(release.shared, size=len(letters[0].values))
        return replace(release, simulated=letters[0].simulated, shared=shared)

    def _roots(self, strategy: Any, sites: tuple[str, ...], rows: Sequence[int], plan: Any) -> Any:
        assert isinstance(self.protocol, DPdisPCA)
        columns, centred = plan.facts.columns, plan.facts.columns * plan.facts.centred
        kept = self.protocol.R or plan.facts.components or columns
        roots, terms = [], []
        for letter, count in zip(self.letters, rows, strict=True):
            values = _read(letter, "floats", (1 + centred + columns * kept,))
            if not (np.abs(values) <= LONGEST).all():
                raise FrameError(f"site {letter.site!r} sent numbers that are not finite")
            total = values[1 : 1 + centred] if centred else None
            root = values[1 + centred :].reshape(columns, kept)
            roots.append(Root(float(values[0]), total, root))
            silent = np.zeros(len(scales(plan)), dtype=object)
            terms.append(unpack(strategy, silent, plan, count, 1.0))
        return self.protocol.join(roots, terms, sites, plan)


def _words(letter: Letter, size: int) -> NDArray[np.uint64]:
    return _read(letter, "words", (WORDS, size)).astype(np.uint64)


def _read(letter: Letter, kind: str, shape: tuple[int, ...]) -> NDArray[Any]:
    length = 8 * int(np.prod(shape))
    if letter.kind != kind or letter.shape != shape or len(letter.values) != length:
        raise FrameError(f"site {letter.site!r} sent values of another shape than the terms give")
    return np.frombuffer(letter.values, dtype="<f8" if kind == "floats" else "<u8").reshape(shape)
