"""Results of parents as parts of a member's body."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from penstock.domain.errors import InvalidRequest

# By the name of the field: one member, whose result is its value, or several, for a list.
Inputs = Mapping[str, int | tuple[int, ...]]

_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_inputs = msgspec.json.Decoder(dict[str, int | tuple[int, ...]])
_NULL = "null"


def check_body(body: str) -> None:
    """Raises InvalidRequest unless results can be put into the body."""
    if body != _NULL and not body.lstrip().startswith("{"):
        raise InvalidRequest("inputs need a body that is a JSON object")


def to_text(inputs: Inputs) -> str:
    return msgspec.json.encode(inputs).decode()


def from_text(text: str) -> Inputs:
    return _inputs.decode(text)


def sources(inputs: Inputs) -> Iterator[int]:
    """The members whose results are wanted."""
    for source in inputs.values():
        yield from (source,) if isinstance(source, int) else source


def fill(body: str, inputs: Inputs, results: Mapping[int, str | None]) -> str:
    """The body with these results; of a parent without one it is null."""
    fields = {} if body == _NULL else _object.decode(body)
    for name, source in inputs.items():
        if isinstance(source, int):
            text = results.get(source) or _NULL
        else:
            text = f"[{','.join(results.get(no) or _NULL for no in source)}]"
        fields[name] = msgspec.Raw(text.encode())
    return msgspec.json.encode(fields).decode()
