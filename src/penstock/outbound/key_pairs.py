"""RSA key pairs with certificates of their own, for the signatures of SNS's envelopes."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import NameOID

_BITS = 2048
_YEARS = 30
# Version 1 is what SNS's verifiers expect unless a topic asks for version 2.
_HASHES: dict[str, hashes.HashAlgorithm] = {"1": hashes.SHA1(), "2": hashes.SHA256()}


class _Stored(msgspec.Struct):
    key: str
    certificate: str


class RsaKeyPair:
    def __init__(self, stored: _Stored) -> None:
        key = serialization.load_pem_private_key(stored.key.encode(), password=None)
        assert isinstance(key, rsa.RSAPrivateKey), "only RSA keys are generated"
        self._key = key
        self.certificate = stored.certificate

    def sign(self, text: str, version: str) -> str:
        algorithm = _HASHES.get(version, _HASHES["1"])
        return base64.b64encode(
            self._key.sign(text.encode(), padding.PKCS1v15(), algorithm)
        ).decode()


class RsaKeyPairs:
    def generate(self, *, now: int) -> str:
        key = rsa.generate_private_key(public_exponent=65537, key_size=_BITS)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "penstock")])
        start = datetime.fromtimestamp(now // 1000, UTC) - timedelta(days=1)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(start + timedelta(days=365 * _YEARS))
            .sign(key, hashes.SHA256())
        )
        pem = serialization.Encoding.PEM
        private = key.private_bytes(
            pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        stored = _Stored(private.decode(), certificate.public_bytes(pem).decode())
        return msgspec.json.encode(stored).decode()

    def read(self, text: str) -> RsaKeyPair:
        return RsaKeyPair(msgspec.json.decode(text, type=_Stored))
