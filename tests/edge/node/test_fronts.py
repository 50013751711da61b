"""A node of several processes behaves as one server, whichever front a client is connected to."""

from __future__ import annotations

import json
from functools import partial
from itertools import cycle
from time import monotonic
from typing import Any

import httpx
import pytest

from tests.edge.api import Api, a_name, assert_refused, ok
from tests.edge.conftest import InBackground
from tests.edge.native.waiting import LONG_MS, SOON_S, waiting_claims
from tests.edge.node.node import FRONTS, Node
from tests.support.waiting import eventually

COUNT = 30


def test_every_process_has_its_task(node: Node) -> None:
    assert node.processes().keys() == {"writer", *(f"front-{n + 1}" for n in range(FRONTS))}


def test_messages_sent_through_any_front_are_claimed_and_completed_through_any(
    clients: list[Api],
) -> None:
    queue = clients[0].make_queue()
    each = cycle(clients)
    sent = [next(each).send(queue, n) for n in range(COUNT)]

    claimed = [next(each).claim_one(queue) for _ in range(COUNT)]
    for message in claimed:
        assert ok(next(each).act(message["receipt"], "complete"))["state"] == "done"

    assert sorted(message["id"] for message in claimed) == sorted(sent)
    assert sorted(message["body"] for message in claimed) == list(range(COUNT))
    assert [client.counts(queue) for client in clients] == [{}] * len(clients)
    assert clients[0].queue(queue)["totals"]["done"] == COUNT


def test_batches_are_sent_claimed_and_finished(clients: list[Api]) -> None:
    first, second, third, *_ = clients
    queue = first.make_queue()
    first.send_many(queue, range(COUNT))

    claimed = second.claim(queue, limit=COUNT)
    acts = [{"receipt": message["receipt"], "act": "complete"} for message in claimed]
    answer = ok(third.call("POST", "/v1/leases/batch", {"acts": [*acts, *acts]}))

    codes = [result.get("error", {}).get("code") for result in answer["results"]]
    assert codes == [None] * COUNT + ["lease_lost"] * COUNT


def test_a_result_given_at_one_front_is_waited_for_at_others(
    clients: list[Api], in_background: InBackground
) -> None:
    queue = clients[0].make_queue()
    ids = [clients[0].send(queue, n) for n in range(len(clients))]
    waiting = [
        in_background(partial(client.get, f"/v1/messages/{one}/result", wait_ms=LONG_MS))
        for client, one in zip(clients, ids, strict=True)
    ]

    each = cycle(reversed(clients))
    for message in clients[0].claim(queue, limit=len(ids)):
        ok(next(each).act(message["receipt"], "complete", result={"n": message["body"]}))

    assert [one.result(SOON_S)["result"] for one in waiting] == [{"n": n} for n in range(len(ids))]


def test_a_claim_completes_other_messages_first(clients: list[Api]) -> None:
    first, second, *_ = clients
    queue = first.make_queue()
    first.send_many(queue, range(2))
    held = second.claim_one(queue)

    answer = ok(
        first.call("POST", f"/v1/queues/{queue}/claims", {"complete": [held["receipt"], "forged"]})
    )

    assert [message["body"] for message in answer["messages"]] == [1]
    assert [result.get("error", {}).get("code") for result in answer["completed"]] == [
        None,
        "lease_lost",
    ]


def test_steps_waits_and_signals_go_through_any_front(clients: list[Api]) -> None:
    queue, name = clients[0].make_queue(), a_name("approved")
    each = cycle(clients)
    for _ in range(FRONTS):  # each front has some of the clients
        next(each).send(queue)
    for claimed in clients[0].claim(queue, limit=FRONTS):
        lease = f"/v1/leases/{claimed['receipt']}"
        ok(next(each).call("POST", f"{lease}/steps", {"name": "charge", "outcome": 1}))
        ok(next(each).call("POST", f"{lease}/waits", {"signal": name}))
        snoozed = next(each).act(claimed["receipt"], "snooze", delay_ms=60_000, signal=name)
        assert ok(snoozed)["state"] == "waiting"

    sent = ok(next(each).call("POST", f"/v1/signals/{name}", {"body": 17}))

    assert sent["ended_waits"] == FRONTS
    again = next(each).claim(queue, limit=FRONTS, wait_ms=LONG_MS)
    assert len(again) == FRONTS
    for claimed in again:
        steps = next(each).get(f"/v1/leases/{claimed['receipt']}/steps")["steps"]
        assert [step["outcome"] for step in steps] == [1, {"body": 17}]
        ok(next(each).act(claimed["receipt"], "complete"))


