"""Requests pipelined on one connection: they share commits, and are answered in order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.edge.api import Api
from tests.edge.live import LiveServer
from tests.edge.raw import Answer, Raw, request


@pytest.fixture
def wire(server: LiveServer) -> Iterator[Raw]:
    with Raw(server.port) as raw:
        yield raw


def test_pipelined_sends_share_commits(wire: Raw, api: Api, server: LiveServer) -> None:
    queue = api.make_queue()
    api.send(queue, "first")  # so that the queue is known
    before = commits(server)

    wire.send(*(send(queue, n) for n in range(20)))
    statuses = [wire.answer().status for _ in range(20)]

    assert statuses == [201] * 20
    assert commits(server) - before < 10


def test_pipelined_sends_are_stored_and_answered_in_order(wire: Raw, api: Api) -> None:
    queue = api.make_queue()

    wire.send(*(send(queue, n) for n in range(100)))
    sent = [body(wire.answer())["id"] for _ in range(100)]

    claimed = api.claim(queue, limit=100)
    assert [message["body"] for message in claimed] == list(range(100))
    assert [message["id"] for message in claimed] == sent


def test_a_refused_request_among_pipelined_ones_is_answered_in_its_place(
    wire: Raw, api: Api
) -> None:
    queue = api.make_queue()
    api.send(queue, "first")
    refused = request("POST", f"/v1/queues/{queue}/messages", b'{"body": 1, "priority": "high"}')

    wire.send(send(queue, 1), refused, send(queue, 2), request("GET", "/nowhere"), send(queue, 3))

    assert [wire.answer().status for _ in range(5)] == [201, 400, 201, 404, 201]


def test_requests_of_all_kinds_may_be_pipelined(wire: Raw, api: Api) -> None:
    queue = api.make_queue()
    api.send(queue, "first")
    receipt = api.claim_one(queue)["receipt"]
    wire.send(
        send(queue, "second"),
        request("POST", f"/v1/leases/{receipt}/complete"),
        request("POST", f"/v1/queues/{queue}/claims", b'{"limit": 10}'),
        request("GET", f"/v1/queues/{queue}"),
        send(queue, "third"),
    )

    sent, completed, claimed, seen, last = (body(wire.answer()) for _ in range(5))

    assert completed["state"] == "done"
    assert [message["id"] for message in claimed["messages"]] == [sent["id"]]
    assert seen["counts"]["leased"] == 1
    assert api.claim_one(queue)["id"] == last["id"]


def test_the_last_of_pipelined_requests_may_close_the_connection(wire: Raw, api: Api) -> None:
    queue = api.make_queue()
    api.send(queue, "first")
    last = request("GET", "/healthz", headers={"Connection": "close"})

    wire.send(send(queue, 1), send(queue, 2), last, send(queue, 3))

    assert [wire.answer().status for _ in range(3)] == [201, 201, 200]
    assert wire.is_closed()
    assert api.counts(queue) == {"ready": 3}


def send(queue: str, content: object) -> bytes:
    return request("POST", f"/v1/queues/{queue}/messages", json.dumps({"body": content}).encode())


def body(answer: Answer) -> Any:
    return json.loads(answer.body)


def commits(server: LiveServer) -> int:
    """How many batches the store has answered."""
    [writer] = [part for part in server.broker.health._parts if part.name == "writer"]
    return writer.moves
