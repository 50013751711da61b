"""Text that every store and every wire format accepts."""

from __future__ import annotations

from penstock.domain.limits import NUL

_UNREADABLE = "\ufffd"


def sanitize(text: str) -> str:
    """Replace NULs and lone surrogates, which Python strings may contain.

    Python decodes file names that are not UTF-8 to surrogates, and error texts quote file names.
    """
    if text.isascii():
        return text.replace(NUL, _UNREADABLE)
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return whole.replace(NUL, _UNREADABLE)
