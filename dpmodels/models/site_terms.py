"""What sites state to each other: a question, a protocol, and the keys of all."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from dpmodels.codebook import Codebook
from dpmodels.errors import ArgumentError, FrameError, said
from dpmodels.formula.coding import checked_codebook
from dpmodels.models.replay import all_verbs, verb_of
from dpmodels.outside import conform
from dpmodels.privacy import WRITE_DELTA, ZCDP, AdjacencyName, ApproxDP, Guarantee, Ledger
from dpmodels.question import Question, asked
from dpmodels.sites import SENT, LetterProtocol, SecureSum, named_protocol
from dpmodels.sites.key_file import Seat, take_seat
from dpmodels.sites.letter import STATED, protocol_terms
from dpmodels.typing import AnyPath
from dpmodels.verbs import Verb


class Stated(NamedTuple):
    """What a site asks, by which protocol, and both as plain values but for the keys."""

    question: Question
    protocol: LetterProtocol
    terms: dict[str, Any]


def state(
    formula: str,
    *,
    site: str,
    session: str,
    protocol: object,
    codebook: Codebook,
    verb: str,
    eps: float | None = None,
    delta: float = 0.0,
    budget: Guarantee | None = None,
    adjacency: AdjacencyName = "replace",
    person: str | Literal[False] | None = None,
    rows: int | Literal["mean"] | None = None,
    subset: str | None = None,
    words: Mapping[str, Any],
) -> Stated:
    """Return what a site states, as all others have to; read nothing."""
    chosen: LetterProtocol = named_protocol(protocol, SENT)
    declared = _declared(verb)
    if declared is None:
        raise ArgumentError(
            f"verb={said(verb)}: expected one of {', '.join(map(repr, sent_verbs()))}"
        )
    for name, given in (("site", site), ("session", session)):
        if not isinstance(given, str) or not given:
            raise ArgumentError(f"{name}={said(given)}: expected a text that is not empty")
    _require_words(declared, words)
    all_words = declared.sent({**declared.options, **words})
    own: dict[str, Any] = {"person": person, "rows": rows, "subset": subset, **all_words}
    question = asked(
        verb, formula, checked_codebook(codebook), eps, delta, budget, adjacency, **own
    )
    if not isinstance(question.guarantee, ApproxDP | ZCDP):
        raise ArgumentError(f"sites add Gaussian noise: {WRITE_DELTA}, or budget=dp.ZCDP(rho)")
    terms = {**question.plain(), "protocol": protocol_terms(chosen), "session": session}
    # What the others could not read is said here, before it is paid for.
    read = json.loads(json.dumps({**terms, "keys": {site: ""}}))
    conform(STATED, read, "what the site states")
    return Stated(question, chosen, terms)


def seat_of(
    protocol: LetterProtocol, site: str, key: AnyPath | None, cards: Sequence[AnyPath]
) -> Seat | None:
    """Return the site's seat among the others, None where the protocol has no keys."""
    name = protocol.trust.name
    if not protocol.keyed:
        if key is not None or cards:
            raise ArgumentError(f"key= and cards= are not for protocol={name!r}; leave them out")
        return None
    if key is None:
        raise ArgumentError(
            f"protocol={name!r} needs key=, made by dp.site_key, and cards=, those of all sites"
        )
    if isinstance(protocol, SecureSum) and protocol.dropouts:
        raise ArgumentError(
            f"dropouts={protocol.dropouts}: files of sites that do not answer cannot be made up "
            "for; write dropouts=0, and start again without such a site"
        )
    seat = take_seat(key, site, cards)
    protocol.seats(seat.names)
    return seat


def require_key_record(protocol: LetterProtocol, ledger: Ledger | None) -> None:
    """Refuse keys where no ledger file records their use: messages of one key share their masks."""
    if protocol.keyed and (ledger is None or not ledger.place):
        raise ArgumentError(
            f"protocol={protocol.trust.name!r} needs ledger=, a file of this site that records "
            "that its key was used: write ledger=dp.Ledger.open('site.ledger', eps=..., "
            "delta=..., new=True). Nothing was charged"
        )


def keys_of(seat: Seat | None) -> dict[str, str]:
    """Return all sites' public keys as plain values."""
    if seat is None:
        return {}
    return {name: own.hex() for name, own in zip(seat.names, seat.public, strict=True)}


def read_terms(terms: Mapping[str, Any]) -> tuple[Question, LetterProtocol]:
    """Return what letters are of, and refuse what this version does not know."""
    own = dict(terms["protocol"])
    name, verb, words = own.pop("name", None), _declared(terms["verb"]), terms["words"]
    if name not in SENT or verb is None or not words.keys() <= verb.options.keys():
        raise FrameError("the files are of a verb, words or a protocol that this version lacks")
    _read_words(verb, words, "terms.words")
    question = Question.of({**terms, "words": verb.sent({**verb.options, **words})})
    if not isinstance(question.guarantee, ApproxDP | ZCDP):
        raise FrameError("terms.guarantee: sites add Gaussian noise, which has no pure guarantee")
    made: LetterProtocol = conform(SENT[name], own, "terms.protocol")
    return question, made


def sent_verbs() -> dict[str, Verb]:
    """Return the verbs of which sites can send their parts, the first the usual one."""
    verbs = {name: verb for name, verb in all_verbs().items() if verb.gaussian}
    return {"pca": verbs["pca"], **verbs}


def _declared(name: object) -> Verb | None:
    verb = verb_of(name) if isinstance(name, str) else None
    return verb if verb is not None and verb.gaussian else None


def _require_words(verb: Verb, words: Mapping[str, Any]) -> None:
    """Refuse words that a verb does not take here, or that no file can hold."""
    strange = [word for word in words if word not in verb.options]
    if strange:
        known = ", ".join(verb.options) or "none"
        raise ArgumentError(
            f"{strange[0]}= is no word of verb {verb.name!r} here; expected: {known}"
        )
    if not all(map(_is_plain, words.values())):
        raise ArgumentError(
            "the words of a site's file are texts, numbers, lists of numbers, True, False or None"
        )
    _read_words(verb, json.loads(json.dumps(dict(words))), "words")


def _read_words(verb: Verb, plain: Mapping[str, Any], where: str) -> None:
    conform({word: shape for word, shape in verb.shapes.items() if word in plain}, plain, where)


def _is_plain(value: object) -> bool:
    many = value if isinstance(value, list | tuple) else ()
    return isinstance(value, str | int | float | list | tuple | None) and all(
        isinstance(one, int | float) for one in many
    )
