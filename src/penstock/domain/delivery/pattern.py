r"""Regular expressions of users, matched in bounded time for any pattern and text.

Patterns run in RE2, whose time grows with the length of the text and never exponentially.  RE2 has
no look-around, backreferences, possessive or atomic groups; patterns with those run in a
backtracking engine with a deadline.  Python's own `re` has no deadline and blocks the interpreter:
one `(a+)+b` would stop every other request of the process.

The syntax is Java's as far as the engines support it, because rules come from gateleen.
"""

from __future__ import annotations

import re
from functools import lru_cache

import re2
import regex

from penstock.domain.errors import InvalidRequest

DEADLINE_MS = 25  # for one match in the backtracking engine
_CACHED = 20_000  # twice as many patterns as a table of routes may have

Groups = tuple[str, ...]  # the whole text, then the groups; one that did not match is empty

# As in Java: a name may follow `(?<` without a P.  A look-behind has `=` or `!` there.
_JAVA_GROUP = re.compile(r"\(\?<(?=[A-Za-z])")
_PREFIX = re.compile(r"[A-Za-z0-9_/~-]*")
_ANY_BYTE = r"\C"  # RE2 only: it would split characters


class InvalidPattern(ValueError):
    """The text is not a regular expression."""


class Pattern:
    """A compiled pattern; it must match the whole text."""

    __slots__ = ("_is_linear", "_prefix", "_regexp", "groups", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._prefix = _literal_prefix(text)
        self._is_linear = True
        options = re2.Options()
        options.log_errors = False
        translated = _JAVA_GROUP.sub("(?P<", text)
        try:
            if _ANY_BYTE in text:
                raise re2.error(_ANY_BYTE)
            # Bytes, because with text most of the time is spent on counting characters.
            self._regexp = re2.compile(translated.encode(), options)
        except (re2.error, UnicodeEncodeError):
            self._is_linear = False
            self._regexp = _backtracking(translated)
        self.groups: int = self._regexp.groups

    def fullmatch(self, text: str) -> Groups | None:
        """Raises InvalidRequest if the deadline passes first."""
        if not text.startswith(self._prefix):
            return None
        return self._linear(text) if self._is_linear else self._backtracking(text)

    def _linear(self, text: str) -> Groups | None:
        try:
            found = self._regexp.fullmatch(text.encode())
        except UnicodeEncodeError:  # a lone surrogate, which no pattern can match
            return None
        if found is None:
            return None
        return (text, *((one or b"").decode() for one in found.groups()))

    def _backtracking(self, text: str) -> Groups | None:
        try:
            found = self._regexp.fullmatch(text, timeout=DEADLINE_MS / 1000)
        except TimeoutError:
            raise InvalidRequest(
                f"pattern {self.text[:200]!r} did not match or fail within {DEADLINE_MS} ms on "
                f"{text[:200]!r}; write it without look-around and backreferences"
            ) from None
        return None if found is None else (text, *(one or "" for one in found.groups()))


@lru_cache(maxsize=_CACHED)
def compile_pattern(text: str) -> Pattern:
    """Raises InvalidPattern."""
    return Pattern(text)


def _backtracking(translated: str) -> regex.Pattern[str]:
    try:
        return regex.compile(translated)
    except (regex.error, OverflowError, RecursionError, MemoryError) as error:
        raise InvalidPattern(str(error)) from None


def _literal_prefix(text: str) -> str:
    """The literal text that every match starts with; it rules out most patterns of a long table."""
    if "|" in text:
        return ""
    found = _PREFIX.match(text)
    prefix = found[0] if found else ""
    following = text[len(prefix) : len(prefix) + 1]
    return prefix[:-1] if following and following in "?*+{" else prefix
