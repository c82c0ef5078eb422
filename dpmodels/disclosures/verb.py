"""``disclosure``: a report of all releases, their costs and their guarantees."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Final

from dpmodels.arguments import boolean, checked_keywords, text
from dpmodels.atomic_files import require_target, write_whole
from dpmodels.disclosures.accounts import Gathered, gathered
from dpmodels.disclosures.blocks import Block, as_fragment, as_page, as_text
from dpmodels.disclosures.document import About, document
from dpmodels.errors import ArgumentError
from dpmodels.labels import plain
from dpmodels.privacy import Ledger
from dpmodels.report import count
from dpmodels.results.base import STAMP, Result
from dpmodels.sessions.session import Session


@checked_keywords("dp.disclosure")
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
    """Write the report that accompanies disclosed results.

    Parameters
    ----------
    of : results, ledgers, sessions, or paths of their files; one, a list or a dict
        A session stands for its ledger and the results it made. A release with several results,
        or a ledger given twice, is counted once. Results are matched to ledgers by their digests.
    title, author, contact, purpose : str, optional
        The head of the report.
    provenance : str, optional
        The source of the declared bounds and levels.
    date : str, optional
        By default today's, in UTC.
    pictures : bool, default True
        Whether results are plotted, if matplotlib is installed.

    Returns
    -------
    Disclosure
        ``as_html()``, one file that needs no network; ``as_markdown()``; ``save(path)``. It has
        all tables and pictures, then the guarantee and its limits, each charge with its cost and
        mechanism, the declarations, a paragraph for a methods section, BibTeX, lines for
        a signature, and digests in an annex.

    Raises
    ------
    ArgumentError
        If there is nothing to disclose, or a source cannot be disclosed.
    FrameError
        If a file cannot be read.
    LedgerError
        If a ledger does not verify.

    Notes
    -----
    Only a ledger has a total, composed by its rule: the total of results without a ledger is
    unknown, and ledgers are never added up. Charges without an outcome are listed as spent. The
    report uses released values and public facts; it reads no rows and charges nothing.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(age=(0, 100), wage=(0, 80))
    >>> rows = {"age": [20, 40, 60] * 900, "wage": [10, 30, 20] * 900}
    >>> study = dp.session(rows, cb, eps=2.0, delta=1e-6)
    >>> ages = study.mean("age", eps=0.5)
    >>> report = dp.disclosure(study, title="Wages", author="A. Analyst", pictures=False)
    >>> report
    <Disclosure 'Wages': 1 ledger, 1 charge, 0 unfinished, 0 releases in no ledger>
    >>> "Private mean" in report.as_markdown()
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
        raise ArgumentError("title is empty: write a title, or leave title= out")
    with_pictures = boolean("pictures", pictures)
    contents = gathered(of)
    blocks = tuple(document(contents, About(**about), with_pictures))
    charges = sum(len(account.charges) for account in contents.accounts)
    unfinished = sum(account.unfinished for account in contents.accounts)
    ledgers, loose = len(contents.accounts), len(contents.without_ledger)
    return Disclosure(
        title,
        f"{count(ledgers)} ledger{'s' * (ledgers != 1)}, {count(charges)} "
        f"charge{'s' * (charges != 1)}, {count(unfinished)} unfinished, {count(loose)} "
        f"release{'s' * (loose != 1)} in no ledger",
        blocks,
        _stamp(contents),
    )


def _stamp(contents: Gathered) -> str | None:
    """Return the stamp of a simulation if everything is simulated, a warning if something is."""
    if not contents.simulated:
        return None
    real = any(account.charges for account in contents.accounts) or not all(
        released.simulated for released in contents.releases
    )
    return "CONTAINS A SIMULATION - NOT PRIVATE" if real else STAMP


_FORMATS: Final = {
    ".html": "as_html",
    ".htm": "as_html",
    ".md": "as_markdown",
    ".markdown": "as_markdown",
}


@dataclass(frozen=True, repr=False, eq=False)
class Disclosure:
    """A report on releases and their guarantees, from released values and public facts only.

    Made by :func:`dpmodels.disclosures.verb.disclosure`.

    Attributes
    ----------
    title : str
        Its title.
    overview : str
        Its contents in one line.
    blocks : tuple of Block
        Its parts, in order.
    stamp : str or None
        The stamp of a report with simulations.
    """

    title: str
    overview: str
    blocks: tuple[Block, ...]
    stamp: str | None = None

    def as_html(self) -> str:
        """Return one HTML document, which needs no network and runs no script."""
        return as_page(self.title, self.stamp, self.blocks)

    def as_markdown(self) -> str:
        """Return the same as Markdown."""
        return as_text(self.title, self.stamp, self.blocks)

    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write the report atomically.

        Parameters
        ----------
        path : path
            Ends in ``.html`` or ``.md``, which selects the format.
        overwrite : bool, default False
            Whether an existing file may be replaced. A link is never replaced.

        Raises
        ------
        ArgumentError
            If the name ends otherwise.
        FrameError
            If it cannot be written. An existing file is then unchanged.
        """
        target = require_target(path, overwrite=overwrite)
        method = _FORMATS.get(target.suffix.lower())
        if method is None:
            raise ArgumentError(
                f"{str(target)!r} has no known format: write a name that ends in .html or .md, "
                "such as "
                f"{str(Path(target.stem + '.html'))!r}"
            )
        write_whole(target, getattr(self, method)().encode(), overwrite=overwrite)

    def __repr__(self) -> str:
        stamp = "" if self.stamp is None else f"; {self.stamp}"
        return f"<Disclosure {plain(self.title)!r}: {self.overview}{stamp}>"

    def _repr_html_(self) -> str:
        return as_fragment(self.title, self.stamp, self.blocks)
