"""Claims that wait are answered as soon as there is something for them.

The server under test hardly ever polls (wakeups.poll_ms is a minute), so each answer here was
caused by a wake-up.
"""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, wait
from functools import partial
from typing import Any

import pytest

from penstock.runtime.duties import Reaper
from tests.clocks import ManualClock
from tests.edge.api import Api, ok
from tests.edge.conftest import NEVER_LOOKS_IN_PASSING, InBackground, MakeServer
from tests.edge.live import LiveServer
from tests.edge.native.waiting import LONG_MS, SOON_S, Waiting, waiting_claims
from tests.edge.raw import Raw, request
from tests.support.waiting import eventually

pytestmark = pytest.mark.both_stores


@pytest.fixture
def queue(api: Api) -> str:
    return api.make_queue()


@pytest.fixture
def waiting(api: Api, queue: str, in_background: InBackground, clock: ManualClock) -> Waiting:
    return Waiting(api, queue, in_background)


def body_of(messages: list[dict[str, Any]]) -> list[Any]:
    return [message["body"] for message in messages]


def test_a_ready_message_is_returned_at_once(api: Api, queue: str) -> None:
    api.send(queue, "x")

    assert body_of(api.claim(queue, wait_ms=LONG_MS)) == ["x"]


def test_a_send_answers_a_waiting_claim(api: Api, queue: str, waiting: Waiting) -> None:
    [claim] = waiting.start()

    api.send(queue, "x")

    assert body_of(claim.result(SOON_S)) == ["x"]


def test_a_claim_without_wait_ms_waits_as_long_as_its_queue_is_set_to(
    api: Api, in_background: InBackground, clock: ManualClock
) -> None:
    queue = api.make_queue(wait_ms=LONG_MS)
    waiting = Waiting(api, queue, in_background)

    assert api.claim(queue, wait_ms=0) == []
    [claim] = waiting.start(wait_ms=None)
    api.send(queue, "x")

    assert body_of(claim.result(SOON_S)) == ["x"]


def test_no_claim_waits_longer_than_the_node_allows(
    make_server: Any, in_background: InBackground
) -> None:
    api = Api(make_server(limits={"max_wait_ms": 20}).url)
    queue = api.make_queue(wait_ms=LONG_MS)

    claim = in_background(api.claim, queue)

    assert claim.result(SOON_S) == []


def test_a_batch_answers_as_many_as_it_has_messages_for(
    api: Api, queue: str, waiting: Waiting
) -> None:
    claims = waiting.start(3)

    api.send_many(queue, range(3))

    answers = [body_of(claim.result(SOON_S)) for claim in claims]
    assert sorted(answers) == [[0], [1], [2]]


def test_a_claim_for_several_takes_what_there_is(api: Api, queue: str, waiting: Waiting) -> None:
    [claim] = waiting.start(limit=10)

    api.send_many(queue, range(3))

    assert body_of(claim.result(SOON_S)) == [0, 1, 2]


def test_a_resume_answers_a_waiting_claim(api: Api, queue: str, waiting: Waiting) -> None:
    ok(api.call("POST", f"/v1/queues/{queue}/pause"))
    api.send(queue, "x")
    [claim] = waiting.start()

    ok(api.call("POST", f"/v1/queues/{queue}/resume"))

    assert body_of(claim.result(SOON_S)) == ["x"]


@pytest.mark.parametrize(
    ("verb", "fields"), [("release", {}), ("fail", {"retry_in_ms": 0}), ("snooze", {"delay_ms": 0})]
)
def test_a_message_given_back_answers_a_waiting_claim(
    api: Api, queue: str, waiting: Waiting, verb: str, fields: dict[str, Any]
) -> None:
    api.send(queue, "x")
    held = api.claim_one(queue)
    [claim] = waiting.start()

    ok(api.act(held["receipt"], verb, **fields))

    assert body_of(claim.result(SOON_S)) == ["x"]


def test_a_redrive_answers_a_waiting_claim(api: Api, queue: str, waiting: Waiting) -> None:
    api.die(queue, body="x")
    [claim] = waiting.start()

    ok(api.call("POST", f"/v1/queues/{queue}/redrive"))

    assert body_of(claim.result(SOON_S)) == ["x"]


def test_the_end_of_a_run_answers_a_waiting_claim(api: Api, in_background: InBackground) -> None:
    queue = api.make_queue(ordering="group")
    for n in range(4):
        api.send(queue, n, group="g")
    first, second = api.claim(queue, limit=2, in_a_row=True)
    [claim] = Waiting(api, queue, in_background).start(limit=10, in_a_row=True)

    for held in (second, first):
        assert not claim.done()
        ok(api.act(held["receipt"], "complete"))

    assert body_of(claim.result(SOON_S)) == [2, 3]


def test_the_next_of_a_group_answers_a_waiting_claim(api: Api, in_background: InBackground) -> None:
    queue = api.make_queue(ordering="group")
    for n in (1, 2):
        api.send(queue, n, group="g")
    first = api.claim_one(queue)
    [claim] = Waiting(api, queue, in_background).start()

    ok(api.act(first["receipt"], "complete"))

    assert body_of(claim.result(SOON_S)) == [2]


def test_a_message_brought_forward_answers_a_waiting_claim(
    api: Api, queue: str, waiting: Waiting, clock: ManualClock
) -> None:
    message_id = api.send(queue, "x", delay_ms=60_000)
    [claim] = waiting.start()

    ok(api.call("PATCH", f"/v1/messages/{message_id}", {"due_at": clock.now()}))

    assert body_of(claim.result(SOON_S)) == ["x"]


