"""A release over a network: a site answers once, the aggregator first asks all for their terms."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, Final, Protocol
from urllib.parse import quote

from dpmodels.atomic_files import require_target, write_whole
from dpmodels.errors import ArgumentError, DPModelsError, FrameError, shorten
from dpmodels.external_files import conform
from dpmodels.labels import plain as printed
from dpmodels.models.site_exchange import OF_ROUNDS, is_exchange
from dpmodels.models.site_files import combine, keys_of, participant_of, require_key_record
from dpmodels.privacy import Ledger
from dpmodels.request import difference
from dpmodels.sites import SENT, MessageProtocol, OpenRound
from dpmodels.sites.exchange import answer_file, answers_in, message_file, write_answer
from dpmodels.sites.key_file import (
    Participant,
    public_bytes,
    read_participant,
    read_used,
    write_card,
)
from dpmodels.sites.message import STATED, finish, read_message, require_places
from dpmodels.typing import AnyPath, Plain

TERMS, MESSAGE = "terms", "letter"
# In what the aggregator asks: the last answer of an exchange.
ANSWER: Final = "answer"
REQUESTS = (TERMS, MESSAGE)
Answer = dict[str, Plain]
_LOG: Final = logging.getLogger("dpmodels.sites")


@dataclass(frozen=True, repr=False)
class SiteAnswers:
    """The terms of one site, and its answers."""

    site: str
    protocol: MessageProtocol
    terms: Mapping[str, Plain]
    path: Path
    release: Callable[..., Path]
    key: AnyPath | None = None
    cards: Sequence[AnyPath] = ()
    sites: tuple[str, ...] = ()
    ledger: Ledger | None = None
    _alone: Any = field(default_factory=Lock, init=False)

    def __post_init__(self) -> None:
        keyed, name = self.protocol.keyed, self.protocol.trust.name
        if keyed and self.key is None:
            raise ArgumentError(f"protocol={name!r} needs key=, made by dp.site_key")
        if not keyed and (self.key is not None or self.cards or self.sites):
            raise ArgumentError(f"key=, cards= and sites= are not for protocol={name!r}")
        if keyed and bool(self.cards) == bool(self.sites):
            raise ArgumentError(
                f"protocol={name!r} needs either cards=, those of all sites, or sites=, their "
                "names, if the aggregator is trusted to pass on their keys"
            )
        if self.sites and self.site not in self.sites:
            raise ArgumentError(f"sites=: this site, {self.site!r}, is not among them")
        require_key_record(self.protocol, self.ledger)

    def answer(self, part: str, request: Mapping[str, object]) -> Answer:
        """Return what goes back to the aggregator; never raise, never quote a row."""
        try:
            with self._alone:
                return {"site": self.site} | self._answer(part, request)
        except DPModelsError as error:
            kind = type(error).__name__
            _LOG.warning("site %r did not answer. %s: %s", self.site, kind, error)
        except Exception:
            # An error while reading may quote a row: not even its class is sent.
            kind = "an error outside dpmodels"
            _LOG.warning("site %r did not answer: %s", self.site, kind)
        return {"site": self.site, "refusal": f"it cannot answer ({kind}); its own log says why"}

    def _answer(self, part: str, request: Mapping[str, object]) -> Answer:
        session = self.terms["session"]
        if request.get("session") != session:
            return self._refusal(f"its session is {session!r}, not the requested one")
        in_rounds = is_exchange(self.path)
        if self.key is not None and not in_rounds:
            finish(self.key, self.site, self.path, self.terms, self.ledger)
        if self.path.exists() and not in_rounds:
            return self._refusal(
                f"it has answered session {session!r} already, and a session is answered once; "
                "its message is kept at the site, for dp.combine"
            )
        if not in_rounds:
            require_places(self.path, self.key)
        if part == TERMS:
            return {"terms": {**self.terms, "keys": self._known_keys()}}
        received_keys = request.get("keys")
        if self.sites and (
            not isinstance(received_keys, Mapping) or set(received_keys) != set(self.sites)
        ):
            return self._refusal("it does not agree: the keys are not those of the sites it named")
        with TemporaryDirectory() as folder:
            cards = self._cards(received_keys, Path(folder))
            stated = {name: value for name, value in request.items() if name != ANSWER}
            mismatch = difference({**self.terms, "keys": keys_of(self._member(cards))}, stated)
            if mismatch:
                return self._refusal(f"it does not agree: {mismatch}")
            if ANSWER in request and self.key is not None:
                write_answer(self.path, str(request[ANSWER]), self.key)
            message = self.release(key=self.key, cards=cards)
        return {"letter": message.read_text(encoding="utf-8")}

    def _member(self, cards: Sequence[AnyPath]) -> Participant | None:
        started = self.key is not None and is_exchange(self.path) and read_used(self.key)
        return participant_of(self.protocol, self.site, self.key, cards, started=bool(started))

    def _known_keys(self) -> dict[str, str]:
        if not self.sites:
            return keys_of(self._member(self.cards))
        assert self.key is not None
        started = is_exchange(self.path) and read_used(self.key) is not None
        member = read_participant(self.key, self.site, (), started=started)
        return {self.site: public_bytes(member.private).hex()}

    def _cards(self, received_keys: Any, folder: Path) -> Sequence[AnyPath]:
        """Return the site's own copies of the cards, or else those received."""
        if not self.sites:
            return self.cards
        cards = [folder / f"{position}.card" for position in range(len(received_keys))]
        for card, (name, public) in zip(cards, received_keys.items(), strict=True):
            write_card(card, name, str(public))
        return cards

    def _refusal(self, why: str) -> Answer:
        _LOG.warning("site %r refuses: %s", self.site, why)
        return {"site": self.site, "refusal": why}


