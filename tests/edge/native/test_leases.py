"""What a holder can do with its lease."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.edge.instants import to_text
from penstock.runtime.duties import Reaper
from tests.clocks import ManualClock
from tests.edge.api import Api, assert_refused, ok
from tests.edge.live import LiveServer

pytestmark = pytest.mark.both_stores

FIXED = {"type": "fixed", "delay_ms": 7_000}
VERBS = [
    *("complete", "fail", "release", "extend", "snooze", "bury", "cancel", "time_out", "crash")
]
NEEDED: dict[str, dict[str, Any]] = {"snooze": {"delay_ms": 1}}


@pytest.fixture
def queue(api: Api) -> str:
    return api.make_queue(lease_ms=30_000, backoff=FIXED, max_attempts=2)


@pytest.fixture
def lease(api: Api, queue: str) -> dict[str, Any]:
    api.send(queue)
    return api.claim_one(queue, claimed_by="worker-1")


def test_a_completed_message_is_done(api: Api, queue: str, lease: dict[str, Any]) -> None:
    answer = ok(api.act(lease["receipt"], "complete"))

    assert (answer["id"], answer["state"]) == (lease["id"], "done")
    assert api.counts(queue) == {}
    assert api.message(lease["id"])["state"] == "done"


def test_a_failed_message_waits_for_the_back_off(
    api: Api, queue: str, lease: dict[str, Any], clock: ManualClock
) -> None:
    answer = ok(api.act(lease["receipt"], "fail", error="no route"))

    due_at = to_text(clock.now() + 7_000)
    assert answer == {"id": lease["id"], "state": "waiting", "due_at": due_at}
    shown = api.message(lease["id"])
    assert (shown["failures"], shown["last_error"]) == (1, "no route")


def test_a_holder_may_choose_its_own_back_off(
    api: Api, queue: str, lease: dict[str, Any], clock: ManualClock
) -> None:
    ok(api.act(lease["receipt"], "fail", retry_in_ms=100))

    clock.advance(ms=100)
    assert api.claim_one(queue)["attempts"] == 2


def test_a_failure_without_a_wait_is_ready_at_once(api: Api, lease: dict[str, Any]) -> None:
    assert ok(api.act(lease["receipt"], "fail", retry_in_ms=0))["state"] == "ready"


def test_the_last_failure_is_the_end(api: Api, queue: str, lease: dict[str, Any]) -> None:
    ok(api.act(lease["receipt"], "fail", retry_in_ms=0))
    last = api.claim_one(queue)

    answer = ok(api.act(last["receipt"], "fail", error="again"))

    assert answer["state"] == "dead"
    shown = api.message(lease["id"])
    assert (shown["state"], shown["reason"]) == ("dead", "attempts_exhausted")


def test_the_last_failure_moves_a_message_to_the_dead_letter_queue(
    api: Api, clock: ManualClock
) -> None:
    letters = api.make_queue("letters")
    queue = api.make_queue(max_attempts=1, dead_letter_queue=letters)
    api.send(queue, "x")

    answer = ok(api.act(api.claim_one(queue)["receipt"], "fail"))

    assert answer["state"] == "dead"
    moved = api.claim_one(letters)
    assert (moved["body"], moved["dead_from"], moved["queue"]) == ("x", queue, letters)


def test_a_released_message_is_ready_and_the_attempt_does_not_count(
    api: Api, queue: str, lease: dict[str, Any]
) -> None:
    assert ok(api.act(lease["receipt"], "release"))["state"] == "ready"

    again = api.claim_one(queue)
    assert (again["id"], again["attempts"], again["lease_no"]) == (lease["id"], 1, 2)


@pytest.mark.parametrize("verb", ["release", "snooze"])
def test_a_message_may_be_given_back_for_later(
    api: Api, queue: str, lease: dict[str, Any], clock: ManualClock, verb: str
) -> None:
    answer = ok(api.act(lease["receipt"], verb, delay_ms=5_000))

    assert answer["state"] == "waiting"
    assert answer["due_at"] == to_text(clock.now() + 5_000)
    clock.advance(seconds=5)
    assert api.claim_one(queue)["attempts"] == 1


def test_a_snooze_needs_a_delay(api: Api, lease: dict[str, Any]) -> None:
    assert_refused(api.act(lease["receipt"], "snooze"), 400, "invalid_request")


def test_a_snooze_may_have_a_reason(api: Api, lease: dict[str, Any]) -> None:
    ok(api.act(lease["receipt"], "snooze", delay_ms=1_000, reason="no handler"))

    shown = ok(api.call("GET", f"/v1/messages/{lease['id']}"))
    [attempt] = ok(api.call("GET", f"/v1/history/{lease['id']}"))["attempts"]
    assert (shown["state"], shown["last_error"]) == ("waiting", "no handler")
    assert (attempt["outcome"], attempt["error"]) == ("snoozed", "no handler")


def test_an_extension_counts_from_now(
    api: Api, queue: str, lease: dict[str, Any], clock: ManualClock
) -> None:
    clock.advance(seconds=20)

    answer = ok(api.act(lease["receipt"], "extend", lease_ms=60_000))

    assert answer == {
        "id": lease["id"],
        "state": "leased",
        "due_at": to_text(clock.now() + 60_000),
    }
    clock.advance(seconds=59)
    assert api.claim(queue) == []
    assert ok(api.act(lease["receipt"], "complete"))["state"] == "done"


def test_an_extension_without_a_length_is_as_long_as_the_queue_says(
    api: Api, lease: dict[str, Any], clock: ManualClock
) -> None:
    clock.advance(seconds=20)

    answer = ok(api.act(lease["receipt"], "extend"))

    assert answer["due_at"] == to_text(clock.now() + 30_000)


@pytest.mark.parametrize(("verb", "state"), [("bury", "dead"), ("cancel", "cancelled")])
def test_a_holder_may_give_a_message_up(
    api: Api, lease: dict[str, Any], verb: str, state: str
) -> None:
    answer = ok(api.act(lease["receipt"], verb, reason="makes no sense"))

    assert (answer["id"], answer["state"]) == (lease["id"], state)
    shown = api.message(lease["id"])
    assert (shown["state"], shown["reason"]) == (state, "makes no sense")


@pytest.mark.parametrize("verb", VERBS)
def test_a_finished_lease_can_do_nothing_more(api: Api, lease: dict[str, Any], verb: str) -> None:
    ok(api.act(lease["receipt"], "complete"))

    refused = api.act(lease["receipt"], verb, **NEEDED.get(verb, {}))

    assert_refused(refused, 409, "lease_lost")


@pytest.mark.parametrize("verb", VERBS)
def test_a_stale_lease_can_do_nothing_to_the_message_of_the_next_holder(
    api: Api, queue: str, lease: dict[str, Any], clock: ManualClock, verb: str
) -> None:
    clock.advance(seconds=30)
    holder = api.claim_one(queue)

    refused = api.act(lease["receipt"], verb, **NEEDED.get(verb, {}))

    assert_refused(refused, 409, "lease_lost")
    assert ok(api.act(holder["receipt"], "complete"))["state"] == "done"


@pytest.mark.parametrize("receipt", ["x", "A" * 43, "%FF%00", "batch", "..", "A" * 5_000])
@pytest.mark.parametrize("verb", VERBS)
def test_a_receipt_that_no_claim_has_given_is_as_good_as_a_stale_one(
    api: Api, receipt: str, verb: str
) -> None:
    refused = api.act(receipt, verb, **NEEDED.get(verb, {}))

    assert refused.status_code in (404, 409), refused.text


def test_a_receipt_with_one_letter_changed_is_refused(
    api: Api, queue: str, lease: dict[str, Any]
) -> None:
    receipt = lease["receipt"]
    for place in range(len(receipt) - 1):  # the last letter has unused bits
        other = "A" if receipt[place] != "A" else "B"

        refused = api.act(receipt[:place] + other + receipt[place + 1 :], "complete")

        assert_refused(refused, 409, "lease_lost")
    assert api.counts(queue) == {"leased": 1}


@pytest.mark.parametrize(
    ("verb", "fields"),
    [
        ("complete", {"error": "x"}),
        ("complete", {"outcome": "done"}),
        ("fail", {"reason": "x"}),
        ("fail", {"delay_ms": 5}),
        ("fail", {"retry_in_ms": -1}),
        ("fail", {"error": 5}),
        ("release", {"lease_ms": 5}),
        ("release", {"delay_ms": -1}),
        ("extend", {"delay_ms": 5}),
        ("extend", {"lease_ms": -1}),
        ("extend", {"lease_ms": 12 * 3_600_000 + 1}),
        ("snooze", {"delay_ms": None}),
        ("bury", {"error": "x"}),
        ("cancel", {"error": "x"}),
    ],
)
def test_fields_that_mean_nothing_to_an_act_are_refused(
    api: Api, queue: str, lease: dict[str, Any], verb: str, fields: dict[str, Any]
) -> None:
    assert_refused(api.act(lease["receipt"], verb, **fields), 400, "invalid_request")
    assert api.counts(queue) == {"leased": 1}


def test_the_beginning_of_a_very_long_error_is_kept(api: Api, lease: dict[str, Any]) -> None:
    ok(api.act(lease["receipt"], "fail", error="e" * 10_000))

    assert api.message(lease["id"])["last_error"] == "e" * 4_096


@pytest.mark.parametrize(("verb", "field"), [("fail", "error"), ("bury", "reason")])
def test_a_text_with_a_nul_in_it_does_not_keep_a_message_from_ending(
    api: Api, lease: dict[str, Any], verb: str, field: str
) -> None:
    ok(api.act(lease["receipt"], verb, **{field: "a\x00b"}))

    shown = api.message(lease["id"])
    assert "a\ufffdb" in (shown.get("last_error"), shown.get("reason"))


def test_an_act_may_be_late_if_it_has_is_late_ok(
    api: Api, server: LiveServer, clock: ManualClock
) -> None:
    queue = api.make_queue(lease_ms=1_000)
    api.send(queue)
    receipt = api.claim_one(queue)["receipt"]
    clock.advance(seconds=1)
    Reaper(server.broker.store, every_ms=1).tick(clock.now())

    assert_refused(api.act(receipt, "complete"), 409, "lease_lost")
    assert_refused(api.act(receipt, "fail", is_late_ok=True), 400, "invalid_request")
    extended = ok(api.act(receipt, "extend", is_late_ok=True, lease_ms=5_000))
    assert (extended["state"], extended["due_at"]) == ("leased", to_text(clock.now() + 5_000))

    clock.advance(seconds=5)
    Reaper(server.broker.store, every_ms=1).tick(clock.now())
    late = {"acts": [{"receipt": receipt, "act": "complete", "is_late_ok": True}]}
    [result] = ok(api.call("POST", "/v1/leases/batch", late))["results"]
    assert result["state"] == "done"
