"""Messages in which sites send their parts of a joint release, and the files of an exchange.

A message is a file of JSON: the terms that all sites agree on, what this site sends (released or
masked values, no rows), and a SHA-256 digest of both. The digest shows damage and accidental
changes. It is not a signature: whoever writes files can write the digest too, so files must come by
a channel that the combining party trusts.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import quote

import numpy as np

from dpmodels.atomic_files import discard, publish, require_target, stage
from dpmodels.errors import FrameError, LedgerError, shorten
from dpmodels.external_files import Shape, conform, fields_of, parse, read_bytes
from dpmodels.noise import simulating, source
from dpmodels.privacy import Charge, Ledger, adjacency
from dpmodels.request import STATED as QUESTION
from dpmodels.request import canonical, difference
from dpmodels.sites.key_file import Participant, Secrets, Used, read_used, use_up, used_record, wipe
from dpmodels.sites.protocol import Joint, MessageProtocol
from dpmodels.sites.quorum import Quorum
from dpmodels.statistics import Statistic
from dpmodels.typing import AnyPath, Exact, Plain

FORMAT = "dpmodels.site/1"
_DTYPES = {"floats": "<f8", "words": "<u8"}
MOST_BYTES = 2**30  # A choice: moments of some 10,000 columns, as words and base64
# What all sites agree on before any row is read.
STATED: Mapping[str, Shape] = {
    **QUESTION,
    "protocol": dict[str, str | int | float | None],
    "session": str,
    "keys": dict[str, str],
}
# What messages of an exchange also state: who may compute the rounds, whether values beyond the
# bounds are counted, the number of the round from 1, and the digest of the last answer before.
POSITION: Mapping[str, Shape] = {"version": str, "clipping": bool, "round": int, "answers": str}
# And what ends a round of a quorum: the sites that sent a message.
PRESENT: Final = "present"


@dataclass(frozen=True)
class SiteMessage:
    """What one site sends."""

    terms: dict[str, Plain]  # What all sites agree on: STATED, and the basis of their integers
    site: str  # Its public name
    rows: int | None  # How many, where that is public
    values: bytes
    shape: tuple[int, ...]  # Of the values as an array
    kind: str  # "words", integers modulo a power of 2**64, or "floats" of 64 bits
    number: str  # Random, of this file
    simulated: bool  # True inside ``dp.simulation``: then nothing here is private
    sha256: str = field(default="", compare=False)  # Of the file that it was read from

    def __repr__(self) -> str:
        return f"<SiteMessage of site {self.site!r}, {len(self.values):,} bytes>"


_SHAPE: Mapping[str, Shape] = {
    **fields_of(SiteMessage, "site", "rows", "shape", "number", "simulated"),
    "format": str,
    "values": str,
    "kind": Literal["words", "floats"],
    "codebook_sha256": str,
}


def digest(plain: object) -> str:
    """Return the SHA-256 of a plain value, 64 hexadecimal digits.

    >>> digest({"a": 1})[:8]
    '015abd7f'
    """
    return hashlib.sha256(canonical(plain)).hexdigest()


def key_claim(terms: Mapping[str, Plain], site: str) -> tuple[str, str]:
    """Return the claim that a ledger admits once: the key that a letter's terms name."""
    return "key", str(terms["keys"][site])


class Sealed(NamedTuple):
    """A message as it is written."""

    content: bytes
    sha256: str


def seal(message: SiteMessage) -> Sealed:
    """Return the file of a message, its digest in it."""
    plain = dict(vars(message))
    del plain["sha256"]
    plain["values"] = base64.b64encode(message.values).decode()
    plain["codebook_sha256"] = digest(message.terms["codebook"])
    sha256 = digest({"format": FORMAT, **plain})
    return Sealed(
        json.dumps({"format": FORMAT, **plain, "sha256": sha256}, indent=1).encode(), sha256
    )


def read_message(path: str | PathLike[str]) -> SiteMessage:
    """Read the file of a message."""
    name = repr(str(path))
    try:
        content = read_bytes(path, MOST_BYTES)
    except FrameError as error:
        raise FrameError(_UNREADABLE.format(name, error)) from None
    return _read(content, name)


_OTHER_LATTICE = (
    "the sites wrote integers on another lattice than these terms give: they used another version "
    "of dpmodels"
)
_UNREADABLE = (
    "{} cannot be read as what a site sent ({}): it is missing, truncated, or was not written by "
    "dp.site_release"
)


