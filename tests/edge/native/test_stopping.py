"""SIGTERM under load: an orderly exit, after which everything acknowledged is still there."""

from __future__ import annotations

import signal
import threading
from time import monotonic
from typing import Any

import httpx
import pytest

from tests.edge.api import Api
from tests.edge.conftest import InBackground, MakeProcess, MakeServer
from tests.edge.native.test_browsing import pages
from tests.edge.native.waiting import LONG_MS, SOON_S, waiting_claims
from tests.edge.process import ServerProcess
from tests.edge.raw import Raw, request
from tests.support.waiting import eventually

PRODUCERS = 8
EXIT_WITHIN_S = 10.0


class Producer:
    """Sends until it is rejected; remembers what was acknowledged."""

    def __init__(self, url: str, queue: str) -> None:
        self.acknowledged: list[str] = []
        self._api = Api(url)
        self._queue = queue

    def run(self) -> None:
        path = f"/v1/queues/{self._queue}/messages"
        while True:
            try:
                answer = self._api.call("POST", path, {"body": len(self.acknowledged)})
            except httpx.TransportError:
                return
            if answer.status_code != 201:
                assert answer.status_code == 503, answer.text
                assert answer.json()["error"]["code"] == "shutting_down"
                return
            self.acknowledged.append(answer.json()["id"])


def all_ids(api: Api, queue: str) -> set[str]:
    found = pages(api, f"/v1/queues/{queue}/messages", "messages", limit=1_000)
    return {message["id"] for page in found for message in page}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_acknowledged_message_is_there_after_a_restart(
    make_process: MakeProcess, in_background: InBackground, number: signal.Signals
) -> None:
    server: ServerProcess = make_process()
    queue = Api(server.url).make_queue()
    producers = [Producer(server.url, queue) for _ in range(PRODUCERS)]
    running = [in_background(producer.run) for producer in producers]
    empty = Api(server.url).make_queue()
    claim = in_background(Api(server.url).claim, empty, wait_ms=LONG_MS)
    eventually(lambda: all(len(producer.acknowledged) > 50 for producer in producers), within_s=60)

    began = monotonic()
    assert server.end(number) == 0
    took = monotonic() - began

    for producer in running:
        producer.result(SOON_S)
    assert claim.result(SOON_S) == []
    assert took < EXIT_WITHIN_S
    assert "Traceback" not in server.log_tail()
    acknowledged = {message_id for p in producers for message_id in p.acknowledged}
    api = Api(server.start().url)
    assert acknowledged <= all_ids(api, queue)


def test_begun_answers_are_finished_and_the_idle_are_sent_away(make_server: MakeServer) -> None:
    """A large response to a slow reader keeps the server from exiting at once."""
    server = make_server(server={"drain_ms": 15_000})
    api = Api(server.url)
    queue = api.make_queue()
    for _ in range(10):
        api.send(queue, "x" * 1_000_000)
    reader, idle, half = Raw(server.port), Raw(server.port), Raw(server.port)
    assert idle.ask(request("GET", "/healthz")).status == 200
    half.send(request("GET", "/healthz")[:-2])
    reader.send(request("GET", f"/v1/queues/{queue}/messages"))
    got = reader.socket.recv(1)

    server.ask_to_stop()

    assert idle.is_closed()
    assert half.is_closed(), "what has not arrived was not begun"
    rest = reader.rest()
    head, _, body = (got + rest).partition(b"\r\n\r\n")
    assert f"content-length: {len(body)}".encode() in head, "the answer is whole"
    server.stop()


def test_a_request_that_takes_too_long_is_cut_off_after_the_drain_time(
    make_server: MakeServer,
) -> None:
    server = make_server(server={"drain_ms": 300})
    api = Api(server.url)
    queue = api.make_queue()
    for _ in range(20):
        api.send(queue, "x" * 1_000_000)
    with Raw(server.port) as stuck:
        stuck.send(request("GET", f"/v1/queues/{queue}/messages"))
        stuck.socket.recv(1)

        began = monotonic()
        server.stop()

        assert monotonic() - began < 15


def test_a_claim_whose_client_is_gone_gets_no_messages(
    make_server: MakeServer, in_background: InBackground
) -> None:
    server = make_server()
    api = Api(server.url)
    queue = api.make_queue()
    claims = [in_background(Api(server.url).claim, queue, wait_ms=LONG_MS) for _ in range(4)]
    eventually(lambda: waiting_claims(api) == 4)
    stopped = threading.Thread(target=server.stop)

    stopped.start()
    answers: list[Any] = [claim.result(SOON_S) for claim in claims]
    stopped.join(60)

    assert answers == [[]] * 4
    again = Api(make_server().url)
    assert again.counts(queue) == {}
