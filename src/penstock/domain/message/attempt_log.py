"""What a handler logs and prints, kept with its attempt."""

from __future__ import annotations

import msgspec


class LogLine(msgspec.Struct, frozen=True, array_like=True):
    at: int
    level: str  # "info"; for printed text "print"
    source: str  # the logger's name, or "stdout", "stderr"
    text: str


class LogPart(msgspec.Struct, frozen=True, kw_only=True):
    message_no: int
    lease_no: int
    seq: int  # its place among the parts of the attempt, from 1
    lines: str  # JSON text of a list of LogLines


_decoder = msgspec.json.Decoder(list[LogLine])


def lines_of(part: LogPart) -> list[LogLine]:
    return _decoder.decode(part.lines)


def encode_lines(lines: list[LogLine]) -> str:
    return msgspec.json.encode(lines).decode()