Terms = dict[str, Plain]
_PAUSE: Final = 0.2  # Seconds between two looks for answers, a choice
_LAST: Final = 10.0  # Seconds in which sites may confirm the end of an exchange, a choice
_UNTOUCHED: Final = "no row was read and nothing was charged"


def ask_sites(
    transport: Transport, sites: Sequence[str], session: str, folder: Path, timeout: float
) -> list[Path] | Path:
    """Gather one message of each site, once all have stated the same terms.

    Of an exchange those of all rounds; then the folder is returned, in which an interrupted one
    goes on.
    """
    until = time.monotonic() + timeout
    files = {site: folder / f"{quote(site, safe='')}.json" for site in sites}
    existing = [str(file) for file in files.values() if file.exists()]
    if existing:
        raise FrameError(f"{existing[0]!r} is there already; give a folder without letters")
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    for file in files.values():
        require_target(file)
    try:
        site_of_node, stated = _meet(transport, sites, session, until)
        terms = agreed_terms(stated)
    except FrameError:
        if is_new:
            folder.rmdir()
        raise
    if "version" in terms:
        return _ask_rounds(transport, site_of_node, terms, folder, until)
    _gather(transport, site_of_node, terms, files, until)
    return list(files.values())


def _ask_rounds(
    transport: Transport, site_of_node: Mapping[int, str], terms: Terms, folder: Path, until: float
) -> Path:
    """Gather the messages of each round, and send its answer to all sites."""
    fit = combine(folder) if answer_file(folder, 1).exists() else None
    while fit is None or isinstance(fit, OpenRound):
        number = 1 + sum(1 for _ in answers_in(folder))
        files = {site: message_file(folder, number, site) for site in site_of_node.values()}
        _gather(transport, site_of_node, _with_answer(terms, folder), files, until)
        fit = combine(folder)
    # By the last answer sites learn that the exchange is over.
    transport.send(MESSAGE, dict.fromkeys(site_of_node, _with_answer(terms, folder)), _LAST)
    waiting, last = set(site_of_node), time.monotonic() + _LAST
    while waiting and time.monotonic() < last:
        waiting -= {node for node, _ in transport.arrived()}
        time.sleep(_PAUSE if waiting else 0)
    return folder


def _with_answer(terms: Terms, folder: Path) -> Terms:
    """Return what sites are asked: the terms and the last answer, if there is one."""
    number = sum(1 for _ in answers_in(folder))
    if not number:
        return terms
    return {**terms, ANSWER: answer_file(folder, number).read_text(encoding="utf-8")}


def _gather(
    transport: Transport,
    site_of_node: Mapping[int, str],
    question: Terms,
    files: Mapping[str, Path],
    until: float,
) -> None:
    """Ask all sites for their messages and keep them; FrameError if one is missing."""
    absent = {node: site for node, site in site_of_node.items() if not files[site].exists()}
    transport.send(MESSAGE, dict.fromkeys(absent, question), max(until - time.monotonic(), 1.0))
    failed = _receive(transport, absent, question, files, until)
    if failed:
        site, why = next(iter(failed.items()))
        messages = ", ".join(
            str(file) for site_name, file in files.items() if site_name not in failed
        )
        raise FrameError(
            f"site {site!r}: {why}; nothing was combined. "
            f"Letters that came: {messages or 'none'}; dp.combine takes them with those that are "
            "missing, written by dp.site_release"
        )


def agreed_terms(stated: Mapping[str, Terms]) -> Terms:
    """Return the terms that all sites stated, with the keys of all."""
    (first, first_terms), *remaining = stated.items()
    keys: dict[str, str] = {}
    for site, terms in stated.items():
        for name, public in terms["keys"].items():
            if keys.setdefault(name, public) != public:
                raise FrameError(f"site {site!r} has another key of site {name!r}; {_UNTOUCHED}")
    common = {**first_terms, "keys": dict(sorted(keys.items()))}
    for site, terms in remaining:
        mismatch = difference(common, {**terms, "keys": common["keys"]})
        if mismatch:
            raise FrameError(
                f"sites {first!r} and {site!r} do not state the same: {mismatch}; {_UNTOUCHED}"
            )
    if SENT[first_terms["protocol"]["name"]].keyed and set(keys) != set(stated):
        strange = sorted(set(keys) ^ set(stated))[0]
        raise FrameError(
            f"site {strange!r} is not both asked here and known to the others by its key; "
            f"{_UNTOUCHED}"
        )
    return common


