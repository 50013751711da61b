"""URIs of deliveries that cannot be sent safely.

A route's pattern takes a dot segment (`..`) literally, but a backend resolves it:
`/orders/../admin` matches a route for `/orders/(.*)`.  Such URIs are refused before any pattern is
matched.  Segments are decoded as backends decode them: `%2e` is a dot, `%2f`, `\\` and `%5c`
separate segments, parameters after `;` do not belong to a segment, and double encoding is decoded
twice.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from penstock.domain.errors import InvalidUri

_SEPARATOR = re.compile(rb"[/\\]")
_DOTS = frozenset({b".", b".."})
_MAX_DECODINGS = 4


def check_uri(uri: str) -> str:
    """Return a path with its query, or raise InvalidUri."""
    if "#" in uri:
        raise InvalidUri(
            f"uri {uri[:200]!r} has a fragment, which is never sent: write a literal # as %23"
        )
    if has_dot_segment(uri):
        raise InvalidUri(
            f"uri {uri[:200]!r} has a dot segment: send the path that it stands for instead"
        )
    return uri


def has_dot_segment(uri: str) -> bool:
    """Whether the path has one; dots in the query are not segments."""
    path = uri.partition("?")[0].encode("utf-8", "surrogatepass")
    for _ in range(_MAX_DECODINGS):
        if any(part.partition(b";")[0] in _DOTS for part in _SEPARATOR.split(path)):
            return True
        decoded = unquote_to_bytes(path)
        if decoded == path:
            return False
        path = decoded
    return True  # encoded more times than any client would by accident
