"""What one connection may ask for, and headers that need a second look."""

from __future__ import annotations

MAX_HEADER_BYTES = 32 * 1024
MAX_HEADERS = 100
MAX_PIPELINED = 32  # more are not read
MOST_PIPELINED = 1_000  # may come in one go

# Said twice, such a header could mean one thing to a proxy before us and another to us.
ONCE = frozenset({b"host", b"authorization", b"content-type", b"origin", b"expect"})
# Without these only HTTP/1.1 stays; to ask for the version costs as much as the other parsing.
ABOUT_STAYING = frozenset({b"connection", b"proxy-connection", b"upgrade"})
