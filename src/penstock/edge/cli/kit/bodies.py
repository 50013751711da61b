"""Bodies from an argument, a file or standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from penstock.domain.errors import InvalidRequest


class InputLines:
    """The lines of the input, and how many bytes have been read."""

    def __init__(self, file: str | None) -> None:
        self._file = file
        self.done = 0
        self.total: int | None = None

    def __iter__(self) -> Iterator[str]:
        try:
            if self._file is None:
                yield from self._read(sys.stdin.buffer)
            else:
                with Path(self._file).open("rb") as stream:
                    self.total = Path(self._file).stat().st_size
                    yield from self._read(stream)
        except OSError as error:
            raise InvalidRequest(f"cannot read {self._file}: {error.strerror}") from None

    def _read(self, stream: Iterator[bytes]) -> Iterator[str]:
        for line in stream:
            self.done += len(line)
            text = _decode(line).rstrip("\r\n")
            if text:
                yield text


def read_input(file: str | None) -> str:
    """The whole input, without a final newline."""
    try:
        content = sys.stdin.buffer.read() if file is None else Path(file).read_bytes()
    except OSError as error:
        raise InvalidRequest(f"cannot read {file}: {error.strerror}") from None
    return _decode(content).removesuffix("\n")


def body_of(text: str, *, as_json: bool = False, as_text: bool = False) -> object:
    """The text as JSON if it is valid JSON, otherwise as text.

    JSON is kept as written, so that numbers of any length survive.
    """
    if as_text:
        return text
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        if as_json:
            raise InvalidRequest(f"the body is not JSON: {error}") from None
        return text
    return msgspec.Raw(text.encode())


def _decode(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"the input is not UTF-8: {error}") from None
