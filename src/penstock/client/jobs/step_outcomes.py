"""Outcomes of durable steps as JSON, by the return annotation of the function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec

from penstock.client.jobs.arguments import is_plain_json
from penstock.client.jobs.json_values import read_model, why_not_json, write_model
from penstock.domain.errors import InvalidRequest
from penstock.domain.message.outcome import Bury

_encoder = msgspec.json.Encoder(enc_hook=write_model)


class OutcomeType:
    """The type of the outcomes of one step; raises InvalidRequest if it cannot be JSON."""

    def __init__(self, hint: Any, step: str) -> None:
        self._step = step
        self._is_annotated = hint is not Any
        unfit = why_not_json(hint)
        if unfit is not None:
            raise InvalidRequest(f"the outcome of step {step!r} cannot be stored as JSON: {unfit}")
        self._decoder = msgspec.json.Decoder(hint, dec_hook=read_model)

    def write(self, outcome: object) -> bytes:
        """Encode an outcome.  Raises Bury: the step has run, and a retry would repeat it."""
        try:
            if not self._is_annotated and not is_plain_json(outcome):
                raise TypeError("without a return annotation it must be plain JSON")
            text = _encoder.encode(outcome)
            self._decoder.decode(text)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise Bury(
                f"step {self._step!r} has run, but its outcome {outcome!r:.200} cannot be "
                f"recorded: {error}"
            ) from error
        return text

    def read(self, text: bytes) -> Any:
        """Decode a recorded outcome; raises InvalidRequest if it is of another type."""
        try:
            return self._decoder.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise InvalidRequest(
                f"step {self._step!r} was recorded with another type of outcome: {error}"
            ) from None


def returned_by(function: Callable[..., object]) -> Any:
    """The return annotation of a function; Any if it has none."""
    while isinstance(function, functools.partial):
        function = function.func
    try:
        hint = get_type_hints(function, include_extras=True).get("return", Any)
    except (TypeError, NameError):
        return Any
    return Any if hint is object else hint
