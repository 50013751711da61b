"""Signed deliveries, by the Standard Webhooks specification (standardwebhooks.com).

The receiver can verify that a delivery comes from us, was not changed, and is not a replay: the
signature covers an id, which is the same for every attempt, an instant, and the payload.  Several
secrets give several signatures, so that a secret can be replaced while the receiver knows both.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence

from penstock.domain.errors import InvalidRequest

ID = "webhook-id"
TIMESTAMP = "webhook-timestamp"
SIGNATURE = "webhook-signature"
HEADERS = frozenset({ID, TIMESTAMP, SIGNATURE})

_PREFIX = "whsec_"
_VERSION = "v1"
_MIN_BYTES, _MAX_BYTES = 24, 64  # of a secret, by the specification


def key_of(secret: str) -> bytes:
    """The key behind a secret; raises InvalidRequest, without revealing it."""
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not _MIN_BYTES <= len(key) <= _MAX_BYTES:
        raise InvalidRequest(
            f"a signing secret is {_PREFIX} and {_MIN_BYTES} to {_MAX_BYTES} bytes in base64"
        )
    return key


def sign(
    secrets: Sequence[str], *, message_id: str, now: int, payload: bytes
) -> list[tuple[str, str]]:
    """The three headers; `now` in milliseconds.  Raises InvalidRequest."""
    timestamp = str(now // 1000)
    signed = b".".join((message_id.encode(), timestamp.encode(), payload))
    signatures = (f"{_VERSION},{_signature(key_of(one), signed)}" for one in secrets)
    return [(ID, message_id), (TIMESTAMP, timestamp), (SIGNATURE, " ".join(signatures))]


def _signature(key: bytes, signed: bytes) -> str:
    return base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
