"""Missing answers, from a server that misbehaves on purpose."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from penstock.client.errors import Unreachable, refusal
from penstock.client.remote.server import Remote
from penstock.domain import errors
from penstock.domain.errors import all_errors

pytestmark = pytest.mark.no_store("server")

STATS = (
    b'{"version":"1","backend":"sqlite","queues":0,"waiting_claims":0,'
    b'"now":"2030-01-01T00:00:00.000Z",'
    b'"counts":{"waiting":0,"ready":0,"leased":0,"dead":0},'
    b'"totals":{"sent":0,"done":0,"dead":0,"cancelled":0,"failed":0,"expired_leases":0,'
    b'"claimed":0},"something_new":1}'
)
SENT = b'{"id":"1"}'


def answer(body: bytes, status: bytes = b"200 OK", *more: bytes) -> bytes:
    head = [b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), *more]
    return b"\r\n".join([*head, b"", body])


class Late(bytes):
    """An answer that arrives late."""


CLOSES = b""
LATE_S = 0.3
Script = list[bytes | None]


class BadServer:
    """Does one step of its script per request: answers, closes (empty), or stays silent (None)."""

    def __init__(self, script: Script, *, closes_after: bool = False) -> None:
        self._script = list(script)
        self._closes_after = closes_after
        self.requests: list[bytes] = []
        self._is_idle = threading.Semaphore(0)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def wait_until_idle(self) -> None:
        assert self._is_idle.acquire(timeout=60)

    def close(self) -> None:
        for connection in (*self._open, self._socket):
            with suppress(OSError):
                connection.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self._open.append(connection)
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            while request := self._request(connection):
                self.requests.append(request)
                step = self._script.pop(0)
                if step is None:
                    connection.recv(1)
                    return
                if isinstance(step, Late):
                    threading.Event().wait(LATE_S)
                connection.sendall(step)
                if step == CLOSES or self._closes_after:
                    break
        self._is_idle.release()

    def _request(self, connection: socket.socket) -> bytes:
        head = b""
        while b"\r\n\r\n" not in head:
            part = connection.recv(65536)
            if not part:
                return b""
            head += part
        head, _, body = head.partition(b"\r\n\r\n")
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        while len(body) < length:
            body += connection.recv(65536)
        return head


@pytest.fixture
def bad_server() -> Iterator[Callable[..., BadServer]]:
    servers: list[BadServer] = []

    def make(*script: bytes | None, closes_after: bool = False) -> BadServer:
        servers.append(BadServer(list(script), closes_after=closes_after))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


def test_a_question_is_asked_again_when_its_answer_is_lost(bad_server):
    server = bad_server(CLOSES, answer(STATS))

    assert Remote(server.url).stats().queues == 0
    assert len(server.requests) == 2


def test_a_question_is_not_asked_for_ever(bad_server):
    server = bad_server(CLOSES, CLOSES, CLOSES)

    with pytest.raises(Unreachable):
        Remote(server.url).stats()

    assert len(server.requests) == 2


def test_a_send_is_not_repeated_and_its_outcome_is_reported_as_unknown(bad_server):
    server = bad_server(CLOSES, answer(SENT))

    with pytest.raises(Unreachable) as lost:
        Remote(server.url).send("mail", 1)

    assert lost.value.was_sent
    assert len(server.requests) == 1


def test_a_send_with_a_dedup_key_is_repeated(bad_server):
    server = bad_server(CLOSES, answer(SENT))

    assert Remote(server.url).send("mail", 1, dedup_key="k").id == "1"
    assert len(server.requests) == 2


@pytest.mark.parametrize("verb", ["complete", "release", "extend"])
def test_an_act_on_a_lease_is_not_repeated(bad_server, verb):
    server = bad_server(CLOSES, answer(b'{"id":"1","state":"done"}'))

    with pytest.raises(Unreachable):
        getattr(Remote(server.url), verb)("receipt")

    assert len(server.requests) == 1


def test_a_claim_is_not_repeated(bad_server):
    server = bad_server(CLOSES, answer(b'{"messages":[]}'))

    with pytest.raises(Unreachable):
        Remote(server.url).claim("mail")

    assert len(server.requests) == 1


def test_a_connection_is_kept_for_the_next_request(bad_server):
    server = bad_server(answer(SENT), answer(SENT), answer(SENT))
    remote = Remote(server.url)

    for _ in range(3):
        remote.send("mail", 1)

    assert len(server._open) == 1


def test_a_connection_that_the_server_closed_while_idle_is_not_used_for_a_send(bad_server):
    server = bad_server(answer(SENT), answer(SENT), closes_after=True)
    remote = Remote(server.url)
    remote.send("mail", 1)
    server.wait_until_idle()

    assert remote.send("mail", 2).id == "1"
    assert len(server.requests) == 2


def test_an_answer_that_does_not_come_in_time_is_not_waited_for(bad_server):
    server = bad_server(None)

    with pytest.raises(Unreachable) as lost:
        Remote(server.url, timeout=0.2).send("mail", 1)

    assert lost.value.was_sent


def test_a_claim_is_asked_for_again_only_if_it_has_a_key(bad_server):
    empty = answer(b'{"messages":[]}')

    keyed = bad_server(CLOSES, empty)
    assert Remote(keyed.url).claim("mail", claim_key="k") == []
    assert len(keyed.requests) == 2

    plain = bad_server(CLOSES, empty)
    with pytest.raises(Unreachable):
        Remote(plain.url).claim("mail")


def test_the_time_a_claim_waits_is_added_to_the_timeout(bad_server):
    server = bad_server(Late(answer(b'{"messages":[]}')))

    assert Remote(server.url, timeout=0.05).claim("mail", wait_ms=20_000) == []


def test_a_refused_connection_is_reported_as_not_sent():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    with pytest.raises(Unreachable, match=f"127.0.0.1:{port}") as lost:
        Remote(f"http://127.0.0.1:{port}").send("mail", 1)

    assert not lost.value.was_sent


def test_half_an_answer_is_not_accepted(bad_server):
    server = bad_server(answer(SENT)[:-3], closes_after=True)

    with pytest.raises(Unreachable):
        Remote(server.url).send("mail", 1)


def test_an_answer_that_is_not_ours_is_reported_as_such(bad_server):
    server = bad_server(answer(b"<h1>Bad Gateway</h1>", b"502 Bad Gateway"))

    with pytest.raises(errors.PenstockError, match="answered 502"):
        Remote(server.url).send("mail", 1)


@pytest.mark.parametrize("kind", all_errors())
def test_a_refusal_is_raised_as_the_error_it_was_with_the_servers_words(kind):
    error = refusal(kind.code, "the server's words")

    assert type(error) is kind
    assert str(error) == "the server's words"


def test_an_unknown_code_is_an_error_with_its_name():
    error = refusal("brand_new", "what happened")

    assert type(error) is errors.PenstockError
    assert str(error) == "what happened (brand_new)"


@pytest.mark.parametrize("url", ["ftp://x", "http://", "/v1"])
def test_a_url_that_is_not_that_of_a_server_is_rejected(url):
    with pytest.raises(errors.InvalidRequest):
        Remote(url)


def test_a_key_is_sent_as_a_bearer_token_and_the_path_of_the_url_is_kept(bad_server):
    server = bad_server(answer(SENT))

    Remote(server.url + "/queue/", key="pk_a_b").send("mail", 1)

    assert server.requests[0].startswith(b"POST /queue/v1/queues/mail/messages ")
    assert b"Authorization: Bearer pk_a_b" in server.requests[0]
