"""The disclosure report, to be read, printed and kept."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Final

from dpmodels.disclosures.blocks import Block
from dpmodels.disclosures.html import as_fragment, as_page
from dpmodels.disclosures.markdown import as_text
from dpmodels.errors import ArgumentError
from dpmodels.labels import plain
from dpmodels.writing import require_target, write_whole

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
        place = require_target(path, overwrite=overwrite)
        how = _FORMATS.get(place.suffix.lower())
        if how is None:
            raise ArgumentError(
                f"{str(place)!r} names no format: write a name that ends in .html or .md, such as "
                f"{str(Path(place.stem + '.html'))!r}"
            )
        write_whole(place, getattr(self, how)().encode(), overwrite=overwrite)

    def __repr__(self) -> str:
        stamp = "" if self.stamp is None else f"; {self.stamp}"
        return f"<Disclosure {plain(self.title)!r}: {self.told}{stamp}>"

    def _repr_html_(self) -> str:
        return as_fragment(self.title, self.stamp, self.blocks)
