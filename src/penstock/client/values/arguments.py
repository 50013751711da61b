"""Encode and decode a job's arguments as JSON, by the annotations of its function.  Never pickle.

The body is a JSON object by parameter names: `*args` is a list and `**kwargs` an object under their
own names.  Omitted arguments are not stored, so the default at the time of the run
counts.  Both directions use the same types: a job that cannot run is rejected when it is enqueued,
and one that another client enqueued is checked before it runs.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from inspect import Parameter
from typing import Any, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from penstock.client.values.json_values import (
    ENCODING_ERRORS,
    read_model,
    why_not_json,
    write_model,
)
from penstock.domain.errors import InvalidRequest

_VARIADIC = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
_encoder = msgspec.json.Encoder(enc_hook=write_model)
# Keys in a fixed order, sets sorted: the same arguments always encode to the same text.
_canonical = msgspec.json.Encoder(enc_hook=write_model, order="deterministic")
encode = _encoder.encode
canonical_json = _canonical.encode


class Arguments:
    """The parameters of one function; raises InvalidRequest for types that cannot be JSON."""

    def __init__(
        self, function: Callable[..., object], kind: str, *, ignores: Iterable[str] = ()
    ) -> None:
        self._function = function
        self._kind = kind
        self._ignored = frozenset(ignores)
        self._signature = inspect.signature(function)
        self._parameters = self._signature.parameters
        for name in self._ignored & self._parameters.keys():
            raise InvalidRequest(f"job {kind!r} takes {name!r} and cannot ignore it as well")
        self._decoder: msgspec.json.Decoder[Any] | None = None
        self._part_decoder: msgspec.json.Decoder[Any] | None = None
        self._unchecked: tuple[str, ...] = ()
        # An annotation may name a class that is not defined yet; it is resolved at the first use.
        with suppress(NameError):
            self._prepare()

    def write(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> str:
        """Encode the arguments of a call; raises InvalidRequest where the call would raise."""
        return self.write_named(self._bind(args, kwargs))

    def write_part(
        self,
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
        is_left_out: Callable[[object], bool],
    ) -> tuple[str, dict[str, object]]:
        """The same, but some arguments are left out: returns those by name."""
        given = self._bind(args, kwargs)
        left_out = {name: value for name, value in given.items() if is_left_out(value)}
        for name in left_out:
            if self._parameters[name].kind is Parameter.VAR_KEYWORD:
                raise InvalidRequest(f"job {self._kind!r}: {name!r} takes no results of other jobs")
        rest = {name: value for name, value in given.items() if name not in left_out}
        return self.write_named(rest, is_part=bool(left_out)), left_out

    def write_named(self, given: Mapping[str, object], *, is_part: bool = False) -> str:
        """The same for arguments by name; `is_part`: required ones may be missing."""
        decoder = self._prepare_part() if is_part else self._prepare()
        for name in self._unchecked:
            if name in given and not is_plain_json(given[name]):
                if _has_big_integer(given[name]):
                    raise InvalidRequest(
                        f"job {self._kind!r}: argument {name!r} is {given[name]!r}: integers must "
                        "be from -2**63 to 2**64-1; pass larger ones as text"
                    )
                raise InvalidRequest(
                    f"job {self._kind!r}: argument {name!r} has no annotation, "
                    f"so it accepts only plain JSON, not {given[name]!r}"
                )
        try:
            body = encode(given)
        except ENCODING_ERRORS as error:
            raise InvalidRequest(f"job {self._kind!r}: {self._culprit(given)}{error}") from None
        self._decode(decoder, body)
        return body.decode()

    def _bind(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Mapping[str, object]:
        try:
            return self._signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise InvalidRequest(f"job {self._kind!r}: {error}") from None

    def read(self, body: str) -> tuple[list[object], dict[str, object]]:
        """Decode a body into call arguments; raises InvalidRequest if it does not match."""
        # An empty body (recurring work without one, `null` over HTTP) means no arguments.
        named = self._decode(self._prepare(), "{}" if body == "null" else body)
        args: list[object] = []
        kwargs: dict[str, object] = {}
        for name, parameter in self._parameters.items():
            value = getattr(named, name)
            if parameter.kind is Parameter.VAR_POSITIONAL:
                args += [] if value is UNSET else value
            elif parameter.kind is Parameter.VAR_KEYWORD:
                kwargs |= {} if value is UNSET else value
            elif parameter.kind is Parameter.KEYWORD_ONLY:
                if value is not UNSET:
                    kwargs[name] = value
            else:
                # By position, so that *args can follow; defaults in between must be filled in.
                args.append(parameter.default if value is UNSET else value)
        return args, kwargs

    def canonical(self, body: str, names: Iterable[str] | None = None) -> bytes:
        """Encode some or all arguments, defaults included, to compare calls."""
        named = self._decode(self._prepare(), body)
        wanted = list(self._parameters) if names is None else list(names)
        values = {name: getattr(named, name) for name in wanted}
        for name, value in values.items():
            default = self._parameters[name].default
            if value is UNSET:
                values[name] = None if default is Parameter.empty else default
        return canonical_json(values)

    @property
    def names(self) -> list[str]:
        return list(self._parameters)

    def _prepare_part(self) -> msgspec.json.Decoder[Any]:
        """A decoder of some of the arguments."""
        if self._part_decoder is None:
            self._prepare()
            struct = msgspec.defstruct(
                "Arguments",
                [(name, hint | UnsetType, UNSET) for name, hint in self._types().items()],
                kw_only=True,
                forbid_unknown_fields=True,
            )
            self._part_decoder = msgspec.json.Decoder(struct, dec_hook=read_model)
        return self._part_decoder

    def _types(self) -> dict[str, Any]:
        hints = get_type_hints(self._function, include_extras=True)
        return {name: self._type(name, p, hints) for name, p in self._parameters.items()}

    def _prepare(self) -> msgspec.json.Decoder[Any]:
        if self._decoder is None:
            hints = get_type_hints(self._function, include_extras=True)
            types = self._types()
            self._unchecked = tuple(name for name in types if _is_unchecked(name, hints))
            fields: list[tuple[str, Any, Any] | tuple[str, Any]] = []
            for name, parameter in self._parameters.items():
                has_default = parameter.default is not Parameter.empty
                if has_default or parameter.kind in _VARIADIC:
                    fields.append((name, types[name] | UnsetType, UNSET))
                else:
                    fields.append((name, types[name]))
            fields += [(name, Any, UNSET) for name in sorted(self._ignored)]
            struct = msgspec.defstruct(
                "Arguments", fields, kw_only=True, forbid_unknown_fields=True
            )
            self._decoder = msgspec.json.Decoder(struct, dec_hook=read_model)
        return self._decoder

    def _type(self, name: str, parameter: Parameter, hints: Mapping[str, Any]) -> Any:
        hint = hints.get(name, Any)
        hint = Any if hint is object else hint
        match parameter.kind:
            case Parameter.VAR_POSITIONAL:
                hint = list[hint]  # type: ignore[valid-type]
            case Parameter.VAR_KEYWORD:
                hint = dict[str, hint]  # type: ignore[valid-type]
        unfit = why_not_json(hint)
        if unfit is not None:
            raise InvalidRequest(
                f"job {self._kind!r}: parameter {name!r} cannot be stored as JSON: {unfit}"
            )
        return hint

    def _decode(self, decoder: msgspec.json.Decoder[Any], body: str | bytes) -> Any:
        try:
            return decoder.decode(body)
        except msgspec.DecodeError as error:  # of another type, or not JSON
            raise InvalidRequest(f"job {self._kind!r}: {describe(error)}") from None
        except RecursionError as error:
            raise InvalidRequest(f"job {self._kind!r}: {error}") from None

    def _culprit(self, given: Mapping[str, object]) -> str:
        for name, value in given.items():
            try:
                encode(value)
            except (TypeError, ValueError, OverflowError, RecursionError):
                return f"argument {name!r}: "
        return ""


def _is_unchecked(name: str, hints: Mapping[str, Any]) -> bool:
    return hints.get(name, Any) in (Any, object)


def is_plain_json(value: object) -> bool:
    """Whether it survives JSON unchanged (a tuple may become a list)."""
    match value:
        case None | bool() | str():
            return not isinstance(value, str) or type(value) is str
        case int():
            return type(value) is int and not _has_big_integer(value)
        case float():
            return math.isfinite(value)
        case list() | tuple():
            return all(is_plain_json(inner) for inner in value)
        case dict():
            return all(type(key) is str and is_plain_json(inner) for key, inner in value.items())
    return False


def _has_big_integer(value: object) -> bool:
    match value:
        case int():
            return not -(2**63) <= value < 2**64
        case list() | tuple():
            return any(map(_has_big_integer, value))
        case dict():
            return any(map(_has_big_integer, value.values()))
    return False


def describe(error: msgspec.DecodeError) -> str:
    """Replace the path in msgspec's "… - at `$.to`" with the name of the argument."""
    text, _, path = str(error).partition(" - at `$")
    if path:
        return f"argument {path.rstrip('`').removeprefix('.')!r}: {text}"
    text = text.replace("Object contains unknown field", "there is no argument")
    return text.replace("Object missing required field", "missing a required argument:")
