"""What the parser made of heads that came before.

On a connection that stays open a client says the same head again and again, down to the length of
its body.  Equal bytes mean the same thing, so they are parsed once: measured, that is a quarter
of what it takes until a request is with the store.
"""

from __future__ import annotations

import asyncio

from penstock.edge.server.request import Request

_END = b"\r\n\r\n"
_LONGEST = 1_024  # bytes; what is remembered must not fill the memory
_MOST_REMEMBERED = 1_000
# With one of the first two there is more to do than to read a body: one wants an answer before it
# sends that, the other depends on who takes coded bodies at the time.  The others never come again.
_SPECIAL = frozenset({b"expect", b"content-encoding", b"traceparent", b"x-amz-date"})


class Heads:
    def __init__(self) -> None:
        self._known: dict[bytes, tuple[int, Request]] = {}

    def recognise(self, data: bytes, transport: asyncio.BaseTransport) -> Request | None:
        """The request, if `data` is a whole one and its head is known; it keeps its connection."""
        size = data.find(_END) + len(_END)
        known = self._known.get(data[:size])
        if known is None or known[0] != len(data):
            return None
        like = known[1]
        body = data[size:]
        return Request(like.method, like.path, like.query_bytes, like.headers, body, transport)

    def learn(self, data: bytes, request: Request) -> None:
        """`data` came in one piece: it begins with this request, and perhaps there is more.

        The request is HTTP/1.1, and its connection stays open.
        """
        size = data.find(_END) + len(_END)
        if size > _LONGEST or size + len(request.body) != len(data):
            return
        headers = request.headers
        if _SPECIAL.isdisjoint(headers):
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            like = Request(request.method, request.path, request.query_bytes, headers, b"")
            self._known[data[:size]] = (len(data), like)
