"""Penstock's native HTTP API, on either store."""

from __future__ import annotations

import json
from functools import cache

from bench.clients.base import Done, Endpoint, Got, OnError, Receipts
from bench.clients.http import HttpConnection, ask, open_http, request_bytes
from bench.payload import BODY

OK = (b"200",)
MADE = (b"201",)
WAIT_MS = 20_000
RECEIPT = b'"receipt":"'


class PenstockClient:
    fill_batch = 100

    def __init__(self, endpoint: Endpoint, queue: str) -> None:
        self.host, self.port = str(endpoint["host"]), int(endpoint["port"])
        self.queue = queue
        self._retention_ms = endpoint.get("retention_ms")

    async def create_queue(self) -> None:
        settings = {} if self._retention_ms is None else {"retention_ms": self._retention_ms}
        raw = request_bytes("PUT", f"/v1/queues/{self.queue}", json.dumps(settings).encode())
        await ask(self.host, self.port, raw, (b"200", b"201"))

    async def drop_queue(self) -> None:
        raw = request_bytes("DELETE", f"/v1/queues/{self.queue}?force=true")
        await ask(self.host, self.port, raw, (b"204",))

    async def connect(
        self, on_error: OnError, batch: int, *, waits: bool = False
    ) -> PenstockConnection:
        http = await open_http(self.host, self.port, on_error)
        return PenstockConnection(http, self.queue, on_error, wait_ms=WAIT_MS if waits else 0)


class PenstockConnection:
    def __init__(
        self, http: HttpConnection, queue: str, on_error: OnError, *, wait_ms: int = 0
    ) -> None:
        self._http = http
        self._wait_ms = wait_ms
        self._queue = queue
        self._on_error = on_error
        self._done: Receipts = ()

    def send(self, count: int, then: Done) -> None:
        if count == 1:
            self._http.request(send_request(self._queue), MADE, lambda _: then())
            return

        def check(body: bytes) -> None:
            if body.count(b'"id"') == count and b'"error"' not in body:
                then()
            else:
                self._on_error(f"a batch was not taken whole: {body[:300]!r}")

        self._http.request(batch_request(self._queue, count), OK, check)

    def receive(self, count: int, then: Got) -> None:
        done, self._done = self._done, ()

        def claimed(body: bytes) -> None:
            receipts = receipts_in(body)
            if body.count(b'"state":"done"') != len(done):
                self._on_error(f"not all were completed: {body[-300:]!r}")
            elif not receipts and b'"messages":[{' in body:
                self._on_error(f"claimed, but no receipt was found: {body[:300]!r}")
            else:
                then(receipts)

        if done:
            self._http.request(next_request(self._queue, count, done, self._wait_ms), OK, claimed)
        else:
            self._http.request(claim_request(self._queue, count, self._wait_ms), OK, claimed)

    def ack(self, receipts: Receipts, then: Done) -> None:
        """As a worker does it: what is done is completed with the next claim, in one request."""
        self._done = receipts
        then()

    def close(self) -> None:
        self._http.close()


def receipts_in(body: bytes) -> list[bytes]:
    """Searches instead of parsing: the 1 KB bodies in between are of no interest here."""
    return [part[: part.index(b'"')] for part in body.split(RECEIPT)[1:]]


def draft(delay_ms: int = 0) -> bytes:
    delay = b',"delay_ms":%d' % delay_ms if delay_ms else b""
    return b'{"body":' + BODY + delay + b"}"


@cache
def send_request(queue: str) -> bytes:
    return request_bytes("POST", f"/v1/queues/{queue}/messages", draft())


@cache
def batch_request(queue: str, count: int, delay_ms: int = 0) -> bytes:
    body = b'{"messages":[' + b",".join([draft(delay_ms)] * count) + b"]}"
    return request_bytes("POST", f"/v1/queues/{queue}/messages/batch", body)


@cache
def claim_request(queue: str, count: int, wait_ms: int = 0) -> bytes:
    body = b'{"limit":%d,"wait_ms":%d}' % (count, wait_ms)
    return request_bytes("POST", f"/v1/queues/{queue}/claims", body)


def next_request(queue: str, count: int, done: Receipts, wait_ms: int = 0) -> bytes:
    receipts = b'","'.join(done)
    body = b'{"limit":%d,"wait_ms":%d,"complete":["%b"]}' % (count, wait_ms, receipts)
    return request_bytes("POST", f"/v1/queues/{queue}/claims", body)
