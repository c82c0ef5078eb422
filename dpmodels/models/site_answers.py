"""A site's half of a release over a network: it compares terms, and answers a session once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as Place
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, Final

from dpmodels.errors import ArgumentError, DPModelsError
from dpmodels.models.site_files import KEYED, Path, keys_of, seat_of
from dpmodels.privacy import Ledger
from dpmodels.sites.key_file import take_seat, write_card
from dpmodels.sites.keys import public_bytes
from dpmodels.sites.letter import difference
from dpmodels.sites.outgoing import Sent
from dpmodels.sites.posting import finish, require_places

TERMS, LETTER = "terms", "letter"
QUESTIONS = (TERMS, LETTER)
Answer = dict[str, Any]
_LOG: Final = logging.getLogger("dpmodels.sites")


@dataclass(frozen=True, repr=False)
class SiteAnswers:
    """What one site states, and how it answers.

    Parameters
    ----------
    site : str
        The site's name.
    protocol : Full, DPdisPCA, Cape or SecureSum
        How the sites release together.
    terms : dict
        What the site states, but for the keys.
    path : Path
        Its letter: a file of the site, and its record of having answered.
    release : callable
        Writes the letter, given ``key=`` and ``cards=``.
    key : path, optional
        The site's key.
    cards : sequence of path
        Of all sites, where they were exchanged beforehand.
    sites : tuple of str
        All sites, where the aggregator hands their keys on.
    ledger : Ledger, optional
        What `release` charges.
    """

    site: str
    protocol: Sent
    terms: Mapping[str, Any]
    path: Place
    release: Callable[..., object]
    key: Path | None = None
    cards: Sequence[Path] = ()
    sites: tuple[str, ...] = ()
    ledger: Ledger | None = None
    _alone: Any = field(default_factory=Lock, init=False)

    def __post_init__(self) -> None:
        keyed = self.protocol.trust.name in KEYED
        name = self.protocol.trust.name
        if keyed and self.key is None:
            raise ArgumentError(f"protocol={name!r} needs key=, made by dp.site_key")
        if not keyed and (self.key is not None or self.cards or self.sites):
            raise ArgumentError(f"key=, cards= and sites= are not for protocol={name!r}")
        if keyed and bool(self.cards) == bool(self.sites):
            raise ArgumentError(
                f"protocol={name!r} needs either cards=, those of all sites, or sites=, their "
                "names, if the aggregator is trusted to hand on their keys"
            )
        if self.sites and self.site not in self.sites:
            raise ArgumentError(f"sites=: this site, {self.site!r}, is not among them")

    def answer(self, question: str, asked: Mapping[str, Any]) -> Answer:
        """Return what goes back to the aggregator; never raise, never quote a row.

        Parameters
        ----------
        question : {"terms", "letter"}
            Which half of the talk.
        asked : mapping
            The session, or all terms as the aggregator has them of the sites.

        Returns
        -------
        dict
            ``site``, and one of ``terms``, ``letter`` and ``refusal``.
        """
        try:
            with self._alone:
                return {"site": self.site} | self._answer(question, asked)
        except DPModelsError as error:
            kind = type(error).__name__
            _LOG.warning("site %r did not answer. %s: %s", self.site, kind, error)
        except Exception:
            # What a reader of rows raises may quote one: not even its name goes on.
            kind = "an error outside dpmodels"
            _LOG.warning("site %r did not answer: %s", self.site, kind)
        return {"site": self.site, "refusal": f"it cannot answer ({kind}); its own log says why"}

    def _answer(self, question: str, asked: Mapping[str, Any]) -> Answer:
        session = self.terms["session"]
        if asked.get("session") != session:
            return self._refusal(f"its session is {session!r}, another one than was asked for")
        if self.key is not None:
            finish(self.key, self.site, self.path, self.terms, self.ledger)
        if self.path.exists():
            return self._refusal(
                f"it has answered session {session!r} already, and a session is answered once; "
                "its letter is kept at the site, for dp.combine"
            )
        require_places(self.path, self.key)
        if question == TERMS:
            return {"terms": {**self.terms, "keys": self._known_keys()}}
        handed = asked.get("keys")
        if self.sites and (not isinstance(handed, Mapping) or set(handed) != set(self.sites)):
            return self._refusal("it does not agree: the keys are not those of the sites it named")
        with TemporaryDirectory() as folder:
            cards = self._cards(handed, Place(folder))
            keys = keys_of(seat_of(self.protocol, self.site, self.key, cards))
            found = difference({**self.terms, "keys": keys}, asked)
            if found:
                return self._refusal(f"it does not agree: {found}")
            self.release(key=self.key, cards=cards)
        return {"letter": self.path.read_text(encoding="utf-8")}

    def _known_keys(self) -> dict[str, str]:
        if not self.sites:
            return keys_of(seat_of(self.protocol, self.site, self.key, self.cards))
        assert self.key is not None
        return {self.site: public_bytes(take_seat(self.key, self.site, ()).private).hex()}

    def _cards(self, handed: Any, folder: Place) -> Sequence[Path]:
        """Return one's own copies of the cards, or else those handed on."""
        if not self.sites:
            return self.cards
        cards = [folder / f"{place}.card" for place in range(len(handed))]
        for card, (name, public) in zip(cards, handed.items(), strict=True):
            write_card(card, name, str(public))
        return cards

    def _refusal(self, why: str) -> Answer:
        _LOG.warning("site %r refuses: %s", self.site, why)
        return {"site": self.site, "refusal": why}
