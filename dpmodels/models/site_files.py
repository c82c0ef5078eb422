"""``site_release`` and ``combine``: sites that are different organisations, by way of files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path as Place
from typing import Any, cast

from dpmodels.codebook import Codebook
from dpmodels.errors import ArgumentError, FrameError, said
from dpmodels.models.cov import dp_cov
from dpmodels.models.hist import dp_hist
from dpmodels.models.lm import dp_lm
from dpmodels.models.mean import dp_mean
from dpmodels.models.moments import dp_moments
from dpmodels.models.overview import dp_summary
from dpmodels.models.pca import dp_pca
from dpmodels.models.site_words import WORDS, read_words, require_words
from dpmodels.models.table import dp_table
from dpmodels.models.var import dp_var
from dpmodels.outside import conform
from dpmodels.privacy import (
    ZCDP,
    AdjacencyName,
    ApproxDP,
    Guarantee,
    Ledger,
    check_ledger,
    resolve_budget,
)
from dpmodels.privacy import adjacency as neighbours
from dpmodels.results import CovResult, MomentsResult, PCAResult, SubspaceResult
from dpmodels.results.groups import MeanResult, VarResult
from dpmodels.results.hist import HistResult
from dpmodels.results.lm import LMResult
from dpmodels.results.overview import OverviewResult
from dpmodels.results.table import TableResult
from dpmodels.sites import Parties, SecureSum
from dpmodels.sites.incoming import Incoming
from dpmodels.sites.key_file import Seat, take_seat
from dpmodels.sites.letter import STATED, read_letter, require_same_terms
from dpmodels.sites.outgoing import SENT, Outgoing, Sent, protocol_terms
from dpmodels.sites.posting import finish, post, require_places

Path = str | PathLike[str]
Moments = PCAResult | SubspaceResult | CovResult | MomentsResult | LMResult
Combined = Moments | MeanResult | VarResult | HistResult | TableResult | OverviewResult

VERBS: Mapping[str, Any] = {
    "pca": dp_pca,
    "cov": dp_cov,
    "moments": dp_moments,
    "lm": dp_lm,
    "mean": dp_mean,
    "var": dp_var,
    "hist": dp_hist,
    "table": dp_table,
    "summary": dp_summary,
}
KEYED = ("cape", "secure_sum")


def site_release(
    formula: str,
    data: object,
    path: Path,
    *,
    site: str,
    session: str,
    protocol: str | Sent,
    codebook: Codebook,
    verb: str = "pca",
    eps: float | None = None,
    delta: float = 0.0,
    budget: Guarantee | None = None,
    adjacency: AdjacencyName = "replace",
    ledger: Ledger | None = None,
    key: Path | None = None,
    cards: Sequence[Path] = (),
    **words: Any,
) -> Place:
    """Write this site's part of a joint release to a file, for :func:`combine`.

    Parameters
    ----------
    formula : str
        As for the verb.
    data : frame, mapping, path or iterable of frames
        This site's rows, disjoint from those of the others.
    path : path
        A new file. It holds noisy or masked values and the terms, no rows.
    site, session : str
        The site's name, and a name of this release that all sites agree on.
    protocol : str or instance
        ``"full"``, ``"dpdispca"``, ``"cape"`` or ``"secure_sum"``, see
        :mod:`dpmodels.sites`.
    codebook : Codebook
        The same at all sites.
    verb : {"pca", "cov", "moments", "lm", "mean", "var", "hist", "table", "summary"}
        What is to be fitted.
    eps, delta, budget, adjacency, ledger
        The guarantee, neighbours and ledger of this site, as for the verb.
    key : path, optional
        This site's key of :func:`site_key`, for ``"cape"`` and
        ``"secure_sum"``; it is used up.
    cards : sequence of path
        Public cards of all sites, for the same.
    **words
        Further words of the verb: for ``"pca"`` ncomp, center, scale, row_norm,
        denoise.

    Returns
    -------
    Path
        Of the file.

    Raises
    ------
    FormulaError, CodebookError, ArgumentError, BudgetError, FrameError
        Before a row is read and before anything is charged.
    LedgerError
        If the ledger refuses; nothing is charged.

    Notes
    -----
    The letter is on the disk before the key is used up, and gets its name
    after. If the process dies in between, the same call again finds the letter
    under its temporary name and gives it its own; it reads no row and charges
    nothing. What a key was used for is recorded beside it, in a file with
    ``.used`` added. Of several processes with one key, one writes a letter.

    A ledger lets the site's name in this session, and its key, be used once:
    they are claimed by the charge itself. The letter's digest is recorded in it
    before the letter gets its name.

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
    chosen, guarantee, terms = stated_terms(
        formula,
        site=site,
        session=session,
        protocol=protocol,
        codebook=codebook,
        verb=verb,
        budget=resolve_budget(eps, delta, budget),
        adjacency=adjacency,
        words=words,
    )
    check_ledger(ledger)
    if key is not None and finish(key, site, path, terms, ledger):
        return Place(path)
    require_places(path, key)
    seat = seat_of(chosen, site, key, cards)
    terms["keys"] = keys_of(seat)
    outgoing = Outgoing(chosen, terms, site, seat)
    VERBS[verb](
        formula,
        Parties((site,), (data,), outgoing),
        codebook=codebook,
        budget=guarantee,
        adjacency=adjacency,
        ledger=ledger,
        **words,
    )
    assert outgoing.letter is not None
    post(outgoing.letter, path, key, outgoing.charged)
    return Place(path)


