"""The key of AWS signatures, version 4: derived from a secret, valid for one day and service."""

from __future__ import annotations

import hmac


def signing_key(secret: str, *, date: str, region: str, service: str) -> bytes:
    """`date`: such as 20300314."""
    key = f"AWS4{secret}".encode()
    for part in (date, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key
