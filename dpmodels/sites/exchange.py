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
from dpmodels.mechanisms.protocol import AnyStrategy, PlanOfStrategy
from dpmodels.mechanisms.regression import Ellipsoid, NoisyGradients, Scores
from dpmodels.noise import NoiseOfSites, source
from dpmodels.noise.addition import Part
from dpmodels.privacy import adjacency
from dpmodels.released import AnyRelease
from dpmodels.request import canonical, difference
from dpmodels.sites.joint_rounds import fineness, released
from dpmodels.sites.key_file import Participant
from dpmodels.sites.message import (
    PRESENT,
    SiteMessage,
    digest,
    read_message,
    require_same_terms,
    seal,
    site_message,
    values_of,
)
from dpmodels.sites.protocol import Names, draw
from dpmodels.sites.quorum import Quorum
from dpmodels.sites.secure_sum import SecureSum
from dpmodels.sites.summing import WORDS, MaskedSum, Words, add, from_words, negative, to_words
from dpmodels.statistics import Statistic
from dpmodels.typing import AnyPath, Exact, Plain

# Mechanisms whose rounds are sums over rows to which an incomplete row adds nothing.
BY_FILES: Final[tuple[type[object], ...]] = (Rounds, Ellipsoid, Scores, NoisyGradients)
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


def message_file(folder: AnyPath, number: int, site: str, kind: str = "message") -> Path:
    """Return where a site's message of a round is, or its opening, in the folder of all."""
    return Path(folder) / f"{kind}-{number}-{quote(site, safe='')}.json"


def answer_file(folder: AnyPath, number: int) -> Path:
    """Return where the public answer of a round is."""
    return Path(folder) / f"answer-{number}.json"


def present_file(folder: AnyPath, number: int) -> Path:
    """Return where whoever combines says which sites sent a message of a round."""
    return Path(folder) / f"present-{number}.json"


def copy_file(key: AnyPath, number: int, kind: str = "round") -> Path:
    """Return where a site keeps its message of a round, beside its key, links resolved."""
    key_path = Path(os.path.realpath(key))
    return key_path.with_name(f"{key_path.name}.{kind}-{number}")


def answers_in(folder: AnyPath) -> Iterator[SiteMessage]:
    """Read the answers, each checked to follow the one before."""
    last, number = "", 1
    while os.path.lexists(answer_file(folder, number)):
        answer = _answer(answer_file(folder, number), number, last)
        yield answer
        last, number = answer.sha256, number + 1


def write_answer(folder: AnyPath, text: str, key: AnyPath) -> None:
    """Write the answer to this site's last message, unless the folder has it already."""
    content, last, number = text.encode(errors="replace"), "", 1
    for answer in answers_in(folder):
        if answer_file(folder, number).read_bytes() == content:
            return
        last, number = answer.sha256, number + 1
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


def of_round(terms: Mapping[str, Plain]) -> dict[str, Plain]:
    """Return the terms that all files of a round state."""
    return {word: value for word, value in terms.items() if word != PRESENT}


class Question(NamedTuple):
    """What a mechanism asks in one round."""

    basis: str  # A digest of the public facts that the sites' integers share
    part: Callable[[Participant, bytes], Words]  # What a site sends: noisy and masked
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
        # An incomplete row has no person.
        person = adjacency(self.terms["adjacency"]).person
        return person is None and isinstance(getattr(strategy, "base", strategy), BY_FILES)

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
            return self._in_one_round(protocol, strategy, names, plan)
        self._rounds = _Rounds(protocol, len(names), plan.events, statistic.fingerprint.digest)
        statistics = [statistic]
        if plan.facts.adjacency.n_public and (n_absent := self._rows_of_others()):
            statistics.append(strategy.measure(self._absent(n_absent), plan))
        release = released(strategy, statistics, plan, self)
        return protocol.joined(release, names, self.numbers, self._number, self._missed)

    def _in_one_round(
        self, protocol: MaskedSum, strategy: AnyStrategy, names: Names, plan: PlanOfStrategy
    ) -> AnyRelease:
        statistic = self._statistic

        def part(participant: Participant, session: bytes) -> Words:
            return protocol.part(strategy, statistic, plan, participant, session, source())

        _, (words, size) = protocol.shape(plan)
        answer = self.ask(Question(statistic.fingerprint.digest, part, (words, size)))
        total = values_of(answer, "words", (words, size))
        present = tuple(name for name in names if name not in self._missed)
        parts = [total, *(np.zeros_like(total) for _ in present[1:])]
        rows = [answer.rows or 0, *(0 for _ in present[1:])]
        if isinstance(protocol, SecureSum):
            return protocol.whole(strategy, parts, present, rows, plan, len(self._missed))
        return protocol.whole(strategy, parts, names, rows, plan)

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
        answer = _answer(file, self._number, self._last)
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

    def open(self, question: Question, terms: dict[str, Plain]) -> None:
        """Make the message of the round, claim the round in the ledger, and keep a copy."""
        site, number = self._site, self._number
        if not copy_file(site.key, number).exists():
            assert site.participant is not None
            values = question.part(site.participant, canonical(terms))
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
        """Give this site's shares of the seeds that end a round, once, if it is counted there."""
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


