"""The limit of connections, and what happens to clients that are slow or do not read."""

from __future__ import annotations

import pytest

from tests.edge.api import Api
from tests.edge.conftest import MakeServer
from tests.edge.native.waiting import waiting_claims
from tests.edge.raw import ClosedError, Raw, request
from tests.support.waiting import eventually

HEALTH = request("GET", "/healthz")
SHORT = {"receive_timeout_ms": 1_000, "idle_timeout_ms": 300}
SWEPT_S = 15.0  # the sweep runs once a second


def test_one_connection_too_many_gets_an_error_and_is_closed(make_server: MakeServer) -> None:
    server = make_server(server={"max_connections": 4})
    api = Api(server.url)
    queue = api.make_queue()
    claim = request("POST", f"/v1/queues/{queue}/claims", b'{"wait_ms": 20000}')
    wires = [Raw(server.port).send(claim) for _ in range(3)]
    eventually(lambda: waiting_claims(api) == 3)
    message = request("POST", f"/v1/queues/{queue}/messages", b'{"body": 1}')
    api.close()
    sender = Raw(server.port).send(message[:-1])  # now none of the four is idle

    eventually(lambda: is_turned_away(server.port))

    assert sender.ask(message[-1:]).status == 201
    for wire in (sender, *wires):
        wire.close()


def is_turned_away(port: int) -> bool:
    with Raw(port) as surplus:
        try:
            answer = surplus.ask(HEALTH)
        except (ClosedError, OSError):  # rejected before it was read
            return False
        if answer.status == 200:
            return False
        assert (answer.status, answer.headers["connection"]) == (503, "close")
        assert b'"too_many_connections"' in answer.body
        assert surplus.is_closed()
        return True


def test_idle_connections_make_room_for_new_ones(make_server: MakeServer) -> None:
    server = make_server(server={"max_connections": 3})
    wires = [Raw(server.port) for _ in range(3)]
    assert [wire.ask(HEALTH).status for wire in wires] == [200] * 3

    with Raw(server.port) as fresh:
        assert fresh.ask(HEALTH).status == 200
        assert sorted(map(is_served, wires)) == [False, True, True]
        assert is_served(fresh)


def is_served(wire: Raw) -> bool:
    try:
        return wire.ask(HEALTH).status == 200
    except (ClosedError, OSError):
        return False


def test_when_one_connection_closes_another_is_accepted(make_server: MakeServer) -> None:
    server = make_server(server={"max_connections": 1})
    with Raw(server.port) as first:
        assert first.ask(HEALTH).status == 200

    def another_is_served() -> bool:
        with Raw(server.port) as wire:
            return wire.ask(HEALTH).status == 200

    eventually(another_is_served)


@pytest.mark.parametrize(
    "start",
    [b"", b"GET /healthz HT", HEALTH[:-2], request("POST", "/v1/queues/x/messages", b"{}")[:-1]],
)
def test_a_request_that_does_not_arrive_is_not_waited_for(
    make_server: MakeServer, start: bytes
) -> None:
    server = make_server(server={**SHORT, "idle_timeout_ms": 60_000})

    with Raw(server.port, patience_s=SWEPT_S) as wire:
        wire.send(start)
        assert wire.is_closed()


def test_a_half_request_behind_a_whole_one_is_not_waited_for_either(
    make_server: MakeServer,
) -> None:
    server = make_server(server={**SHORT, "idle_timeout_ms": 60_000})

    with Raw(server.port, patience_s=SWEPT_S) as wire:
        assert wire.ask(HEALTH + HEALTH[:-2]).status == 200
        assert wire.is_closed()


def test_an_idle_connection_is_closed(make_server: MakeServer) -> None:
    server = make_server(server={**SHORT, "receive_timeout_ms": 60_000})

    with Raw(server.port, patience_s=SWEPT_S) as wire:
        assert wire.ask(HEALTH).status == 200
        assert wire.is_closed()


def test_a_claim_may_wait_longer_than_a_request_may_take_to_arrive(
    make_server: MakeServer,
) -> None:
    api = Api(make_server(server=SHORT).url)
    queue = api.make_queue()

    assert api.claim(queue, wait_ms=2_500) == []


def test_a_client_that_does_not_read_does_not_fill_the_memory_and_is_cut_off(
    make_server: MakeServer,
) -> None:
    server = make_server(server={**SHORT, "idle_timeout_ms": 60_000})
    api = Api(server.url)
    queue = api.make_queue()
    api.send(queue, "x" * 500_000)
    look = request("GET", f"/v1/queues/{queue}/messages")

    with Raw(server.port, patience_s=SWEPT_S) as wire:
        wire.send(look * 500)  # a quarter of a gigabyte, if all were answered
        eventually(lambda: _is_cut_off(wire), within_s=SWEPT_S)
        got = len(wire.rest())

    assert got < 50_000_000


def test_a_client_that_does_not_read_a_last_answer_is_cut_off_too(
    make_server: MakeServer,
) -> None:
    server = make_server(server=SHORT)
    api = Api(server.url)
    queue = api.make_queue()
    for _ in range(20):
        api.send(queue, "x" * 1_000_000)
    look = request("GET", f"/v1/queues/{queue}/messages", headers={"Connection": "close"})

    with Raw(server.port) as wire:
        wire.send(look)
        eventually(lambda: _is_cut_off(wire), within_s=SWEPT_S)


def test_a_slow_reader_gets_everything(make_server: MakeServer) -> None:
    api = Api(make_server().url)
    queue = api.make_queue()
    api.send(queue, "x" * 1_000_000)
    port = api.http.base_url.port
    assert port is not None
    look = request("GET", f"/v1/queues/{queue}/messages")

    with Raw(port) as wire:
        wire.send(look * 40)
        answers = [wire.answer() for _ in range(40)]

    assert [answer.status for answer in answers] == [200] * 40
    assert {len(answer.body) for answer in answers} == {len(answers[0].body)}


def test_claims_of_closed_connections_stop_waiting(make_server: MakeServer) -> None:
    server = make_server()
    api = Api(server.url)
    queue = api.make_queue()
    path = f"/v1/queues/{queue}/claims"
    wires = [Raw(server.port).send(request("POST", path, b'{"wait_ms": 20000}')) for _ in range(20)]
    eventually(lambda: waiting_claims(api) == 20)

    for wire in wires:
        wire.reset()

    eventually(lambda: waiting_claims(api) == 0)


def _is_cut_off(wire: Raw) -> bool:
    """Check by writing: reading would help the server to send."""
    try:
        wire.socket.send(b"\r\n")
    except OSError:
        return True
    return False
