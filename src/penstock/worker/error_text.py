"""The text stored for an exception: short, but enough to find the bug.

    RuntimeError: no invoice for 17
      at shop/jobs.py:31 in bill: raise RuntimeError(f"no invoice for {customer}") from error
    caused by KeyError: 17
      at shop/books.py:12 in find: return self._rows[customer]
      at shop/jobs.py:29 in bill: row = find(customer)

Frames are innermost first.  Application frames are kept; of a run of library frames, only the first
and the last are.  If the text is still too long, application frames in the middle are dropped.
"""

from __future__ import annotations

import importlib
import os
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import suppress
from itertools import dropwhile, groupby
from pathlib import Path
from traceback import FrameSummary

from penstock.domain.limits import DEFAULT_LIMITS
from penstock.domain.message.outcome import HandlerOutcome
from penstock.domain.text import sanitize

_OURS = f"{Path(__file__).parents[1]}{os.sep}"
_PACKAGES = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))
_STANDARD = tuple(f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib"))
_IMPORTING = ("<frozen importlib", importlib.__file__)

_MAX_FRAMES = (40, 12, 6, 2)  # frames of one exception; the first number that fits is used
_MAX_SOURCE = 120
_MAX_MEMBERS = 5  # members of an exception group
_MAX_LINKS = 8  # exceptions described in total


def error_text(error: BaseException) -> str:
    """The exception in one line, then its frames, causes and group members."""
    limit = DEFAULT_LIMITS.max_error_chars
    if isinstance(error, HandlerOutcome):
        return shortened(str(error))
    text = ""
    for most in _MAX_FRAMES:
        text = "\n".join(_Report(most).lines(error))
        if len(text) <= limit:
            break
    return shortened(text)


def shortened(text: str) -> str:
    """Cut a text to the stored length: an error may quote a whole document."""
    return sanitize(text[: DEFAULT_LIMITS.max_error_chars])


class _Report:
    def __init__(self, most_frames: int) -> None:
        self._most_frames = most_frames
        self._seen: set[int] = set()

    def lines(self, error: BaseException, intro: str = "") -> Iterator[str]:
        self._seen.add(id(error))
        yield f"{intro}{_headline(error, DEFAULT_LIMITS.max_error_chars // (2 if intro else 1))}"
        for note in _notes(error):
            yield f"  note: {note}"
        yield from _frames(error, self._most_frames)
        if isinstance(error, BaseExceptionGroup):
            yield from self._members(error)
        cause = error.__cause__
        if cause is not None:
            yield from self._link_lines(cause, "caused by ")
        elif error.__context__ is not None and not error.__suppress_context__:
            yield from self._link_lines(error.__context__, "while handling ")

    def _members(self, group: BaseExceptionGroup[BaseException]) -> Iterator[str]:
        count = len(group.exceptions)
        for number, member in enumerate(group.exceptions[:_MAX_MEMBERS], 1):
            yield from self._link_lines(member, f"member {number} of {count}: ")
        if count > _MAX_MEMBERS:
            yield f"and {count - _MAX_MEMBERS} more members"

    def _link_lines(self, error: BaseException, intro: str) -> Iterator[str]:
        if id(error) not in self._seen and len(self._seen) < _MAX_LINKS:
            yield from self.lines(error, intro)


def _headline(error: BaseException, most: int) -> str:
    kind = type(error)
    is_plain = kind.__module__ in ("builtins", "__main__")
    name = kind.__qualname__ if is_plain else f"{kind.__module__}.{kind.__qualname__}"
    try:
        text = (error.msg if isinstance(error, SyntaxError) else str(error)).strip()
    except BaseException:  # a broken __str__ must not replace the error with its own
        text = "<exception str() failed>"
    return f"{name}: {text[:most]}" if text else name


def _notes(error: BaseException) -> list[str]:
    with suppress(Exception):  # `__notes__` may hold any object
        return [str(note) for note in error.__notes__]
    return []


def _frames(error: BaseException, most: int) -> Iterator[str]:
    if isinstance(error, SyntaxError) and error.filename:
        yield f"  at {error.filename}:{error.lineno}"
    walked = traceback.walk_tb(error.__traceback__)
    found = traceback.StackSummary.extract(walked, lookup_lines=False)
    lines = list(_trim(_without_our_call(found)))
    if len(lines) > most:
        lines[most // 2 : -(most // 2)] = [f"  … {len(lines) - most} more frames"]
    yield from reversed(lines)


def _without_our_call(frames: list[FrameSummary]) -> list[FrameSummary]:
    """Drop our own frames around the call; they matter only for an error of our own."""
    shown = [frame for frame in frames if not frame.filename.startswith(_IMPORTING)]
    theirs = list(dropwhile(lambda frame: frame.filename.startswith(_OURS), shown))
    is_ours = bool(frames) and frames[-1].filename.startswith(_OURS)
    return frames if is_ours and not theirs else theirs


def _trim(frames: list[FrameSummary]) -> Iterator[str]:
    """Frames, outermost first.  Of libraries: the one that the application called, and the last."""
    home = _package(frames[0].filename) if frames else None

    def is_model(frame: FrameSummary) -> bool:
        is_home = home is not None and _package(frame.filename) == home
        return _is_library(frame.filename) and not is_home

    for is_library, group in groupby(frames, is_model):
        run = list(group)
        if is_library and len(run) > 3:
            yield _place(run[0])
            yield f"  … {len(run) - 2} more frames of libraries"
            yield _place(run[-1])
        else:
            yield from map(_place, run)


def _place(frame: FrameSummary) -> str:
    source = (frame.line or "")[:_MAX_SOURCE]
    return f"  at {frame.filename}:{frame.lineno} in {frame.name}" + (
        f": {source}" if source else ""
    )


def _is_library(filename: str) -> bool:
    is_installed = any(part in filename for part in _PACKAGES)
    return is_installed or filename.startswith((*_STANDARD, _OURS, "<frozen "))


def _package(filename: str) -> str | None:
    """The directory of an installed package: the application may be installed next to libraries."""
    for part in _PACKAGES:
        before, found, rest = filename.rpartition(part)
        if found:
            return f"{before}{found}{rest.partition(os.sep)[0]}"
    return None
