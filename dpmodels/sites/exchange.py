"""An exchange of rounds by files: what sites send, what all learn, what a site keeps.

Every party runs the agreed mechanism itself, from the public answers of the rounds before. So a
site's message is a function of its rows, its noise, the agreed terms and those answers; nobody
sends it a question.

Theorem
    Theorem 70: whatever the answers are, the messages of all rounds have the guarantee of the
    plan, which is charged once, against the coalition of the protocol.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from dpmodels.atomic_files import discard, publish, stage, write_whole
from dpmodels.errors import FrameError, RoundOpen, shorten
from dpmodels.mechanisms.covariance.rounds import Rounds
from dpmodels.mechanisms.protocol import AnyStrategy
from dpmodels.mechanisms.regression import Ellipsoid, NoisyGradients, Scores
from dpmodels.noise import NoiseOfSites, source
from dpmodels.noise.addition import Part
from dpmodels.privacy import adjacency
from dpmodels.released import AnyRelease
from dpmodels.request import canonical, difference
from dpmodels.sites.joint_rounds import fineness, released
from dpmodels.sites.key_file import Participant
from dpmodels.sites.message import (
    SiteMessage,
    digest,
    read_message,
    require_same_terms,
    seal,
    site_message,
    values_of,
)
from dpmodels.sites.protocol import Names, draw
from dpmodels.sites.secure_sum import SecureSum
from dpmodels.sites.summing import WORDS, MaskedSum, Words, add, from_words, to_words
from dpmodels.statistics import Statistic
from dpmodels.typing import AnyPath

# Mechanisms whose rounds are sums over rows to which an incomplete row adds nothing.
BY_FILES: Final[tuple[type[Any], ...]] = (Rounds, Ellipsoid, Scores, NoisyGradients)
PAUSE: Final = 0.2  # Seconds between two looks for a file, a choice
# The site of an answer: sites have names that are not empty.
EVERYBODY = ""


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


def message_file(folder: AnyPath, number: int, site: str) -> Path:
    """Return where a site's message of a round is, in the folder of all."""
    return Path(folder) / f"message-{number}-{quote(site, safe='')}.json"


def answer_file(folder: AnyPath, number: int) -> Path:
    """Return where the public answer of a round is."""
    return Path(folder) / f"answer-{number}.json"


def copy_file(key: AnyPath, number: int) -> Path:
    """Return where a site keeps its message of a round, beside its key, links resolved."""
    key_path = Path(os.path.realpath(key))
    return key_path.with_name(f"{key_path.name}.round-{number}")


def answers_in(folder: AnyPath) -> Iterator[SiteMessage]:
    """Read the answers, each checked to follow the one before."""
    last, number = "", 1
    while os.path.lexists(answer_file(folder, number)):
        answer = _answer(answer_file(folder, number), number, last)
        yield answer
        last, number = seal(answer).sha256, number + 1


def write_answer(folder: AnyPath, text: str, key: AnyPath) -> None:
    """Write the answer to this site's last message, unless the folder has it already."""
    content, last, number = text.encode(errors="replace"), "", 1
    for answer in answers_in(folder):
        if answer_file(folder, number).read_bytes() == content:
            return
        last, number = seal(answer).sha256, number + 1
    partial = stage(answer_file(folder, number), content)
    try:
        require_answer_to(key, number, _answer(partial, number, last))
        publish(partial, answer_file(folder, number))
    finally:
        discard(partial)


def _answer(file: Path, number: int, last: str) -> SiteMessage:
    answer = read_message(file)
    stated = (answer.site, answer.terms.get("round"), answer.terms.get("answers"))
    if stated != (EVERYBODY, number, last):
        raise FrameError(
            f"{str(file)!r} is not the answer of round {number} that follows those before it: "
            "another exchange wrote it, or one of them was replaced"
        )
    return answer


class Question(NamedTuple):
    """What a mechanism asks in one round."""

    basis: str  # A digest of the public facts that the sites' integers share
    part: Callable[[Participant, bytes], Words]  # What a site sends: noisy and masked
    shape: tuple[int, int]  # Of the words


