"""The MD5 sums that SQS answers with; several SDKs recompute them and refuse what differs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from penstock.edge.sqs.wire.model import MessageAttributeValue

_STRING = b"\x01"
_BINARY = b"\x02"


def of_body(utf8: bytes) -> str:
    return hashlib.md5(utf8, usedforsecurity=False).hexdigest()


def of_attributes(attributes: Mapping[str, MessageAttributeValue] | None) -> str | None:
    """Of message attributes or message system attributes; None if there are none."""
    if not attributes:
        return None
    digest = hashlib.md5(usedforsecurity=False)
    for name in sorted(attributes):
        value = attributes[name]
        data_type = value.DataType or ""
        digest.update(_measured(name.encode()) + _measured(data_type.encode()))
        if data_type.startswith("Binary"):
            digest.update(_BINARY + _measured(value.BinaryValue or b""))
        else:
            digest.update(_STRING + _measured((value.StringValue or "").encode()))
    return digest.hexdigest()


def _measured(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data
