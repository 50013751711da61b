"""Limits of a connection, and headers that need special treatment."""

from __future__ import annotations

MAX_HEADER_BYTES = 32 * 1024
MAX_HEADERS = 100
MAX_PIPELINED = 32  # reading pauses at this number of pipelined requests
MAX_UNANSWERED = 1_000  # a single read may contain this many

# A proxy and this server could interpret duplicates of these headers differently.
ONCE = frozenset({b"host", b"authorization", b"content-type", b"origin", b"expect"})
# A persistent connection without these headers is HTTP/1.1; asking the parser for the version
# would cost as much as all other parsing.
CONNECTION = frozenset({b"connection", b"proxy-connection", b"upgrade"})
