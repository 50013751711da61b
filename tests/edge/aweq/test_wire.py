"""The bytes on the wire: field order, headers, texts and statuses as in the document."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as how
from hypothesis import strategies as st

from penstock.edge.aweq import answers
from tests.clocks import ManualClock
from tests.edge.aweq.client import AweqClient

CORS = {
    "access-control-allow-origin": "*",
    "access-control-allow-headers": "Origin, X-Requested-With, Content-Type, Accept",
    "access-control-allow-methods": "POST, GET, OPTIONS, HEAD, DELETE",
}
CALLS = [
    ("POST", "/send-message", 400),
    ("GET", "/receive-message", 200),
    ("GET", "/receive-message?count=0", 400),
    ("DELETE", "/delete-message/123e4567-e89b-12d3-a456-426655440000", 200),
    ("GET", "/get-stats", 200),
]
ANY_JSON = st.recursive(
    st.text() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


def test_answers_are_spelled_and_ordered_as_in_the_document(
    aweq: AweqClient, clock: ManualClock
) -> None:
    sent = aweq.http.post("/send-message", json={"message": "job-details-88"})
    key = sent.json()["key"]
    received = aweq.http.get("/receive-message?count=2")
    stats = aweq.http.get("/get-stats")
    deleted = aweq.http.delete(f"/delete-message/{key}")

    assert sent.text == f'{{"status":"okay","key":"{key}"}}'
    assert received.text == (
        '{"status":"okay","message":"Fewer messages available than requested.","messages":['
        f'{{"key":"{key}","timestamp":{clock.now()},"retry_count":0,"message":"job-details-88"}}]}}'
    )
    assert stats.text == (
        '{"status":"okay","stats":{"queue_length":0,"checkouts_count":1,'
        '"checkout_lifetime":"120s","rescue_interval":"2s"}}'
    )
    assert deleted.text == '{"status":"okay"}'
    for answer in (sent, received, stats, deleted):
        assert answer.headers["content-type"] == "application/json; charset=utf-8"
    assert sent.headers["content-length"] == "62"


@pytest.mark.parametrize(
    ("body", "etag"),
    [
        (b'{"status":"okay"}', b'W/"11-MawlXlG548aTOrp+gzBB3p2l60M"'),
        (b"Message content required.", b'W/"19-oXL9Vsd5weSTgaOAgD9hyjpT544"'),
        (
            b'{"status":"okay","key":"29bac180-3c77-11e8-8aba-b76f21b15267"}',
            b'W/"3e-2kU+fmtd29KuRt8MhWXpQCNusyU"',
        ),
        (
            b'{"status":"okay","stats":{"queue_length":4,"checkouts_count":2,'
            b'"checkout_lifetime":"120s","rescue_interval":"2s"}}',
            b'W/"72-9Y3w7jODY9kVo0II8d5BDkqgXK8"',
        ),
    ],
)
def test_etags_are_those_of_the_document(body: bytes, etag: bytes) -> None:
    assert answers.etag(body) == etag


@pytest.mark.parametrize(("method", "path", "status"), CALLS)
def test_every_answer_is_open_to_pages_of_other_sites(
    aweq: AweqClient, method: str, path: str, status: int
) -> None:
    answer = aweq.http.request(method, path, headers={"Origin": "http://elsewhere.example"})

    assert answer.status_code == status
    assert {name: answer.headers[name] for name in CORS} == CORS
    assert re.fullmatch(r'W/"[0-9a-f]+-[A-Za-z0-9+/]{27}"', answer.headers["etag"])


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/send-message", "POST"),
        ("/receive-message", "GET,HEAD"),
        ("/delete-message/123e4567-e89b-12d3-a456-426655440000", "DELETE"),
        ("/get-stats", "GET,HEAD"),
    ],
)
def test_options_lists_the_allowed_methods(aweq: AweqClient, path: str, allowed: str) -> None:
    preflight = {"Origin": "http://elsewhere.example", "Access-Control-Request-Method": "DELETE"}

    answer = aweq.http.options(path, headers=preflight)

    assert (answer.status_code, answer.text) == (200, allowed)
    assert answer.headers["allow"] == allowed
    assert {name: answer.headers[name] for name in CORS} == CORS


@pytest.mark.parametrize("message", ["", None, 0, 0.0, False])
def test_a_message_without_content_is_refused(aweq: AweqClient, message: Any) -> None:
    assert_refused(aweq.http.post("/send-message", json={"message": message}))
    assert aweq.lengths() == (0, 0)


@pytest.mark.parametrize(
    ("body", "media"),
    [
        ("{}", "application/json"),
        ("", "application/json"),
        ("[1]", "application/json"),
        ('{"message": "x"}', "text/plain"),
        ("", "application/x-www-form-urlencoded"),
        ("message=", "application/x-www-form-urlencoded"),
        ("text=x", "application/x-www-form-urlencoded"),
    ],
)
def test_a_body_without_a_message_is_refused(aweq: AweqClient, body: str, media: str) -> None:
    assert_refused(aweq.http.post("/send-message", content=body, headers={"Content-Type": media}))


@pytest.mark.parametrize("body", [b"{", b'{"message": "\xff"}', b"[" * 100_000])
def test_a_body_that_is_not_json_is_refused(aweq: AweqClient, body: bytes) -> None:
    answer = aweq.http.post(
        "/send-message", content=body, headers={"Content-Type": "application/json"}
    )

    assert_refused(answer, "Message body is not valid JSON.")


def test_a_form_is_taken_as_well(aweq: AweqClient) -> None:
    aweq.http.post("/send-message", data={"message": "déjà vu & more"})
    aweq.http.post("/send-message", data={"message": ["a", "b"]})

    assert aweq.texts(2) == ["déjà vu & more", ["a", "b"]]


def test_a_malformed_form_is_rejected(aweq: AweqClient) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}

    answer = aweq.http.post("/send-message", content=b"message=\xff", headers=form)

    assert_refused(answer, "Message body is not a valid form.")


@pytest.mark.parametrize("message", [[], {}, " ", True, -1, {"to": ["a", "b"]}])
def test_whatever_is_true_for_javascript_is_a_message(aweq: AweqClient, message: Any) -> None:
    aweq.send(message)

    assert aweq.texts() == [message]


@how(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(value=ANY_JSON)
def test_any_json_value_comes_back_as_it_went(aweq: AweqClient, value: Any) -> None:
    key = aweq.send([value])

    assert aweq.texts() == [[value]]
    assert aweq.delete(key)


def test_a_message_is_returned_as_compact_json(aweq: AweqClient) -> None:
    json = {"Content-Type": "application/json"}
    aweq.http.post("/send-message", content=b'{ "message": { "a": [1,  2] } }', headers=json)

    assert aweq.http.get("/receive-message").text.endswith('"message":{"a":[1,2]}}]}')


def test_a_message_that_is_too_large_is_refused(aweq: AweqClient) -> None:
    answer = aweq.http.post("/send-message", json={"message": "x" * 1_048_576})

    assert answer.status_code == 413
    assert answer.headers["content-type"] == "text/html; charset=utf-8"


def test_parameters_that_mean_nothing_are_passed_over(aweq: AweqClient) -> None:
    aweq.send("one")

    assert aweq.http.get("/receive-message?count=&_=123").json()["messages"]


def assert_refused(answer: httpx.Response, text: str = "Message content required.") -> None:
    assert (answer.status_code, answer.text) == (400, text)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
