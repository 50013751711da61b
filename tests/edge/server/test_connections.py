"""HTTP/1.1 on the wire: which connections stay open, what is answered, and in which order."""

from __future__ import annotations

import json

import pytest

from tests.edge.api import Api
from tests.edge.live import LiveServer
from tests.edge.native.waiting import waiting_claims
from tests.edge.raw import Raw, request
from tests.support.waiting import eventually

HEALTH = request("GET", "/healthz")


@pytest.fixture
def wire(server: LiveServer):
    with Raw(server.port) as connection:
        yield connection


def test_a_connection_serves_one_request_after_the_other(wire: Raw) -> None:
    for _ in range(5):
        answer = wire.ask(HEALTH)

        assert answer.status == 200
        assert "connection" not in answer.headers


def test_an_answer_says_what_it_is_and_when_it_was_given(wire: Raw) -> None:
    answer = wire.ask(HEALTH)

    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["content-length"] == str(len(answer.body))
    assert answer.headers["date"].endswith(" GMT")
    assert not {"server", "access-control-allow-origin"} & answer.headers.keys()


def test_a_connection_is_closed_when_the_client_requests_it(wire: Raw) -> None:
    answer = wire.ask(request("GET", "/healthz", headers={"Connection": "close"}))

    assert (answer.status, answer.headers["connection"]) == (200, "close")
    assert wire.is_closed()


def test_an_error_of_an_operation_leaves_the_connection_open(wire: Raw) -> None:
    assert wire.ask(request("GET", "/v1/queues/none")).status == 404
    assert wire.ask(request("POST", "/v1/queues/none/messages", b"{")).status == 400
    assert wire.ask(HEALTH).status == 200


def test_http_1_0_is_served_and_closed(wire: Raw) -> None:
    answer = wire.ask(b"GET /healthz HTTP/1.0\r\n\r\n")

    assert (answer.status, answer.headers["connection"]) == (200, "close")
    assert wire.is_closed()


def test_http_1_0_is_closed_even_if_it_asks_for_keep_alive(wire: Raw) -> None:
    answer = wire.ask(b"GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")

    assert (answer.status, answer.headers["connection"]) == (200, "close")
    assert wire.is_closed()


@pytest.mark.parametrize("header", ["Connection", "Proxy-Connection"])
def test_http_1_0_is_closed_whatever_came_before_it(wire: Raw, header: str) -> None:
    wire.ask(HEALTH)

    answer = wire.ask(f"GET /healthz HTTP/1.0\r\n{header}: keep-alive\r\n\r\n".encode())

    assert (answer.status, answer.headers["connection"]) == (200, "close")
    assert wire.is_closed()


@pytest.mark.parametrize("version", ["0.9", "2.0"])
def test_other_versions_are_refused_whatever_came_before_them(wire: Raw, version: str) -> None:
    wire.ask(HEALTH)
    head = f"GET /healthz HTTP/{version}\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n"

    assert wire.ask(head.encode()).status == 400
    assert wire.is_closed()


def test_head_is_get_without_the_body(wire: Raw) -> None:
    got = wire.ask(HEALTH)

    head = wire.ask(HEALTH.replace(b"GET", b"HEAD"))

    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == str(len(got.body))
    assert wire.ask(HEALTH).body == got.body, "no byte of a body was left on the wire"


def test_head_of_what_is_not_there_has_no_body_either(wire: Raw) -> None:
    assert wire.ask(request("HEAD", "/v1/queues/none")).status == 404
    assert wire.ask(HEALTH).status == 200


def test_a_response_without_content_has_no_content_headers(wire: Raw, api: Api) -> None:
    queue = api.make_queue()

    answer = wire.ask(request("DELETE", f"/v1/queues/{queue}"))

    assert answer.status == 204
    assert not {"content-length", "content-type"} & answer.headers.keys()
    assert wire.ask(HEALTH).status == 200


def test_a_wrong_method_gets_the_allowed_ones(wire: Raw) -> None:
    answer = wire.ask(request("POST", "/healthz"))

    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (405, "method_not_allowed")
    assert answer.headers["allow"] == "GET, HEAD"
    many = wire.ask(request("POST", "/v1/queues/x"))
    assert many.headers["allow"] == "DELETE, GET, HEAD, PATCH, PUT"


def test_an_unknown_path_is_not_found(wire: Raw) -> None:
    for path in ("/v1", "/v1/", "/v1/queues/", "//healthz", "/healthz/", "/v2/queues"):
        answer = wire.ask(request("GET", path))

        assert (answer.status, json.loads(answer.body)["error"]["code"]) == (404, "not_found"), path


def test_pipelined_requests_are_answered_in_order(wire: Raw) -> None:
    wire.send(*(request("GET", f"/v1/queues/none-{n}") for n in range(50)))

    answers = [json.loads(wire.answer().body)["error"]["message"] for _ in range(50)]

    assert answers == [f"queue 'none-{n}' does not exist" for n in range(50)]