def test_errors_of_the_store_keep_their_codes(clients: list[Api]) -> None:
    first, second, *_ = clients
    queue = first.make_queue(max_messages=1)
    first.send(queue)
    receipt = second.claim_one(queue)["receipt"]
    ok(first.act(receipt, "complete"))
    first.send(queue)
    sends = f"/v1/queues/{queue}/messages"

    for client in clients:
        assert_refused(client.call("POST", sends, {"body": 1}), 409, "queue_full")
        assert_refused(client.act(receipt, "complete"), 409, "lease_lost")
        assert_refused(
            client.call("POST", sends, {"body": 1, "priority": 10**9}), 400, "invalid_request"
        )
        assert_refused(
            client.call("POST", "/v1/queues/none/messages", {"body": 1}), 404, "queue_not_found"
        )
        assert_refused(client.call("GET", "/v1/nothing"), 404, "not_found")
        refused = client.call("DELETE", sends)
        assert_refused(refused, 405, "method_not_allowed")
        assert refused.headers["allow"] == "GET, HEAD, POST"


def test_a_repeated_send_is_a_duplicate_on_every_front(clients: list[Api]) -> None:
    queue = clients[0].make_queue()
    path, draft = f"/v1/queues/{queue}/messages", {"body": 1, "dedup_key": "once"}

    answers = [ok(client.call("POST", path, draft)) for client in clients]

    assert [answer["is_duplicate"] for answer in answers] == [False] + [True] * (len(clients) - 1)
    assert len({answer["id"] for answer in answers}) == 1


def test_waiting_claims_are_woken_by_sends_through_any_front(
    clients: list[Api], in_background: InBackground
) -> None:
    *waiting, sender, _ = clients
    queue = sender.make_queue()
    claims = [in_background(client.claim, queue, wait_ms=LONG_MS) for client in waiting]
    eventually(lambda: waiting_claims(sender) == len(waiting))
    began = monotonic()

    sent = [sender.send(queue, n) for n in range(len(waiting))]
    claimed = [claim.result() for claim in claims]

    assert sorted(message["id"] for [message] in claimed) == sorted(sent)
    assert monotonic() - began < SOON_S


def test_a_waiting_claim_completes_other_messages_before_it_waits(
    clients: list[Api], in_background: InBackground
) -> None:
    first, second, third, *_ = clients
    queue = first.make_queue()
    first.send(queue)
    wanted = {"complete": [first.claim_one(queue)["receipt"]], "wait_ms": LONG_MS}

    claim = in_background(second.call, "POST", f"/v1/queues/{queue}/claims", wanted)
    eventually(lambda: third.queue(queue)["totals"]["done"] == 1)
    eventually(lambda: waiting_claims(third) == 1)
    sent = third.send(queue)

    answer = ok(claim.result())
    assert [message["id"] for message in answer["messages"]] == [sent]
    assert [done["state"] for done in answer["completed"]] == ["done"]


def test_the_figures_of_the_node_are_the_same_on_every_front(
    clients: list[Api], in_background: InBackground
) -> None:
    *watching, first, second = clients
    queue = first.make_queue()
    claims = [in_background(c.claim, queue, wait_ms=LONG_MS) for c in (first, second)]

    for client in watching:
        eventually(partial(has_two_waiting, client))
        assert "penstock_claims_waiting 2\n" in client.call("GET", "/metrics").text
        assert ok(client.call("GET", "/readyz")) == {"status": "ready"}
        assert ok(client.call("GET", "/healthz"))["status"] == "ok"

    watching[0].send_many(queue, range(2))
    for claim in claims:
        assert len(claim.result()) == 1