# Parties of an exchange read the answers of all rounds in each of their turns.
@lru_cache(64)
def _read(content: bytes, name: str) -> SiteMessage:
    try:
        plain = parse(content)
        if not isinstance(plain, dict) or not {"format", "sha256"} <= set(plain):
            raise FrameError("it has no format or no digest")
    except FrameError as error:
        raise FrameError(_UNREADABLE.format(name, error)) from None
    if plain["format"] != FORMAT:
        found_format = shorten(ascii(plain["format"]))
        raise FrameError(f"{name} has the format {found_format}; expected {FORMAT!r}")
    sha256 = plain.pop("sha256")
    if sha256 != digest(plain):
        raise FrameError(f"{name} was changed after it was written: its digest does not fit")
    try:
        return replace(_message(plain), sha256=sha256)
    except FrameError as error:
        raise FrameError(f"{name} is not what a site sends: {error}") from None


def _message(plain: dict[str, Plain]) -> SiteMessage:
    terms = plain.get("terms")
    terms = terms if isinstance(terms, dict) else {}
    position = dict(POSITION) if "round" in terms else {}
    if position and PRESENT in terms:
        position[PRESENT] = tuple[str, ...]
    fields = conform({**_SHAPE, "terms": {**STATED, "basis": str, **position}}, plain, "")
    terms = plain["terms"]
    if fields.pop("codebook_sha256") != digest(terms["codebook"]):
        raise FrameError("codebook_sha256: not the digest of the codebook")
    public = adjacency(terms["adjacency"]).n_public
    if (fields["rows"] is not None) != public or not 0 <= (fields["rows"] or 0) <= 2**53:
        raise FrameError(f"rows: not a number of rows as under {terms['adjacency']!r}")
    try:
        values = base64.b64decode(fields["values"], validate=True)
    except ValueError:
        raise FrameError("values: expected base64") from None
    del fields["format"]
    return SiteMessage(**{**fields, "terms": terms, "values": values})


def require_same_terms(messages: Sequence[SiteMessage], names: Sequence[str]) -> None:
    """Refuse files that are not of one release, and a site that comes twice."""
    first, files = messages[0], {messages[0].site: names[0]}
    for message, name in zip(messages[1:], names[1:], strict=True):
        reason = difference(first.terms, message.terms)
        if reason:
            raise FrameError(
                f"{name!r} is not of the same release as {names[0]!r}: {reason}; all sites write "
                "the same formula, codebook, options and session"
            )
        if message.simulated != first.simulated:
            raise FrameError(f"one of {name!r} and {names[0]!r} is of a simulation")
        if message.site in files:
            raise FrameError(
                f"{name!r} and {files[message.site]!r} are both of site {message.site!r}: a site "
                "is counted once; leave one out"
            )
        files[message.site] = name


def write_part(
    protocol: MessageProtocol,
    joint: Joint,
    statistic: Statistic,
    terms: dict[str, object],
    participant: Participant | None,
) -> SiteMessage:
    """Return the message of the one site of a joint release; called once, after the charge."""
    (site,) = joint.names
    terms = {**terms, "basis": statistic.fingerprint.digest}
    secrets = None if participant is None else Secrets(participant, canonical(terms))
    values = protocol.part(joint, statistic, secrets, source())
    kind, shape = protocol.shape(joint.plan)
    assert values.shape == shape
    return site_message(terms, site, statistic.cross()[1], values, kind)


def site_message(
    terms: dict[str, Plain], site: str, rows: int, values: Exact, kind: str, number: str = ""
) -> SiteMessage:
    """Return a message of values, with a random number unless one is given."""
    return SiteMessage(
        terms=terms,
        site=site,
        rows=rows if adjacency(terms["adjacency"]).n_public else None,
        values=values.astype(_DTYPES[kind]).tobytes(),
        shape=values.shape,
        kind=kind,
        number=number or secrets.token_hex(16),
        simulated=simulating(),
    )


def join_parts(
    protocol: MessageProtocol, joint: Joint, messages: Sequence[SiteMessage], basis: str
) -> object:
    """Make the release of the messages of all sites, in their order, at no further cost."""
    if any(message.terms["basis"] != basis for message in messages):
        raise FrameError(_OTHER_LATTICE)
    rows = [0 if message.rows is None else message.rows for message in messages]
    parts = [values_of(message, *protocol.shape(joint.plan)) for message in messages]
    release = protocol.whole(joint, parts, rows)
    assert release.shared is not None
    shared = replace(release.shared, size=len(messages[0].values))
    return replace(release, simulated=messages[0].simulated, shared=shared)