def combine(files: Sequence[Path]) -> Combined:
    """Fit what the sites' files were written for, at no further cost.

    Parameters
    ----------
    files : sequence of path
        One of each site, as :func:`site_release` wrote them.

    Returns
    -------
    PCAResult, CovResult, MomentsResult, LMResult, MeanResult, VarResult, ...
        What the verb returns.

    Raises
    ------
    FrameError
        If a file is missing, truncated or changed, if two are of one site or
        of different releases (the message names the first difference), or if
        a site is missing whose masks the others carry.

    Notes
    -----
    Where sites have keys, a file of an earlier attempt has another key and is
    refused. With ``"full"`` and ``"dpdispca"`` give each attempt a ``session``
    of its own: nothing else tells an older file of the same terms.

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
    ...             **agreed,
    ...         )
    ...         for site in "XY"
    ...     ]
    ...     fit = dp.combine(files)
    >>> fit.release.rows
    396
    """
    if isinstance(files, str | PathLike) or not files:
        raise ArgumentError("files=: expected a list of files, one of each site")
    letters = [read_letter(file) for file in files]
    require_same_terms(letters, [str(file) for file in files])
    letters.sort(key=lambda letter: letter.site)
    terms = letters[0].terms
    protocol = _named(terms)
    sites = tuple(letter.site for letter in letters)
    _require_all(terms, sites)
    protocol.seats(sites)
    book = Codebook.from_dict(terms["codebook"])
    nothing: dict[str, list[float]] = {name: [] for name in book}
    result: Any = VERBS[terms["verb"]](
        terms["formula"],
        Parties(("",), (nothing,), Incoming(protocol, tuple(letters))),
        codebook=book,
        budget=conform(ApproxDP | ZCDP, terms["guarantee"], "terms.guarantee"),
        adjacency=terms["adjacency"],
        **terms["words"],
    )
    call = replace(result.call, ledger="kept by each site")
    combined: Combined = replace(result, call=call)
    return combined


def stated_terms(
    formula: str,
    *,
    site: str,
    session: str,
    protocol: object,
    codebook: Codebook,
    verb: str,
    budget: Guarantee,
    adjacency: AdjacencyName,
    words: Mapping[str, Any],
) -> tuple[Sent, Guarantee, dict[str, Any]]:
    """Return what a site states, as all others have to, but for the keys; read nothing.

    Returns
    -------
    protocol, budget, terms
        The terms are plain values.
    """
    chosen = _protocol(protocol)
    _check(verb, site, session, budget)
    require_words(verb, words)
    terms = {
        "verb": verb,
        "formula": formula,
        "codebook": Codebook(codebook).to_dict(),
        "words": dict(words),
        "guarantee": [type(budget).__name__, asdict(budget)],
        "adjacency": neighbours(adjacency).name,
        "protocol": protocol_terms(chosen),
        "session": session,
    }
    # What the others could not read is said here, before it is paid for.
    read = json.loads(json.dumps({**terms, "keys": {site: ""}}))
    conform(STATED, read, "what the site states")
    return chosen, budget, terms


def seat_of(protocol: Sent, site: str, key: Path | None, cards: Sequence[Path]) -> Seat | None:
    """Return the site's seat among the others, None where the protocol has no keys."""
    name = protocol.trust.name
    if name not in KEYED:
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


def keys_of(seat: Seat | None) -> dict[str, str]:
    """Return all sites' public keys as plain values."""
    if seat is None:
        return {}
    return {name: own.hex() for name, own in zip(seat.names, seat.public, strict=True)}


def _require_all(terms: Mapping[str, Any], sites: tuple[str, ...]) -> None:
    """Refuse to go on without a site whose masks the others carry."""
    if terms["protocol"]["name"] not in KEYED:
        return
    absent = sorted(set(terms["keys"]) - set(sites))
    if absent:
        raise FrameError(
            f"the file of site {absent[0]!r} is missing ({len(absent)} of {len(terms['keys'])} "
            "are): the masks of the others do not cancel without it"
        )
    strange = sorted(set(sites) - set(terms["keys"]))
    if strange:
        raise FrameError(f"site {strange[0]!r} is none of the sites that agreed on keys")


def _check(verb: object, site: object, session: object, own: Any) -> None:
    if not isinstance(verb, str) or verb not in VERBS:
        raise ArgumentError(f"verb={said(verb)}: expected one of {', '.join(map(repr, VERBS))}")
    for name, given in (("site", site), ("session", session)):
        if not isinstance(given, str) or not given:
            raise ArgumentError(f"{name}={said(given)}: expected a text that is not empty")
    if not isinstance(own, ApproxDP | ZCDP):
        raise ArgumentError("sites add Gaussian noise: write delta=1e-6, or budget=dp.ZCDP(rho)")


def _protocol(protocol: object) -> Sent:
    if isinstance(protocol, tuple(SENT.values())):
        return cast("Sent", protocol)
    if not isinstance(protocol, str) or protocol not in SENT:
        known = ", ".join(map(repr, SENT))
        raise ArgumentError(f"protocol={said(protocol)}: expected one of {known}")
    made: Sent = SENT[protocol]()
    return made


def _named(terms: Mapping[str, Any]) -> Sent:
    """Return the protocol of a file, and refuse what this version does not know."""
    words = dict(terms["protocol"])
    name, verb = words.pop("name", None), terms["verb"]
    if name not in SENT or verb not in VERBS or not set(terms["words"]) <= set(WORDS[verb]):
        raise FrameError("the files are of a verb, words or a protocol that this version lacks")
    read_words(terms["words"], "terms.words")
    made: Sent = conform(SENT[name], words, "terms.protocol")
    return made