class Exchange(NoiseOfSites):
    """The rounds of an exchange as one of its parties has them."""

    def __init__(self, terms: Mapping[str, Any], folder: Path, absent: AbsentRows, until: float):
        self.terms = terms
        self.folder = folder
        self.until = until  # Of the monotonic clock: how long to wait for other parties
        self.numbers = 0  # Sent by each site so far
        self._absent = absent
        self._number, self._last, self._simulated = 0, "", False
        self._rounds: _Rounds | None = None

    def takes(self, strategy: AnyStrategy) -> bool:
        """Whether parties exchange the rounds of a strategy."""
        # An incomplete row has no person.
        person = adjacency(self.terms["adjacency"]).person
        return person is None and isinstance(getattr(strategy, "base", strategy), BY_FILES)

    def release(
        self, protocol: MaskedSum, strategy: AnyStrategy, statistic: Statistic, plan: Any
    ) -> AnyRelease:
        """Release what all sites send, round by round; RoundOpen where an answer is missing."""
        release = self._released(protocol, strategy, statistic, plan)
        return replace(release, simulated=self._simulated)

    def _released(
        self, protocol: MaskedSum, strategy: AnyStrategy, statistic: Statistic, plan: Any
    ) -> AnyRelease:
        names = tuple(sorted(self.terms["keys"]))
        self._statistic = statistic
        if not (isinstance(protocol, SecureSum) and protocol.in_rounds(strategy)):
            return self._in_one_round(protocol, strategy, names, plan)
        self._rounds = _Rounds(protocol, len(names), plan.events, statistic.fingerprint.digest)
        statistics = [statistic]
        if plan.facts.adjacency.n_public and (n_absent := self._rows_of_others()):
            statistics.append(strategy.measure(self._absent(n_absent), plan))
        release = released(strategy, statistics, plan, self)
        return protocol.joined(release, names, self.numbers, self._number)

    def _in_one_round(
        self, protocol: MaskedSum, strategy: AnyStrategy, names: Names, plan: Any
    ) -> AnyRelease:
        statistic = self._statistic

        def part(participant: Participant, session: bytes) -> Words:
            return protocol.part(strategy, statistic, plan, participant, session, source())

        _, (words, size) = protocol.shape(plan)
        answer = self.ask(Question(statistic.fingerprint.digest, part, (words, size)))
        total = values_of(answer, "words", (words, size))
        parts = [total, *(np.zeros_like(total) for _ in names[1:])]
        rows = [answer.rows or 0, *(0 for _ in names[1:])]
        return protocol.whole(strategy, parts, names, rows, plan)

    def answer(self, parts: Sequence[Part]) -> list[NDArray[Any]]:
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
        answer = _answer(file, self._number, self._last)
        reason = difference(terms, answer.terms)
        if reason:
            raise FrameError(f"{str(file)!r} is not the answer of this round: {reason}")
        self._last, self._simulated = seal(answer).sha256, answer.simulated
        return answer

    @abstractmethod
    def open(self, question: Question, terms: dict[str, Any]) -> None:
        """Do this party's part of a round, until its answer is there; RoundOpen if it is not."""

    @abstractmethod
    def _rows_of_others(self) -> int:
        """Return the public number of rows that are not here, as far as it is known."""


AbsentRows = Callable[[int], Any]
"""From a public number to as many incomplete rows, which add nothing to any sum but their number.

Rows of other sites are replaced by these, so that a mechanism knows the number of all.
"""


class _Rounds(NamedTuple):
    """Public facts of a mechanism's rounds, and how sites add their noise."""

    protocol: SecureSum
    sites: int
    events: tuple[Any, ...]
    basis: str

    def question(self, parts: Sequence[Part]) -> tuple[Question, int]:
        """Return the question of one round, and into how many steps each of the lattice is cut."""
        honest = self.protocol.honest(self.sites)
        finer = fineness(parts, self.sites, honest, self.events)
        # To six digits, as processors may round the last ones in different ways.
        sizes = [[exact.size, f"{scale:.6g}"] for exact, scale in parts]
        size = sum(exact.size for exact, _ in parts)

        def part(participant: Participant, session: bytes) -> Words:
            return self._sent(parts, finer, participant, session)

        return Question(digest([self.basis, sizes, finer]), part, (WORDS, size)), finer

    def _sent(
        self, parts: Sequence[Part], finer: int, participant: Participant, session: bytes
    ) -> Words:
        """Add this site's noise and masks to its integers."""
        shares = [np.full(exact.size, scale * finer) for exact, scale in parts]
        noise = draw(np.concatenate(shares) / math.sqrt(self.sites), source())
        exact = np.concatenate([one.ravel().astype(object) * finer for one, _ in parts])
        sent = to_words(exact + noise.astype(object), WORDS)
        for mask in self.protocol.masks(
            participant.place, participant.private, participant.public, session, sent.shape
        ):
            add(sent, mask)
        return sent


