"""Exchanges of rounds: a site's turn, and that of whoever adds up the messages of a round."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeGuard

import numpy as np

from dpmodels.atomic_files import discard
from dpmodels.design.bound_rows import BoundRows
from dpmodels.errors import ArgumentError, FrameError, LedgerError, RoundOpen, quoted
from dpmodels.models.release import run_release
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.options import current_settings
from dpmodels.privacy import Charge, Event, Ledger, charge, charge_of, charge_once
from dpmodels.request import difference
from dpmodels.sites import MessageProtocol, OpenRound, Parties, SecureSum, key_file
from dpmodels.sites.exchange import PAUSE, AggregatorRounds, SiteFiles, SiteRounds
from dpmodels.sites.message import (
    PRESENT,
    SiteMessage,
    answers_in,
    copy_file,
    digest,
    key_claim,
    message_file,
    messages_of,
    read_message,
    require_answer_to,
)
from dpmodels.sites.protocol import Names
from dpmodels.sites.quorum import Quorum
from dpmodels.typing import AnyPath, Option, Plain
from dpmodels.version import __version__

Terms = dict[str, Plain]
# Terms that differ between the rounds of an exchange.
OF_ROUNDS: Final = ("basis", "round", "answers", PRESENT)


def exchange_terms(terms: Terms) -> Terms:
    """Return the terms of a site for an exchange: all have the same version and clipping option."""
    is_counting = current_settings().clipping is not False
    return {**terms, "version": __version__, "clipping": is_counting}


def is_exchange(path: object) -> TypeGuard[str | os.PathLike[str]]:
    """Whether a path is the folder of an exchange, and not the file of one message."""
    return isinstance(path, str | os.PathLike) and os.path.isdir(path)


@dataclass(frozen=True, repr=False)
class SiteExchange:
    """A site's part of an exchange: its rows, and the terms with the keys of all."""

    spec: VerbSpec[object]
    rows: object
    protocol: MessageProtocol
    terms: Terms
    site: str
    participant: key_file.Participant | None  # None once all rounds are answered
    key: Path
    ledger: Ledger
    folder: Path

    @property
    def claims(self) -> tuple[tuple[str, str], ...]:
        """What the ledger lets the site use once: its name in the session, and its key."""
        session = ("session", f"{self.terms['session']}, site {self.site}")
        return session, key_claim(self.terms, self.site)

    def turns(self, until: float) -> Path:
        """Send messages until an answer is missing; return the path of the last.

        FrameError if files of others do not belong to the exchange; it says what was charged.
        """
        try:
            self._run(until)
        except FrameError as error:
            entry = charge_of(self.ledger, self.claims)
            charged = "Nothing was charged"
            if entry is not None:
                charged = f"The exchange stays charged once, at its start: {entry.describe()}"
            raise FrameError(f"{error}. {charged}") from None
        rounds = range(sum(1 for _ in answers_in(self.folder)) + 1, 0, -1)
        sent = next(number for number in rounds if copy_file(self.key, number).exists())
        return message_file(self.folder, sent, self.site)

    def _run(self, until: float) -> None:
        """Take turns as answers arrive; remove the secret once all rounds are answered."""
        files = SiteFiles(
            *(self.site, self.terms, self.participant, self.key, self.folder, self._claim),
            quorum_of(self.protocol, self.terms),
        )
        awaited = True
        while awaited:
            answers = list(answers_in(self.folder))
            number = len(answers) + 1
            # The last names all before; of the first it is known who takes part.
            for at in sorted({1, number - 1} & set(range(1, number))):
                require_answer_to(self.key, at, answers[at - 1], self.site)
            if copy_file(self.key, number).exists():
                files.show(number, answers[-1].sha256 if answers else "")
            elif self.participant is None or self._computed(files, self.participant, until):
                key_file.wipe(self.key, self.site)
                return
            awaited = files.answered(number, until)

    def _computed(self, files: SiteFiles, member: key_file.Participant, until: float) -> bool:
        """Run the mechanism on the answers so far; whether all its rounds are answered."""
        rounds = SiteRounds(files, partial(absent_rows, self.spec), until)
        holders = Parties((self.site,), (self.rows,), self.protocol, member.names, exchange=rounds)
        try:
            run_release(self.spec, holders, "auto", self.ledger, self._charge)
        except RoundOpen:
            return False
        return True

    def _charge(self, ledger: Ledger, events: Iterable[Event], **options: Option) -> Charge:
        """Charge for all rounds at the first, and record what the key is used for."""
        if os.path.lexists(key_file.used_record(self.key)):
            return charge_once(ledger, events, claims=self.claims, **options)
        _require_same_start(self.folder, self.terms)
        key_file.use_up(
            self.key, key_file.Used(self.site, self.terms["session"], "", digest(self.terms))
        )
        try:
            return charge(ledger, events, claims=self.claims, **options)
        except LedgerError:
            discard(key_file.used_record(self.key))
            raise

    def _claim(self, kind: str, number: int, sha256: str) -> None:
        """Record that the message of a round was made, or its opening, charged before."""
        claim = kind, f"{self.terms['keys'][self.site]} {number}"
        label = f"{'message' if kind == 'round' else kind} of round {number}"
        try:
            entry = self.ledger.charge(
                (),
                adjacency=self.ledger.adjacency,
                label=f"{label}, charged before",
                claims=(claim,),
            )
        except LedgerError:
            raise FrameError(
                f"the {label} was made before, but its copy is not beside the "
                "key: the process was killed while it wrote it, or the folder of the key is an "
                "older copy. The exchange cannot go on: start another with new keys"
            ) from None
        self.ledger.released(entry, sha256)