def has_two_waiting(client: Api) -> bool:
    return waiting_claims(client) == 2


def test_a_claim_waits_no_longer_than_its_wait_ms(clients: list[Api]) -> None:
    queue = clients[0].make_queue()
    began = monotonic()

    assert clients[1].claim(queue, wait_ms=300) == []
    assert 0.3 <= monotonic() - began < SOON_S


def test_a_message_is_not_lost_if_the_client_of_a_waiting_claim_leaves(
    node: Node, clients: list[Api]
) -> None:
    first, second, *_ = clients
    queue = first.make_queue()
    for _ in range(5):
        with pytest.raises(httpx.ReadTimeout):
            Api(node.url).call(
                "POST", f"/v1/queues/{queue}/claims", {"wait_ms": LONG_MS}, timeout=0.2
            )
    eventually(lambda: waiting_claims(first) == 0)

    sent = first.send(queue)

    assert second.claim_one(queue, wait_ms=LONG_MS)["id"] == sent


def test_changed_settings_of_a_queue_apply_on_every_front_at_once(clients: list[Api]) -> None:
    queue = clients[0].make_queue()
    for client in clients:
        client.send(queue)
    assert clients[0].counts(queue) == {"ready": len(clients)}

    ok(clients[0].call("PATCH", f"/v1/queues/{queue}", {"delay_ms": 60_000}))
    for client in clients:
        client.send(queue)

    assert clients[0].counts(queue) == {"ready": len(clients), "waiting": len(clients)}


def test_every_front_finds_a_recreated_queue(clients: list[Api]) -> None:
    queue = a_name()
    for _ in range(3):
        assert clients[0].call("PUT", f"/v1/queues/{queue}", {}).status_code == 201
        for client in clients:
            client.send(queue)
        assert clients[1].counts(queue) == {"ready": len(clients)}
        removed = clients[1].call("DELETE", f"/v1/queues/{queue}", params={"force": "true"})
        assert removed.status_code == 204
        for client in clients:
            assert_refused(
                client.call("POST", f"/v1/queues/{queue}/claims", {}), 404, "queue_not_found"
            )


def test_the_live_feed_shows_what_happens_on_every_front(
    clients: list[Api], in_background: InBackground
) -> None:
    first, *senders = clients
    queue = first.make_queue()
    events = in_background(first.call, "GET", "/v1/live", params={"events": 3})

    for client in senders:
        client.send(queue)

    shown: list[Any] = [line for line in events.result().text.splitlines() if queue in line]
    assert shown


def test_pages_and_large_bodies_pass_through_any_front(clients: list[Api]) -> None:
    queue = clients[0].make_queue()
    large = "x" * 200_000
    for client in clients:
        assert "<html" in client.call("GET", "/console").text
        assert client.call("GET", "/v1/openapi.json").json()["openapi"].startswith("3")
        assert client.call("HEAD", "/healthz").content == b""
        sent = client.send(queue, large)
        assert clients[0].message(sent)["body"] == large
        assert client.claim_one(queue)["body"] == large


def test_sqs_is_served_by_every_front(clients: list[Api]) -> None:
    name = a_name()
    url = sqs(clients[0], "CreateQueue", QueueName=name)["QueueUrl"]
    for n, client in enumerate(clients):
        sqs(client, "SendMessage", QueueUrl=url, MessageBody=f"body {n}")

    received = [
        sqs(client, "ReceiveMessage", QueueUrl=url, WaitTimeSeconds=5)["Messages"][0]
        for client in clients
    ]

    assert {message["Body"] for message in received} == {f"body {n}" for n in range(len(clients))}


def sqs(client: Api, operation: str, **fields: Any) -> dict[str, Any]:
    headers = {
        "X-Amz-Target": f"AmazonSQS.{operation}",
        "Content-Type": "application/x-amz-json-1.0",
    }
    return dict(ok(client.call("POST", "/", raw=json.dumps(fields).encode(), headers=headers)))
