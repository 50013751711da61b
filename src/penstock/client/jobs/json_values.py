"""Values as JSON, including models that encode and decode themselves, such as those of pydantic."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.domain.errors import InvalidRequest


def is_model(kind: object) -> bool:
    return hasattr(kind, "model_validate") and hasattr(kind, "model_dump")


def write_model(value: Any) -> object:
    """An encoding hook for types that msgspec does not know."""
    if is_model(type(value)):
        return value.model_dump(mode="json")
    raise TypeError(f"a {type(value).__name__} cannot be stored as JSON")


def read_model(kind: Any, value: object) -> Any:
    if not is_model(kind):
        raise NotImplementedError
    return kind.model_validate(value)  # msgspec adds the path to its ValueError


_encoder = msgspec.json.Encoder(enc_hook=write_model)


def json_of(body: object) -> str:
    """Encode any value that msgspec can encode; raises InvalidRequest."""
    try:
        return _encoder.encode(body).decode()
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidRequest(f"the body cannot be stored as JSON: {error}") from None