def site_exchange(
    spec: VerbSpec[object],
    rows: object,
    protocol: MessageProtocol,
    terms: Terms,
    *,
    site: str,
    key: AnyPath | None,
    ledger: Ledger | None,
    folder: AnyPath,
    participant: Callable[..., key_file.Participant | None],
) -> SiteExchange:
    """Return a site's part of an exchange that starts, goes on or is over.

    `participant` reads the keys; its argument `started` says whether the exchange has.
    """
    if not protocol.keyed or key is None or ledger is None:
        raise ArgumentError(
            f"{str(folder)!r} is a folder, for an exchange of rounds, which needs key=, cards=, "
            "ledger= and protocol='secure_sum' or 'cape'; for one message give a new file"
        )
    key_path = Path(os.path.realpath(key))
    if Path(os.path.realpath(folder)) in key_path.parents:
        raise ArgumentError(
            f"the key {str(key)!r} lies in the folder of the exchange, which all sites read: keep "
            "it in a folder of this site"
        )
    used = key_file.read_used(key)
    if used is not None and key_file.is_wiped(key) and copy_file(key, 1).is_file():
        agreed, member = read_message(copy_file(key, 1)).terms["keys"], None
    else:
        member = participant(started=used is not None)
        assert member is not None
        agreed = member.keys
    terms = {**exchange_terms(terms), "keys": agreed}
    if used is not None and (used.site, used.partial, used.sha256) != (site, "", digest(terms)):
        raise FrameError(
            f"the key {str(key)!r} was used for a message or an exchange of other terms; write the "
            "same terms, or make a new key with dp.site_key"
        )
    return SiteExchange(spec, rows, protocol, terms, site, member, key_path, ledger, Path(folder))


def _require_same_start(folder: Path, terms: Terms) -> None:
    """Refuse terms that a site before has not, before anything is charged."""
    for name, message in messages_of(folder, 1).items():
        first = {word: value for word, value in message.terms.items() if word not in OF_ROUNDS}
        reason = difference(terms, first)
        if reason:
            raise FrameError(f"site {name!r} started with other terms: {reason}")


# The party that combines.


def combine_rounds(
    folder: Path,
    terms: Terms,
    spec: VerbSpec[object],
    protocol: MessageProtocol,
    until: float,
    without: Sequence[str] = (),
) -> object:
    """Write the answers of all rounds whose messages are there; return the result or OpenRound."""
    if terms["version"] != __version__:
        raise FrameError(
            f"the sites use dpmodels {terms['version']}, this is {__version__}: all parties of an "
            "exchange use the same version"
        )
    names = protocol.participants(tuple(sorted(terms["keys"])))
    quorum = quorum_of(protocol, terms)
    rounds = AggregatorRounds(
        terms, folder, partial(absent_rows, spec), until, quorum, _given_up(without, names, quorum)
    )
    holders = Parties(("",), (_incomplete(spec, 0),), protocol, names, exchange=rounds)
    try:
        return run_release(
            spec, holders, "auto", None, lambda *_, **__: Charge(note="kept by each site")
        )
    except RoundOpen as error:
        return error.args[0]
    except FrameError as error:
        raise FrameError(
            f"{error}. Nothing of this round is released; each site was charged once, at its start"
        ) from None


def quorum_of(protocol: MessageProtocol, terms: Terms) -> Quorum | None:
    """Return how many of the sites that agreed on keys must answer; None where all must."""
    if not (isinstance(protocol, SecureSum) and protocol.dropouts):
        return None
    sites = len(terms["keys"])
    return Quorum(sites, sites - protocol.dropouts)


def _given_up(without: Sequence[str], names: Names, quorum: Quorum | None) -> Sequence[str]:
    """Return the sites that nobody waits for; refuse more than the noise allows for."""
    strange = [name for name in without if name not in names]
    allowed = 0 if quorum is None else quorum.sites - quorum.needed
    if strange or len(set(without)) > allowed:
        raise ArgumentError(
            f"without={quoted(list(without))}: expected at most {allowed} of the sites "
            f"{', '.join(map(repr, names))}, as protocol=SecureSum(dropouts={allowed}) allows for"
        )
    return without


def absent_rows(spec: VerbSpec[object], number: int) -> BoundRows:
    """Return the rows of other sites as one incomplete row that counts so many times.

    With persons they are places that no row takes.
    """
    has_persons = spec.request.adjacency.person is not None
    bound: BoundRows = spec.private.bind(_incomplete(spec, 0 if has_persons else 1))
    rows = bound.rows
    return bound.of(rows.beside(number) if has_persons else rows.standing(number))


def _incomplete(spec: VerbSpec[object], number: int) -> dict[str, object]:
    request = spec.request
    person = request.adjacency.person
    names = [*request.codebook, *([] if person is None else [person])]
    return {name: np.broadcast_to(np.nan, number) for name in names}


def terms_in(folder: Path, until: float) -> Terms:
    """Return the terms of an exchange, without those of a round; wait for the first message."""
    messages: list[SiteMessage] = []
    while not messages:
        answer = next(answers_in(folder), None)
        messages = list(messages_of(folder, 1).values()) if answer is None else [answer]
        if not messages and time.monotonic() >= until:
            raise FrameError(
                f"the folder {str(folder)!r} has no message of round 1: each site writes it with "
                "dp.site_release, whose path is the folder"
            )
        time.sleep(0 if messages else PAUSE)
    if "round" not in messages[0].terms:
        raise FrameError(f"the folder {str(folder)!r} has messages that are of no exchange")
    return {word: value for word, value in messages[0].terms.items() if word not in OF_ROUNDS}


def repeated(step: Callable[[], object], until: float) -> object:
    """Repeat a step while it leaves a round open, until a time of the monotonic clock."""
    result = step()
    while isinstance(result, OpenRound) and time.monotonic() < until:
        time.sleep(PAUSE)
        result = step()
    return result
