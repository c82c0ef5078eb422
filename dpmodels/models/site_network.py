"""A release over a network: a site answers once, the aggregator first asks all for their terms."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Final, Protocol
from urllib.parse import quote

from dpmodels.atomic_files import require_target, write_whole
from dpmodels.errors import ArgumentError, DPModelsError, FrameError, shorten
from dpmodels.external_files import conform
from dpmodels.labels import plain as printed
from dpmodels.models.site_exchange import OF_ROUNDS, is_exchange, quorum_of
from dpmodels.models.site_files import combine, participant_of, require_key_record
from dpmodels.privacy import Ledger
from dpmodels.request import difference
from dpmodels.sites import SENT, MessageProtocol, OpenRound, key_file
from dpmodels.sites import message as site_message
from dpmodels.typing import AnyPath, Plain

TERMS, MESSAGE, OPENING = "terms", "letter", "opening"
# In what the aggregator asks: answers that a site may lack, and which sites end the round.
ANSWERS, SITES_PRESENT = "answers", "present"
OF_REQUESTS: Final = (ANSWERS, SITES_PRESENT)
REQUESTS = (TERMS, MESSAGE, OPENING)
Answer = dict[str, Plain]
Terms = dict[str, Plain]
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
    _alone: Lock = field(default_factory=Lock, init=False)

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
            site_message.finish(self.key, self.site, self.path, self.terms, self.ledger)
        if self.path.exists() and not in_rounds:
            return self._refusal(
                f"it has answered session {session!r} already, and a session is answered once; "
                "its message is kept at the site, for dp.combine"
            )
        if not in_rounds:
            site_message.require_places(self.path, self.key)
        if part == TERMS:
            return {"terms": {**self.terms, "keys": self._known_keys()}}
        received_keys = request.get("keys")
        keyed = set(received_keys) if isinstance(received_keys, Mapping) else set()
        if self.sites and keyed != set(self.sites):
            return self._refusal("it does not agree: the keys are not those of the sites it named")
        with TemporaryDirectory() as folder:
            cards = self._cards(received_keys, Path(folder))
            stated = {name: value for name, value in request.items() if name not in OF_REQUESTS}
            terms = {**self.terms, "keys": self._keys(cards)}
            mismatch = difference(terms, stated)
            if mismatch:
                return self._refusal(f"it does not agree: {mismatch}")
            number = self._write_public(request, terms)
            message = self.release(key=self.key, cards=cards)
        if number:
            message = site_message.message_file(self.path, number, self.site, OPENING)
        return {"letter": message.read_text(encoding="utf-8")}

    def _write_public(self, request: Mapping[str, object], terms: Terms) -> int:
        """Write what the aggregator sent to the folder; return the round that it ends, or 0."""
        answers = request.get(ANSWERS, ())
        if self.key is None or not is_exchange(self.path) or not isinstance(answers, list | tuple):
            return 0
        for answer in answers:
            site_message.write_answer(self.path, str(answer), self.key, self.site)
        quorum = quorum_of(self.protocol, terms)
        if quorum is None or SITES_PRESENT not in request:
            return 0
        return site_message.write_present(self.path, str(request[SITES_PRESENT]), self.key, quorum)

    def _keys(self, cards: Sequence[AnyPath]) -> dict[str, str]:
        in_rounds = is_exchange(self.path)
        started = self.key is not None and in_rounds and key_file.read_used(self.key) is not None
        member = participant_of(
            self.protocol, self.site, self.key, cards, started=started, quorum=in_rounds
        )
        return {} if member is None else member.keys

    def _known_keys(self) -> dict[str, str]:
        if not self.sites:
            return self._keys(self.cards)
        assert self.key is not None
        started = is_exchange(self.path) and key_file.read_used(self.key) is not None
        member = key_file.read_participant(self.key, self.site, (), started=started)
        return {self.site: key_file.public_bytes(member.private).hex()}

    def _cards(self, received_keys: Plain, folder: Path) -> Sequence[AnyPath]:
        if not self.sites:
            return self.cards
        cards = [folder / f"{position}.card" for position in range(len(received_keys))]
        for card, (name, public) in zip(cards, received_keys.items(), strict=True):
            key_file.write_card(card, name, str(public))
        return cards

    def _refusal(self, why: str) -> Answer:
        _LOG.warning("site %r refuses: %s", self.site, why)
        return {"site": self.site, "refusal": why}


_PAUSE: Final = 0.2  # Seconds between two looks for answers, a choice
_LAST: Final = 10.0  # Seconds in which sites may confirm the end of an exchange, a choice
# Of a message of an earlier turn, after which that of this one is still to come.
_LATE: Final = "it sent a message of another round"
_UNTOUCHED: Final = "no row was read and nothing was charged"


def ask_sites(
    transport: Transport,
    sites: Sequence[str],
    session: str,
    folder: Path,
    timeout: float,
    patience: float = 60.0,
) -> list[Path] | Path:
    """Gather one message of each site, once all have stated the same terms.

    Of an exchange those of all rounds; then the folder is returned, in which an interrupted one
    goes on. `patience` is how many seconds of a round sites of a quorum are waited for.
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
        _Rounds(transport, terms, folder, until, patience).run(site_of_node)
        return folder
    questions = dict.fromkeys(site_of_node, terms)
    failed = _gather(transport, (0, MESSAGE), questions, site_of_node, files, until)
    if failed:
        raise FrameError(_missing_site(failed, files))
    return list(files.values())


