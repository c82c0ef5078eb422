"""An exchange of rounds by files: what sites send, what all learn, what a site keeps.

Every party runs the agreed mechanism itself, from the public answers of the rounds before. So a
site's message is a function of its rows, its noise, the agreed terms and those answers; nobody
sends it a question.

Theorem
    Theorem 70: whatever the answers are, the messages of all rounds have the guarantee of the
    plan, which is charged once, against the coalition of the protocol. Theorem 81: and so they
    have where rounds end without sites that are missing (:mod:`dpmodels.sites.quorum`).
Masks
    The terms under which two sites derive their masks state the round and the digest of the
    answers before, and each site makes one message a round. So no keystream is used twice.
State
    Beside its key a site keeps a record of the exchange and a copy of each message, both readable
    by its owner alone. The ledger admits one message a round, and its copy is written before it is
    shown: of several processes one makes the message, a repeated call sends the same bytes, and
    an older copy of the site's folder cannot make a message again.
"""

from __future__ import annotations

import math
import os
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from dpmodels.atomic_files import write_whole
from dpmodels.design.bound_rows import Bound, BoundRows
from dpmodels.errors import FrameError, RoundOpen
from dpmodels.frames.persons import SECRET_BYTES as ROWS_SECRET_BYTES
from dpmodels.mechanisms.covariance.rounds import Rounds
from dpmodels.mechanisms.protocol import AnyStrategy, PlanOfStrategy
from dpmodels.mechanisms.regression import Ellipsoid, NoisyGradients, Scores
from dpmodels.mechanisms.screening import ScreenCentred
from dpmodels.mechanisms.selection import NoisyCounts
from dpmodels.noise import NoiseOfSites, source
from dpmodels.noise.discrete import Part
from dpmodels.privacy.events import GaussianEvent
from dpmodels.released import AnyRelease
from dpmodels.request import canonical, difference
from dpmodels.sites.joint_rounds import fineness
from dpmodels.sites.key_file import Participant, Secrets, pair_key
from dpmodels.sites.message import (
    EVERYBODY,
    PRESENT,
    SiteMessage,
    answer_file,
    answers_in,
    copy_file,
    digest,
    message_file,
    messages_of,
    of_round,
    present_file,
    present_places,
    read_answer,
    read_message,
    require_answer_to,
    require_terms,
    seal,
    site_message,
    values_of,
)
from dpmodels.sites.packing import draw
from dpmodels.sites.protocol import Joint
from dpmodels.sites.quorum import Quorum
from dpmodels.sites.secure_sum import SecureSum
from dpmodels.sites.summing import WORDS, MaskedSum, Words, add, from_words, negative, to_words
from dpmodels.statistics import Statistic
from dpmodels.typing import Exact, Plain

# Mechanisms whose rounds are sums over rows to which an incomplete row adds nothing.
BY_FILES: Final = (Rounds, Ellipsoid, Scores, NoisyGradients, NoisyCounts, ScreenCentred)
PAUSE: Final = 0.2  # Seconds between two looks for a file, a choice


@dataclass(frozen=True)
class OpenRound:
    """A round of an exchange that waits for messages of sites.

    Parameters
    ----------
    session : str
        The name of the exchange.
    round : int
        From 1.
    missing : tuple of str
        The sites whose messages are not in the folder yet.

    Examples
    --------
    >>> print(OpenRound("trial 7", 3, ("B",)))
    Session 'trial 7', round 3: the message of site 'B' is missing. Nothing of this round
    is released; each site was charged once, at its start. Sites repeat dp.site_release,
    then repeat dp.combine.
    """

    session: str
    round: int
    missing: tuple[str, ...]

    def __str__(self) -> str:
        sites = ", ".join(map(repr, self.missing))
        what = "the message of site" if len(self.missing) == 1 else "the messages of sites"
        verb = "is" if len(self.missing) == 1 else "are"
        return (
            f"Session {self.session!r}, round {self.round}: {what} {sites} {verb} missing. Nothing "
            "of this round\nis released; each site was charged once, at its start. Sites repeat "
            "dp.site_release,\nthen repeat dp.combine."
        )


class Question(NamedTuple):
    """What a mechanism asks in one round."""

    basis: str  # A digest of the public facts that the sites' integers share
    part: Callable[[Secrets], Words]  # What a site sends: noisy and masked
    shape: tuple[int, int]  # Of the words


