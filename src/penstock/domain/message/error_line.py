"""The line of a stored error that names it, and the group of errors that it belongs to.

An error is the text of a Penstock worker (the exception first, then its frames, innermost first), a
traceback as Python prints it (the exception last), or any other text.
"""

from __future__ import annotations

import hashlib
import re

import msgspec

MAX_CHARS = 300
_TRACEBACK = "Traceback (most recent call last):"
# `  at shop/jobs.py:31 in bill`, or `  File "shop/jobs.py", line 31, in bill`
_FRAME = re.compile(
    r'^\s+(?:at (?P<own>.+?):(?P<line>\d+)(?: in |$)|File "(?P<file>.+?)", line (?P<no>\d+))'
)
_LIBRARY = re.compile(r"(site|dist)-packages[\\/]|[\\/]lib[\\/]python[0-9.]+[\\/]|^<frozen ")
_LINK = re.compile(r"^(caused by|while handling|member \d+ of \d+: )")
_TYPE = re.compile(r"[A-Za-z_][\w.]*")
_VARYING = re.compile(r"0x[0-9a-f]+|[0-9a-f]{8,}(?:-[0-9a-f]{4,})*|\d+")


class ErrorName(msgspec.Struct, frozen=True):
    """What errors of one group have in common."""

    error: str  # "PaymentDeclined", or the text without its numbers
    place: str | None  # "shopjobs.py:22"

    @property
    def group_id(self) -> str:
        text = f"{self.error}\n{self.place or ''}"
        return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


def error_line(text: str) -> str:
    """`PaymentDeclined: no funds at shopjobs.py:22`: the exception, and where it was raised."""
    headline, place = _headline(text), _place(text)
    return headline if place is None else f"{headline} at {place}"


def error_name(text: str) -> ErrorName:
    headline = _headline(text)
    kind, sign, _ = headline.partition(":")
    is_exception = bool(_TYPE.fullmatch(kind)) and (bool(sign) or _place(text) is not None)
    name = kind if is_exception else _VARYING.sub("…", headline)
    return ErrorName(name, _place(text))


def _headline(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    if not lines[0].startswith(_TRACEBACK):
        return lines[0].strip()[:MAX_CHARS]
    # The exception is the last line that is not indented, unless its own text has several lines.
    ends = [place for place, line in enumerate(lines) if _FRAME.match(line)]
    after = lines[ends[-1] + 1 :] if ends else lines[1:]
    unindented = [line for line in after if not line[0].isspace()]
    return (unindented[0] if unindented else lines[-1]).strip()[:MAX_CHARS]


def _place(text: str) -> str | None:
    """The innermost frame of the application, or else of a library: its file and line."""
    lines = text.splitlines()
    is_python = text.startswith(_TRACEBACK)
    frames: list[tuple[str, str]] = []
    for line in lines:
        if not is_python and _LINK.match(line):
            break  # frames of the cause follow
        if match := _FRAME.match(line):
            frames.append((match["own"] or match["file"], match["line"] or match["no"]))
    if is_python:
        frames.reverse()
    if not frames:
        return None
    path, number = next((one for one in frames if not _LIBRARY.search(one[0])), frames[0])
    name = re.split(r"[\\/]", path)[-1]
    return f"{name}:{number}"
