"""Arguments of a chunk handler: its one parameter is a list, and each job is one of its elements.

The body of a job is the element as JSON.  So a job with the parameters of a dataclass can become a
chunk handler that takes a list of them, and its waiting jobs stay valid.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from penstock.client.jobs.item import Item
from penstock.client.values.arguments import (
    Arguments,
    canonical_json,
    describe,
    encode,
    is_plain_json,
)
from penstock.client.values.json_values import read_model, why_not_json
from penstock.domain.errors import InvalidRequest

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class ChunkArguments(Arguments):
    """Raises InvalidRequest for a function that does not take a list."""

    def __init__(self, function: Callable[..., object], kind: str) -> None:
        self._function = function
        self._kind = kind
        self._decoder: msgspec.json.Decoder[Any] | None = None
        self._is_unchecked = False
        self.takes_items = False
        parameters = list(inspect.signature(function).parameters.values())
        needed = [p for p in parameters if p.default is p.empty]
        if not parameters or len(needed) > 1 or parameters[0].kind not in _POSITIONAL:
            raise InvalidRequest(f"job {kind!r} gets chunks: its function takes one list")
        self._name = parameters[0].name
        # An annotation may name a class that is not defined yet; it is resolved at the first use.
        with suppress(NameError):
            self._prepare()

    def write(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> str:
        if len(args) != 1 or kwargs:
            raise InvalidRequest(
                f"job {self._kind!r} gets chunks: enqueue one element of its list at a time"
            )
        return self._write(args[0])

    def write_named(self, given: Mapping[str, object], *, is_part: bool = False) -> str:
        return self._write(given)

    def write_part(
        self,
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
        is_left_out: Callable[[object], bool],
    ) -> tuple[str, dict[str, object]]:
        if any(map(is_left_out, args)):
            raise InvalidRequest(
                f"job {self._kind!r} gets chunks: it takes no results of other jobs"
            )
        return self.write(args, kwargs), {}

    def value(self, body: str | bytes) -> object:
        """Decode the element; raises InvalidRequest if the body does not match."""
        try:
            return self._prepare().decode(body)
        except msgspec.DecodeError as error:
            raise InvalidRequest(f"job {self._kind!r}: {describe(error)}") from None
        except RecursionError as error:
            raise InvalidRequest(f"job {self._kind!r}: {error}") from None

    def canonical(self, body: str, names: Iterable[str] | None = None) -> bytes:
        value = self.value(body)
        if names is None:
            return canonical_json(value)
        fields = msgspec.json.decode(canonical_json(value))
        return canonical_json({name: fields.get(name) for name in names})

    @property
    def names(self) -> list[str]:
        """The fields of an element that is an object."""
        info = msgspec.inspect.type_info(self._prepare().type)
        return [field.name for field in getattr(info, "fields", ())]

    def _write(self, value: object) -> str:
        self._prepare()
        if self._is_unchecked and not is_plain_json(value):
            raise InvalidRequest(
                f"job {self._kind!r}: {self._name!r} does not name the type of its elements, "
                f"so it accepts only plain JSON, not {value!r}"
            )
        try:
            body = encode(value)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InvalidRequest(f"job {self._kind!r}: {error}") from None
        self.value(body)
        return body.decode()

    def _prepare(self) -> msgspec.json.Decoder[Any]:
        if self._decoder is None:
            hints = get_type_hints(self._function, include_extras=True)
            hint = self._element(hints.get(self._name, Any))
            self._is_unchecked = hint in (Any, object)
            reason = why_not_json(hint)
            if reason is not None:
                raise InvalidRequest(
                    f"job {self._kind!r}: elements of {self._name!r} cannot be stored as JSON: "
                    f"{reason}"
                )
            self._decoder = msgspec.json.Decoder(
                Any if self._is_unchecked else hint, dec_hook=read_model
            )
        return self._decoder

    def _element(self, hint: Any) -> Any:
        if hint is Any:
            return Any
        origin = get_origin(hint) or hint
        if origin not in (list, Sequence):
            raise InvalidRequest(
                f"job {self._kind!r} gets chunks: {self._name!r} is a list, such as "
                f"list[Item[Order]] or list[Order], not {hint!r}"
            )
        (element,) = get_args(hint) or (Any,)
        if element is Item or get_origin(element) is Item:
            self.takes_items = True
            (element,) = get_args(element) or (Any,)
        return Any if element is object else element