class Exchange(NoiseOfSites):
    """The rounds of an exchange as one of its parties has them."""

    def __init__(self, terms: Mapping[str, Plain], folder: Path, absent: AbsentRows, until: float):
        self.terms = terms
        self.folder = folder
        self.until = until  # Of the monotonic clock: how long to wait for other parties
        self.numbers = 0  # Sent by each site so far
        self._absent = absent
        self._number, self._last, self._simulated = 0, "", False
        self._missed: set[str] = set()  # Sites without a message in one of the rounds
        self._rounds: _Rounds | None = None

    def takes(self, strategy: AnyStrategy) -> bool:
        """Whether parties exchange the rounds of a strategy."""
        return isinstance(getattr(strategy, "base", strategy), BY_FILES)

    def bound(self, rows: Bound) -> Bound:
        """Return bound rows as they are read in every turn."""
        return rows

    def release(
        self, protocol: MaskedSum, strategy: AnyStrategy, statistic: Statistic, plan: PlanOfStrategy
    ) -> AnyRelease:
        """Release what all sites send, round by round; RoundOpen where an answer is missing."""
        release = self._released(protocol, strategy, statistic, plan)
        return replace(release, simulated=self._simulated)

    def _released(
        self, protocol: MaskedSum, strategy: AnyStrategy, statistic: Statistic, plan: PlanOfStrategy
    ) -> AnyRelease:
        names = tuple(sorted(self.terms["keys"]))
        self._statistic = statistic
        if not (isinstance(protocol, SecureSum) and protocol.in_rounds(strategy)):

            def part(secrets: Secrets) -> Words:
                return protocol.part(Joint(strategy, plan, names), statistic, secrets, source())

            _, (words, size) = protocol.shape(plan)
            answer = self.ask(Question(statistic.fingerprint.digest, part, (words, size)))
            total = values_of(answer, "words", (words, size))
            present = tuple(answer.terms.get(PRESENT, names))
            parts = [total, *(np.zeros_like(total) for _ in present[1:])]
            rows = [answer.rows or 0, *(0 for _ in present[1:])]
            if isinstance(protocol, SecureSum):
                absent = len(names) - len(present)
                return protocol.whole(Joint(strategy, plan, present), parts, rows, absent)
            return protocol.whole(Joint(strategy, plan, names), parts, rows)
        self._rounds = _Rounds(protocol, len(names), plan.events, statistic.fingerprint.digest)
        if plan.facts.adjacency.n_public and (n_absent := self._rows_of_others()):
            statistic = statistic + strategy.measure(self._absent(n_absent), plan)
        release = strategy.release(statistic, plan, self)
        return protocol.joined(release, names, self.numbers, self._number, self._missed)

    def answer(self, parts: Sequence[Part]) -> list[Exact]:
        """Return the public answer of one round."""
        assert self._rounds is not None
        question, finer = self._rounds.question(parts)
        self.numbers += question.shape[1]
        noisy = from_words(values_of(self.ask(question), "words", question.shape))
        if finer > 1:
            noisy = np.array([Fraction(int(step), finer) for step in noisy], dtype=object)
        ends = np.cumsum([exact.size for exact, _ in parts])
        sums = np.split(noisy, ends[:-1])
        return [one.reshape(exact.shape) for one, (exact, _) in zip(sums, parts, strict=True)]

    def ask(self, question: Question) -> SiteMessage:
        """Return the public answer of the next round, whose file it reads or makes."""
        self._number += 1
        position = {"basis": question.basis, "round": self._number, "answers": self._last}
        terms = {**self.terms, **position}
        file = answer_file(self.folder, self._number)
        if not os.path.lexists(file):
            self.open(question, terms)
        answer = read_answer(file, self._number, self._last)
        reason = difference(terms, of_round(answer.terms))
        if reason:
            raise FrameError(f"{str(file)!r} is not the answer of this round: {reason}")
        present = answer.terms.get(PRESENT, list(terms["keys"]))
        self._missed |= set(terms["keys"]) - set(present)
        self._last, self._simulated = answer.sha256, answer.simulated
        return answer

    @abstractmethod
    def open(self, question: Question, terms: dict[str, Plain]) -> None:
        """Do this party's part of a round, until its answer is there; RoundOpen if it is not."""

    @abstractmethod
    def _rows_of_others(self) -> int:
        """Return the public number of rows that are not here, as far as it is known."""


AbsentRows = Callable[[int], BoundRows]
"""From a public number to as many incomplete rows, which add nothing to any sum but their number.

Rows of other sites are replaced by these, so that a mechanism knows the number of all.
"""


