"""Files of an exchange: where each is, how it is read, and what it has to fit."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dpmodels.atomic_files import discard, publish, stage
from dpmodels.errors import FrameError, shorten
from dpmodels.request import difference
from dpmodels.sites.message import PRESENT, SiteMessage, read_message, require_same_terms
from dpmodels.sites.quorum import Quorum
from dpmodels.typing import AnyPath

# The site of an answer: sites have names that are not empty.
EVERYBODY = ""


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
        answer = read_answer(answer_file(folder, number), number, last)
        yield answer
        last, number = answer.sha256, number + 1


def read_answer(file: Path, number: int, last: str) -> SiteMessage:
    """Read the answer of a round, which has to follow those before it."""
    answer = read_message(file)
    stated = (answer.site, answer.terms.get("round"), answer.terms.get("answers"))
    if stated != (EVERYBODY, number, last):
        raise FrameError(
            f"{str(file)!r} is not the answer of round {number} that follows those before it: "
            "another exchange wrote it, or one of them was replaced"
        )
    return answer


def write_answer(folder: AnyPath, text: str, key: AnyPath, site: str) -> None:
    """Write an answer that follows those of the folder, unless it has it already."""
    content, last, number = text.encode(errors="replace"), "", 1
    for answer in answers_in(folder):
        if answer_file(folder, number).read_bytes() == content:
            return
        last, number = answer.sha256, number + 1
    partial = stage(answer_file(folder, number), content)
    try:
        require_answer_to(key, number, read_answer(partial, number, last), site)
        publish(partial, answer_file(folder, number))
    finally:
        discard(partial)


def write_present(folder: AnyPath, text: str, key: AnyPath, quorum: Quorum) -> int:
    """Write the list of sites that ends the round of this site's last message; return its number.

    FrameError if it is not of that round, or another one is there.
    """
    content, number = text.encode(errors="replace"), 1 + sum(1 for _ in answers_in(folder))
    file, copy = present_file(folder, number), copy_file(key, number)
    partial = stage(file, content)
    try:
        present_places(quorum, read_message(partial), read_message(copy).terms)
        if not os.path.lexists(file):
            publish(partial, file)
        elif file.read_bytes() != content:
            raise FrameError(f"{str(file)!r} is another list of the sites of round {number}")
    finally:
        discard(partial)
    return number


def present_places(
    quorum: Quorum, closing: SiteMessage, terms: Mapping[str, Any]
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


def of_round(terms: Mapping[str, Any]) -> dict[str, Any]:
    """Return the terms that all files of a round state."""
    return {word: value for word, value in terms.items() if word != PRESENT}
