"""The SQS wire protocol (AWS JSON 1.0) over the raw HTTP connection.

For Penstock's SQS face and for every other server that speaks SQS. Nothing is signed: a peer that
asks who it is gets a constant header with a credential, whose signature is not checked.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache

from bench.clients.base import Done, Endpoint, Got, OnError, Receipts
from bench.clients.http import HttpConnection, ask, open_http
from bench.payload import BODY

OK = (b"200",)
WAIT_S = 20
CREDENTIAL = "bench/20250101/us-east-1/sqs/aws4_request"
# Python's own JSON has a space there, that of others has none.
RECEIPTS = (b'"ReceiptHandle":"', b'"ReceiptHandle": "')
# SQS carries text: the same 1,024 bytes, with some escapes as a JSON string.
TEXT = json.dumps(BODY.decode()).encode()


@dataclass(frozen=True)
class Target:
    """A queue, and as whom to ask for it."""

    url: bytes
    credential: str = ""


class SqsClient:
    fill_batch = 10

    def __init__(self, endpoint: Endpoint, queue: str) -> None:
        self._host, self._port = str(endpoint["host"]), int(endpoint["port"])
        self._credential = str(endpoint.get("credential", ""))
        self._queue = queue
        self._target = Target(b"")

    async def create_queue(self) -> None:
        members = b'{"QueueName":"%b"}' % self._queue.encode()
        raw = _head("CreateQueue", self._credential) % len(members) + members
        url = json.loads(await ask(self._host, self._port, raw, OK))["QueueUrl"]
        self._target = Target(url.encode(), self._credential)

    async def drop_queue(self) -> None:
        await ask(self._host, self._port, call(self._target, "DeleteQueue"), OK)

    async def connect(self, on_error: OnError, batch: int, *, waits: bool = False) -> SqsConnection:
        http = await open_http(self._host, self._port, on_error)
        return SqsConnection(http, self._target, on_error, wait_s=WAIT_S if waits else 0)


class SqsConnection:
    def __init__(
        self, http: HttpConnection, target: Target, on_error: OnError, *, wait_s: int = 0
    ) -> None:
        self._wait_s = wait_s
        self._http = http
        self._target = target
        self._on_error = on_error

    def send(self, count: int, then: Done) -> None:
        self._request(send_request(self._target, count), b'"MD5OfMessageBody"', count, then)

    def receive(self, count: int, then: Got) -> None:
        def received(body: bytes) -> None:
            handles = handles_in(body)
            if not handles and b'"MessageId"' in body:
                self._on_error(f"received, but no receipt handle was found: {body[:300]!r}")
            else:
                then(handles)

        self._http.request(receive_request(self._target, count, self._wait_s), OK, received)

    def ack(self, receipts: Receipts, then: Done) -> None:
        raw = delete_request(self._target, receipts)
        if len(receipts) == 1:
            self._http.request(raw, OK, lambda _: then())
        else:
            self._request(raw, b'"Id"', len(receipts), then)

    def close(self) -> None:
        self._http.close()

    def _request(self, raw: bytes, mark: bytes, count: int, then: Done) -> None:
        def check(body: bytes) -> None:
            if body.count(mark) == count and b'"SenderFault"' not in body:
                then()
            else:
                self._on_error(f"unexpected answer: {body[:300]!r}")

        self._http.request(raw, OK, check)


def handles_in(body: bytes) -> list[bytes]:
    """Searches instead of parsing: the 1 KB bodies in between are of no interest here."""
    mark = RECEIPTS[0] if RECEIPTS[0] in body else RECEIPTS[1]
    return [part[: part.index(b'"')] for part in body.split(mark)[1:]]


@cache
def send_request(target: Target, count: int) -> bytes:
    if count == 1:
        return call(target, "SendMessage", b',"MessageBody":' + TEXT)
    entries = [b'{"Id":"%d","MessageBody":%b}' % (n, TEXT) for n in range(count)]
    return call(target, "SendMessageBatch", b',"Entries":[%b]' % b",".join(entries))


@cache
def receive_request(target: Target, count: int, wait_s: int = 0) -> bytes:
    waiting = b',"WaitTimeSeconds":%d' % wait_s if wait_s else b""
    return call(target, "ReceiveMessage", b',"MaxNumberOfMessages":%d%b' % (count, waiting))


def delete_request(target: Target, handles: Receipts) -> bytes:
    if len(handles) == 1:
        return call(target, "DeleteMessage", b',"ReceiptHandle":"%b"' % handles[0])
    entries = [
        b'{"Id":"%d","ReceiptHandle":"%b"}' % (n, handle) for n, handle in enumerate(handles)
    ]
    return call(target, "DeleteMessageBatch", b',"Entries":[%b]' % b",".join(entries))


def call(target: Target, operation: str, members: bytes = b"") -> bytes:
    """A whole request about a queue; `members` follow its URL, each after a comma."""
    body = b'{"QueueUrl":"%b"%b}' % (target.url, members)
    return _head(operation, target.credential) % len(body) + body


@cache
def _head(operation: str, credential: str) -> bytes:
    lines = [
        "POST / HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/x-amz-json-1.0",
        f"X-Amz-Target: AmazonSQS.{operation}",
    ]
    if credential:
        signed = f"Credential={credential}, SignedHeaders=host, Signature=0"
        lines.append(f"Authorization: AWS4-HMAC-SHA256 {signed}")
    return "\r\n".join([*lines, "Content-Length: %d", "", ""]).encode()
