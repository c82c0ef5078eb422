"""The aggregator's half of a release over a network: it asks all for terms, then for letters."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from dpmodels.errors import FrameError, shorten
from dpmodels.labels import plain as printed
from dpmodels.models.protocol import Post
from dpmodels.models.site_answers import LETTER, TERMS
from dpmodels.models.site_files import KEYED
from dpmodels.outside import conform
from dpmodels.sites.letter import STATED, difference, read_letter
from dpmodels.writing import require_target, write_whole

Terms = dict[str, Any]
_PAUSE: Final = 0.2
_UNTOUCHED: Final = "no row was read and nothing was charged"


def ask_sites(
    post: Post, sites: Sequence[str], session: str, folder: Path, timeout: float
) -> list[Path]:
    """Gather one letter of each site, once all have stated the same terms.

    Parameters
    ----------
    post : Post
        The way to the sites.
    sites : sequence of str
        The names of those that are to take part.
    session : str
        The name of this release.
    folder : path
        Where letters are put, each under its site's name.
    timeout : float
        Seconds for all of it.

    Returns
    -------
    list of Path
        The letters.

    Raises
    ------
    FrameError
        If a site is missing, refuses, states other terms than another, or fails.
    """
    until = time.monotonic() + timeout
    files = {site: folder / f"{quote(site, safe='')}.json" for site in sites}
    taken = [str(file) for file in files.values() if file.exists()]
    if taken:
        raise FrameError(f"{taken[0]!r} is there already; give a folder without letters")
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    for file in files.values():
        require_target(file)
    try:
        at, stated = _meet(post, sites, session, until)
        terms = agreed_terms(stated)
    except FrameError:
        if made:
            folder.rmdir()
        raise
    post.send(LETTER, dict.fromkeys(at, terms), max(until - time.monotonic(), 1.0))
    failed = _receive(post, at, terms, files, until)
    if failed:
        site, why = next(iter(failed.items()))
        kept = ", ".join(str(file) for name, file in files.items() if name not in failed)
        raise FrameError(
            f"site {site!r}: {why}; nothing was combined. "
            f"Letters that came: {kept or 'none'}; dp.combine takes them with those that are "
            "missing, written by dp.site_release"
        )
    return list(files.values())


def agreed_terms(stated: Mapping[str, Terms]) -> Terms:
    """Return the terms that all sites stated, with the keys of all.

    Raises
    ------
    FrameError
        The message names the first difference.
    """
    (first, own), *others = stated.items()
    keys: dict[str, str] = {}
    for site, terms in stated.items():
        for name, public in terms["keys"].items():
            if keys.setdefault(name, public) != public:
                raise FrameError(f"site {site!r} has another key of site {name!r}; {_UNTOUCHED}")
    common = {**own, "keys": dict(sorted(keys.items()))}
    for site, terms in others:
        found = difference(common, {**terms, "keys": common["keys"]})
        if found:
            raise FrameError(
                f"sites {first!r} and {site!r} do not state the same: {found}; {_UNTOUCHED}"
            )
    if own["protocol"]["name"] in KEYED and set(keys) != set(stated):
        strange = sorted(set(keys) ^ set(stated))[0]
        raise FrameError(
            f"site {strange!r} is not both asked here and known to the others by its key; "
            f"{_UNTOUCHED}"
        )
    return common


def _meet(
    post: Post, sites: Sequence[str], session: str, until: float
) -> tuple[dict[int, str], dict[str, Terms]]:
    """Ask every node who it is and what it states, until all sites are known."""
    at: dict[int, str] = {}
    stated: dict[str, Terms] = {}
    asked: set[int] = set()
    silent: set[int] = set()
    failure = ""
    while len(stated) < len(sites):
        new = [node for node in post.nodes() if node not in asked]
        post.send(TERMS, {node: {"session": session} for node in new}, until - time.monotonic())
        asked.update(new)
        silent.update(new)
        for node, said in post.arrived():
            silent.discard(node)
            site: Any = said.get("site")
            if "failure" in said:
                failure = f" (a node: {_quoted(said['failure'], 200)})"
            elif site not in sites:
                continue
            elif "terms" not in said:
                why = _quoted(said.get("refusal", "it did not say what was asked"), 300)
                raise FrameError(f"site {site!r} refuses: {why}; {_UNTOUCHED}")
            elif not _are_terms(said["terms"]):
                raise FrameError(f"site {site!r} uses another version of dpmodels; {_UNTOUCHED}")
            elif site in stated:
                raise FrameError(f"two nodes say they are site {site!r}; {_UNTOUCHED}")
            else:
                at[node], stated[site] = site, said["terms"]
        hopeless = failure and not silent and len(asked) >= len(sites)
        if len(stated) < len(sites) and (hopeless or time.monotonic() > until):
            absent = next(site for site in sites if site not in stated)
            raise FrameError(f"site {absent!r} did not answer{failure}; {_UNTOUCHED}")
        time.sleep(0 if len(stated) == len(sites) else _PAUSE)
    return at, {site: stated[site] for site in sites}


def _are_terms(plain: Any) -> bool:
    """Tell whether terms are of the shape that all state."""
    try:
        conform(STATED, plain, "")
    except FrameError:
        return False
    return "name" in plain["protocol"]


def _quoted(text: object, most: int) -> str:
    """Return what a node wrote, as it can be printed."""
    return shorten(printed(str(text)), most)


def _receive(
    post: Post, at: Mapping[int, str], terms: Terms, files: Mapping[str, Path], until: float
) -> dict[str, str]:
    """Put the letters of all sites into files; return why, of those of which none came."""
    waiting, failed = dict(at), {}
    while waiting and time.monotonic() <= until:
        for node, said in post.arrived():
            if node not in waiting:
                continue
            site = waiting.pop(node)
            if "letter" not in said:
                why = said.get("refusal") or said.get("failure") or "it did not send a letter"
                failed[site] = _quoted(why, 300)
                continue
            wrong = _store(str(said["letter"]), site, terms, files[site])
            if wrong:
                failed[site] = wrong
        time.sleep(_PAUSE if waiting else 0)
    return failed | dict.fromkeys(waiting.values(), "it did not answer in time")


def _store(text: str, site: str, terms: Terms, file: Path) -> str:
    """Keep a letter; say what is wrong with it, nothing where it is as agreed."""
    try:
        write_whole(file, text.encode(errors="replace"))
        letter = read_letter(file)
    except FrameError as error:
        return str(error)
    own = {name: value for name, value in letter.terms.items() if name != "basis"}
    wrong = difference(terms, own)
    if letter.site != site:
        return f"its letter is of site {shorten(letter.site)!r}"
    return f"its letter is of other terms: {wrong}" if wrong else ""
