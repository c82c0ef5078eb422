"""The file in which a site sends its part of a joint release: released or masked values, no rows.

A file is JSON: the terms that all sites agree on, what this site sends, and a
SHA-256 digest of both. The digest shows damage and careless change. It is not
a signature: who can write files can write the digest too, so files must come
by a way that the combining party trusts.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from dpmodels.errors import FrameError, shorten

FORMAT = "dpmodels.site/1"


@dataclass(frozen=True)
class Letter:
    """What one site sends.

    Attributes
    ----------
    terms : dict
        What all sites agree on: verb, formula, codebook, words, guarantee,
        neighbours, protocol, session, and the sites and public keys where the
        protocol needs them.
    site : str
        The site's public name.
    rows : int or None
        Its number of rows where that is public.
    values : bytes
        What it sends.
    shape : tuple of int
        Of the values as an array.
    kind : {"words", "floats"}
        What they are: integers modulo a power of 2**64, or 64-bit floats.
    number : str
        Random, of this file.
    simulated : bool
        True inside ``dp.simulation``: then nothing here is private.
    """

    terms: dict[str, Any]
    site: str
    rows: int | None
    values: bytes
    shape: tuple[int, ...]
    kind: str
    number: str
    simulated: bool

    def __repr__(self) -> str:
        return f"<Letter of site {self.site!r}, {len(self.values):,} bytes>"


def canonical(plain: object) -> bytes:
    """Return JSON of one spelling."""
    return json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()


def digest(plain: object) -> str:
    """Return the SHA-256 of a plain value, 64 hexadecimal digits.

    Examples
    --------
    >>> digest({"a": 1})[:8]
    '015abd7f'
    """
    return hashlib.sha256(canonical(plain)).hexdigest()


def require_free(path: str | PathLike[str]) -> None:
    """Refuse a name that is taken, or of a folder that is not there, before anything is spent.

    Raises
    ------
    FrameError
        If there is a file of that name, or no such folder.
    """
    place = Path(path)
    if place.exists():
        raise FrameError(f"{str(path)!r} is there already; give a new name")
    if not place.absolute().parent.is_dir():
        raise FrameError(f"{str(path)!r}: its folder does not exist; make it first")


def write_letter(letter: Letter, path: str | PathLike[str]) -> None:
    """Write a file whole or not at all.

    Raises
    ------
    FrameError
        If there is a file of that name already.
    """
    plain = asdict(letter)
    plain["values"] = base64.b64encode(letter.values).decode()
    plain["codebook_sha256"] = digest(letter.terms["codebook"])
    sealed = {"format": FORMAT, **plain, "sha256": digest({"format": FORMAT, **plain})}
    place = Path(path)
    partial = place.with_name(f"{place.name}.{letter.number}.partial")
    partial.write_text(json.dumps(sealed, indent=1), encoding="utf-8")
    try:
        os.link(partial, place)
    except FileExistsError:
        raise FrameError(f"{str(path)!r} is there already; give a new name") from None
    finally:
        partial.unlink()


def read_letter(path: str | PathLike[str]) -> Letter:
    """Read a file that :func:`write_letter` wrote.

    Raises
    ------
    FrameError
        If it is missing, truncated, of another version, or was changed.
    """
    name = repr(str(path))
    try:
        plain = json.loads(Path(path).read_text(encoding="utf-8"))
        written, sealed = plain.pop("format"), plain.pop("sha256")
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise FrameError(
            f"{name} cannot be read as what a site sent ({type(error).__name__}): it is missing, "
            "truncated, or was not written by dp.site_release"
        ) from None
    if written != FORMAT:
        raise FrameError(f"{name} has the format {shorten(str(written))!r}; expected {FORMAT!r}")
    if sealed != digest({"format": written, **plain}):
        raise FrameError(f"{name} was changed after it was written: its digest does not fit")
    try:
        if plain.pop("codebook_sha256") != digest(plain["terms"]["codebook"]):
            raise FrameError(f"{name}: the codebook does not fit its own digest")
        values = base64.b64decode(plain.pop("values"), validate=True)
        shape = tuple(plain.pop("shape"))
        return Letter(**plain, values=values, shape=shape)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, FrameError):
            raise
        raise FrameError(f"{name} lacks a part of what a site sends") from None


def require_same_terms(letters: Sequence[Letter], names: Sequence[str]) -> None:
    """Refuse files that are not of one release, and a site that comes twice.

    Parameters
    ----------
    letters : sequence of Letter
        At least one.
    names : sequence of str
        Of their files.

    Raises
    ------
    FrameError
        The message names the first difference.
    """
    first, seen = letters[0], {letters[0].site: names[0]}
    for letter, name in zip(letters[1:], names[1:], strict=True):
        found = difference(first.terms, letter.terms)
        if found:
            raise FrameError(
                f"{name!r} is not of the release that {names[0]!r} is of: {found}; all sites write "
                "the same formula, codebook, words and session"
            )
        if letter.simulated != first.simulated:
            raise FrameError(f"one of {name!r} and {names[0]!r} is of a simulation")
        if letter.site in seen:
            raise FrameError(
                f"{name!r} and {seen[letter.site]!r} are both of site {letter.site!r}: a site is "
                "counted once; leave one out"
            )
        seen[letter.site] = name


def difference(one: Any, other: Any, where: str = "") -> str:
    """Say where two plain values first differ; nothing where they do not."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in [*one, *(key for key in other if key not in one)]:
            place = f"{where} {key}".strip()
            if key not in one or key not in other:
                return f"{place} is stated by one of them only"
            found = difference(one[key], other[key], place)
            if found:
                return found
        return ""
    # Sites whose spellings differ, 1 and 1.0, would agree on no secret.
    if canonical(one) == canonical(other):
        return ""
    return f"{where} is {shorten(str(other), 120)} and not {shorten(str(one), 120)}"
