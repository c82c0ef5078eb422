"""``site_release`` and ``combine``: sites of different organisations, which exchange files."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Final, Literal, NamedTuple

from dpmodels.arguments import checked_keywords
from dpmodels.codebook import Codebook
from dpmodels.errors import ArgumentError, FrameError, did_you_mean, entry_point, quoted
from dpmodels.external_files import conform
from dpmodels.formula.coding import checked_codebook
from dpmodels.frames.delimited import CsvMode
from dpmodels.models.release import all_verbs, measured, verb_of
from dpmodels.models.site_exchange import (
    combine_rounds,
    is_exchange,
    repeated,
    site_exchange,
    terms_in,
)
from dpmodels.models.verb_spec import VerbSpec, of_question, planned
from dpmodels.options import ledger_of
from dpmodels.privacy import WRITE_DELTA, ZCDP, AdjacencyName, ApproxDP, Guarantee, Ledger, charge
from dpmodels.request import Request, requested
from dpmodels.sites import SENT, MessageProtocol, Parties, SecureSum, named_protocol
from dpmodels.sites import message as site_message
from dpmodels.sites.key_file import Participant, read_participant
from dpmodels.sites.message import protocol_terms
from dpmodels.sites.parties import with_csv
from dpmodels.sites.protocol import Joint
from dpmodels.typing import AnyPath, Plain
from dpmodels.verbs import VERBS, Verb

# Parameters of a site's terms, beside the formula and the verb's options.
TERM_PARAMETERS: Final = (
    *("site", "session", "protocol", "codebook", "verb", "eps", "delta", "budget"),
    *("adjacency", "person", "rows", "subset"),
)


@entry_point
@checked_keywords("dp.site_release")
def site_release(
    formula: str,
    data: object,
    path: AnyPath,
    *,
    site: str,
    session: str,
    protocol: str | MessageProtocol,
    codebook: Codebook,
    verb: str = "pca",
    eps: float | None = None,
    delta: float = 0.0,
    budget: Guarantee | None = None,
    adjacency: AdjacencyName = "replace",
    person: str | Literal[False] | None = None,
    rows: int | Literal["mean"] | None = None,
    subset: str | None = None,
    csv: CsvMode | None = None,
    ledger: Ledger | None = None,
    key: AnyPath | None = None,
    cards: Sequence[AnyPath] = (),
    wait: float = 0.0,
    **options: object,
) -> Path:
    """Write this site's part of a joint release to a file, for :func:`combine`.

    With a folder instead of a file, sites exchange rounds: each repeats its call after each answer.

    Parameters
    ----------
    formula : str
        As for the verb.
    data : frame, mapping, path or iterable of frames
        This site's rows, disjoint from those of the others.
    path : path
        A new file, for a release of one message. It holds noisy or masked values and the terms, no
        rows. Or a folder that all parties write to, for an exchange: ``mechanism="auto"`` is then
        what it is for sites in one process. The site writes ``message-1-A.json``, and when called
        again with ``answer-1.json`` in the folder ``message-2-A.json``.
    site, session : str
        The site's name, and a name of this release that all sites agree on.
    protocol : str or instance
        ``"full"``, ``"dpdispca"``, ``"cape"`` or ``"secure_sum"``, see
        :mod:`dpmodels.sites`.
    codebook : Codebook
        The same at all sites.
    verb : str
        What is to be fitted, such as "pca", "lm", "mean" or "table": a verb of which a mechanism
        adds Gaussian noise to one sum of integers, or in an exchange to several.
    eps, delta, budget, adjacency, person, rows, subset, ledger
        The guarantee, neighbours, rows that count and ledger of this site, as
        for the verb; all but the ledger are the same at all sites. ``"cape"``
        and ``"secure_sum"`` need a ledger in a file. All rows of a person have
        to lie at one site.
    csv : {"records", "lines"}, optional
        What a row of this site's CSV file is, see :func:`dp_pca`.
    key : path, optional
        This site's key of :func:`site_key`, for ``"cape"`` and
        ``"secure_sum"``; it is used up.
    cards : sequence of path
        Public cards of all sites, for the same.
    wait : float, default 0.0
        Of an exchange: seconds in which the call takes all its turns itself, as answers arrive.
    **options
        Further options of the verb: for ``"pca"`` ncomp, center, scale and more.

    Returns
    -------
    Path
        Of the file; of an exchange, of the last message.

    Raises
    ------
    FormulaError, CodebookError, ArgumentError, BudgetError, FrameError
        Before a row is read and before anything is charged. During an exchange a FrameError if
        files in the folder do not belong to it; it says what was charged.
    LedgerError
        If the ledger refuses; nothing is charged.

    Notes
    -----
    The message is written before the key is marked as used, and renamed after. If
    the process dies in between, repeating the call finds the message under its
    temporary name and renames it; it reads no row and charges nothing. The use of a
    key is recorded beside it, in a file with ``.used`` added. Of several processes
    with one key, one writes a message.

    A ledger lets the site's name in this session, and its key, be used once:
    they are claimed by the charge itself. Keys need a ledger in a file, as a
    copy of a key would otherwise write a second message with the same masks.
    The letter's digest is recorded in it before the message gets its name.

    An exchange is charged once, for all rounds, at its start. Beside the key the site keeps a copy
    of each message, ``.round-1`` and so on: a repeated call sends the same bytes, draws no noise
    and charges nothing. The rows must not change meanwhile. The secret in the key is removed once
    all rounds are answered.

    Examples
    --------
    >>> import os, tempfile
    >>> import dpmodels as dp
    >>> agreed = dict(codebook=dp.codebook(a=(0, 1), b=(0, 1)), eps=1.0, delta=1e-6)
    >>> agreed |= dict(session="trial 7", protocol="full")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = [os.path.join(folder, name) for name in ("x.json", "y.json")]
    ...     for name, file in zip("XY", files):
    ...         rows = {"a": [0.2, 0.7] * 99, "b": [0.1, 0.9] * 99}
    ...         written = dp.site_release("~ a + b", rows, file, site=name, **agreed)
    ...     fit = dp.combine(files)
    >>> fit.release.shared.sites, fit.nobs
    (('X', 'Y'), 396)
    """
    arguments = locals()
    words = {name: arguments[name] for name in TERM_PARAMETERS}
    stated = state(formula, **words, options=options, in_rounds=is_exchange(path))
    chosen, terms, ledger = stated.protocol, stated.terms, ledger_of(ledger)
    require_key_record(chosen, ledger)
    if is_exchange(path):
        (table,) = with_csv((data,), csv)
        part = site_exchange(
            *(_spec(stated.request), table, chosen, terms),
            site=site,
            key=key,
            ledger=ledger,
            folder=path,
            participant=partial(participant_of, chosen, site, key, cards, quorum=True),
        )
        return part.turns(time.monotonic() + wait)
    if key is not None and site_message.finish(key, site, path, terms, ledger):
        return Path(path)
    site_message.require_places(path, key)
    participant = participant_of(chosen, site, key, cards)
    terms["keys"] = {} if participant is None else participant.keys
    # What a ledger lets a site use once: its name in a session, and its key.
    claims = [("session", f"{session}, site {site}")]
    claims += [] if participant is None else [site_message.key_claim(terms, site)]
    other_sites = () if participant is None else participant.names
    holders = Parties((site,), with_csv((data,), csv), chosen, other_sites)
    (strategy, plan, _), (statistic,), charged, _ = measured(
        _spec(stated.request), holders, "auto", ledger, partial(charge, claims=tuple(claims))
    )
    joint = Joint(strategy, plan, (site,))
    letter = site_message.write_part(chosen, joint, statistic, terms, participant)
    site_message.write_message(letter, path, key, charged)
    return Path(path)


@checked_keywords("dp.combine")
def combine(
    files: AnyPath | Sequence[AnyPath], *, wait: float = 0.0, without: Sequence[str] = ()
) -> object:
    """Fit what the sites' files were written for, at no further cost.

    Parameters
    ----------
    files : sequence of path, or path
        One of each site, as :func:`site_release` wrote them; or the folder of an exchange.
    wait : float, default 0.0
        Of an exchange: seconds to wait for messages that are missing.
    without : sequence of str, default ()
        Of an exchange under ``SecureSum(dropouts=d)``: at most d sites whose messages are not
        awaited. A round in which they are missing ends without their rows.

    Returns
    -------
    PCAResult, CovResult, MomentsResult, LMResult, MeanResult, VarResult, ...
        What the verb returns. Of an exchange, where messages of a round are missing, an
        :class:`~dpmodels.sites.OpenRound` that names the sites: the answers of the rounds before
        are in the folder, as ``answer-1.json`` and so on, and go back to all sites.

    Raises
    ------
    FrameError
        If a file is missing, truncated or changed, if two are of one site or
        of different releases (the message names the first difference), or if
        a site is missing whose masks the others carry.

    Notes
    -----
    Where sites have keys, a file of an earlier attempt has another key and is
    refused. With ``"full"`` and ``"dpdispca"`` give each attempt a ``session`` of
    its own: nothing else distinguishes an older file with the same terms.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import dpmodels as dp
    >>> agreed = dict(codebook=dp.codebook(a=(0, 1)), eps=1.0, delta=1e-6, session="trial 8")
    >>> agreed |= dict(verb="mean", protocol="secure_sum")
    >>> with tempfile.TemporaryDirectory() as name:
    ...     folder = Path(name)
    ...     cards = [dp.site_key(site, folder / f"{site}.key") for site in "XY"]
    ...     files = [
    ...         dp.site_release(
    ...             "~ a",
    ...             {"a": [0.2, 0.7] * 99},
    ...             folder / f"{site}.json",
    ...             site=site,
    ...             key=folder / f"{site}.key",
    ...             cards=cards,
    ...             ledger=dp.Ledger.open(folder / f"{site}.ledger", 1.0, 1e-6, new=True),
    ...             **agreed,
    ...         )
    ...         for site in "XY"
    ...     ]
    ...     fit = dp.combine(files)
    >>> fit.release.rows
    396
    """
    if is_exchange(files):
        until = time.monotonic() + wait
        return repeated(partial(_combine_rounds, Path(files), until, tuple(without)), until)
    if without:
        raise ArgumentError("without= is for the folder of an exchange: leave it out")
    if isinstance(files, str | PathLike) or not files:
        raise ArgumentError(
            "files=: expected a list of files, one of each site, or the folder of an exchange"
        )
    messages = [site_message.read_message(file) for file in files]
    site_message.require_same_terms(messages, list(map(str, files)))
    messages.sort(key=lambda message: message.site)
    terms = messages[0].terms
    request, protocol = read_terms(terms)
    sites = tuple(message.site for message in messages)
    _require_all(protocol, terms, sites)
    holders, spec = Parties(protocol.participants(sites), (), protocol), _spec(request)
    strategy, plan, reason = planned(spec, holders, "auto", (spec.private,))
    # The rows lie at the sites: without any, the statistic has the lattice and its public facts.
    basis = strategy.measure(spec.private, plan).fingerprint.digest
    joined = site_message.join_parts(protocol, Joint(strategy, plan, sites), messages, basis)
    return spec.of(of_question(joined, request), "kept by each site", reason)


def _combine_rounds(folder: Path, until: float, without: Sequence[str]) -> object:
    terms = terms_in(folder, until)
    request, protocol = read_terms(terms)
    return combine_rounds(folder, terms, _spec(request), protocol, until, without)


def _spec(request: Request) -> VerbSpec[object]:
    spec: VerbSpec[object] = VERBS[request.verb].spec(request)
    return spec


def _require_all(
    protocol: MessageProtocol, terms: Mapping[str, Plain], sites: tuple[str, ...]
) -> None:
    if not protocol.keyed:
        return
    absent = sorted(set(terms["keys"]) - set(sites))
    if absent:
        raise FrameError(
            f"the file of site {absent[0]!r} is missing ({len(absent)} of {len(terms['keys'])} "
            "are): the masks of the others do not cancel without it"
        )
    strange = sorted(set(sites) - set(terms["keys"]))
    if strange:
        raise FrameError(f"site {strange[0]!r} is not one of the sites that agreed on keys")


# The terms of sites: a request, a protocol, and the keys of all.


class Stated(NamedTuple):
    """A site's request and protocol, and both as plain values without the keys."""

    request: Request
    protocol: MessageProtocol
    terms: dict[str, Plain]


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
    options: Mapping[str, object],
    in_rounds: bool = False,
) -> Stated:
    """Return the terms of a site, equal at all sites; read nothing."""
    chosen: MessageProtocol = named_protocol(protocol, SENT)
    declared = _declared(verb, in_rounds)
    if declared is None:
        verbs, known = sent_verbs(in_rounds), all_verbs().get(str(verb))
        if known is not None and known.instead:
            raise ArgumentError(f"verb={quoted(verb)} is not for sites: {known.instead}")
        raise ArgumentError(
            f"verb={quoted(verb)}{did_you_mean(verb, verbs)}: expected one of "
            f"{', '.join(map(repr, verbs))}"
        )
    for name, value in (("site", site), ("session", session)):
        if not isinstance(value, str) or not value:
            raise ArgumentError(f"{name}={quoted(value)}: expected a text that is not empty")
    _require_options(declared, options)
    all_options = {**declared.options, **options}
    all_options = all_options if in_rounds else declared.sent(all_options)
    rest: dict[str, Plain] = {"person": person, "rows": rows, "subset": subset, **all_options}
    request = requested(
        verb, formula, checked_codebook(codebook), eps, delta, budget, adjacency, **rest
    )
    if not isinstance(request.guarantee, ApproxDP | ZCDP):
        raise ArgumentError(f"sites add Gaussian noise: {WRITE_DELTA}, or budget=dp.ZCDP(rho)")
    terms = {**request.plain(), "protocol": protocol_terms(chosen), "session": session}
    # Refuse here, before the charge, what other sites could not read.
    read = json.loads(json.dumps({**terms, "keys": {site: ""}}))
    conform(site_message.STATED, read, "what the site states")
    return Stated(request, chosen, terms)