def test_a_request_that_is_pipelined_behind_a_waiting_claim_waits_too(wire: Raw, api: Api) -> None:
    queue = api.make_queue()
    claim = request("POST", f"/v1/queues/{queue}/claims", b'{"wait_ms": 20000}')
    wire.send(claim, HEALTH)
    eventually(lambda: waiting_claims(api) == 1)

    api.send(queue, "x")

    assert json.loads(wire.answer().body)["messages"][0]["body"] == "x"
    assert json.loads(wire.answer().body)["status"] == "ok"


def test_many_may_be_pipelined_at_once(wire: Raw) -> None:
    # The first takes an iteration of the loop, the others are answered at once: all together.
    wire.send(HEALTH, *([request("GET", "/no")] * 900), HEALTH)

    statuses = [wire.answer().status for _ in range(902)]

    assert statuses == [200, *([404] * 900), 200]


def test_a_client_that_pipelines_endlessly_is_stopped(wire: Raw, api: Api) -> None:
    queue = api.make_queue()
    wire.send(request("POST", f"/v1/queues/{queue}/claims", b'{"wait_ms": 20000}'))
    eventually(lambda: waiting_claims(api) == 1)
    wire.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3_000)

    api.send(queue)

    assert wire.answer().status == 200
    assert wire.rest().count(b"HTTP/1.1 404") <= 1_100


def test_a_request_after_a_malformed_one_is_not_read(wire: Raw) -> None:
    wire.send(HEALTH, b"NONSENSE\r\n\r\n", HEALTH)

    assert wire.answer().status == 200
    assert wire.answer().status == 400
    assert wire.is_closed()


def test_a_request_after_connection_close_is_not_answered(wire: Raw) -> None:
    wire.send(request("GET", "/healthz", headers={"Connection": "close"}), HEALTH)

    assert wire.answer().status == 200
    assert wire.is_closed()


def test_a_request_may_come_byte_by_byte(wire: Raw, api: Api) -> None:
    queue = api.make_queue()
    for byte in request("POST", f"/v1/queues/{queue}/messages", b'{"body": 1}'):
        wire.send(bytes([byte]))

    assert wire.answer().status == 201


def test_a_body_may_come_in_chunks(wire: Raw, api: Api) -> None:
    queue = api.make_queue()
    head = {"Content-Type": "application/json", "Transfer-Encoding": "chunked"}
    wire.send(request("POST", f"/v1/queues/{queue}/messages", headers=head))

    for part in (b'{"bo', b'dy": [1', b", 2]}"):
        wire.send(b"%x\r\n" % len(part), part, b"\r\n")
    wire.send(b"0\r\n\r\n")

    assert wire.answer().status == 201
    assert api.claim_one(queue)["body"] == [1, 2]


def test_trailers_of_a_chunked_body_are_not_headers(wire: Raw, api: Api) -> None:
    queue = api.make_queue()
    head = {"Content-Type": "application/json", "Transfer-Encoding": "chunked"}
    wire.send(request("POST", f"/v1/queues/{queue}/messages", headers=head))

    wire.send(b'b\r\n{"body": 1}\r\n0\r\nContent-Type: text/plain\r\nHost: evil.example\r\n\r\n')

    assert wire.answer().status == 201


def test_a_client_that_expects_100_continue_gets_it(wire: Raw, api: Api) -> None:
    queue = api.make_queue()
    whole = request(
        "POST", f"/v1/queues/{queue}/messages", b'{"body": 1}', headers={"Expect": "100-continue"}
    )
    head, _, body = whole.partition(b"\r\n\r\n")

    assert wire.ask(head + b"\r\n\r\n").status == 100
    assert wire.ask(body).status == 201


def test_continue_is_not_sent_before_earlier_requests_are_answered(wire: Raw, api: Api) -> None:
    queue = api.make_queue()
    claim = request("POST", f"/v1/queues/{queue}/claims", b'{"wait_ms": 20000}')
    send = request(
        "POST", f"/v1/queues/{queue}/messages", b'{"body": 1}', headers={"Expect": "100-continue"}
    )
    wire.send(claim, send)
    eventually(lambda: waiting_claims(api) == 1)

    api.send(queue, "x")

    assert wire.answer().status == 200
    assert wire.answer().status == 201


def test_a_body_that_would_be_rejected_is_rejected_before_it_is_sent(wire: Raw) -> None:
    headers = {"Content-Length": "99999999", "Expect": "100-continue"}

    answer = wire.ask(request("POST", "/v1/queues/x/messages", headers=headers))

    assert answer.status == 413


def test_a_request_may_name_the_whole_address_as_to_a_proxy(wire: Raw) -> None:
    assert wire.ask(request("GET", "http://localhost/healthz")).status == 200


def test_an_offer_to_switch_protocols_is_not_taken_up(wire: Raw) -> None:
    offer = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAM"}

    answer = wire.ask(request("GET", "/healthz", headers=offer))

    assert (answer.status, answer.headers["connection"]) == (200, "close")
    assert wire.is_closed()