@dataclass(frozen=True, repr=False)
class _Rounds:
    """An exchange as the aggregator runs it: questions to sites, and the folder of all files."""

    transport: Transport
    terms: Terms
    folder: Path
    until: float  # Of the monotonic clock
    patience: float  # Seconds

    def run(self, site_of_node: Mapping[int, str]) -> None:
        """Gather the messages of each round, and send its answer to all sites."""
        fit = combine(self.folder) if site_message.answer_file(self.folder, 1).exists() else None
        while fit is None or isinstance(fit, OpenRound):
            fit = self._round(site_of_node)
        # By the last answer sites learn that the exchange is over.
        self.transport.send(MESSAGE, self._questions(site_of_node), _LAST)
        waiting, last = set(site_of_node), time.monotonic() + _LAST
        while waiting and time.monotonic() < last:
            waiting -= {node for node, _ in self.transport.arrived()}
            time.sleep(_PAUSE if waiting else 0)

    def _round(self, site_of_node: Mapping[int, str]) -> object:
        """Gather one round's messages, and its openings if there is a quorum; combine them."""
        number, dropouts = 1 + len(self._answers()), int(self.terms["protocol"].get("dropouts", 0))
        closing, missing = site_message.present_file(self.folder, number), tuple[str, ...]()
        if not closing.exists():
            missing = self._gathered(MESSAGE, number, site_of_node, dropouts)
        fit = combine(self.folder, without=missing)
        if not (closing.exists() and isinstance(fit, OpenRound)):
            return fit
        present = site_message.read_message(closing).terms[site_message.PRESENT]
        counted = {node: site for node, site in site_of_node.items() if site in present}
        away = len(self.terms["keys"]) - len(present)
        self._gathered(OPENING, number, counted, dropouts - away)
        return combine(self.folder, without=missing)

    def _gathered(
        self, request: str, number: int, site_of_node: Mapping[int, str], dropouts: int
    ) -> tuple[str, ...]:
        """Request a file of a round; return the sites without one, of which a few may be."""
        kind, questions = "message", self._questions(site_of_node)
        if request == OPENING:
            kind, closing = OPENING, site_message.present_file(self.folder, number)
            text = closing.read_text(encoding="utf-8")
            questions = {node: {**terms, SITES_PRESENT: text} for node, terms in questions.items()}
        files = {
            site: site_message.message_file(self.folder, number, site, kind)
            for site in site_of_node.values()
        }
        until = min(self.until, time.monotonic() + self.patience) if dropouts else self.until
        failed = _gather(self.transport, (number, request), questions, site_of_node, files, until)
        if len(failed) > dropouts:
            raise FrameError(_missing_site(failed, files))
        return tuple(failed)

    def _answers(self) -> list[str]:
        n_answers = sum(1 for _ in site_message.answers_in(self.folder))
        files = (site_message.answer_file(self.folder, k) for k in range(1, 1 + n_answers))
        return [file.read_text("utf-8") for file in files]

    def _questions(self, site_of_node: Mapping[int, str]) -> dict[int, Terms]:
        answers, questions = self._answers(), dict[int, Terms]()
        for node, site in site_of_node.items():
            first = len(answers)
            while first and not site_message.message_file(self.folder, first, site).exists():
                first -= 1
            questions[node] = {**self.terms, ANSWERS: answers[max(first - 1, 0) :]}
        return questions


