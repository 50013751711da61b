"""Encode HTTP/1.1 responses."""

from __future__ import annotations

from http import HTTPStatus

from penstock.edge.server.request import Response

# Statuses whose responses have no content headers.
_BARE = {s: f"HTTP/1.1 {s} {HTTPStatus(s).phrase}\r\ndate: ".encode() for s in (204, 304)}
_STATUS_LINES = {
    s.value: f"HTTP/1.1 {s.value} {s.phrase}\r\ncontent-type: ".encode() for s in HTTPStatus
}


def encode(response: Response, date: bytes, keep_alive: bool, without_body: bool) -> bytes:
    if response.status in _BARE:
        head = [_BARE[response.status], date]
    else:
        head = [
            _STATUS_LINES[response.status],
            response.content_type,
            b"\r\ncontent-length: %d\r\ndate: " % len(response.body),
            date,
        ]
    for name, value in response.headers:
        head += (b"\r\n", name, b": ", value)
    head.append(b"\r\n\r\n" if keep_alive else b"\r\nconnection: close\r\n\r\n")
    if not without_body:
        head.append(response.body)
    return b"".join(head)