def protocol_terms(protocol: Any) -> dict[str, object]:
    """Return a protocol as plain values."""
    return {"name": protocol.trust.name, **asdict(protocol)}


def values_of(message: SiteMessage, kind: str, shape: tuple[int, ...]) -> Exact:
    """Return the values of a message; FrameError if they are of another kind or shape."""
    length = 8 * int(np.prod(shape))
    if message.kind != kind or message.shape != shape or len(message.values) != length:
        raise FrameError(f"site {message.site!r} sent values of another shape than the terms give")
    values = np.frombuffer(message.values, dtype=_DTYPES[kind])
    return values.astype(np.float64 if kind == "floats" else np.uint64).reshape(shape)


# A message and its key: the message is on disk before the key is used up, visible only after.
#
# Whenever the process dies, there is a key that was not used and no message; or a
# used key, its record, and the message under a temporary name, which
# :func:`finish` makes visible; or a used key and a message.

_AGAIN = "repeat the same call, which renames it, reads no row and charges nothing"
_RENAME = "rename it"

_PARTIAL = re.compile(r"\.[0-9a-f]{32}\.partial")

NOTHING: Final = Charge()


def require_places(path: AnyPath, key: AnyPath | None) -> None:
    """Refuse a path for a message, or the place of a key, that cannot be written to."""
    record = [] if key is None else [used_record(key)]
    require_target(path, never=record)
    for place in record:
        if not os.path.lexists(place):
            require_target(place)


def write_message(
    message: SiteMessage, path: AnyPath, key: AnyPath | None, charged: Charge = NOTHING
) -> None:
    """Write a message, use up the key that masks it, and record its digest.

    FrameError if it cannot be written or the key cannot be claimed: then no message is left and the
    charge is void. LedgerError if it cannot be recorded: then it is not visible. :func:`finish`
    completes the message of a used key later.
    """
    sealed = seal(message)
    place = Path(path)
    try:
        partial = stage(place, sealed.content)
    except FrameError:
        charged.void("the message could not be written")
        raise
    if key is not None:
        try:
            use_up(key, Used(message.site, place.name, partial.name, sealed.sha256))
        except FrameError:
            discard(partial)
            charged.void("the key could not be claimed")
            raise
        wipe(key, message.site)
    try:
        charged.released(lambda: sealed.sha256)
    except LedgerError:
        if key is None:
            discard(partial)
        raise
    _show(partial, place, sealed.content, _RENAME if key is None else _AGAIN)


def finish(
    key: AnyPath,
    site: str,
    path: AnyPath,
    terms: Mapping[str, object],
    ledger: Ledger | None = None,
) -> bool:
    """Make the message of a used key visible, if only that is missing."""
    used, place = read_used(key), Path(path)
    if used is None or (used.site, used.letter) != (site, place.name):
        return False
    partial = place.parent / used.partial
    if not _PARTIAL.fullmatch(used.partial) or not partial.is_file():
        return False
    message = read_message(partial)
    sealed = seal(message)
    if sealed.sha256 != used.sha256:
        return False
    used_terms = {
        name: value for name, value in message.terms.items() if name not in ("keys", "basis")
    }
    reason = difference(
        used_terms, {name: value for name, value in terms.items() if name != "keys"}
    )
    if reason:
        raise FrameError(
            f"the key {str(key)!r} was used for an unfinished message with other terms: {reason}; "
            "write the same, or make a new key with dp.site_key"
        )
    wipe(key, site)
    if ledger is not None:
        claim = key_claim(message.terms, site)
        for entry in ledger.unfinished():
            if claim in entry.claims:
                ledger.released(entry, used.sha256)
    # On file systems without links, an empty file may have reserved the name.
    _show(partial, place, sealed.content, _AGAIN, overwrite=_holds(place, b""))
    return True


def _show(
    partial: Path, place: Path, content: bytes, instead: str, *, overwrite: bool = False
) -> None:
    """Give a message its name; another process may have done so meanwhile."""
    try:
        publish(partial, place, overwrite=overwrite)
    except FrameError as error:
        if not _holds(place, content):
            raise FrameError(
                f"{error}. The message is kept as {partial.name!r} in the same folder: {instead}"
            ) from None
        discard(partial)


def _holds(place: Path, content: bytes) -> bool:
    try:
        return not place.is_symlink() and place.read_bytes() == content
    except OSError:
        return False


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
        raise FrameError(_OTHER_LATTICE)


def of_round(terms: Mapping[str, Plain]) -> dict[str, Plain]:
    """Return the terms that all files of a round state."""
    return {word: value for word, value in terms.items() if word != PRESENT}
