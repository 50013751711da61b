"""One message by id: shown, rescheduled, cancelled, buried, redriven."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.edge.instants import to_text
from tests.clocks import ManualClock
from tests.edge.api import Api, assert_refused, ok

NO_SUCH_ID = "01890000-0000-7000-8000-000000000000"


@pytest.fixture
def queue(api: Api) -> str:
    return api.make_queue()


def ask(api: Api, message_id: str, verb: str, **fields: Any) -> Any:
    return api.call("POST", f"/v1/messages/{message_id}/{verb}", fields or None)


def test_a_live_message_is_shown_with_its_body(api: Api, queue: str, clock: ManualClock) -> None:
    message_id = api.send(queue, {"a": 1}, attributes={"x": "y"}, trace="t", kind="k", tags=["t"])

    assert api.message(message_id) == {
        "id": message_id,
        "queue": queue,
        "state": "ready",
        "attempts": 0,
        "body": {"a": 1},
        "size": 7,
        "attributes": {"x": "y"},
        "trace": "t",
        "kind": "k",
        "tags": ["t"],
        "sent_at": to_text(clock.now()),
        "due_at": to_text(clock.now()),
    }


def test_an_ended_message_is_shown_from_history_with_its_body(
    api: Api, queue: str, clock: ManualClock
) -> None:
    message_id = api.finish(queue, body={"a": 1}, attributes={"x": "y"}, entity_id="e")

    shown = api.message(message_id)

    assert (shown["state"], shown["body"], shown["attributes"]) == ("done", {"a": 1}, {"x": "y"})
    assert (shown["queue"], shown["entity_id"], shown["attempts"]) == (queue, "e", 1)
    assert shown["finished_at"] == to_text(clock.now())


@pytest.mark.parametrize("wrong", [NO_SUCH_ID, "x", "%00", "..", "%F0%9F%92%A9", "1" * 500])
def test_an_id_that_names_nothing_is_not_found(api: Api, wrong: str) -> None:
    path = f"/v1/messages/{wrong}"

    for refused in (
        api.call("GET", path),
        api.call("PATCH", path, {"due_at": 0}),
        api.call("POST", f"{path}/cancel"),
        api.call("POST", f"{path}/bury"),
        api.call("POST", f"{path}/redrive"),
    ):
        assert refused.status_code == 404
        assert refused.json()["error"]["code"] in ("message_not_found", "not_found")


def test_an_unclaimed_message_can_be_rescheduled(api: Api, queue: str, clock: ManualClock) -> None:
    message_id = api.send(queue)
    later = to_text(clock.now() + 5_000)

    moved = ok(api.call("PATCH", f"/v1/messages/{message_id}", {"due_at": later}))

    assert moved == {"id": message_id, "state": "waiting", "due_at": later}
    assert api.message(message_id)["due_at"] == later
    assert api.claim(queue) == []


def test_a_waiting_message_can_be_brought_forward(api: Api, queue: str, clock: ManualClock) -> None:
    message_id = api.send(queue, delay_ms=60_000)

    ok(api.call("PATCH", f"/v1/messages/{message_id}", {"due_at": clock.now()}))

    assert api.claim_one(queue)["id"] == message_id


@pytest.mark.parametrize(
    "change",
    [{}, {"due_at": "soon"}, {"due_at": None}, {"due_at": 0, "priority": 1}, {"due_at": -1}],
)
def test_an_invalid_change_is_refused(api: Api, queue: str, change: dict[str, Any]) -> None:
    message_id = api.send(queue)

    refused = api.call("PATCH", f"/v1/messages/{message_id}", change)

    assert_refused(refused, 400, "invalid_request")


@pytest.mark.parametrize(("verb", "state"), [("cancel", "cancelled"), ("bury", "dead")])
@pytest.mark.parametrize("delay_ms", [0, 60_000])
def test_an_unclaimed_message_can_be_completed_cancelled_or_buried(
    api: Api, queue: str, verb: str, state: str, delay_ms: int
) -> None:
    message_id = api.send(queue, delay_ms=delay_ms)

    answer = ok(ask(api, message_id, verb, reason="by hand"))

    assert (answer["id"], answer["state"]) == (message_id, state)
    shown = api.message(message_id)
    assert (shown["state"], shown["reason"]) == (state, "by hand")
    assert api.claim(queue) == []


def test_no_reason_is_needed(api: Api, queue: str) -> None:
    message_id = api.send(queue)

    ok(ask(api, message_id, "cancel"))

    assert "reason" not in api.message(message_id)


def test_the_beginning_of_a_very_long_reason_is_kept(api: Api, queue: str) -> None:
    message_id = api.send(queue)

    ok(ask(api, message_id, "cancel", reason="\x00" + "r" * 10_000))

    assert api.message(message_id)["reason"] == "\ufffd" + "r" * 4_095


@pytest.mark.parametrize("verb", ["cancel", "bury", "redrive"])
def test_a_leased_message_cannot_be_changed_by_hand(api: Api, queue: str, verb: str) -> None:
    message_id = api.send(queue)
    claimed = api.claim_one(queue)

    assert_refused(ask(api, message_id, verb), 409, "wrong_state")
    moved = api.call("PATCH", f"/v1/messages/{message_id}", {"due_at": 0})
    assert_refused(moved, 409, "wrong_state")
    assert ok(api.act(claimed["receipt"], "complete"))["state"] == "done"


@pytest.mark.parametrize("verb", ["cancel", "bury", "redrive"])
def test_a_message_that_has_ended_cannot_be_changed(api: Api, queue: str, verb: str) -> None:
    message_id = api.finish(queue)

    refused = ask(api, message_id, verb)

    assert_refused(refused, 404, "message_not_found")


def test_a_dead_message_can_be_cancelled(api: Api, queue: str) -> None:
    message_id = api.die(queue)

    assert ok(ask(api, message_id, "cancel"))["state"] == "cancelled"

    assert api.counts(queue) == {}


def test_a_dead_message_cannot_die_again(api: Api, queue: str) -> None:
    assert_refused(ask(api, api.die(queue), "bury"), 409, "wrong_state")


def test_a_dead_message_can_be_brought_back_with_all_its_attempts(api: Api, queue: str) -> None:
    message_id = api.die(queue)

    answer = ok(ask(api, message_id, "redrive"))

    assert (answer["id"], answer["state"]) == (message_id, "ready")
    claimed = api.claim_one(queue)
    assert (claimed["id"], claimed["attempts"]) == (message_id, 1)


def test_a_message_buried_into_a_dead_letter_queue_is_dead_for_the_caller(api: Api) -> None:
    letters = api.make_queue("letters")
    queue = api.make_queue(dead_letter_queue=letters)
    message_id = api.send(queue)

    answer = ok(ask(api, message_id, "bury"))

    assert (answer["id"], answer["state"]) == (message_id, "dead")
    assert api.counts(letters) == {"ready": 1}


def test_a_dead_letter_goes_back_to_the_queue_it_died_in(api: Api) -> None:
    letters = api.make_queue("letters")
    queue = api.make_queue(dead_letter_queue=letters)
    message_id = api.die(queue)
    assert api.counts(letters) == {"ready": 1}

    ok(ask(api, message_id, "redrive"))

    assert api.counts(letters) == {}
    assert api.claim_one(queue)["id"] == message_id


def test_a_message_that_never_died_cannot_be_brought_back(api: Api, queue: str) -> None:
    assert_refused(ask(api, api.send(queue), "redrive"), 409, "wrong_state")


@pytest.mark.parametrize(("verb", "state"), [("cancel", "cancelled"), ("bury", "dead")])
def test_a_leased_message_is_ended_only_if_the_request_says_so(
    api: Api, queue: str, verb: str, state: str
) -> None:
    message_id = api.send(queue)
    receipt = api.claim_one(queue, claimed_by="w1")["receipt"]

    assert_refused(ask(api, message_id, verb, reason="no"), 409, "wrong_state")
    ended = ok(ask(api, message_id, verb, reason="no", is_running_ok=True))

    assert ended["state"] == state
    shown = api.message(message_id)
    assert (shown["state"], shown["reason"], shown["leased_by"]) == (state, "no", "w1")
    assert_refused(api.act(receipt, "complete"), 409, "lease_lost")
    assert_refused(api.act(receipt, "extend"), 409, "lease_lost")


def test_a_dead_letter_names_the_queue_it_died_in_and_a_leased_message_its_claim(
    api: Api, clock: ManualClock
) -> None:
    letters = api.make_queue()
    queue = api.make_queue(dead_letter_queue=letters)
    message_id = api.die(queue)

    assert api.message(message_id)["dead_from"] == queue
    [listed] = api.get(f"/v1/queues/{letters}/messages")["messages"]
    assert listed["dead_from"] == queue
    api.claim_one(letters)
    assert api.message(message_id)["leased_at"] == to_text(clock.now())
