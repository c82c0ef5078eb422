"""``disclosure``: what was released, at what cost, under which guarantee, as one report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Final

from dpmodels.arguments import text, truth
from dpmodels.disclosures.blocks import Block
from dpmodels.disclosures.document import About, document
from dpmodels.disclosures.gather import Gathered, gathered
from dpmodels.disclosures.html import as_fragment, as_page
from dpmodels.disclosures.markdown import as_text
from dpmodels.errors import ArgumentError
from dpmodels.labels import plain
from dpmodels.privacy import Ledger
from dpmodels.report import count
from dpmodels.results.base import STAMP, Result
from dpmodels.sessions.session import Session
from dpmodels.writing import require_target, write_whole


def disclosure(
    of: Result | Ledger | Session | str | PathLike[str] | Iterable[object],
    *,
    title: str = "Disclosure report",
    author: str = "",
    contact: str = "",
    purpose: str = "",
    provenance: str = "",
    date: str = "",
    pictures: bool = True,
) -> Disclosure:
    """Write the report that goes with what is disclosed.

    Parameters
    ----------
    of : results, ledgers, sessions, or paths of their files; one, a list or a dict
        A release that several results were made of is counted once, and so is a ledger that comes
        twice. Results are found in the ledgers by their digests.
    title, author, contact, purpose : str, optional
        What stands at the head.
    provenance : str, optional
        Where the declared bounds and levels come from, in the author's words.
    date : str, optional
        By default today's, in UTC.
    pictures : bool, default True
        Whether results are drawn, where matplotlib is installed.

    Returns
    -------
    Disclosure
        ``as_html()``, one file that needs no network; ``as_markdown()``; ``save(path)``. It has the
        guarantee in words with what it is not, each release with its cost, mechanism and digests,
        what was declared, all tables, a paragraph for a methods section, BibTeX, and a place for a
        signature.

    Raises
    ------
    ArgumentError
        If there is nothing to disclose, or something that cannot be.
    FrameError
        If a file cannot be read.
    LedgerError
        If a ledger does not verify.

    Notes
    -----
    A total is stated of a ledger, by its rule, and of nothing else: of results without one it
    cannot be known, and ledgers are never added up. Charges that nothing came of are listed as
    spent. It is made of released values and public facts; nothing is read or charged.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(age=(0, 100), wage=(0, 80))
    >>> rows = {"age": [20, 40, 60] * 900, "wage": [10, 30, 20] * 900}
    >>> study = dp.session(rows, cb, eps=2.0, delta=1e-6)
    >>> ages = study.mean("age", eps=0.5)
    >>> report = dp.disclosure([study, ages], title="Wages", author="A. Analyst", pictures=False)
    >>> report
    <Disclosure 'Wages': 1 ledger, 1 charge, 0 unfinished, 0 releases in no ledger>
    >>> "eps = 0.5" in report.as_markdown()
    True
    """
    about = {
        "title": title,
        "author": author,
        "contact": contact,
        "purpose": purpose,
        "provenance": provenance,
        "date": date,
    }
    for name, value in about.items():
        text(name, value)
    if not title.strip():
        raise ArgumentError("title is empty: write what the report is about, or leave it out")
    with_pictures = truth("pictures", pictures)
    contents = gathered(of)
    blocks = tuple(document(contents, About(**about), with_pictures))
    return Disclosure(title, _summary(contents), blocks, _stamp(contents))


def _summary(contents: Gathered) -> str:
    charges = sum(len(account.charges) for account in contents.accounts)
    unfinished = sum(account.unfinished for account in contents.accounts)
    ledgers, loose = len(contents.accounts), len(contents.without_ledger)
    return (
        f"{count(ledgers)} ledger{'s' * (ledgers != 1)}, {count(charges)} "
        f"charge{'s' * (charges != 1)}, {count(unfinished)} unfinished, {count(loose)} "
        f"release{'s' * (loose != 1)} in no ledger"
    )


def _stamp(contents: Gathered) -> str | None:
    """Return the stamp of a simulation where all is one, and a warning where some of it is."""
    if not contents.simulated:
        return None
    real = any(account.charges for account in contents.accounts) or not all(
        released.simulated for released in contents.releases
    )
    return "CONTAINS A SIMULATION - NOT PRIVATE" if real else STAMP


# The disclosure report, to be read, printed and kept.

_FORMATS: Final = {
    ".html": "as_html",
    ".htm": "as_html",
    ".md": "as_markdown",
    ".markdown": "as_markdown",
}


@dataclass(frozen=True, repr=False, eq=False)
class Disclosure:
    """A report on what was released, under which guarantee; of released values and public facts.

    Made by :func:`dpmodels.disclosures.verb.disclosure`.

    Attributes
    ----------
    title : str
        Its title.
    told : str
        What it is about, in a few words.
    blocks : tuple of Block
        Its parts, in order.
    stamp : str or None
        What it is stamped with where it has simulations in it.
    """

    title: str
    told: str
    blocks: tuple[Block, ...]
    stamp: str | None = None

    def as_html(self) -> str:
        """Return one HTML document, which needs no network and runs no script."""
        return as_page(self.title, self.stamp, self.blocks)

    def as_markdown(self) -> str:
        """Return the same as Markdown."""
        return as_text(self.title, self.stamp, self.blocks)

    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write the report, whole or not at all.

        Parameters
        ----------
        path : path
            Ends in ``.html`` or ``.md``, which says what is written.
        overwrite : bool, default False
            Whether a file that is there already may be replaced. A link never is.

        Raises
        ------
        ArgumentError
            If the name ends otherwise.
        FrameError
            If it cannot be written. What was there is whole then.
        """
        target = require_target(path, overwrite=overwrite)
        method = _FORMATS.get(target.suffix.lower())
        if method is None:
            raise ArgumentError(
                f"{str(target)!r} names no format: write a name that ends in .html or .md, such as "
                f"{str(Path(target.stem + '.html'))!r}"
            )
        write_whole(target, getattr(self, method)().encode(), overwrite=overwrite)

    def __repr__(self) -> str:
        stamp = "" if self.stamp is None else f"; {self.stamp}"
        return f"<Disclosure {plain(self.title)!r}: {self.told}{stamp}>"

    def _repr_html_(self) -> str:
        return as_fragment(self.title, self.stamp, self.blocks)