def _meet(
    transport: Transport, sites: Sequence[str], session: str, until: float
) -> tuple[dict[int, str], dict[str, Terms]]:
    """Ask every node for its site and terms, until all sites are known."""
    site_of_node: dict[int, str] = {}
    stated: dict[str, Terms] = {}
    requested_nodes: set[int] = set()
    silent: set[int] = set()
    failure = ""
    while len(stated) < len(sites):
        new = _ask(transport, requested_nodes, session, until)
        requested_nodes.update(new)
        silent.update(new)
        for node, answer in transport.arrived():
            silent.discard(node)
            site: Any = answer.get("site")
            if "failure" in answer:
                failure = f" (a node: {_quoted(answer['failure'], 200)})"
            elif site not in sites:
                continue
            else:
                site_of_node[node], stated[site] = site, _terms_of(site, answer, stated)
        hopeless = failure and not silent and len(requested_nodes) >= len(sites)
        if len(stated) < len(sites) and (hopeless or time.monotonic() > until):
            absent = next(site for site in sites if site not in stated)
            raise FrameError(f"site {absent!r} did not answer{failure}; {_UNTOUCHED}")
        time.sleep(0 if len(stated) == len(sites) else _PAUSE)
    return site_of_node, {site: stated[site] for site in sites}


def _ask(transport: Transport, requested_nodes: set[int], session: str, until: float) -> list[int]:
    """Ask the nodes that were not asked before; return them."""
    new = [node for node in transport.nodes() if node not in requested_nodes]
    transport.send(TERMS, {node: {"session": session} for node in new}, until - time.monotonic())
    return new


def _terms_of(site: str, answer: Mapping[str, Plain], stated: Mapping[str, Terms]) -> Terms:
    """Return the terms in a site's answer, which is its only one."""
    if "terms" not in answer:
        why = _quoted(answer.get("refusal", "it did not answer the question"), 300)
        raise FrameError(f"site {site!r} refuses: {why}; {_UNTOUCHED}")
    if not _are_terms(answer["terms"]):
        raise FrameError(f"site {site!r} uses another version of dpmodels; {_UNTOUCHED}")
    if site in stated:
        raise FrameError(f"two nodes say they are site {site!r}; {_UNTOUCHED}")
    terms: Terms = answer["terms"]
    return terms


def _are_terms(plain: object) -> bool:
    """Whether terms have the expected structure."""
    try:
        if not isinstance(plain, dict):
            raise FrameError("no terms")
        conform({**STATED, **({"version": str} if "version" in plain else {})}, plain, "")
    except FrameError:
        return False
    return plain["protocol"].get("name") in SENT


def _quoted(text: object, max_length: int) -> str:
    """Return the printable text of a node."""
    return shorten(printed(str(text)), max_length)


def _receive(
    transport: Transport,
    site_of_node: Mapping[int, str],
    terms: Terms,
    files: Mapping[str, Path],
    until: float,
) -> dict[str, str]:
    """Write the messages of all sites to files; return the reason for each missing one."""
    waiting, failed = dict(site_of_node), {}
    while waiting and time.monotonic() <= until:
        for node, answer in transport.arrived():
            if node not in waiting:
                continue
            site = waiting.pop(node)
            if "letter" not in answer:
                why = answer.get("refusal") or answer.get("failure") or "it did not send a letter"
                failed[site] = _quoted(why, 300)
                continue
            mismatch = _store(str(answer["letter"]), site, terms, files[site])
            if mismatch:
                failed[site] = mismatch
        time.sleep(_PAUSE if waiting else 0)
    return failed | dict.fromkeys(waiting.values(), "it did not answer in time")


def _store(text: str, site: str, terms: Terms, file: Path) -> str:
    """Write a message; return what is wrong with it, or an empty text."""
    try:
        write_whole(file, text.encode(errors="replace"))
        message = read_message(file)
    except FrameError as error:
        return str(error)
    terms_sent = {name: value for name, value in message.terms.items() if name not in OF_ROUNDS}
    mismatch = difference({name: terms[name] for name in terms if name != ANSWER}, terms_sent)
    if message.site != site:
        return f"its message is of site {shorten(message.site)!r}"
    return f"its message is of other terms: {mismatch}" if mismatch else ""


# The transport of a release over a network: questions to nodes, and their answers.


class Transport(Protocol):
    """Sends questions to nodes and returns their answers."""

    def nodes(self) -> Sequence[int]:
        """Return the nodes that are connected now."""
        ...

    def send(self, part: str, contents: Mapping[int, Mapping[str, Plain]], seconds: float) -> None:
        """Ask nodes; a question not received in that time expires."""
        ...

    def arrived(self) -> Sequence[tuple[int, Mapping[str, object]]]:
        """Return answers not returned before; ``{"failure": why}`` for a node that failed."""
        ...