def _gather(
    transport: Transport,
    turn: tuple[int, str],
    questions: Mapping[int, Terms],
    site_of_node: Mapping[int, str],
    files: Mapping[str, Path],
    until: float,
) -> dict[str, str]:
    """Request the files that are not there, and write those that come; say why one is missing.

    `turn` is the number of the round, 0 if there are none, and the request.
    """
    waiting = {node: site for node, site in site_of_node.items() if not files[site].exists()}
    contents = {node: questions[node] for node in waiting}
    transport.send(turn[1], contents, max(until - time.monotonic(), 1.0))
    failed: dict[str, str] = {}
    is_over = False
    while waiting and not is_over:
        is_over = time.monotonic() > until
        for node, answer in transport.arrived():
            if node not in waiting:
                continue
            site = waiting[node]
            mismatch = answer.get("refusal") or answer.get("failure") or "it did not send a letter"
            if "letter" in answer:
                mismatch = _store(str(answer["letter"]), site, questions[node], files[site], turn)
            if mismatch == _LATE:
                continue
            del waiting[node]
            if mismatch:
                failed[site] = _quoted(mismatch, 300)
        time.sleep(_PAUSE if waiting and not is_over else 0)
    return failed | dict.fromkeys(waiting.values(), "it did not answer in time")


def _missing_site(failed: Mapping[str, str], files: Mapping[str, Path]) -> str:
    site, why = next(iter(failed.items()))
    messages = ", ".join(str(file) for name, file in files.items() if name not in failed)
    return (
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
        new = sorted({*transport.nodes()} - requested_nodes)
        asked = {node: {"session": session} for node in new}
        transport.send(TERMS, asked, until - time.monotonic())
        requested_nodes.update(new)
        silent.update(new)
        for node, answer in transport.arrived():
            silent.discard(node)
            site: Plain = answer.get("site")
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
    if not isinstance(plain, dict):
        return False
    of_rounds = {"version": str, "clipping": bool} if "version" in plain else {}
    try:
        conform({**site_message.STATED, **of_rounds}, plain, "")
    except FrameError:
        return False
    return plain["protocol"].get("name") in SENT


def _quoted(text: object, max_length: int) -> str:
    return shorten(printed(str(text)), max_length)


def _store(text: str, site: str, question: Terms, file: Path, turn: tuple[int, str]) -> str:
    """Write a message; return what is wrong with it, or an empty text.

    Of rounds one with a mistake is removed, as a round may end without it.
    """
    mismatch = _written(text, site, question, file, turn)
    if mismatch and turn[0]:
        file.unlink(missing_ok=True)
    return mismatch


def _written(text: str, site: str, question: Terms, file: Path, turn: tuple[int, str]) -> str:
    try:
        write_whole(file, text.encode(errors="replace"))
        message = site_message.read_message(file)
    except FrameError as error:
        return str(error)
    number, request = turn
    of_turn = (message.terms.get("round"), site_message.PRESENT in message.terms)
    if number and of_turn != (number, request == OPENING):
        return _LATE
    terms_sent = {name: value for name, value in message.terms.items() if name not in OF_ROUNDS}
    terms = {name: question[name] for name in question if name not in OF_REQUESTS}
    mismatch = difference(terms, terms_sent)
    if message.site != site:
        return f"its message is of site {shorten(message.site)!r}"
    return f"its message is of other terms: {mismatch}" if mismatch else ""


# The transport of a release over a network: questions to nodes, and their answers.


class Transport(Protocol):
    """Sends questions to nodes and returns their answers."""

    def nodes(self) -> Sequence[int]:
        """Return the nodes that are connected now."""

    def send(self, part: str, contents: Mapping[int, Mapping[str, Plain]], seconds: float) -> None:
        """Ask nodes; a question not received in that time expires."""

    def arrived(self) -> Sequence[tuple[int, Mapping[str, object]]]:
        """Return answers not returned before; ``{"failure": why}`` for a node that failed."""