class _Rounds(NamedTuple):
    """Public facts of a mechanism's rounds, and how sites add their noise."""

    protocol: SecureSum
    sites: int
    events: Sequence[GaussianEvent]
    basis: str

    def question(self, parts: Sequence[Part]) -> tuple[Question, int]:
        """Return the question of one round, and into how many steps each of the lattice is cut."""
        honest = self.protocol.honest(self.sites)
        finer = fineness(parts, self.sites, honest, self.events)
        # To six digits, as processors may round the last ones in different ways.
        sizes = [[exact.size, f"{scale:.6g}"] for exact, scale in parts]
        size = sum(exact.size for exact, _ in parts)

        def part(secrets: Secrets) -> Words:
            shares = [np.full(exact.size, scale * finer) for exact, scale in parts]
            noise = draw(np.concatenate(shares) / math.sqrt(self.sites), source())
            exact = np.concatenate([one.ravel().astype(object) * finer for one, _ in parts])
            sent = to_words(exact + noise.astype(object), WORDS)
            for mask in self.protocol.masks(secrets, sent.shape):
                add(sent, mask)
            return sent

        return Question(digest([self.basis, sizes, finer]), part, (WORDS, size)), finer


class SiteRounds(Exchange):
    """A site's: it makes its message of the first round that has no answer."""

    def __init__(self, site: SiteFiles, absent: AbsentRows, until: float) -> None:
        super().__init__(site.terms, site.folder, absent, until)
        self._site = site

    def bound(self, rows: Bound) -> Bound:
        """Return rows of which the same ones of a person count in every turn."""
        member = self._site.participant
        assert member is not None
        session = canonical(self.terms) + b", rows of persons"
        secret = pair_key(member.private, member.public[member.place], session)
        assert isinstance(rows, BoundRows)
        return rows.of(rows.rows.drawn_by(secret[:ROWS_SECRET_BYTES]))

    def open(self, question: Question, terms: dict[str, object]) -> None:
        """Make the message of the round, claim the round in the ledger, and keep a copy."""
        site, number = self._site, self._number
        if not copy_file(site.key, number).exists():
            assert site.participant is not None
            values = question.part(Secrets(site.participant, canonical(terms)))
            assert values.shape == question.shape
            if site.quorum is not None:
                values = site.quorum.conceal(values, site.participant, canonical(terms))
            rows = self._statistic.cross()[1] if number == 1 else 0
            sealed = seal(site_message(terms, site.name, rows, values, "words"))
            site.claim("round", number, sealed.sha256)
            write_whole(copy_file(site.key, number), sealed.content, private=True)
        site.show(number, self._last)
        # The number of all rows is known from the first answer: then the mechanism starts again.
        until = 0.0 if number == 1 else self.until
        if not site.answered(number, until):
            raise RoundOpen(f"round {number} has no answer yet")

    def ask(self, question: Question) -> SiteMessage:
        """Return the answer of the next round, which has to be to this site's message."""
        answer = super().ask(question)
        require_answer_to(self._site.key, self._number, answer, self._site.name)
        return answer

    def _rows_of_others(self) -> int:
        first = next(answers_in(self.folder), None)
        if first is None:
            return 0
        return (first.rows or 0) - (read_message(copy_file(self._site.key, 1)).rows or 0)


@dataclass(frozen=True, repr=False)
class SiteFiles:
    """What a site has on its disk, and its part in the exchange."""

    name: str
    terms: Mapping[str, Plain]  # With the keys of all
    participant: Participant | None  # None once the secret is removed
    key: Path
    folder: Path
    claim: Callable[[str, int, str], None]  # Of a round, with the digest of its message: once
    quorum: Quorum | None = None  # None where all sites have to answer

    def show(self, number: int, last: str) -> Path:
        """Show the message of a round that was made; its name and content are the same again."""
        copy = copy_file(self.key, number)
        if read_message(copy).terms["answers"] != last:
            raise FrameError(f"this site's message of round {number} followed other answers")
        return _shown(copy, message_file(self.folder, number, self.name))

    def answered(self, number: int, until: float) -> bool:
        """Wait for the answer of a round until a time of the monotonic clock; whether it came."""
        while not os.path.lexists(answer_file(self.folder, number)):
            if self.quorum is not None and os.path.lexists(present_file(self.folder, number)):
                self._show_opening(self.quorum, number)
            if time.monotonic() >= until:
                return False
            time.sleep(PAUSE)
        return True

    def _show_opening(self, quorum: Quorum, number: int) -> None:
        file, copy = present_file(self.folder, number), copy_file(self.key, number, "opening")
        if not copy.exists():
            closing, sent = read_message(file), read_message(copy_file(self.key, number))
            places = present_places(quorum, closing, sent.terms)
            if self.participant is None or self.participant.place not in places:
                return
            shares = values_of(closing, "words", (len(places), *quorum.shares_shape))
            opened = quorum.opened(shares, places, self.participant, canonical(sent.terms))
            sealed = seal(site_message(closing.terms, self.name, 0, opened, "words"))
            self.claim("opening", number, sealed.sha256)
            write_whole(copy, sealed.content, private=True)
        _shown(copy, message_file(self.folder, number, self.name, "opening"))


