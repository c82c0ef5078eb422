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

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from dpmodels.atomic_files import discard, publish, stage, write_whole
from dpmodels.errors import FrameError, RoundOpen, shorten
from dpmodels.mechanisms.protocol import AnyStrategy
from dpmodels.noise import source
from dpmodels.released import AnyRelease
from dpmodels.request import canonical, difference
from dpmodels.sites.key_file import Participant
from dpmodels.sites.message import (
    POSITION,
    SiteMessage,
    digest,
    read_message,
    require_same_terms,
    seal,
    site_message,
    values_of,
)
from dpmodels.sites.summing import MaskedSum, Words, add
from dpmodels.statistics import Statistic
from dpmodels.typing import AnyPath

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
    """What a mechanism asks in one round; nothing is read before it is called."""

    statistic: Callable[[], Statistic]
    part: Callable[[Statistic, Participant, bytes], Words]  # Noisy and masked
    shape: tuple[int, int]  # Of the words


class Exchange(ABC):
    """The rounds of an exchange as one of its parties has them."""

    def __init__(self, terms: Mapping[str, Any], folder: Path) -> None:
        self.terms = terms
        self.folder = folder
        self._answers = answers_in(folder)
        self._number, self._last = 0, ""

    def release(
        self, protocol: MaskedSum, strategy: AnyStrategy, statistic: Statistic, plan: Any
    ) -> AnyRelease:
        """Release what all sites send, round by round; RoundOpen where an answer is missing."""

        def part(statistic: Statistic, participant: Participant, session: bytes) -> Words:
            return protocol.part(strategy, statistic, plan, participant, session, source())

        _, shape = protocol.shape(plan)
        answer = self.ask(Question(lambda: statistic, part, (shape[0], shape[1])))
        names = tuple(sorted(self.terms["keys"]))
        words = values_of(answer, "words", shape)
        parts = [words, *(np.zeros_like(words) for _ in names[1:])]
        rows = [answer.rows or 0, *(0 for _ in names[1:])]
        return replace(
            protocol.whole(strategy, parts, names, rows, plan), simulated=answer.simulated
        )

    def ask(self, question: Question) -> SiteMessage:
        """Return the public answer of the next round."""
        self._number += 1
        answer = next(self._answers, None)
        if answer is None:
            answer = self.open(question, {"round": self._number, "answers": self._last})
        else:
            self.recorded(question, answer)
        self._last = seal(answer).sha256
        return answer

    @abstractmethod
    def recorded(self, question: Question, answer: SiteMessage) -> None:
        """Refuse an answer that is not of the question."""

    @abstractmethod
    def open(self, question: Question, position: Mapping[str, Any]) -> SiteMessage:
        """Do this party's part of a round without an answer; RoundOpen where others are missing."""


class SiteRounds(Exchange):
    """A site's: it makes its message of the first round that has no answer, and stops."""

    def __init__(
        self,
        terms: Mapping[str, Any],
        folder: Path,
        site: str,
        participant: Participant,
        key: Path,
        claim: Callable[[int, str], None],
    ) -> None:
        super().__init__(terms, folder)
        self._site, self._participant, self._key = site, participant, key
        self._claim = claim  # Of a round, with the digest of its message: once

    def recorded(self, question: Question, answer: SiteMessage) -> None:
        """Refuse an answer to a round in which this site sent no message."""
        require_answer_to(self._key, self._number, answer)

    def open(self, question: Question, position: Mapping[str, Any]) -> SiteMessage:
        """Make the message of the round, claim the round in the ledger, and keep a copy."""
        statistic = question.statistic()
        terms = {**self.terms, "basis": statistic.fingerprint.digest, **position}
        values = question.part(statistic, self._participant, canonical(terms))
        assert values.shape == question.shape
        message = site_message(terms, self._site, statistic.cross()[1], values, "words")
        sealed = seal(message)
        self._claim(self._number, sealed.sha256)
        write_whole(copy_file(self._key, self._number), sealed.content, private=True)
        raise RoundOpen(f"round {self._number} has no answer yet")


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

    def recorded(self, question: Question, answer: SiteMessage) -> None:
        """Refuse an answer to another question."""
        require_same_question(question, self.terms, answer)

    def open(self, question: Question, position: Mapping[str, Any]) -> SiteMessage:
        """Write the answer of a round; RoundOpen if a message is missing."""
        messages, missing = self._messages()
        if messages:
            require_same_question(question, {**self.terms, **position}, messages[0])
        if missing:
            raise RoundOpen(OpenRound(self.terms["session"], self._number, missing))
        total = np.zeros(question.shape, dtype=np.uint64)
        for message in messages:
            add(total, values_of(message, "words", question.shape))
        rows = sum(message.rows or 0 for message in messages)
        # The same messages give the same answer, whoever adds them.
        numbers = digest([message.number for message in messages])
        answer = site_message(messages[0].terms, EVERYBODY, rows, total, "words", numbers)
        answer = replace(answer, simulated=messages[0].simulated)
        write_whole(answer_file(self.folder, self._number), seal(answer).content)
        return answer

    def _messages(self) -> tuple[list[SiteMessage], tuple[str, ...]]:
        """Read the messages of this round, sorted by site, and name the sites without one."""
        sites = sorted(self.terms["keys"])
        messages = messages_of(self.folder, self._number)
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


def require_same_question(
    question: Question, terms: Mapping[str, Any], message: SiteMessage
) -> None:
    """Refuse a message of other terms, or of integers on another lattice."""
    basis = question.statistic().fingerprint.digest
    position = {name: message.terms.get(name) for name in POSITION if name not in terms}
    reason = difference({**terms, "basis": message.terms["basis"], **position}, message.terms)
    if reason:
        raise FrameError(f"the messages are not of this round: {reason}")
    if message.terms["basis"] != basis:
        raise FrameError(
            "the sites wrote integers on another lattice than these terms give: they used "
            "another version of dpmodels"
        )