def participant_of(
    protocol: MessageProtocol,
    site: str,
    key: AnyPath | None,
    cards: Sequence[AnyPath],
    *,
    started: bool = False,
    quorum: bool = False,
) -> Participant | None:
    """Return the site's keys and participants, None where the protocol has no keys."""
    name = protocol.trust.name
    if not protocol.keyed:
        if key is not None or cards:
            raise ArgumentError(f"key= and cards= are not for protocol={name!r}; leave them out")
        return None
    if key is None:
        raise ArgumentError(
            f"protocol={name!r} needs key=, made by dp.site_key, and cards=, those of all sites"
        )
    if isinstance(protocol, SecureSum) and protocol.dropouts and not quorum:
        raise ArgumentError(
            f"dropouts={protocol.dropouts}: one file of each site cannot make up for sites that do "
            "not answer; write dropouts=0, or the path of a folder, in which sites exchange files"
        )
    participant = read_participant(key, site, cards, started=started)
    protocol.participants(participant.names)
    return participant


def require_key_record(protocol: MessageProtocol, ledger: Ledger | None) -> None:
    """Refuse keys where no ledger file records their use: messages of one key share their masks."""
    if protocol.keyed and (ledger is None or not ledger.place):
        raise ArgumentError(
            f"protocol={protocol.trust.name!r} needs ledger=, a file of this site that records "
            "that its key was used: write ledger=dp.Ledger.open('site.ledger', eps=..., "
            "delta=..., new=True). Nothing was charged"
        )


