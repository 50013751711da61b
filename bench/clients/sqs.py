"""The SQS wire protocol (AWS JSON 1.0) over the raw HTTP connection.

For moto here; any other server that speaks SQS is one more peer with the same client. The signature
is a dummy: look-alikes read the account and region from it and check nothing.
"""

from __future__ import annotations

import json
from functools import cache

from bench.clients.base import Done, Endpoint, Got, OnError, Receipts
from bench.clients.http import HttpConnection, ask, open_http, request_bytes
from bench.payload import BODY

OK = (b"200",)
CREDENTIAL = "Credential=bench/20250101/us-east-1/sqs/aws4_request"
RECEIPT = b'"ReceiptHandle": "', b'"ReceiptHandle":"'


class SqsClient:
    fill_batch = 10

    def __init__(self, endpoint: Endpoint, queue: str) -> None:
        self._host, self._port = str(endpoint["host"]), int(endpoint["port"])
        self._queue = queue
        self._url = ""

    async def create_queue(self) -> None:
        raw = call("CreateQueue", {"QueueName": self._queue})
        self._url = json.loads(await ask(self._host, self._port, raw, OK))["QueueUrl"]

    async def drop_queue(self) -> None:
        await ask(self._host, self._port, call("DeleteQueue", {"QueueUrl": self._url}), OK)

    async def connect(self, on_error: OnError, batch: int) -> SqsConnection:
        http = await open_http(self._host, self._port, on_error)
        return SqsConnection(http, self._url, on_error)


class SqsConnection:
    def __init__(self, http: HttpConnection, url: str, on_error: OnError) -> None:
        self._http = http
        self._url = url
        self._on_error = on_error

    def send(self, count: int, then: Done) -> None:
        self._request(send_request(self._url, count), b'"MD5OfMessageBody"', count, then)

    def receive(self, count: int, then: Got) -> None:
        def received(body: bytes) -> None:
            mark = RECEIPT[0] if RECEIPT[0] in body else RECEIPT[1]
            then([part[: part.index(b'"')] for part in body.split(mark)[1:]])

        self._http.request(receive_request(self._url, count), OK, received)

    def ack(self, receipts: Receipts, then: Done) -> None:
        handles = [receipt.decode() for receipt in receipts]
        if len(handles) == 1:
            raw = call("DeleteMessage", {"QueueUrl": self._url, "ReceiptHandle": handles[0]})
            self._http.request(raw, OK, lambda _: then())
            return
        entries = [{"Id": str(n), "ReceiptHandle": text} for n, text in enumerate(handles)]
        raw = call("DeleteMessageBatch", {"QueueUrl": self._url, "Entries": entries})
        self._request(raw, b'"Id"', len(handles), then)

    def close(self) -> None:
        self._http.close()

    def _request(self, raw: bytes, mark: bytes, count: int, then: Done) -> None:
        def check(body: bytes) -> None:
            if body.count(mark) == count and b'"SenderFault"' not in body:
                then()
            else:
                self._on_error(f"unexpected answer: {body[:300]!r}")

        self._http.request(raw, OK, check)


def call(operation: str, members: dict[str, object]) -> bytes:
    return request_bytes(
        "POST",
        "/",
        json.dumps(members).encode(),
        "Content-Type: application/x-amz-json-1.0",
        f"X-Amz-Target: AmazonSQS.{operation}",
        f"Authorization: AWS4-HMAC-SHA256 {CREDENTIAL}, SignedHeaders=host, Signature=0",
    )


@cache
def send_request(url: str, count: int) -> bytes:
    text = BODY.decode()
    if count == 1:
        return call("SendMessage", {"QueueUrl": url, "MessageBody": text})
    entries = [{"Id": str(n), "MessageBody": text} for n in range(count)]
    return call("SendMessageBatch", {"QueueUrl": url, "Entries": entries})


@cache
def receive_request(url: str, count: int) -> bytes:
    return call("ReceiveMessage", {"QueueUrl": url, "MaxNumberOfMessages": count})
