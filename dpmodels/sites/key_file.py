"""A site's key for one release, and the public cards by which sites know each other."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from dpmodels.errors import ArgumentError, FrameError
from dpmodels.sites.keys import pair_key, public_bytes
from dpmodels.sites.letter import require_free

KEY, CARD = "dpmodels.site_key/1", "dpmodels.site_card/1"
KEY_BYTES = 32


class Seat(NamedTuple):
    """A site among others.

    Attributes
    ----------
    names : tuple of str
        All sites, sorted.
    public : tuple of bytes
        Their public keys.
    place : int
        One's own.
    private : X25519PrivateKey
        One's own key.
    """

    names: tuple[str, ...]
    public: tuple[bytes, ...]
    place: int
    private: X25519PrivateKey


def site_key(site: str, path: str | PathLike[str]) -> Path:
    """Make a site's key for one release with ``"cape"`` or ``"secure_sum"``.

    Parameters
    ----------
    site : str
        The site's public name.
    path : path
        Where the private key is written, for this site alone; it is used up by
        the release. The public card goes beside it, with ``.card`` added, and
        to all other sites, by a way on which it cannot be exchanged.

    Returns
    -------
    Path
        Of the public card.

    Raises
    ------
    ArgumentError, FrameError
        If the name is empty, or one of the files is there already.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     card = site_key("A", Path(folder) / "a.key")
    ...     card.name
    'a.key.card'
    """
    if not isinstance(site, str) or not site:
        raise ArgumentError("site=: expected the site's name, a text that is not empty")
    place = Path(path)
    card = place.with_name(place.name + ".card")
    require_free(place)
    require_free(card)
    private = X25519PrivateKey.generate()
    secret = {"format": KEY, "site": site, "private": private.private_bytes_raw().hex()}
    write_card(card, site, public_bytes(private).hex())
    _create(place, secret, 0o600)
    return card


def write_card(path: Path, site: str, public: str) -> None:
    """Write a site's public card, `public` being 64 hexadecimal digits."""
    _create(path, {"format": CARD, "site": site, "public": public}, 0o644)


def take_seat(key: str | PathLike[str], site: str, cards: Sequence[str | PathLike[str]]) -> Seat:
    """Read a site's key and the cards of all sites, its own among them or not.

    Raises
    ------
    FrameError
        If a file is not what it should be, two cards are of one site or hold
        one key, or the key was used.
    """
    plain = _read(key, KEY)
    if plain.get("site") != site:
        raise FrameError(f"{str(key)!r} is the key of another site than site={site!r}")
    if "private" not in plain:
        raise FrameError(
            f"{str(key)!r} was used: a key is for one release, for two would share their masks; "
            "make a new one with dp.site_key and send its card to the other sites"
        )
    private = X25519PrivateKey.from_private_bytes(bytes.fromhex(plain["private"]))
    known = {site: public_bytes(private)}
    for card in cards:
        named, public = _read_card(card)
        if known.setdefault(named, public) != public:
            raise FrameError(f"{str(card)!r} is of site {named!r}, of which another key is known")
        # Of a key with which no secret can be made it is said here, before anything is charged.
        pair_key(private, public, b"")
    if len(set(known.values())) < len(known):
        raise FrameError("two sites have the same key: each makes its own with dp.site_key")
    names = tuple(sorted(known))
    return Seat(names, tuple(known[name] for name in names), names.index(site), private)


def use_up(key: str | PathLike[str], site: str) -> None:
    """Take the secret out of a key file, before anything masked by it is written."""
    place = Path(key)
    partial = place.with_name(place.name + ".used")
    partial.write_text(json.dumps({"format": KEY, "site": site}), encoding="utf-8")
    os.replace(partial, place)


def _create(path: Path, plain: dict[str, str], mode: int) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        raise FrameError(f"{str(path)!r} is there already; give a new name") from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(plain, file)


def _read_card(path: str | PathLike[str]) -> tuple[str, bytes]:
    own = _read(path, CARD)
    try:
        site, public = own["site"], bytes.fromhex(own["public"])
    except (KeyError, TypeError, ValueError):
        site, public = "", b""
    if not site or len(public) != KEY_BYTES:
        raise FrameError(f"{str(path)!r} lacks a part of a card; ask for it again")
    return site, public


def _read(path: str | PathLike[str], written: str) -> dict[str, str]:
    try:
        plain: dict[str, str] = json.loads(Path(path).read_text(encoding="utf-8"))
        fits = plain["format"] == written
    except (OSError, ValueError, KeyError, TypeError):
        fits = False
    if not fits:
        raise FrameError(f"{str(path)!r} is missing or is not a file of dp.site_key ({written})")
    return plain