def read_terms(terms: Mapping[str, Plain]) -> tuple[Request, MessageProtocol]:
    """Return the request and protocol of messages; refuse those unknown to this version."""
    protocol_terms = dict(terms["protocol"])
    in_rounds, options = "version" in terms, terms["options"]
    name, verb = protocol_terms.pop("name", None), _declared(terms["verb"], in_rounds)
    if name not in SENT or verb is None or not options.keys() <= verb.options.keys():
        raise FrameError("this version lacks the verb, an option or the protocol of the files")
    _read_options(verb, options, "terms.options")
    options = {**verb.options, **options}
    request = Request.of({**terms, "options": options if in_rounds else verb.sent(options)})
    if not isinstance(request.guarantee, ApproxDP | ZCDP):
        raise FrameError("terms.guarantee: sites add Gaussian noise, which has no pure guarantee")
    protocol: MessageProtocol = conform(SENT[name], protocol_terms, "terms.protocol")
    return request, protocol


def sent_verbs(in_rounds: bool = False) -> dict[str, Verb]:
    """Return the verbs whose parts sites can send, the default first."""
    verbs = {name: verb for name, verb in all_verbs().items() if _is_sent(verb, in_rounds)}
    return {"pca": verbs["pca"], **verbs}


def _declared(name: object, in_rounds: bool) -> Verb | None:
    verb = verb_of(name) if isinstance(name, str) else None
    return verb if verb is not None and _is_sent(verb, in_rounds) else None


def _is_sent(verb: Verb, in_rounds: bool) -> bool:
    return bool(verb.gaussian or (in_rounds and verb.joint))


def _require_options(verb: Verb, options: Mapping[str, object]) -> None:
    for word in (word for word in options if word not in verb.options):
        expected = ", ".join(verb.options) or "none"
        raise ArgumentError(
            f"{word}= is not a parameter of verb {verb.name!r} here; expected: {expected}"
        )
    for value in options.values():
        items = value if isinstance(value, list | tuple) else ()
        is_plain = isinstance(value, str | int | float | list | tuple | None)
        if not is_plain or not all(isinstance(item, int | float) for item in items):
            raise ArgumentError(
                "the options in a site's file are texts, numbers, lists of numbers, True, False or "
                "None"
            )
    _read_options(verb, json.loads(json.dumps(dict(options))), "options")


def _read_options(verb: Verb, plain: Mapping[str, object], where: str) -> None:
    conform({word: shape for word, shape in verb.shapes.items() if word in plain}, plain, where)
