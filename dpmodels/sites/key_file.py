"""A site's key for one release, and the public cards by which sites know each other."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpmodels.arguments import checked_keywords
from dpmodels.atomic_files import discard, require_target, write_whole
from dpmodels.errors import ArgumentError, FrameError, PrivacyError
from dpmodels.external_files import conform, fields_of, parse, read_bytes, require_text

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey


KEY, CARD = "dpmodels.site_key/1", "dpmodels.site_card/1"
USED = "dpmodels.site_key_used/1"
MOST_BYTES = 2**16  # A choice: keys and cards have some hundred
_HEX = re.compile("[0-9a-f]{64}")


class Participant(NamedTuple):
    """A site among others."""

    names: tuple[str, ...]  # Of all sites, sorted
    public: tuple[bytes, ...]
    place: int
    private: X25519PrivateKey

    @property
    def keys(self) -> dict[str, str]:
        """The public keys of all sites by name, as plain values."""
        return {name: key.hex() for name, key in zip(self.names, self.public, strict=True)}


class Secrets(NamedTuple):
    """What a site shares with each of the others in one release, which the session names."""

    site: Participant
    session: bytes

    def stream(self, partner: int) -> PairStream:
        """Return the random words that this site and another one have, and nobody else."""
        return PairStream(pair_key(self.site.private, self.site.public[partner], self.session))


@dataclass(frozen=True)
class Used:
    """What a key was used for: one message, and where it is until it is visible."""

    site: str
    letter: str
    partial: str
    sha256: str


@checked_keywords("dp.site_key")
def site_key(site: str, path: str | PathLike[str]) -> Path:
    """Make a site's key for one release with ``"cape"`` or ``"secure_sum"``.

    Parameters
    ----------
    site : str
        The site's public name.
    path : path
        Where the private key is written, for this site alone; it is used up by
        the release. The public card goes beside it, with ``.card`` added, and
        to all other sites, by a channel on which it cannot be replaced.

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
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    if not isinstance(site, str) or not site:
        raise ArgumentError("site=: expected the site's name, a text that is not empty")
    require_text(site, "site")
    key_path = Path(path)
    card = key_path.with_name(key_path.name + ".card")
    for target in (key_path, card, used_record(key_path)):
        require_target(target)
    private = X25519PrivateKey.generate()
    write_card(card, site, public_bytes(private).hex())
    try:
        _write_key(key_path, site, private.private_bytes_raw().hex())
    except FrameError:
        discard(card)
        raise
    return card


def write_card(path: Path, site: str, public: str) -> None:
    """Write a site's public card, `public` being 64 hexadecimal digits."""
    card = {"format": CARD, "site": site, "public": public}
    write_whole(path, json.dumps(card).encode())


def read_participant(
    key: str | PathLike[str],
    site: str,
    cards: Sequence[str | PathLike[str]],
    *,
    started: bool = False,
) -> Participant:
    """Read a site's key and the cards of all sites, its own among them or not.

    A used key is refused, but for the exchange that it `started`.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    plain = _read(key, KEY)
    if plain.get("site") != site:
        raise FrameError(f"{str(key)!r} is the key of another site than site={site!r}")
    if "private" not in plain or os.path.lexists(used_record(key)) is not started:
        raise FrameError(
            f"{str(key)!r} was used: a key is for one release, for two would share their masks; "
            "make a new one with dp.site_key and send its card to the other sites"
        )
    try:
        fields = conform({"format": str, "site": str, "private": _digits}, plain, "")
    except FrameError as error:
        raise FrameError(f"{str(key)!r} lacks a part of a key ({error})") from None
    private = X25519PrivateKey.from_private_bytes(bytes.fromhex(fields["private"]))
    public_keys = {site: public_bytes(private)}
    for card in cards:
        plain = _read(card, CARD)
        try:
            fields = conform({"format": str, "site": str, "public": _digits}, plain, "")
            if not fields["site"]:
                raise FrameError("no name")
        except FrameError as error:
            raise FrameError(
                f"{str(card)!r} lacks a part of a card ({error}); ask for it again"
            ) from None
        card_site, public = fields["site"], bytes.fromhex(fields["public"])
        if public_keys.setdefault(card_site, public) != public:
            raise FrameError(
                f"{str(card)!r} is of site {card_site!r}, for which another key was given"
            )
        # Refuse an unusable key here, before anything is charged.
        pair_key(private, public, b"")
    if len(set(public_keys.values())) < len(public_keys):
        raise FrameError("two sites have the same key: each makes its own with dp.site_key")
    names = tuple(sorted(public_keys))
    return Participant(
        names, tuple(public_keys[name] for name in names), names.index(site), private
    )


def used_record(key: str | PathLike[str]) -> Path:
    """Return the path of the record of a key's use, beside the key itself, links resolved."""
    key_path = Path(os.path.realpath(key))
    return key_path.with_name(key_path.name + ".used")


def use_up(key: str | PathLike[str], used: Used) -> None:
    """Claim a key for one message; of several processes one succeeds.

    The record is the claim: it is complete or absent, and never replaced.
    """
    plain = {"format": USED, **asdict(used)}
    try:
        write_whole(used_record(key), json.dumps(plain).encode(), private=True)
    except FrameError as error:
        raise FrameError(f"the key was not claimed, and no message was written: {error}") from None


