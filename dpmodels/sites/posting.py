"""A letter and its key: the letter is on the disk before the key is used up, visible only after.

Whenever the process dies, there is a key that was not used and no letter; or a
used key, its record, and the letter under a temporary name, which
:func:`finish` makes visible; or a used key and a letter.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dpmodels.errors import FrameError, LedgerError
from dpmodels.privacy import Charge, Ledger
from dpmodels.question import difference
from dpmodels.sites.key_file import Used, read_used, use_up, used_record, wipe
from dpmodels.sites.letter import Letter, key_claim, read_letter, seal
from dpmodels.typing import AnyPath
from dpmodels.writing import discard, publish, require_target, stage

_AGAIN = "the same call again gives it its name, and neither reads a row nor charges anything"
_RENAME = "rename it"

_PARTIAL = re.compile(r"\.[0-9a-f]{32}\.partial")

NOTHING: Final = Charge()


def require_places(path: AnyPath, key: AnyPath | None) -> None:
    """Refuse a path for a letter, or the place of a key, that cannot be written to."""
    record = [] if key is None else [used_record(key)]
    require_target(path, never=record)
    for place in record:
        if not os.path.lexists(place):
            require_target(place)


def post(letter: Letter, path: AnyPath, key: AnyPath | None, charged: Charge = NOTHING) -> None:
    """Write a letter, use up the key that masks it, and record its digest.

    FrameError if it cannot be written or the key not be claimed: no letter is left then, and the
    charge is given back. LedgerError if it cannot be recorded: it is not visible then. What is left
    to do for a letter of a used key, :func:`finish` does later.
    """
    sealed = seal(letter)
    place = Path(path)
    try:
        partial = stage(place, sealed.content)
    except FrameError:
        charged.void("the letter could not be written")
        raise
    if key is not None:
        try:
            use_up(key, Used(letter.site, place.name, partial.name, sealed.sha256))
        except FrameError:
            discard(partial)
            charged.void("the key could not be claimed")
            raise
        wipe(key, letter.site)
    try:
        charged.released(lambda: sealed.sha256)
    except LedgerError:
        if key is None:
            discard(partial)
        raise
    _show(partial, place, sealed.content, _RENAME if key is None else _AGAIN)


def finish(
    key: AnyPath, site: str, path: AnyPath, terms: Mapping[str, Any], ledger: Ledger | None = None
) -> bool:
    """Make the letter visible for which a key was used up, if that is all that is lacking."""
    used, place = read_used(key), Path(path)
    if used is None or (used.site, used.letter) != (site, place.name):
        return False
    partial = place.parent / used.partial
    if not _PARTIAL.fullmatch(used.partial) or not partial.is_file():
        return False
    letter = read_letter(partial)
    sealed = seal(letter)
    if sealed.sha256 != used.sha256:
        return False
    own = {name: value for name, value in letter.terms.items() if name not in ("keys", "basis")}
    found = difference(own, {name: value for name, value in terms.items() if name != "keys"})
    if found:
        raise FrameError(
            f"the key {str(key)!r} was used for a letter that waits to be made visible, with "
            f"other terms: {found}; write the same, or make a new key with dp.site_key"
        )
    wipe(key, site)
    if ledger is not None:
        claim = key_claim(letter.terms, site)
        for entry in ledger.unfinished():
            if claim in entry.claims:
                ledger.released(entry, used.sha256)
    # Where files have one name each, an empty one may have kept it free.
    _show(partial, place, sealed.content, _AGAIN, overwrite=_holds(place, b""))
    return True


def _show(
    partial: Path, place: Path, content: bytes, instead: str, *, overwrite: bool = False
) -> None:
    """Give a letter its name, which another process may have done meanwhile."""
    try:
        publish(partial, place, overwrite=overwrite)
    except FrameError as error:
        if not _holds(place, content):
            raise FrameError(
                f"{error}. The letter is kept as {partial.name!r} in the same folder: {instead}"
            ) from None
        discard(partial)


def _holds(place: Path, content: bytes) -> bool:
    try:
        return not place.is_symlink() and place.read_bytes() == content
    except OSError:
        return False
