"""The body of a notification or an event as JSON."""

from __future__ import annotations

import msgspec

from penstock.client.jobs.model_types import write_model
from penstock.domain.errors import InvalidRequest

_encoder = msgspec.json.Encoder(enc_hook=write_model)


def json_of(body: object) -> str:
    """Encode any value that msgspec can encode; raises InvalidRequest."""
    try:
        return _encoder.encode(body).decode()
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidRequest(f"the body cannot be kept as JSON: {error}") from None