def present_places(
    quorum: Quorum, closing: SiteMessage, terms: Mapping[str, Plain]
) -> tuple[int, ...]:
    """Return the places of the sites of a round; FrameError if they are not a quorum."""
    reason = difference(terms, of_round(closing.terms))
    present, names = closing.terms.get(PRESENT, []), sorted(terms["keys"])
    if reason or closing.site != EVERYBODY or present != sorted(set(present) & set(names)):
        raise FrameError(f"the list of sites is not of this round{reason and ': '}{reason}")
    if len(present) < quorum.needed:
        raise FrameError(
            f"the list of sites has {len(present)}, and {quorum.needed} have to answer in each "
            f"round (dropouts={quorum.sites - quorum.needed})"
        )
    return tuple(map(names.index, present))


def require_answer_to(
    key: AnyPath, number: int, answer: SiteMessage, site: str = EVERYBODY
) -> None:
    """Refuse an answer whose terms are not those of this site's message of the round."""
    copy, opening = copy_file(key, number), copy_file(key, number, "opening")
    present = answer.terms.get(PRESENT, [site])
    if site not in present and number == 1:
        raise FrameError(f"round 1 ended without site {site!r}, so the exchange goes on without it")
    if site not in present and not opening.is_file() and not copy.is_file():
        return  # The site was away.
    if not copy.is_file():
        raise FrameError(
            f"round {number} was answered without a message of this site: its key was copied, or "
            f"{copy.name!r} beside it was removed"
        )
    reason = difference(read_message(copy).terms, of_round(answer.terms))
    if opening.is_file() and not reason:
        reason = difference(read_message(opening).terms, answer.terms)
    if reason:
        raise FrameError(f"the answer of round {number} is not to this site's message: {reason}")


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
        shares = np.stack([one[length:].reshape(quorum.shares_shape) for one in values])
        self._write(present_file(self.folder, self._number), terms, 0, shares, messages)
        places = [names.index(site) for site in terms[PRESENT]]
        opening = quorum.opening_shape(places)
        given = {
            names.index(message.site): values_of(message, "words", opening)
            for message in self._gathered("opening", terms[PRESENT], terms)
        }
        total = negative(quorum.pads(given, places, shape))
        for one in values:
            add(total, one[:length].reshape(shape))
        return total

    def _write(
        self,
        file: Path,
        terms: dict[str, Plain],
        rows: int,
        values: NDArray[np.uint64],
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
        """Whether a round ends without messages, or openings, of sites that are missing."""
        if self._quorum is None or number < self._quorum.needed:
            return False
        return kind == "opening" or set(missing) <= set(self._without)


def messages_of(folder: AnyPath, number: int, kind: str = "message") -> dict[str, SiteMessage]:
    """Read the messages of one round by site; refuse those that do not belong together."""
    files = sorted(Path(folder).glob(f"{kind}-{number}-*.json"))
    messages = [read_message(file) for file in files]
    for file, message in zip(files, messages, strict=True):
        target = message_file(folder, number, message.site, kind)
        if file != target:
            raise FrameError(
                f"{str(file)!r} is of site {shorten(message.site)!r}, whose {kind} of the round "
                f"is {target.name!r}: remove what is no {kind}"
            )
    if messages:
        require_same_terms(messages, [str(file) for file in files])
    return {message.site: message for message in messages}


def require_terms(terms: Mapping[str, Plain], message: SiteMessage) -> None:
    """Refuse a message of other terms, or of integers on another lattice."""
    reason = difference({**terms, "basis": message.terms["basis"]}, message.terms)
    if reason:
        raise FrameError(f"the messages are not of this round: {reason}")
    if message.terms["basis"] != terms["basis"]:
        raise FrameError(
            "the sites wrote integers on another lattice than these terms give: they used "
            "another version of dpmodels"
        )
