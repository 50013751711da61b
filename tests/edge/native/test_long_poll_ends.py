"""Limits of waiting claims: how many, until when, and what a shutdown does to them."""

from __future__ import annotations

from pathlib import Path

from tests.clocks import ManualClock
from tests.edge.api import Api, assert_refused, ok
from tests.edge.conftest import InBackground, MakeServer
from tests.edge.native.waiting import LONG_MS, SOON_S, Waiting, waiting_claims
from tests.edge.raw import Raw, request
from tests.store.driver import one_batch
from tests.support.waiting import eventually


def test_when_too_many_claims_wait_the_next_one_is_rejected(
    make_server: MakeServer, in_background: InBackground
) -> None:
    server = make_server(limits={"max_waiting_claims": 2})
    api = Api(server.url)
    queue = api.make_queue()
    claims = Waiting(api, queue, in_background).start(2)

    refused = api.call("POST", f"/v1/queues/{queue}/claims", {"wait_ms": LONG_MS})

    assert_refused(refused, 429, "too_many_waiting")
    assert api.claim(queue) == [], "who does not wait is served all the same"
    for n in range(2):
        api.send(queue, n)
    assert all(claim.result(SOON_S) for claim in claims)
    eventually(lambda: waiting_claims(api) == 0)
    assert api.claim(queue, wait_ms=1) == []


def test_a_claim_that_does_not_wait_is_served_even_if_the_queue_is_not_cached(
    make_server: MakeServer, in_background: InBackground
) -> None:
    clock = ManualClock()
    settings = {"limits": {"max_waiting_claims": 1}, "wakeups": {"poll_ms": 50}}
    api = Api(make_server(clock=clock, **settings).url)
    queue, other = api.make_queue(), api.make_queue()
    [claim] = Waiting(api, queue, in_background).start()
    api.send(other, "x")
    clock.advance(minutes=1)

    assert [m["body"] for m in api.claim(other)] == ["x"]

    api.send(queue, "y")
    assert [m["body"] for m in claim.result(SOON_S)] == ["y"]


def test_waiting_claims_are_answered_empty_when_the_server_stops(
    make_server: MakeServer, in_background: InBackground, tmp_path: Path
) -> None:
    server = make_server(server={"drain_ms": 15_000})
    api = Api(server.url)
    queue = api.make_queue()
    claims = Waiting(api, queue, in_background).start(5)

    server.ask_to_stop()

    assert [claim.result(SOON_S) for claim in claims] == [[]] * 5
    server.stop()


def test_a_client_that_goes_while_its_claim_is_under_way_takes_no_message_with_it(
    make_server: MakeServer,
) -> None:
    server = make_server(wakeups={"poll_ms": 60_000})
    api = Api(server.url)
    queue = api.make_queue()
    message_id = api.send(queue)
    claim = b'{"wait_ms": 20000, "lease_ms": 3600000}'

    with one_batch(server.broker.store):  # the store is busy, so the claim has to wait for it
        leaver = Raw(server.port).send(request("POST", f"/v1/queues/{queue}/claims", claim))
        eventually(lambda: waiting_claims(api) == 1)
        leaver.close()
        eventually(lambda: waiting_claims(api) == 0)

    eventually(lambda: api.counts(queue) == {"ready": 1} and api.queue(queue)["totals"]["claimed"])
    claimed = api.claim_one(queue)
    assert (claimed["id"], claimed["attempts"]) == (message_id, 1)
    [released] = api.get(f"/v1/history/{message_id}")["attempts"]
    assert released["outcome"] == "released"


def test_without_wake_ups_a_waiting_claim_polls_now_and_then(
    make_server: MakeServer, in_background: InBackground
) -> None:
    """Another node may have sent a message; here a second broker on the same store does."""
    server = make_server(wakeups={"poll_ms": 50})
    neighbour = make_server(wakeups={"poll_ms": 50})
    api, other = Api(server.url), Api(neighbour.url)
    queue = api.make_queue()
    [claim] = Waiting(api, queue, in_background).start()

    other.send(queue, "x")

    assert [m["body"] for m in claim.result(0.05 + SOON_S)] == ["x"]


def test_by_the_true_clock_a_due_message_comes_without_delay(
    make_server: MakeServer, in_background: InBackground
) -> None:
    api = Api(make_server(wakeups={"poll_ms": 60_000}).url)
    queue = api.make_queue()
    [claim] = Waiting(api, queue, in_background).start()

    message_id = api.send(queue, "x", delay_ms=200)

    [message] = claim.result(0.2 + SOON_S)
    assert message["id"] == message_id
    assert ok(api.act(message["receipt"], "complete"))["state"] == "done"
