"""Pushing over HTTP: what the endpoint gets, what its response means, and what is never sent."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.domain.delivery.addresses import AddressDenied, AddressFilter
from penstock.outbound import http_sender
from penstock.outbound.clock import SystemClock
from penstock.outbound.http_sender import HttpSender
from penstock.ports.sender import PushRequest, PushResponse
from tests.support.http_backend import WAIT_S, Answer, Begin, Hang, HangUp, HttpBackend
from tests.support.waiting import eventually


@pytest.fixture
def backend() -> Iterator[HttpBackend]:
    with HttpBackend() as backend:
        yield backend


@pytest.fixture
def sender() -> Iterator[HttpSender]:
    sender = HttpSender(SystemClock(), connections=10, keep_alive_ms=4_000)
    yield sender
    sender.close()


class Waiting:
    """Collects the responses."""

    def __init__(self, sender: HttpSender, url: str, **wanted: Any) -> None:
        self.responses: list[PushResponse] = []
        self._is_answered = threading.Event()
        request = PushRequest(url=url, **{"method": "POST", "timeout_ms": 20_000, **wanted})
        sender.send(request, self._then)

    def _then(self, response: PushResponse) -> None:
        self.responses.append(response)
        self._is_answered.set()

    def result(self) -> PushResponse:
        assert self._is_answered.wait(WAIT_S)
        [response] = self.responses
        return response


def test_a_request_arrives_unchanged_and_without_additions(sender, backend):
    headers = (("X-One", "1"), ("x-two", "2"), ("X-One", "again"), ("Content-Type", "text/odd"))

    Waiting(sender, f"{backend.url}/a%2Fb?q=%20x", headers=headers, payload=b"\x00hello").result()

    [seen] = backend.seen
    assert (seen.method, seen.target, seen.payload) == ("POST", "/a%2Fb?q=%20x", b"\x00hello")
    added = {"Host", "Content-Length"}
    assert [pair for pair in seen.headers if pair[0] not in added] == list(headers)


def test_a_response_has_its_status_and_retry_after(sender, backend):
    backend.behave = lambda seen: Answer(503, {"Retry-After": "7"}, b"too much")

    response = Waiting(sender, backend.url).result()

    assert (response.status, response.retry_after, response.error) == (503, "7", None)
    assert response.excerpt == "too much"


def test_a_redirect_is_an_answer_and_is_not_followed(sender, backend):
    backend.answer(302, Location=f"{backend.url}/elsewhere")

    response = Waiting(sender, f"{backend.url}/here").result()

    assert response.status == 302
    assert backend.targets == ["/here"]


def test_consecutive_requests_share_a_connection(sender, backend):
    for number in range(5):
        Waiting(sender, f"{backend.url}/{number}").result()

    assert {seen.connection for seen in backend.seen} == {1}


def test_cookies_of_one_answer_are_not_sent_with_the_next_request(sender, backend):
    backend.answer(200, Set_Cookie="who=me")
    for _ in range(2):
        Waiting(sender, backend.url).result()

    assert [seen.header("cookie") for seen in backend.seen] == [None, None]


def test_an_endpoint_that_does_not_answer_in_time_is_a_timeout(sender, backend):
    backend.behave = lambda seen: Hang()

    response = Waiting(sender, backend.url, timeout_ms=50).result()

    assert response.status is None
    assert response.error == "no answer within 50 ms"


@pytest.mark.parametrize("method", ["POST", "PUT", "GET", "DELETE"])
def test_a_connection_that_breaks_is_an_error_and_is_not_retried(sender, backend, method):
    backend.behave = lambda seen: HangUp()

    response = Waiting(sender, backend.url, method=method).result()

    assert response.status is None
    assert response.error
    assert len(backend.seen) == 1


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_a_connection_that_was_closed_while_idle_costs_no_attempt(sender, backend, method):
    """The backend closes it in the instant in which it is used again."""
    backend.behave = lambda seen: HangUp() if len(backend.seen) == 2 else Answer()
    Waiting(sender, f"{backend.url}/first").result()

    response = Waiting(sender, f"{backend.url}/second", method=method, payload=b"x").result()

    assert response.status == 200
    assert [seen.target for seen in backend.seen] == ["/first", "/second", "/second"]
    assert [seen.connection for seen in backend.seen] == [1, 1, 2]
    assert backend.seen[1].payload == backend.seen[2].payload == b"x"


def test_a_request_that_fails_on_a_new_connection_too_is_an_error(sender, backend):
    backend.behave = lambda seen: HangUp() if len(backend.seen) > 1 else Answer()
    Waiting(sender, backend.url).result()

    response = Waiting(sender, backend.url).result()

    assert response.status is None
    assert len(backend.seen) == 3


def test_a_request_whose_answer_has_begun_is_not_repeated(sender, backend):
    backend.behave = lambda seen: Begin() if len(backend.seen) > 1 else Answer()
    Waiting(sender, backend.url).result()

    response = Waiting(sender, backend.url).result()

    assert response.status is None
    assert len(backend.seen) == 2


def test_an_unreachable_endpoint_is_an_error(sender, backend):
    port = backend.port
    backend.stop()

    response = Waiting(sender, f"http://127.0.0.1:{port}/").result()

    assert response.status is None
    assert f"cannot connect to 127.0.0.1:{port}: " in str(response.error)
    assert "ssl" not in str(response.error)


def test_an_endpoint_without_tls_is_an_error_that_names_it(sender):
    with socket.create_server(("127.0.0.1", 0)) as plain:
        port = plain.getsockname()[1]
        waiting = Waiting(sender, f"https://127.0.0.1:{port}/")
        connection, _ = plain.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            response = waiting.result()

    assert response.status is None
    assert str(response.error).startswith(f"cannot connect to 127.0.0.1:{port}: ")
    assert "ssl:" not in str(response.error)


def test_a_status_counts_although_the_rest_of_the_answer_never_comes(sender, backend, monkeypatch):
    monkeypatch.setattr(http_sender, "_READ_SECONDS", 0.01)
    backend.behave = lambda seen: Answer(200, claims_more=1)

    assert Waiting(sender, backend.url).result().status == 200
    backend.behave = lambda seen: Answer(200)
    assert Waiting(sender, backend.url).result().status == 200
    assert backend.connections == 2


def test_only_the_beginning_of_an_endless_answer_is_read(sender, backend):
    backend.behave = lambda seen: Answer(500, body=b"x" * 10_000_000)

    response = Waiting(sender, backend.url).result()

    assert (response.status, len(response.excerpt or "")) == (500, 500)


@pytest.mark.parametrize("url", ["nonsense", "http://", "ftp://127.0.0.1/", "http://[::"])
def test_an_invalid_url_is_an_error_and_does_not_stop_the_sender(sender, url):
    assert Waiting(sender, url).result().error


def test_an_invalid_header_is_an_error_and_does_not_stop_the_sender(sender, backend):
    response = Waiting(sender, backend.url, headers=(("x-evil", "a\r\nb: c"),)).result()

    assert response.error
    assert backend.seen == []


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "[::ffff:169.254.169.254]",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:a9fe:a9fe::]",
        "100.100.100.200",
        "0.0.0.0",
        "0xa9fea9fe",
    ],
)
def test_nothing_is_ever_sent_to_metadata_and_link_local_addresses(sender, host, caplog):
    for _ in range(2):
        response = Waiting(sender, f"http://{host}/latest/meta-data", timeout_ms=5_000).result()

    assert response.status is None
    assert response.error
    assert response.error.startswith("deliveries to ")
    assert " are denied: it is in " in response.error
    assert [record.getMessage() for record in caplog.records] == [response.error], "once"


def test_an_address_written_as_one_number_is_not_sent_to(sender):
    response = Waiting(sender, "http://2852039166/latest/meta-data", timeout_ms=5_000).result()

    assert response.status is None
    assert "canonical" in str(response.error)


def test_the_address_is_checked_and_not_the_name(backend):
    sender = HttpSender(SystemClock(), connections=1, keep_alive_ms=1, denied="127.0.0.0/8, ::1")
    try:
        response = Waiting(sender, f"http://localhost:{backend.port}/").result()
    finally:
        sender.close()

    assert response.error
    assert backend.seen == []


def test_the_guard_reports_what_it_refuses_and_why():
    with pytest.raises(AddressDenied, match=r"169\.254\.1\.1.*169\.254\.0\.0/16"):
        AddressFilter().check("169.254.1.1")
    assert AddressFilter().check("10.1.2.3") == "10.1.2.3"


def test_requests_in_flight_at_a_stop_are_aborted_and_reported(sender, backend):
    backend.hold()
    waiting = Waiting(sender, backend.url)
    backend.wait_for(1)

    sender.close()

    assert "stops" in str(waiting.result().error)
    assert "stops" in str(Waiting(sender, backend.url).result().error)


def test_when_the_event_loop_fails_requests_are_aborted_and_the_next_one_is_sent(
    sender, backend, caplog
):
    backend.behave = lambda seen: Hang()
    waiting = Waiting(sender, f"{backend.url}/hangs")
    eventually(lambda: backend.seen)

    def fail() -> None:
        raise SystemExit("a mistake")

    sender._loop.call_soon_threadsafe(fail)

    assert waiting.result().is_broken_off
    backend.behave = lambda seen: Answer()
    eventually(lambda: Waiting(sender, f"{backend.url}/next").result().status == 200)
    assert "penstock-sender failed and is being restarted" in caplog.text


def test_a_request_that_comes_while_the_event_loop_fails_is_sent_by_the_next_one(
    sender, backend, monkeypatch
):
    late: list[Waiting] = []
    stop = sender._stop

    async def stop_and_send() -> None:
        await stop()
        if not late:
            late.append(Waiting(sender, f"{backend.url}/late"))

    monkeypatch.setattr(sender, "_stop", stop_and_send)

    def fail() -> None:
        raise SystemExit("a mistake")

    sender._loop.call_soon_threadsafe(fail)

    eventually(lambda: late)
    assert late[0].result().status == 200


def test_requests_that_come_while_it_closes_are_aborted(sender, backend, monkeypatch):
    late: list[Waiting] = []
    stop = sender._stop

    async def stop_and_send() -> None:
        await stop()
        late.append(Waiting(sender, f"{backend.url}/late"))

    monkeypatch.setattr(sender, "_stop", stop_and_send)

    sender.close()

    assert late[0].result().is_broken_off
    assert Waiting(sender, f"{backend.url}/after").result().is_broken_off