def test_a_delay_that_is_over_answers_a_waiting_claim(
    api: Api, queue: str, waiting: Waiting, clock: ManualClock
) -> None:
    api.send(queue, "x", delay_ms=300)
    [claim] = waiting.start()

    # The claim sleeps until the due date that it knows of, by its own clock.
    clock.advance(ms=300)

    assert body_of(claim.result(0.3 + SOON_S)) == ["x"]


def test_a_shorter_delay_that_is_sent_later_is_noticed(
    api: Api, queue: str, waiting: Waiting, clock: ManualClock
) -> None:
    api.send(queue, "late", delay_ms=10_000)
    [claim] = waiting.start()
    api.send(queue, "soon", delay_ms=200)

    clock.advance(ms=200)

    assert body_of(claim.result(0.2 + SOON_S)) == ["soon"]


def test_a_lease_that_ran_out_answers_a_waiting_claim(
    api: Api, queue: str, waiting: Waiting, clock: ManualClock
) -> None:
    api.send(queue, "x")
    api.claim_one(queue, lease_ms=200)
    [claim] = waiting.start()

    clock.advance(ms=200)

    [message] = claim.result(0.2 + SOON_S)
    assert (message["body"], message["attempts"]) == ("x", 2)


def test_the_duty_that_brings_back_wakes_those_who_wait(
    api: Api, queue: str, waiting: Waiting, clock: ManualClock, server: LiveServer
) -> None:
    api.send(queue, "x", delay_ms=15_000)
    [claim] = waiting.start()

    Reaper(server.broker.store, every_ms=1_000).tick(clock.advance(seconds=15))

    assert body_of(claim.result(SOON_S)) == ["x"]


def test_one_of_several_waiting_claims_gets_the_message_and_the_others_keep_waiting(
    api: Api, queue: str, waiting: Waiting
) -> None:
    claims = waiting.start(4)

    for n in range(4):
        api.send(queue, n)
        done, _ = wait(claims, SOON_S, FIRST_COMPLETED)
        assert [body_of(claim.result()) for claim in done] == [[n]]
        claims = [claim for claim in claims if claim not in done]
        eventually(partial(_are_waiting, api, len(claims)))


def test_the_claim_that_has_waited_longest_is_served_first(
    make_server: MakeServer, in_background: InBackground
) -> None:
    """On SQLite: with several lanes the first read of a claim may come after that of the next."""
    api = Api(make_server(**NEVER_LOOKS_IN_PASSING).url)
    queue = api.make_queue()
    waiting = Waiting(api, queue, in_background)
    claims = [waiting.start()[0] for _ in range(3)]
    api.make_queue()  # written after the first look of the last claim

    for n, claim in enumerate(claims):
        api.send(queue, n)

        assert body_of(claim.result(SOON_S)) == [n]


def test_a_message_in_another_queue_does_not_end_the_wait(
    api: Api, queue: str, waiting: Waiting
) -> None:
    [claim] = waiting.start()

    api.send(api.make_queue(), "elsewhere")
    api.send(queue, "here")

    assert body_of(claim.result(SOON_S)) == ["here"]


def test_when_the_time_is_over_the_answer_is_empty(
    api: Api, waiting: Waiting, clock: ManualClock
) -> None:
    [claim] = waiting.start(wait_ms=200)

    clock.advance(ms=200)

    assert claim.result(0.2 + SOON_S) == []


def test_the_removal_of_the_queue_ends_the_wait(
    api: Api, queue: str, in_background: InBackground
) -> None:
    path = f"/v1/queues/{queue}/claims"
    claim = in_background(api.call, "POST", path, {"wait_ms": LONG_MS})
    eventually(lambda: waiting_claims(api) == 1)

    api.call("DELETE", f"/v1/queues/{queue}")

    answer = claim.result(SOON_S)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "queue_not_found")


@pytest.mark.parametrize("rudely", [True, False])
def test_a_client_that_goes_away_while_it_waits_takes_no_message_with_it(
    api: Api, queue: str, server: LiveServer, rudely: bool
) -> None:
    gone = Raw(server.port)
    path = f"/v1/queues/{queue}/claims"
    gone.send(request("POST", path, b'{"wait_ms": 20000, "lease_ms": 3600000}'))
    eventually(lambda: waiting_claims(api) == 1)

    gone.reset() if rudely else gone.close()
    message_id = api.send(queue, "x")

    # Either it is noticed before the claim is served, or the message is released at once.
    [claimed] = eventually(lambda: api.claim(queue))
    assert (claimed["id"], claimed["attempts"]) == (message_id, 1)


def test_clients_that_disconnect_do_not_use_up_wakeups(
    api: Api, queue: str, server: LiveServer, waiting: Waiting
) -> None:
    path = f"/v1/queues/{queue}/claims"
    leavers = [Raw(server.port).send(request("POST", path, b'{"wait_ms":20000}')) for _ in range(5)]
    eventually(lambda: waiting_claims(api) == 5)
    [claim] = waiting.start()

    for leaver in leavers:
        leaver.reset()
    api.send(queue, "x")

    assert body_of(claim.result(SOON_S)) == ["x"]


def _are_waiting(api: Api, count: int) -> bool:
    return waiting_claims(api) == count