class SiteRounds(Exchange):
    """A site's: it makes its message of the first round that has no answer."""

    def __init__(self, site: SiteFiles, absent: AbsentRows, until: float) -> None:
        super().__init__(site.terms, site.folder, absent, until)
        self._site = site

    def open(self, question: Question, terms: dict[str, Any]) -> None:
        """Make the message of the round, claim the round in the ledger, and keep a copy."""
        site, number = self._site, self._number
        if not copy_file(site.key, number).exists():
            assert site.participant is not None
            values = question.part(site.participant, canonical(terms))
            assert values.shape == question.shape
            rows = self._statistic.cross()[1] if number == 1 else 0
            sealed = seal(site_message(terms, site.name, rows, values, "words"))
            site.claim(number, sealed.sha256)
            write_whole(copy_file(site.key, number), sealed.content, private=True)
        site.show(number, self._last)
        # The number of all rows is known from the first answer: then the mechanism starts again.
        until = 0.0 if number == 1 else self.until
        if not appears(answer_file(self.folder, number), until):
            raise RoundOpen(f"round {number} has no answer yet")

    def ask(self, question: Question) -> SiteMessage:
        """Return the answer of the next round, which has to be to this site's message."""
        answer = super().ask(question)
        require_answer_to(self._site.key, self._number, answer)
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
    terms: Mapping[str, Any]  # With the keys of all
    participant: Participant | None  # None once the secret is removed
    key: Path
    folder: Path
    claim: Callable[[int, str], None]  # Of a round, with the digest of its message: once

    def show(self, number: int, last: str) -> Path:
        """Show the message of a round that was made; its name and content are the same again."""
        copy, target = copy_file(self.key, number), message_file(self.folder, number, self.name)
        if read_message(copy).terms["answers"] != last:
            raise FrameError(f"this site's message of round {number} followed other answers")
        if not (target.is_file() and target.read_bytes() == copy.read_bytes()):
            write_whole(target, copy.read_bytes())
        return target


def appears(file: Path, until: float) -> bool:
    """Wait for a file of another party; whether it came before a time of the monotonic clock."""
    while not os.path.lexists(file):
        if time.monotonic() >= until:
            return False
        time.sleep(PAUSE)
    return True


def require_answer_to(key: AnyPath, number: int, answer: SiteMessage) -> None:
    """Refuse an answer whose terms are not those of this site's message of the round."""
    copy = copy_file(key, number)
    if not copy.is_file():
        raise FrameError(
            f"round {number} was answered without a message of this site: its key was copied, or "
            f"{copy.name!r} beside it was removed"
        )
    reason = difference(read_message(copy).terms, answer.terms)
    if reason:
        raise FrameError(f"the answer of round {number} is not to this site's message: {reason}")


class AggregatorRounds(Exchange):
    """That of whoever combines: it adds the messages of a round and writes the answer."""

    def __init__(self, terms: Mapping[str, Any], folder: Path, absent: AbsentRows, until: float):
        super().__init__(terms, folder, absent, until)
        self._first = messages_of(folder, 1)

    def open(self, question: Question, terms: dict[str, Any]) -> None:
        """Write the answer of a round; RoundOpen if a message is missing."""
        messages, missing = self._messages()
        while missing and self._number > 1 and time.monotonic() < self.until:
            time.sleep(PAUSE)
            messages, missing = self._messages()
        for message in messages[:1]:
            require_terms(terms, message)
        if missing:
            raise RoundOpen(OpenRound(self.terms["session"], self._number, missing))
        total = np.zeros(question.shape, dtype=np.uint64)
        for message in messages:
            add(total, values_of(message, "words", question.shape))
        rows = sum(message.rows or 0 for message in messages)
        # The same messages give the same answer, whoever adds them.
        numbers = digest([message.number for message in messages])
        answer = site_message(terms, EVERYBODY, rows, total, "words", numbers)
        answer = replace(answer, simulated=messages[0].simulated)
        write_whole(answer_file(self.folder, self._number), seal(answer).content)

    def _rows_of_others(self) -> int:
        first = next(answers_in(self.folder), None)
        rows = self._first.values() if first is None else [first]
        return sum(message.rows or 0 for message in rows)

    def _messages(self) -> tuple[list[SiteMessage], tuple[str, ...]]:
        """Read the messages of this round, sorted by site, and name the sites without one."""
        sites = sorted(self.terms["keys"])
        messages = self._first if self._number == 1 else messages_of(self.folder, self._number)
        strange = sorted(set(messages) - set(sites))
        if strange:
            raise FrameError(f"site {strange[0]!r} is not one of the sites that agreed on keys")
        missing = tuple(site for site in sites if site not in messages)
        return [messages[site] for site in sites if site in messages], missing


def messages_of(folder: AnyPath, number: int) -> dict[str, SiteMessage]:
    """Read the messages of one round by site; refuse those that do not belong together."""
    files = sorted(Path(folder).glob(f"message-{number}-*.json"))
    messages = [read_message(file) for file in files]
    for file, message in zip(files, messages, strict=True):
        if file != message_file(folder, number, message.site):
            raise FrameError(
                f"{str(file)!r} is of site {shorten(message.site)!r}, whose message of the round "
                f"is {message_file(folder, number, message.site).name!r}: remove what is no message"
            )
    if messages:
        require_same_terms(messages, [str(file) for file in files])
    return {message.site: message for message in messages}


def require_terms(terms: Mapping[str, Any], message: SiteMessage) -> None:
    """Refuse a message of other terms, or of integers on another lattice."""
    reason = difference({**terms, "basis": message.terms["basis"]}, message.terms)
    if reason:
        raise FrameError(f"the messages are not of this round: {reason}")
    if message.terms["basis"] != terms["basis"]:
        raise FrameError(
            "the sites wrote integers on another lattice than these terms give: they used "
            "another version of dpmodels"
        )
