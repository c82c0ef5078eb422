"""Tokens of an identity provider: what is accepted, and every token that is refused."""

import base64
import hashlib
import hmac
import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from gates import gate, in_thread

from dpmodels.errors import ArgumentError, DPModelsError, FrameError, GatewayError
from dpmodels.gateway.oidc import read_provider
from dpmodels.gateway.server import Doorkeeper
from dpmodels.gateway.service import Service
from dpmodels.gateway.settings import OidcSettings, gate_of

NOW = 1_800_000_000
ISSUER = "https://login.example"
CLAIMS = {"iss": ISSUER, "aud": "gate", "sub": "ann-1", "iat": NOW, "exp": NOW + 300}
# Signing costs a tenth of a second for the key of RSA; the keys are those of all tests.
RSA = rsa.generate_private_key(65537, 2048)
EC, ED = ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate()
OTHER = ec.generate_private_key(ec.SECP256R1())


def b64(content):
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def number(value):
    return b64(value.to_bytes((value.bit_length() + 7) // 8))


def es256(content, key=EC):
    r, s = decode_dss_signature(key.sign(content, ec.ECDSA(SHA256())))
    return r.to_bytes(32) + s.to_bytes(32)


SIGN = {
    "RS256": lambda content: RSA.sign(content, padding.PKCS1v15(), SHA256()),
    "ES256": es256,
    "EdDSA": ED.sign,
}


def token(header=None, sign=None, **claims):
    """A token for ES256 with a valid signature, except for what is changed; None leaves out."""
    head = {"alg": "ES256", "kid": "two", **(header or {})}
    plain = {name: value for name, value in {**CLAIMS, **claims}.items() if value is not None}
    content = f"{b64(json.dumps(head).encode())}.{b64(json.dumps(plain).encode())}"
    return f"{content}.{b64((sign or SIGN[head['alg']])(content.encode()))}"


def pem(key):
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def jwks():
    public_numbers, two = RSA.public_key().public_numbers(), EC.public_key().public_numbers()
    raw = ED.public_key().public_bytes_raw()
    x, y = b64(two.x.to_bytes(32)), b64(two.y.to_bytes(32))
    return [
        {
            "kty": "RSA",
            "kid": "one",
            "n": number(public_numbers.n),
            "e": number(public_numbers.e),
            "alg": "RS256",
        },
        {"kty": "EC", "crv": "P-256", "kid": "two", "x": x, "y": y, "use": "sig"},
        {"kty": "OKP", "crv": "Ed25519", "kid": "three", "x": b64(raw)},
        {"kty": "EC", "crv": "P-521", "kid": "four", "x": x, "y": y},
        {"kty": "RSA", "kid": "five", "n": number(public_numbers.n), "e": "AQAB", "use": "enc"},
    ]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("oidc") / "keys.json"
    file.write_text(json.dumps({"keys": jwks()}))
    return file


def provider(path, **changed):
    return read_provider(OidcSettings(ISSUER, "gate", str(path), **changed))


@pytest.mark.parametrize(
    ("algorithm", "kid"), [("RS256", "one"), ("ES256", "two"), ("EdDSA", "three")]
)
def test_a_token_of_each_algorithm_is_verified(path, algorithm, kid):
    for header in ({"alg": algorithm, "kid": kid}, {"alg": algorithm, "kid": None}):
        text = token(header, aud=["other", "gate"], nbf=NOW)
        assert provider(path).verified(text, NOW) == ("ann-1", NOW)


def test_keys_may_be_in_pem(tmp_path):
    (tmp_path / "keys.pem").write_bytes(pem(RSA) + pem(EC))
    keys = provider(tmp_path / "keys.pem")
    assert [key.algorithm for key in keys.keys] == ["RS256", "ES256"]
    assert keys.verified(token({"kid": "any"}), NOW)[0] == "ann-1"
    with pytest.raises(GatewayError, match="algorithm"):
        keys.verified(token({"alg": "EdDSA"}), NOW)


def symmetric(content):
    """A signature by the public key as a secret, which everybody knows."""
    return hmac.digest(pem(RSA), content, hashlib.sha256)


HEAD, BODY, SIGNATURE = token().split(".")
DUPLICATE = b64(b'{"alg": "ES256", "alg": "ES256"}')
JWK = {"kty": "EC", "crv": "P-256", **{name: jwks()[1][name] for name in "xy"}}
BAD = {
    "no algorithm": (token({"alg": "none"}, lambda _: b""), "algorithm"),
    "none, signed": (token({"alg": "none"}, es256), "algorithm"),
    "None": (token({"alg": "None"}, es256), "algorithm"),
    "symmetric": (token({"alg": "HS256", "kid": "one"}, symmetric), "algorithm"),
    "symmetric as RSA": (token({"alg": "RS256", "kid": "one"}, symmetric), "signature"),
    "a list": (token({"alg": ["ES256"]}, es256), "algorithm"),
    "no name": (token({"alg": None}, es256), "algorithm"),
    "another size": (token({"alg": "RS512", "kid": "one"}, SIGN["RS256"]), "algorithm"),
    "of another key": (token({"kid": "one"}), "key is not known"),
    "an unknown key": (token({"kid": "six"}), "key is not known"),
    "a key to encrypt": (token({"alg": "RS256", "kid": "five"}), "key is not known"),
    "a path as key": (token({"kid": "../../dev/null"}), "key is not known"),
    "a number as key": (token({"kid": 2}), "key is not known"),
    "signed by another": (token(sign=lambda content: es256(content, OTHER)), "signature"),
    "with its own key": (token({"jwk": JWK}, lambda text: es256(text, OTHER)), "signature"),
    "a signature in DER": (token(sign=lambda text: EC.sign(text, ec.ECDSA(SHA256()))), "signature"),
    "a signature of zeros": (token(sign=lambda _: bytes(64)), "signature"),
    "extensions": (token({"crit": ["b64"], "b64": False}), "extensions"),
    "changed": (f"{HEAD}.{token(sub='eve-1').split('.')[1]}.{SIGNATURE}", "signature"),
    "expired": (token(exp=NOW - 61), "expired"),
    "without end": (token(exp=None), "'exp' is not a time"),
    "ends with a text": (token(exp=str(NOW + 9)), "'exp' is not a time"),
    "ends with true": (token(exp=True), "'exp' is not a time"),
    "never ends": (token(exp=float("inf")), "'exp' is not a time"),
    "no end as number": (token(exp=float("nan")), "'exp' is not a time"),
    "not yet": (token(nbf=NOW + 61), "not valid yet"),
    "not yet, as text": (token(nbf="now"), "'nbf' is not a time"),
    "issued later": (token(iat=NOW + 61), "not valid yet"),
    "never issued": (token(iat=None), "'iat' is not a time"),
    "another issuer": (token(iss=ISSUER + "/"), "issuer"),
    "no issuer": (token(iss=None), "issuer"),
    "another audience": (token(aud="gateway"), "audience"),
    "other audiences": (token(aud=["a", "b"]), "audience"),
    "audiences in one": (token(aud={"gate": 1}), "audience"),
    "no audience": (token(aud=None), "audience"),
    "no subject": (token(sub=None), "no claim 'sub'"),
    "empty subject": (token(sub=""), "no claim 'sub'"),
    "many subjects": (token(sub=["ann-1"]), "no claim 'sub'"),
    "two parts": (f"{HEAD}.{BODY}", "JSON Web Token"),
    "five parts": ("a.b.c.d.e", "JSON Web Token"),
    "empty parts": ("..", "JSON Web Token"),
    "another alphabet": (f"{HEAD}.{BODY}.{SIGNATURE}=", "JSON Web Token"),
    "a header with a name twice": (f"{DUPLICATE}.{BODY}.{SIGNATURE}", "JSON Web Token"),
    "a list as header": (f"{b64(b'[1]')}.{BODY}.{SIGNATURE}", "JSON Web Token"),
    "deep": (f"{b64(b'[' * 3_000)}.{BODY}.{SIGNATURE}", "JSON Web Token"),
    "not in UTF-8": (f"{b64(bytes([255]))}.{BODY}.{SIGNATURE}", "JSON Web Token"),
    "one character": (f"{HEAD}.{BODY}.a", "JSON Web Token"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_token_is_refused(path, kind):
    text, message = BAD[kind]
    with pytest.raises(GatewayError, match=message) as refused:
        provider(path).verified(text, NOW)
    assert refused.value.status == 401
    assert text not in str(refused.value)


def test_clocks_may_differ_by_the_leeway(path):
    for text in (token(exp=NOW - 59), token(nbf=NOW + 60), token(iat=NOW + 60)):
        assert provider(path).verified(text, NOW)[0] == "ann-1"
        with pytest.raises(GatewayError):
            provider(path, leeway_seconds=0).verified(text, NOW)


def test_a_key_without_identifier_is_ambiguous_beside_another(tmp_path):
    two = [{**jwks()[1], "kid": kid} for kid in ("a", "b")]
    (tmp_path / "keys.json").write_text(json.dumps({"keys": two}))
    with pytest.raises(GatewayError, match="key is not known"):
        provider(tmp_path / "keys.json").verified(token({"kid": None}), NOW)


def test_an_email_has_to_be_verified(path):
    by_email = provider(path, claim="email")
    text = token(email="ann@example.org", email_verified=True)
    assert by_email.verified(text, NOW)[0] == "ann@example.org"
    for verified in (None, False, "true"):
        with pytest.raises(GatewayError, match="email was not verified"):
            by_email.verified(token(email="ann@example.org", email_verified=verified), NOW)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "cannot be read"),
        ("[]", "expected an object"),
        ('{"keys": []}', "no public key"),
        (json.dumps({"keys": jwks()[3:]}), "no public key"),
        (json.dumps({"keys": [{**jwks()[0], "d": "AQAB"}]}), "private or symmetric"),
        (json.dumps({"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}), "private or symmetric"),
        (json.dumps({"keys": [{**jwks()[0], "n": number(2**511 + 1)}]}), "2,048 bits|cannot be"),
        (json.dumps({"keys": [{**jwks()[1], "x": jwks()[1]["y"]}]}), "cannot be read"),
        (json.dumps({"keys": [{"kty": "RSA", "n": 3, "e": "AQAB"}]}), "cannot be read"),
        ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "cannot be read"),
    ],
)
def test_keys_that_cannot_be_used_are_refused(tmp_path, content, message):
    (tmp_path / "keys.json").write_text(content)
    with pytest.raises((ArgumentError, FrameError), match=message):
        provider(tmp_path / "keys.json")
    with pytest.raises(FrameError, match="missing"):
        provider(tmp_path / "other.json")


def settings(folder, path, analysts):
    plain = {
        "tables": {"visits": {"data": "visits.csv", "codebook": "visits.json", "eps": 1.0}},
        "analysts": analysts,
        "oidc": {"issuer": ISSUER, "audience": "gate", "keys": str(path)},
    }
    return gate_of(plain, folder)


def test_claims_belong_to_one_analyst_each(tmp_path, path):
    gated = settings(tmp_path, path, {"ann": {"oidc": "ann-1"}, "bob": {}})
    assert (gated.analysts["ann"].oidc, gated.analysts["bob"].oidc) == ("ann-1", None)
    for analysts in ({"ann": {}}, {"ann": {"oidc": "x"}, "bob": {"oidc": "x"}}):
        with pytest.raises(DPModelsError, match="different claims"):
            settings(tmp_path, path, analysts)


@pytest.mark.expensive
def test_a_gateway_finds_the_analyst_of_a_token(tmp_path, path, monkeypatch):
    from dataclasses import replace

    plain = gate(tmp_path)
    analysts = {**plain.analysts, "ann": replace(plain.analysts["ann"], oidc="ann-1")}
    oidc = OidcSettings(ISSUER, "gate", str(path))
    service = Service(replace(plain, analysts=analysts, oidc=oidc), in_thread)
    now, doorkeeper = [NOW + 0.5], Doorkeeper(service)
    monkeypatch.setattr(service.clock, "latest", lambda: now[0])
    header = f"Bearer {token()}"
    assert doorkeeper.analyst(header) == "ann"
    with pytest.raises(GatewayError, match="not valid"):
        doorkeeper.analyst(f"Bearer {token(sub='ann')}")  # The claim, not the analyst's name
    with pytest.raises(GatewayError, match="signature"):
        doorkeeper.analyst(f"Bearer {token(sign=lambda text: es256(text, OTHER))}")
    with pytest.raises(GatewayError, match="send the header"):
        doorkeeper.analyst(f"Bearer {token(more='a' * 9_000)}")
    # A token that was verified is refused once it has expired.
    now[0] = NOW + 361
    with pytest.raises(GatewayError, match="expired") as refused:
        doorkeeper.analyst(header)
    assert refused.value.status == 401
    now[0] = NOW
    assert doorkeeper.analyst(header) == "ann"
    # Issued before the analyst's tokens were revoked, or after.
    monkeypatch.setattr("dpmodels.gateway.state.time.time", lambda: NOW + 1.0)
    service.state.revoke_tokens("ann")
    with pytest.raises(GatewayError, match="revoked"):
        doorkeeper.analyst(header)
    assert doorkeeper.analyst(f"Bearer {token(iat=NOW + 2)}") == "ann"
    service.stop()


@pytest.mark.expensive
def test_without_a_provider_its_tokens_are_refused(tmp_path):
    service = Service(gate(tmp_path), in_thread)
    with pytest.raises(GatewayError, match="not valid") as refused:
        Doorkeeper(service).analyst(f"Bearer {token()}")
    assert refused.value.status == 401
    service.stop()
