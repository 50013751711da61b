"""What a job returns: whether it is kept, and how it is encoded and decoded as JSON.

The types are those of arguments.  Outcomes in the annotation (`-> int | Retry`) are not values.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from penstock.client.values.json_values import (
    DECODING_ERRORS,
    ENCODING_ERRORS,
    JsonType,
    return_annotation,
)
from penstock.domain.errors import InvalidRequest
from penstock.domain.message.outcome import HandlerOutcome

Keeping = Literal["keep", "drop"]


class ReturnValue:
    """Raises InvalidRequest if it should be kept and cannot be JSON."""

    def __init__(
        self,
        function: Callable[..., object] | None,
        kind: str,
        keeping: Keeping | None = None,
        *,
        is_list: bool = False,
    ) -> None:
        """`is_list`: the function returns a list with the results of many jobs."""
        if keeping not in (None, "keep", "drop"):
            raise InvalidRequest(f"job {kind!r}: result is 'keep' or 'drop', not {keeping!r}")
        self._function = function
        self._kind = kind
        self._keeping = keeping
        self._is_list = is_list
        if keeping == "keep":
            self._refuse_unfit()

    @cached_property
    def is_kept(self) -> bool:
        """Without an option: if the annotation names a type that can be JSON."""
        if self._keeping is not None:
            return self._keeping == "keep"
        kind = self._type
        return self._hint is not NoneType and kind.is_annotated and kind.unfit is None

    def write(self, value: object) -> str:
        """Encode it; raises InvalidRequest."""
        try:
            return self._type.encode(value).decode()
        except ENCODING_ERRORS as error:
            raise InvalidRequest(
                f"job {self._kind!r}: its result cannot be stored as JSON: {error}"
            ) from None

    def read(self, value: Any) -> Any:
        """Convert plain JSON values to the annotated type; raises InvalidRequest."""
        if value is None or not self._type.is_annotated or self._type.unfit is not None:
            return value
        try:
            return self._type.decode(msgspec.json.encode(value))
        except DECODING_ERRORS as error:
            raise InvalidRequest(
                f"job {self._kind!r}: its result does not match its return annotation: {error}"
            ) from None

    @cached_property
    def _type(self) -> JsonType:
        return JsonType(self._hint)

    @cached_property
    def _hint(self) -> Any:
        return self._read_hint()

    def _read_hint(self) -> Any:
        """The annotation without outcomes; Any if there is none, or it cannot be resolved yet."""
        if self._function is None:
            return Any
        hint = return_annotation(self._function)
        return _without_outcomes(_element(hint) if self._is_list else hint)

    def _refuse_unfit(self) -> None:
        unfit = JsonType(self._read_hint()).unfit
        if unfit is not None:
            raise InvalidRequest(
                f"job {self._kind!r}: its result cannot be kept, because its return annotation "
                f"cannot be stored as JSON: {unfit}"
            )


def _element(hint: Any) -> Any:
    """The type of one result; nothing else than a list has any."""
    if hint is Any:
        return Any
    return (get_args(hint) or (Any,))[0] if get_origin(hint) is list else NoneType


def _without_outcomes(hint: Any) -> Any:
    is_union = get_origin(hint) in (Union, UnionType)
    members = get_args(hint) if is_union else (hint,)
    values = tuple(member for member in members if not _is_outcome(member))
    return Union[values] if values else NoneType  # noqa: UP007 (a type made at run time)


def _is_outcome(hint: Any) -> bool:
    if get_origin(hint) is type:  # the class itself: type[Cancel]
        [hint] = get_args(hint)
    return isinstance(hint, type) and issubclass(hint, HandlerOutcome)


PLAIN = ReturnValue(None, "?")  # of a job whose function is not known here
