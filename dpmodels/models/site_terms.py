"""What sites state to each other: a question, a protocol, and the keys of all."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from dpmodels.codebook import Codebook
from dpmodels.errors import ArgumentError, FrameError, said
from dpmodels.formula.coding import checked_codebook
from dpmodels.models.cca import cca_way
from dpmodels.models.cov import cov_way
from dpmodels.models.hist import hist_way
from dpmodels.models.lm import lm_way
from dpmodels.models.mean import mean_way
from dpmodels.models.moments import moments_way
from dpmodels.models.pca import pca_way
from dpmodels.models.summary import summary_way
from dpmodels.models.survfit import survfit_way
from dpmodels.models.table import table_way
from dpmodels.models.var import var_way
from dpmodels.outside import Shape, conform
from dpmodels.privacy import WRITE_DELTA, ZCDP, AdjacencyName, ApproxDP, Guarantee, Ledger
from dpmodels.question import Question, asked
from dpmodels.sites import SENT, LetterProtocol, SecureSum, named_protocol
from dpmodels.sites.key_file import Seat, take_seat
from dpmodels.sites.letter import STATED, protocol_terms
from dpmodels.typing import AnyPath


class Verb(NamedTuple):
    """The way of a verb's question, and its words with what they are where none is given."""

    way: Any
    words: Mapping[str, Any]


_HELD: Final = {"row_norm": None, "denoise": "auto"}
_SCALED: Final = {"center": True, "scale": "range", **_HELD}
VERBS: Final[Mapping[str, Verb]] = {
    "pca": Verb(pca_way, {"ncomp": None, **_SCALED}),
    "cca": Verb(cca_way, {"row_norm": None}),
    "cov": Verb(cov_way, _SCALED),
    "moments": Verb(moments_way, _HELD),
    "lm": Verb(lm_way, {"weights": None, "row_norm": None}),
    "mean": Verb(mean_way, {}),
    "var": Verb(var_way, {}),
    "hist": Verb(hist_way, {"breaks": 10}),
    "survfit": Verb(survfit_way, {"breaks": 20}),
    "table": Verb(table_way, {}),
    "summary": Verb(summary_way, {"tests": False}),
}
_SHAPES: Final[Mapping[str, Shape]] = {
    "ncomp": int | None,
    "center": bool,
    "scale": str | None,
    "row_norm": str | float | None,
    "denoise": str | None,
    "weights": str | None,
    "breaks": int | tuple[float, ...],
    "tests": bool,
}


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
    if not isinstance(verb, str) or verb not in VERBS:
        raise ArgumentError(f"verb={said(verb)}: expected one of {', '.join(map(repr, VERBS))}")
    for name, given in (("site", site), ("session", session)):
        if not isinstance(given, str) or not given:
            raise ArgumentError(f"{name}={said(given)}: expected a text that is not empty")
    _require_words(verb, words)
    all_words = {**VERBS[verb].words, **words}
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
    name, verb, words = own.pop("name", None), terms["verb"], terms["words"]
    if name not in SENT or verb not in VERBS or not set(words) <= set(VERBS[verb].words):
        raise FrameError("the files are of a verb, words or a protocol that this version lacks")
    _read_words(words, "terms.words")
    question = Question.of({**terms, "words": {**VERBS[verb].words, **words}})
    if not isinstance(question.guarantee, ApproxDP | ZCDP):
        raise FrameError("terms.guarantee: sites add Gaussian noise, which has no pure guarantee")
    made: LetterProtocol = conform(SENT[name], own, "terms.protocol")
    return question, made


def _require_words(verb: str, words: Mapping[str, Any]) -> None:
    """Refuse words that a verb does not take here, or that no file can hold."""
    strange = [word for word in words if word not in VERBS[verb].words]
    if strange:
        known = ", ".join(VERBS[verb].words) or "none"
        raise ArgumentError(f"{strange[0]}= is no word of verb {verb!r} here; expected: {known}")
    if not all(map(_is_plain, words.values())):
        raise ArgumentError(
            "the words of a site's file are texts, numbers, lists of numbers, True, False or None"
        )
    _read_words(json.loads(json.dumps(dict(words))), "words")


def _read_words(plain: Mapping[str, Any], where: str) -> None:
    conform({word: _SHAPES[word] for word in plain}, dict(plain), where)


def _is_plain(value: object) -> bool:
    many = value if isinstance(value, list | tuple) else ()
    return isinstance(value, str | int | float | list | tuple | None) and all(
        isinstance(one, int | float) for one in many
    )
