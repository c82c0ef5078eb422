"""Tokens of an identity provider (OpenID Connect): JSON Web Tokens, verified by keys in a file.

A token is accepted for RS256, ES256 and EdDSA alone, and only by the algorithm of the key, which
the file of the curator holds; keys and addresses that a token names are never used. There is no
code for symmetric algorithms or for "none", so none can be confused with these.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, NoReturn

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from dpmodels.errors import ArgumentError, FrameError, GatewayError
from dpmodels.external_files import conform, parse, read_bytes
from dpmodels.gateway.settings import OidcSettings
from dpmodels.typing import Plain

_MOST_BYTES: Final = 100_000
_FEWEST_BITS: Final = 2_048
_BASE64: Final = re.compile(r"[A-Za-z0-9_-]+")
_PEM: Final = re.compile(rb"-----BEGIN PUBLIC KEY-----.*?-----END PUBLIC KEY-----", re.DOTALL)


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
        content, _, signature = token.rpartition(".")
        try:
            header, claims = (parse(_decoded(part)) for part in content.split("."))
            if not isinstance(header, dict) or not isinstance(claims, dict):
                _refuse("it is not a JSON Web Token")
            self._key(header).verify(_decoded(signature), content.encode())
        except InvalidSignature:
            _refuse("its signature is not valid")
        except (ValueError, FrameError, RecursionError):
            _refuse("it is not a JSON Web Token")
        return self._subject(claims, now), _time(claims, "iat")

    def _key(self, header: Mapping[str, object]) -> Key:
        algorithm, identifier = header.get("alg"), header.get("kid")
        if "crit" in header:
            _refuse("its header requires extensions")
        keys = [key for key in self.keys if key.algorithm == algorithm]
        if not keys:
            _refuse("its algorithm is not that of a key of the provider")
        # A key in PEM has no identifier; then, or if the token has none, only one may be meant.
        named = [key for key in keys if identifier is None or key.identifier in (None, identifier)]
        if len(named) != 1:
            _refuse("its key is not known")
        return named[0]

    def _subject(self, claims: Mapping[str, object], now: float) -> str:
        expected, audience = self.settings, claims.get("aud")
        if _time(claims, "exp") + expected.leeway_seconds <= now:
            _refuse("it has expired: log in again")
        starts = max(_time(claims, name) for name in ("iat", "nbf") if name in ("iat", *claims))
        if starts - expected.leeway_seconds > now:
            _refuse("it is not valid yet: compare the clocks")
        if claims.get("iss") != expected.issuer:
            _refuse("it has another issuer")
        if expected.audience not in (audience if isinstance(audience, list) else [audience]):
            _refuse("it is for another audience")
        if expected.claim == "email" and claims.get("email_verified") is not True:
            _refuse("its email was not verified by the provider")
        subject = claims.get(expected.claim)
        if isinstance(subject, str) and subject:
            return subject
        _refuse(f"it has no claim {expected.claim!r}")


def _refuse(reason: str) -> NoReturn:
    raise GatewayError(f"the token of the identity provider is not valid: {reason}", 401) from None


def _decoded(part: str) -> bytes:
    if not _BASE64.fullmatch(part):
        raise FrameError("expected base64url")
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _time(claims: Mapping[str, object], name: str) -> float:
    value = claims.get(name)
    if isinstance(value, int | float) and value is not True and 0 <= value < 1e12:
        return float(value)
    _refuse(f"its claim {name!r} is not a time")


def read_provider(settings: OidcSettings) -> Provider:
    """Read the public keys of a provider, as PEM or a JSON Web Key Set; typed errors."""
    try:
        content = read_bytes(settings.keys, _MOST_BYTES)
        keys = [_key_of(load_pem_public_key(block), None) for block in _PEM.findall(content)]
        keys = keys or _jwks(parse(content))
    except (FrameError, ValueError) as error:
        raise FrameError(f"[oidc] keys = {settings.keys!r} cannot be read: {error}") from None
    if not keys:
        raise ArgumentError(
            f"[oidc] keys = {settings.keys!r} has no public key for RS256, ES256 or EdDSA: save "
            "the provider's jwks_uri to it, or its key as PEM"
        )
    return Provider(settings, tuple(keys))


def _jwks(plain: Plain) -> list[Key]:
    """Return the keys for signatures of a set; those of unknown kinds are ignored."""
    keys = []
    for entry in conform([dict], conform(dict, plain, "it").get("keys"), "keys"):
        if "d" in entry or "k" in entry:
            raise FrameError("it has a private or symmetric key: save the public keys only")
        public = _public(entry) if entry.get("use", "sig") == "sig" else None
        if public is not None:
            key = _key_of(public, conform(str | None, entry.get("kid"), "kid"))
            keys += [key] if entry.get("alg", key.algorithm) == key.algorithm else []
    return keys


def _public(entry: Mapping[str, object]) -> object:
    def field(name: str) -> bytes:
        return _decoded(conform(str, entry.get(name), name))

    def number(name: str) -> int:
        return int.from_bytes(field(name))

    match entry.get("kty"), entry.get("crv"):
        case "RSA", _:
            return rsa.RSAPublicNumbers(number("e"), number("n")).public_key()
        case "EC", "P-256":
            point = ec.EllipticCurvePublicNumbers(number("x"), number("y"), ec.SECP256R1())
            return point.public_key()
        case "OKP", "Ed25519":
            return ed25519.Ed25519PublicKey.from_public_bytes(field("x"))
    return None


def _key_of(public: object, identifier: str | None) -> Key:
    match public:
        case rsa.RSAPublicKey() if public.key_size >= _FEWEST_BITS:
            padded, hashed = padding.PKCS1v15(), SHA256()
            return Key("RS256", identifier, lambda s, m: public.verify(s, m, padded, hashed))
        case ec.EllipticCurvePublicKey() if isinstance(public.curve, ec.SECP256R1):
            rule = ec.ECDSA(SHA256())
            return Key("ES256", identifier, lambda s, m: public.verify(_der(s), m, rule))
        case ed25519.Ed25519PublicKey():
            return Key("EdDSA", identifier, public.verify)
    raise FrameError(f"expected keys of RSA with {_FEWEST_BITS:,} bits, of P-256 or Ed25519")


def _der(signature: bytes) -> bytes:
    """Return a signature of two numbers of 32 bytes as DER."""
    if len(signature) != 64:
        raise InvalidSignature
    r, s = (int.from_bytes(half) for half in (signature[:32], signature[32:]))
    return utils.encode_dss_signature(r, s)
