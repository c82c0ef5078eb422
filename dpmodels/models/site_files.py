"""``site_release`` and ``combine``: sites that are different organisations, by way of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from dpmodels.codebook import Codebook
from dpmodels.entry_point import entry_point
from dpmodels.errors import ArgumentError, FrameError
from dpmodels.frames.delimited import CsvMode
from dpmodels.models.crossing import Way, measured, of_question, planned
from dpmodels.models.site_terms import (
    keys_of,
    read_terms,
    require_key_record,
    seat_of,
    state,
)
from dpmodels.options import ledger_of
from dpmodels.privacy import AdjacencyName, Guarantee, Ledger
from dpmodels.question import Question
from dpmodels.sites import LetterProtocol, Parties
from dpmodels.sites.letter import (
    join_parts,
    key_claim,
    read_letter,
    require_same_terms,
    write_part,
)
from dpmodels.sites.parties import with_csv
from dpmodels.sites.posting import finish, post, require_places
from dpmodels.typing import AnyPath
from dpmodels.verbs import VERBS


@entry_point
def site_release(
    formula: str,
    data: object,
    path: AnyPath,
    *,
    site: str,
    session: str,
    protocol: str | LetterProtocol,
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
    **words: Any,
) -> Path:
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
    verb : str
        What is to be fitted, such as "pca", "lm", "mean" or "table": a verb of which a mechanism
        adds Gaussian noise to one sum of integers.
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
    **words
        Further words of the verb: for ``"pca"`` ncomp, center, scale and more.

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
    they are claimed by the charge itself. Keys need a ledger in a file, as a
    copy of a key would otherwise write a second letter with the same masks.
    The letter's digest is recorded in it before the letter gets its name.

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
    stated = state(
        formula,
        site=site,
        session=session,
        protocol=protocol,
        codebook=codebook,
        verb=verb,
        eps=eps,
        delta=delta,
        budget=budget,
        adjacency=adjacency,
        person=person,
        rows=rows,
        subset=subset,
        words=words,
    )
    chosen, terms, ledger = stated.protocol, stated.terms, ledger_of(ledger)
    require_key_record(chosen, ledger)
    if key is not None and finish(key, site, path, terms, ledger):
        return Path(path)
    require_places(path, key)
    seat = seat_of(chosen, site, key, cards)
    terms["keys"] = keys_of(seat)
    # What a ledger lets a site use once: its name in a session, and its key.
    claims = [("session", f"{session}, site {site}")]
    claims += [] if seat is None else [key_claim(terms, site)]
    others = () if seat is None else seat.names
    held = Parties((site,), with_csv((data,), csv), chosen, others)
    (strategy, plan, _), (statistic,), charged = measured(
        _way(stated.question), held, "auto", ledger, tuple(claims)
    )
    post(write_part(chosen, strategy, statistic, plan, terms, site, seat), path, key, charged)
    return Path(path)


def combine(files: Sequence[AnyPath]) -> Any:
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
    ...             ledger=dp.Ledger.open(folder / f"{site}.ledger", 1.0, 1e-6, new=True),
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
    question, protocol = read_terms(terms)
    sites = tuple(letter.site for letter in letters)
    _require_all(protocol, terms, sites)
    held, way = Parties(protocol.seats(sites), (), protocol), _way(question)
    strategy, plan, reason = planned(way, held, "auto", (way.private,))
    # The rows lie at the sites: of none the lattice and its public facts are told.
    basis = strategy.measure(way.private, plan).fingerprint.digest
    release = of_question(join_parts(protocol, strategy, letters, plan, basis), question)
    return way.of(release, "kept by each site", reason)


def _way(question: Question) -> Way[Any]:
    way: Way[Any] = VERBS[question.verb].spec(question)
    return way


def _require_all(
    protocol: LetterProtocol, terms: Mapping[str, Any], sites: tuple[str, ...]
) -> None:
    """Refuse to go on without a site whose masks the others carry."""
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
        raise FrameError(f"site {strange[0]!r} is none of the sites that agreed on keys")
