"""Tokens of an identity provider (OpenID Connect): JSON Web Tokens, verified by keys in a file.

A token is accepted for RS256, ES256 and EdDSA alone, and only by the algorithm of the key, which
the file of the curator holds; keys and addresses that a token names are never used. There is no
code for symmetric algorithms or for "none", so none can be confused with these.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePublicKey,
    EllipticCurvePublicNumbers,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from dpmodels.errors import ArgumentError, FrameError, GatewayError
from dpmodels.external_files import conform, parse, read_bytes
from dpmodels.gateway.settings import OidcSettings

LONGEST_TOKEN: Final = 8_192
_MOST_BYTES: Final = 100_000
_FEWEST_BITS: Final = 2_048
_BASE64: Final = re.compile(r"[A-Za-z0-9_-]+")
_PEM: Final = re.compile(rb"-----BEGIN PUBLIC KEY-----.*?-----END PUBLIC KEY-----", re.DOTALL)
_CURVES: Final = {"P-256": "EC", "Ed25519": "OKP"}


class Key(NamedTuple):
    """A public key, its one algorithm, and its identifier if it has one."""

    algorithm: str
    identifier: str | None
    verify: Callable[[bytes, bytes], None]  # Signature and content; InvalidSignature


@dataclass(frozen=True)
class Provider:
    """An identity provider: what its tokens have to say, and its keys."""

    settings: OidcSettings
    keys: tuple[Key, ...]

    def verified(self, token: str, now: float) -> tuple[str, float]:
        """Return whose a token is and when it was issued; a GatewayError with status 401."""
        parts = token.split(".")
        if len(parts) != 3 or len(token) > LONGEST_TOKEN:
            raise _refused("it is not a JSON Web Token")
        header, plain = (_object(part) for part in parts[:2])
        key = self._key(header)
        try:
            key.verify(_decoded(parts[2]), ".".join(parts[:2]).encode())
        except (InvalidSignature, ValueError):
            raise _refused("its signature is not valid") from None
        self._require_times(plain, now)
        return self._subject(plain), _time(plain, "iat")

    def _key(self, header: Mapping[str, Any]) -> Key:
        algorithm, identifier = header.get("alg"), header.get("kid")
        if "crit" in header:
            raise _refused("its header requires extensions")
        keys = [key for key in self.keys if key.algorithm == algorithm]
        if not keys:
            raise _refused("its algorithm is not that of a key of the provider")
        # A key in PEM has no identifier; then, or if the token has none, only one may be meant.
        named = [key for key in keys if identifier is None or key.identifier in (None, identifier)]
        if len(named) != 1:
            raise _refused("its key is not known")
        return named[0]

    def _require_times(self, plain: Mapping[str, Any], now: float) -> None:
        leeway = self.settings.leeway_seconds
        if _time(plain, "exp") + leeway <= now:
            raise _refused("it has expired: log in again")
        starts = _time(plain, "iat"), _time(plain, "nbf") if "nbf" in plain else 0.0
        if max(starts) - leeway > now:
            raise _refused("it is not valid yet: compare the clocks")

    def _subject(self, plain: Mapping[str, Any]) -> str:
        name, audience = self.settings.claim, plain.get("aud")
        if plain.get("iss") != self.settings.issuer:
            raise _refused("it has another issuer")
        if self.settings.audience not in (audience if isinstance(audience, list) else [audience]):
            raise _refused("it is for another audience")
        subject = plain.get(name)
        if not isinstance(subject, str) or not subject:
            raise _refused(f"it has no claim {name!r}")
        if name == "email" and plain.get("email_verified") is not True:
            raise _refused("its email was not verified by the provider")
        return subject


def _refused(reason: str) -> GatewayError:
    return GatewayError(f"the token of the identity provider is not valid: {reason}", 401)


def _decoded(part: str) -> bytes:
    if not _BASE64.fullmatch(part):
        raise _refused("it is not a JSON Web Token")
    with suppress(ValueError):
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    raise _refused("it is not a JSON Web Token")


def _object(part: str) -> Mapping[str, Any]:
    with suppress(FrameError, RecursionError):
        plain = parse(_decoded(part))
        if isinstance(plain, dict):
            return plain
    raise _refused("it is not a JSON Web Token")


def _time(plain: Mapping[str, Any], name: str) -> float:
    """Return a time of a token; nan and infinity are refused."""
    value = plain.get(name)
    if isinstance(value, int | float) and value is not True and 0 <= value < 1e12:
        return float(value)
    raise _refused(f"its claim {name!r} is not a time")


def read_provider(settings: OidcSettings) -> Provider:
    """Read the public keys of a provider, as PEM or a JSON Web Key Set.

    Raises
    ------
    FrameError, ArgumentError
        If the file cannot be read, or has no key for RS256, ES256 or EdDSA.
    """
    try:
        content = read_bytes(settings.keys, _MOST_BYTES)
        blocks = _PEM.findall(content)
        keys = (
            [_key_of(load_pem_public_key(block), None) for block in blocks]
            if blocks
            else _jwks(content)
        )
    except (FrameError, ValueError) as error:
        raise FrameError(f"[oidc] keys = {settings.keys!r} cannot be read: {error}") from None
    if not keys:
        raise ArgumentError(
            f"[oidc] keys = {settings.keys!r} has no public key for RS256, ES256 or EdDSA: save "
            "the provider's jwks_uri to it, or its key as PEM"
        )
    return Provider(settings, tuple(keys))


def _jwks(content: bytes) -> list[Key]:
    """Return the keys for signatures of a set; those of unknown kinds are ignored."""
    plain = parse(content)
    entries = plain.get("keys") if isinstance(plain, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise FrameError('expected {"keys": [...]}')
    keys = []
    for entry in entries:
        if "d" in entry or "k" in entry:
            raise FrameError("it has a private or symmetric key: save the public keys only")
        public = _public(entry) if entry.get("use", "sig") == "sig" else None
        if public is not None:
            identifier = entry.get("kid")
            key = _key_of(public, None if identifier is None else conform(str, identifier, "kid"))
            keys += [key] if entry.get("alg", key.algorithm) == key.algorithm else []
    return keys


def _public(entry: Mapping[str, Any]) -> object:
    """Return the public key of an entry of a set, None if it is of an unknown kind."""

    def number(name: str) -> int:
        return int.from_bytes(_field(entry, name))

    kind, curve = entry.get("kty"), entry.get("crv")
    if kind == "RSA":
        return RSAPublicNumbers(number("e"), number("n")).public_key()
    if kind != _CURVES.get(str(curve)):
        return None
    if kind == "OKP":
        return Ed25519PublicKey.from_public_bytes(_field(entry, "x"))
    return EllipticCurvePublicNumbers(number("x"), number("y"), SECP256R1()).public_key()


def _field(entry: Mapping[str, Any], name: str) -> bytes:
    try:
        return _decoded(conform(str, entry.get(name), name))
    except GatewayError:
        raise FrameError(f"{name}: expected base64url") from None


def _key_of(public: object, identifier: str | None) -> Key:
    """Return the key with its one algorithm."""
    match public:
        case RSAPublicKey() if public.key_size >= _FEWEST_BITS:
            return Key("RS256", identifier, lambda s, m: public.verify(s, m, PKCS1v15(), SHA256()))
        case EllipticCurvePublicKey() if isinstance(public.curve, SECP256R1):
            return Key("ES256", identifier, lambda s, m: public.verify(_der(s), m, ECDSA(SHA256())))
        case Ed25519PublicKey():
            return Key("EdDSA", identifier, public.verify)
    raise FrameError(f"expected keys of RSA with {_FEWEST_BITS:,} bits, of P-256 or Ed25519")


def _der(signature: bytes) -> bytes:
    """Return a signature of two numbers of 32 bytes as DER."""
    if len(signature) != 64:
        raise InvalidSignature
    return encode_dss_signature(int.from_bytes(signature[:32]), int.from_bytes(signature[32:]))
