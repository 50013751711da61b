"""Text that every store and every wire takes."""

from __future__ import annotations

from penstock.domain.limits import NUL

_UNREADABLE = "\ufffd"


def proper(text: str) -> str:
    """Without NULs, and without halves of characters: Python's own texts may have both.

    It tells of file names that are not UTF-8 with such halves, and errors tell of file names.
    """
    if text.isascii():
        return text.replace(NUL, _UNREADABLE)
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return whole.replace(NUL, _UNREADABLE)