def wipe(key: str | PathLike[str], site: str) -> None:
    """Remove the secret from the file of a used key."""
    _write_key(Path(os.path.realpath(key)), site, None)


def is_wiped(key: str | PathLike[str]) -> bool:
    """Whether the secret of a key was removed."""
    return "private" not in _read(key, KEY)


def read_used(key: str | PathLike[str]) -> Used | None:
    """Return what a key was used for; None if it was not, or without a readable record."""
    try:
        fields = conform({"format": str, **fields_of(Used)}, _read(used_record(key), USED), "")
    except FrameError:
        return None
    return Used(**{name: fields[name] for name in fields_of(Used)})


def _write_key(place: Path, site: str, private: str | None) -> None:
    fields = {"format": KEY, "site": site} | ({} if private is None else {"private": private})
    write_whole(place, json.dumps(fields).encode(), overwrite=private is None, private=True)


def _digits(plain: object) -> str:
    if not isinstance(plain, str) or not _HEX.fullmatch(plain):
        raise FrameError("expected 64 hexadecimal digits")
    return plain


def _read(path: str | PathLike[str], written: str) -> dict[str, object]:
    why = "it is of another format"
    try:
        plain = parse(read_bytes(path, MOST_BYTES))
    except FrameError as error:
        plain, why = None, str(error)
    if not isinstance(plain, dict) or plain.get("format") != written:
        raise FrameError(
            f"{str(path)!r} is missing or is not a file of dp.site_key, {written} ({why})"
        )
    return plain


# Secrets of sites: of pairs, with the random words that both derive from them, and in shares.
#
# References
# ----------
# .. [1] Shamir, A. (1979). "How to share a secret." Communications of the ACM
#    22(11), 612-613.

DOMAIN = b"dpmodels.sites/1:"
# A Mersenne prime above 2**256.
PRIME = 2**521 - 1
SECRET_BYTES = 32


class PairStream:
    """The keystream of AES-256-CTR under a secret of two sites, read once from its start.

    The key, 32 bytes, is for one release only.
    """

    __slots__ = ("_encryptor",)

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self._encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return the next 64-bit words, the same on any machine."""
        stream = self._encryptor.update(bytes(8 * count))
        return np.frombuffer(stream, dtype="<u8").astype(np.uint64)

    def __repr__(self) -> str:
        return "<PairStream, not shown>"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("the secret of two sites cannot be pickled or copied")


def public_bytes(private: X25519PrivateKey) -> bytes:
    """Return the public half of a key, 32 bytes."""
    return private.public_key().public_bytes_raw()


def pair_key(private: X25519PrivateKey, public: bytes, session: bytes) -> bytes:
    """Agree with another site on a secret of 32 bytes: X25519 (RFC 7748), then HKDF (RFC 5869).

    Another session, which is what both release, gives another secret.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    try:
        secret = private.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        raise FrameError("the public key of a site is not an X25519 key of 32 bytes") from None
    public_pair = b"".join(sorted((public_bytes(private), public)))
    return HKDF(SHA256(), 32, salt=session, info=DOMAIN + public_pair).derive(secret)


class KeyShare(NamedTuple):
    """The value of a random polynomial at a place from 1, modulo `PRIME`."""

    place: int
    value: int

    def __repr__(self) -> str:
        return f"<KeyShare {self.place}, value not shown>"


def split_secret(secret: bytes, shares: int, needed: int) -> tuple[KeyShare, ...]:
    """Divide a secret between holders; fewer than needed learn nothing of it.

    >>> parts = split_secret(bytes(range(32)), 5, 3)
    >>> join_secret(parts[1:4], 3) == bytes(range(32))
    True
    """
    if not 1 <= needed <= shares or len(secret) != SECRET_BYTES:
        raise ArgumentError(
            f"{needed} of {shares} shares of {len(secret)} bytes: expected a number needed from 1 "
            f"to that of the shares, of a secret of {SECRET_BYTES} bytes"
        )
    polynomial = [int.from_bytes(secret)] + [secrets.randbelow(PRIME) for _ in range(needed - 1)]
    values = (
        sum(factor * at**power for power, factor in enumerate(polynomial)) % PRIME
        for at in range(1, shares + 1)
    )
    return tuple(map(KeyShare, range(1, shares + 1), values))


def join_secret(parts: Sequence[KeyShare], needed: int) -> bytes:
    """Reconstruct a secret from its shares."""
    by_place = {part.place: part for part in parts}
    if len(by_place) < needed:
        raise ArgumentError(
            f"{len(by_place)} shares of different holders were given, {needed} are needed"
        )
    used_shares = list(by_place.values())[:needed]
    secret = 0
    for part in used_shares:
        weight = part.value
        for other_share in used_shares:
            if other_share.place != part.place:
                weight = weight * other_share.place % PRIME
                weight = weight * pow(other_share.place - part.place, -1, PRIME) % PRIME
        secret = (secret + weight) % PRIME
    if secret >= 2 ** (8 * SECRET_BYTES):
        raise ArgumentError("the shares are not of one secret")
    return secret.to_bytes(SECRET_BYTES)
