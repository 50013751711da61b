"""Outcomes of durable steps as JSON, by the return annotation of the function."""

from __future__ import annotations

from typing import Any

from penstock.client.values.arguments import is_plain_json
from penstock.client.values.json_values import DECODING_ERRORS, ENCODING_ERRORS, JsonType
from penstock.domain.errors import InvalidRequest
from penstock.domain.message.outcome import Bury


class OutcomeType:
    """The type of the outcomes of one step; raises InvalidRequest if it cannot be JSON."""

    def __init__(self, hint: Any, step: str) -> None:
        self._step = step
        self._type = JsonType(hint)
        unfit = self._type.unfit
        if unfit is not None:
            raise InvalidRequest(f"the outcome of step {step!r} cannot be stored as JSON: {unfit}")

    def write(self, outcome: object) -> bytes:
        """Encode an outcome.  Raises Bury: the step has run, and a retry would repeat it."""
        try:
            if not self._type.is_annotated and not is_plain_json(outcome):
                raise TypeError("without a return annotation it must be plain JSON")
            text = self._type.encode(outcome)
            self._type.decode(text)
        except ENCODING_ERRORS as error:  # includes those of decoding
            raise Bury(
                f"step {self._step!r} has run, but its outcome {outcome!r:.200} cannot be "
                f"recorded: {error}"
            ) from error
        return text

    def read(self, text: bytes) -> Any:
        """Decode a recorded outcome; raises InvalidRequest if it is of another type."""
        try:
            return self._type.decode(text)
        except DECODING_ERRORS as error:
            raise InvalidRequest(
                f"step {self._step!r} was recorded with another type of outcome: {error}"
            ) from None
