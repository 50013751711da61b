"""Malformed JSON, and too much of it."""

from __future__ import annotations

import pytest

from tests.edge.api import Api, assert_refused

DEEP = 100_000
DIGITS = 100_000

KINDS = {
    "nothing but a bracket": b"[",
    "an array of 100,000 levels": b'{"body":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "objects of 100,000 levels": b'{"body":' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}",
    "an open end of 100,000 levels": b'{"body":' + b"[" * DEEP,
    "an integer of 100,000 digits": b'{"body":1,"priority":' + b"9" * DIGITS + b"}",
    "an integer of 20 digits": b'{"body":1,"priority":' + b"9" * 20 + b"}",
    "bytes that are not UTF-8": b'{"body":"\xff\xfe"}',
    "an overlong NUL": b'{"body":"\xc0\x80"}',
    "an encoded surrogate": b'{"body":"\xed\xa0\x80"}',
    "half a surrogate pair": b'{"body":"\\ud800"}',
    "half a pair and then text": b'{"body":"\\ud800 and some more text"}',
    "halves in the wrong order": b'{"body":"\\udc00\\ud800"}',
    "half a pair in a name": b'{"body":1,"kind":"\\ud800 and some more text"}',
    "a raw control character": b'{"body":"\x01"}',
    "a raw line feed": b'{"body":"a\nb"}',
    "an invalid escape": b'{"body":"\\q"}',
    "a trailing comma": b'{"body":[1,]}',
    "single quotes": b"{'body':1}",
    "a comment": b'{"body":1/**/}',
    "not a number": b'{"body":NaN}',
    "infinity": b'{"body":Infinity}',
    "a leading zero": b'{"body":01}',
    "two documents": b'{"body":1}{"body":2}',
    "a byte order mark": b'\xef\xbb\xbf{"body":1}',
    "UTF-16": '{"body":1}'.encode("utf-16"),
    "a name without quotes": b"{body:1}",
    "an unknown field": b'{"body":1,"__class__":"x"}',
    "a list where an object belongs": b'[{"body":1}]',
    "a text where an object belongs": b'"body"',
    "null": b"null",
    "white space": b"   ",
    "a NUL after the end": b'{"body":1}\x00',
    "pickle": b"\x80\x04\x95.",
}


@pytest.mark.parametrize("kind", KINDS)
def test_malformed_json_is_rejected(api: Api, kind: str) -> None:
    queue = api.make_queue()

    refused = api.call("POST", f"/v1/queues/{queue}/messages", raw=KINDS[kind])

    text = assert_refused(refused, 400, "invalid_request")
    assert len(text) < 500
    assert api.counts(queue) == {}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/v1/queues/{queue}"),
        ("PATCH", "/v1/queues/{queue}"),
        ("POST", "/v1/queues/{queue}/claims"),
        ("POST", "/v1/queues/{queue}/messages/batch"),
        ("POST", "/v1/queues/{queue}/redrive"),
        ("POST", "/v1/leases/batch"),
        ("POST", "/v1/leases/{receipt}/fail"),
        ("POST", "/v1/messages/{id}/cancel"),
        ("PATCH", "/v1/messages/{id}"),
    ],
)
def test_no_operation_takes_any_of_it(api: Api, method: str, path: str) -> None:
    queue = api.make_queue()
    message_id = api.send(queue, priority=1)
    api.send(queue)
    receipt = api.claim_one(queue)["receipt"]
    path = path.format(queue=queue, id=message_id, receipt=receipt)
    before = api.queue(queue)

    for raw in KINDS.values():
        assert_refused(api.call(method, path, raw=raw), 400, "invalid_request")

    assert api.queue(queue) == before


def test_an_accepted_body_can_be_read_by_the_worker_that_claims_it(api: Api) -> None:
    """A body that only its sender can parse would break all messages claimed with it."""
    queue = api.make_queue()
    for body in (
        b"[" * 900 + b"]" * 900,
        b"1" * 4_000,
        b"1e400",
        b'{"a":1,"a":2}',
        b'"\\u0000\\uffff\\ud83d\\ude00"',
        b"-0",
        b'"' + b"\\u0041" * 10_000 + b'"',
    ):
        api.call("POST", f"/v1/queues/{queue}/messages", raw=b'{"body":' + body + b"}")

    claimed = api.claim(queue, limit=100)

    assert [message["receipt"] for message in claimed]
