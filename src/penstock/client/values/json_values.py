"""Values as JSON, including models that encode and decode themselves, such as those of pydantic."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec

from penstock.domain.errors import InvalidRequest

ENCODING_ERRORS = (TypeError, ValueError, OverflowError, RecursionError)
DECODING_ERRORS = (msgspec.DecodeError, RecursionError)


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


def why_not_json(hint: Any) -> str | None:
    """Why a type, or one inside it, cannot be JSON; None if it can."""
    try:
        return _unfit(msgspec.inspect.type_info(hint), set())
    except (TypeError, ValueError) as error:
        return str(error)


def _unfit(info: Any, seen: set[int]) -> str | None:
    if id(info) in seen:  # types may be recursive
        return None
    seen.add(id(info))
    if isinstance(info, msgspec.inspect.CustomType):
        return None if is_model(info.cls) else f"{info.cls!r} is not known to msgspec"
    if isinstance(info, msgspec.inspect.RawType | msgspec.inspect.ExtType):
        return f"{type(info).__name__} is not for JSON values"
    inside = [getattr(info, name, None) for name in ("type", "item_type", "key_type", "value_type")]
    for name in ("types", "item_types", "fields"):
        inside += getattr(info, name, ())
    return next(filter(None, (_unfit(i, seen) for i in inside if i is not None)), None)


_encoder = msgspec.json.Encoder(enc_hook=write_model)


class JsonType:
    """An annotation whose values are stored as JSON."""

    def __init__(self, hint: Any) -> None:
        self.is_annotated = hint not in (Any, object)
        self.unfit = why_not_json(hint) if self.is_annotated else None
        kind = hint if self.is_annotated and self.unfit is None else Any
        self._decoder = msgspec.json.Decoder(kind, dec_hook=read_model)

    def encode(self, value: object) -> bytes:
        """Raises one of ENCODING_ERRORS."""
        return _encoder.encode(value)

    def decode(self, text: bytes) -> Any:
        """Without a fit annotation: plain JSON values.  Raises one of DECODING_ERRORS."""
        return self._decoder.decode(text)


def return_annotation(function: Callable[..., object]) -> Any:
    """Any if there is none, or if it cannot be resolved (a class that is not defined yet)."""
    while isinstance(function, functools.partial):
        function = function.func
    try:
        return get_type_hints(function, include_extras=True).get("return", Any)
    except (TypeError, NameError):
        return Any


def json_of(body: object) -> str:
    """Encode any value that msgspec can encode; raises InvalidRequest."""
    try:
        return _encoder.encode(body).decode()
    except ENCODING_ERRORS as error:
        raise InvalidRequest(f"the body cannot be stored as JSON: {error}") from None