def _shown(copy: Path, target: Path) -> Path:
    if not (target.is_file() and target.read_bytes() == copy.read_bytes()):
        write_whole(target, copy.read_bytes())
    return target


class AggregatorRounds(Exchange):
    """That of whoever combines: it adds the messages of a round and writes the answer."""

    def __init__(
        self,
        terms: Mapping[str, Plain],
        folder: Path,
        absent: AbsentRows,
        until: float,
        quorum: Quorum | None = None,
        without: Sequence[str] = (),
    ):
        super().__init__(terms, folder, absent, until)
        self._quorum, self._without = quorum, without
        self._first = messages_of(folder, 1)
        if quorum is not None and os.path.lexists(present_file(folder, 1)):
            present = read_message(present_file(folder, 1)).terms.get(PRESENT, [])
            self._first = {name: self._first[name] for name in present if name in self._first}

    def open(self, question: Question, terms: dict[str, Plain]) -> None:
        """Write the answer of a round; RoundOpen if a message is missing."""
        quorum = self._quorum
        sites = sorted(terms["keys"])
        if quorum is not None and os.path.lexists(present_file(self.folder, self._number)):
            closing = read_message(present_file(self.folder, self._number))
            sites = [sites[place] for place in present_places(quorum, closing, terms)]
        messages = self._gathered("message", sites, terms)
        total = np.zeros(question.shape, dtype=np.uint64)
        if quorum is None:
            for message in messages:
                add(total, values_of(message, "words", question.shape))
        else:
            terms = {**terms, PRESENT: [message.site for message in messages]}
            total = self._opened(quorum, messages, question.shape, terms)
        rows = sum(message.rows or 0 for message in messages)
        self._write(answer_file(self.folder, self._number), terms, rows, total, messages)

    def _opened(
        self,
        quorum: Quorum,
        messages: Sequence[SiteMessage],
        shape: tuple[int, int],
        terms: dict[str, Plain],
    ) -> Words:
        """Say which sites sent a message, and add these once they opened what lies on the sum."""
        names, length = sorted(terms["keys"]), math.prod(shape)
        size = length + math.prod(quorum.shares_shape)
        values = [values_of(message, "words", (size,)) for message in messages]
        shares = np.stack([words[length:].reshape(quorum.shares_shape) for words in values])
        self._write(present_file(self.folder, self._number), terms, 0, shares, messages)
        places = [names.index(site) for site in terms[PRESENT]]
        opening = quorum.opening_shape(places)
        given = {
            names.index(message.site): values_of(message, "words", opening)
            for message in self._gathered("opening", terms[PRESENT], terms)
        }
        total = negative(quorum.pads(given, places, shape))
        for words in values:
            add(total, words[:length].reshape(shape))
        return total

    def _write(
        self,
        file: Path,
        terms: dict[str, Plain],
        rows: int,
        values: Words,
        messages: Sequence[SiteMessage],
    ) -> None:
        """Write a file to all sites: the same messages give the same one, whoever adds them."""
        numbers = digest([message.number for message in messages])
        answer = site_message(terms, EVERYBODY, rows, values, "words", numbers)
        content = seal(replace(answer, simulated=messages[0].simulated)).content
        if not os.path.lexists(file):
            write_whole(file, content)
        elif file.read_bytes() != content:
            raise FrameError(f"{str(file)!r} is not of the messages of this round: remove it")

    def _rows_of_others(self) -> int:
        first = next(answers_in(self.folder), None)
        rows = self._first.values() if first is None else [first]
        return sum(message.rows or 0 for message in rows)

    def _gathered(
        self, kind: str, sites: Sequence[str], terms: dict[str, object]
    ) -> list[SiteMessage]:
        """Read the messages of this round, sorted by site; RoundOpen if too many are missing."""
        while True:
            first = self._number == 1 and kind == "message"
            messages = self._first if first else messages_of(self.folder, self._number, kind)
            strange = sorted(set(messages) - set(self.terms["keys"]))
            if strange:
                raise FrameError(f"site {strange[0]!r} is not one of the sites that agreed on keys")
            missing = tuple(site for site in sites if site not in messages)
            read = [messages[site] for site in sites if site in messages]
            for message in read[:1]:
                require_terms(terms, message)
            if not missing or self._suffice(kind, len(read), missing):
                return read
            if first or time.monotonic() >= self.until:
                raise RoundOpen(OpenRound(self.terms["session"], self._number, missing))
            time.sleep(PAUSE)

    def _suffice(self, kind: str, number: int, missing: Sequence[str]) -> bool:
        if self._quorum is None or number < self._quorum.needed:
            return False
        return kind == "opening" or set(missing) <= set(self._without)
