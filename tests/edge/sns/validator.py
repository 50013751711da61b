"""Checks the signature of an envelope, as SNS's message validators do."""

from __future__ import annotations

import base64
from typing import Any

import httpx
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

SIGNED = {
    "Notification": ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"),
    "SubscriptionConfirmation": (
        "Message",
        "MessageId",
        "SubscribeURL",
        "Timestamp",
        "Token",
        "TopicArn",
        "Type",
    ),
}
HASHES: dict[str, Any] = {"1": hashes.SHA1(), "2": hashes.SHA256()}


def is_valid(envelope: dict[str, Any]) -> bool:
    lines = [f"{name}\n{envelope[name]}\n" for name in SIGNED[envelope["Type"]] if name in envelope]
    pem = httpx.get(envelope["SigningCertURL"], trust_env=False).content
    key = x509.load_pem_x509_certificate(pem).public_key()
    assert isinstance(key, rsa.RSAPublicKey)
    try:
        key.verify(
            base64.b64decode(envelope["Signature"]),
            "".join(lines).encode(),
            padding.PKCS1v15(),
            HASHES[envelope["SignatureVersion"]],
        )
    except InvalidSignature:
        return False
    return True
