"""Deadlines, progress, crashes, unique keys and kinds over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.edge.instants import to_text
from tests.clocks import ManualClock
from tests.edge.api import Api, assert_refused, ok


@pytest.fixture
def queue(api: Api) -> str:
    return api.make_queue(lease_ms=30_000, backoff={"type": "fixed", "delay_ms": 7_000})


def test_the_progress_of_a_job_is_shown_to_operators_and_workers(
    api: Api, queue: str, clock: ManualClock
) -> None:
    said: dict[str, Any] = {
        "timeout_ms": 5_000,
        "retries_timeouts": True,
        "dedup_key": "k",
        "dedup_until": "ended",
        "route": "eu",
    }
    message_id = api.send(queue, **said)

    looked_at, claimed = api.message(message_id), api.claim_one(queue)

    assert looked_at.items() >= said.items()
    assert claimed.items() >= said.items()
    assert "deadline_at" not in looked_at
    assert claimed["deadline_at"] == to_text(clock.now() + 5_000)
    assert claimed["leased_until"] > claimed["deadline_at"], "it cuts no lease short"


def test_an_ordinary_message_has_none_of_these_fields(api: Api, queue: str) -> None:
    api.send(queue)

    names = {"timeout_ms", "retries_timeouts", "dedup_until", "route", "crashes", "deadline_at"}
    assert not names & api.claim_one(queue).keys()


def test_work_may_begin_later_than_the_claim_and_report_progress(
    api: Api, queue: str, clock: ManualClock
) -> None:
    api.send(queue, timeout_ms=60_000)
    held = api.claim_one(queue)
    clock.advance(seconds=20)

    ok(api.act(held["receipt"], "extend", is_start=True, progress={"done": 1, "of": [2]}))

    shown = api.message(held["id"])
    assert shown["started_at"] == to_text(clock.now())
    assert shown["deadline_at"] == to_text(clock.now() + 60_000)
    assert shown["progress"] == {"done": 1, "of": [2]}


def test_an_extension_past_the_deadline_is_refused_and_the_message_timed_out(
    api: Api, queue: str, clock: ManualClock
) -> None:
    api.send(queue, timeout_ms=40_000)
    held = api.claim_one(queue)
    clock.advance(seconds=39)
    answer = ok(api.act(held["receipt"], "extend", lease_ms=600_000))
    assert answer["due_at"] == to_text(clock.now() + 600_000)
    clock.advance(seconds=1)

    refused = api.act(held["receipt"], "extend", lease_ms=600_000)

    assert_refused(refused, 409, "lease_lost")
    shown = api.message(held["id"])
    assert (shown["state"], shown["reason"]) == ("dead", "timed_out")
    [attempt] = api.get(f"/v1/history/{held['id']}")["attempts"]
    assert attempt["outcome"] == "timed_out"


def test_after_its_deadline_a_message_can_be_completed_until_the_timeout_is_noticed(
    api: Api, queue: str, clock: ManualClock
) -> None:
    api.send(queue, timeout_ms=5_000)
    held = api.claim_one(queue)
    clock.advance(seconds=6)

    assert ok(api.act(held["receipt"], "complete"))["state"] == "done"


def test_progress_of_any_length_is_not_kept(api: Api, queue: str) -> None:
    api.send(queue)
    receipt = api.claim_one(queue)["receipt"]

    assert_refused(api.act(receipt, "extend", progress="x" * 4_095), 400, "invalid_request")
    ok(api.act(receipt, "extend", progress="x" * 4_094))


def test_a_message_that_took_too_long_is_dead(api: Api, queue: str) -> None:
    api.send(queue)
    held = api.claim_one(queue)

    answer = ok(api.act(held["receipt"], "time_out", error="no reply"))

    assert answer["state"] == "dead"
    shown = api.message(held["id"])
    assert (shown["reason"], shown["last_error"]) == ("timed_out", "no reply")
    [attempt] = api.get(f"/v1/history/{held['id']}")["attempts"]
    assert (attempt["outcome"], attempt["error"]) == ("timed_out", "no reply")


def test_one_that_retries_timeouts_waits_for_its_next_try(
    api: Api, queue: str, clock: ManualClock
) -> None:
    api.send(queue, retries_timeouts=True)
    held = api.claim_one(queue)

    answer = ok(api.act(held["receipt"], "time_out", retry_in_ms=100))

    assert (answer["state"], answer["due_at"]) == ("waiting", to_text(clock.now() + 100))


def test_a_message_that_kills_its_workers_is_set_aside(api: Api) -> None:
    queue = api.make_queue(max_crashes=2)
    api.send(queue, route="eu")
    states = []
    for _ in range(2):
        held = api.claim_one(queue)
        states.append(ok(api.act(held["receipt"], "crash", error="signal 9"))["state"])

    assert states == ["ready", "dead"]
    shown = api.message(held["id"])
    assert (shown["reason"], shown["crashes"]) == ("quarantined", 2)
    [ending] = api.get(f"/v1/history/{held['id']}")["endings"]
    assert (ending["crashes"], ending["route"]) == (2, "eu")


def test_acts_of_a_batch_may_be_any_of_these(api: Api, queue: str) -> None:
    for _ in range(3):
        api.send(queue)
    receipts = [m["receipt"] for m in api.claim(queue, limit=3)]
    acts = [
        {"receipt": receipts[0], "act": "time_out", "error": "slow"},
        {"receipt": receipts[1], "act": "crash"},
        {"receipt": receipts[2], "act": "extend", "progress": 7},
    ]

    results = ok(api.call("POST", "/v1/leases/batch", {"acts": acts}))["results"]

    assert [result["state"] for result in results] == ["dead", "ready", "leased"]


@pytest.mark.parametrize(
    ("verb", "fields"),
    [
        ("crash", {"retry_in_ms": 1}),
        ("time_out", {"progress": 1}),
        ("complete", {"progress": 1}),
        ("fail", {"is_start": True}),
    ],
)
def test_a_field_that_an_act_does_not_take_is_rejected(
    api: Api, queue: str, verb: str, fields: dict[str, Any]
) -> None:
    api.send(queue)
    receipt = api.claim_one(queue)["receipt"]

    assert_refused(api.act(receipt, verb, **fields), 400, "invalid_request")


def test_a_key_is_taken_until_the_end(api: Api, queue: str) -> None:
    def send() -> dict[str, Any]:
        body = {"body": 1, "dedup_key": "k", "dedup_until": "ended"}
        return dict(ok(api.call("POST", f"/v1/queues/{queue}/messages", body)))

    first, second = send(), send()
    ok(api.act(api.claim_one(queue)["receipt"], "complete"))
    third = send()

    assert [sent["is_duplicate"] for sent in (first, second, third)] == [False, True, False]


@pytest.mark.parametrize(
    "wrong",
    [
        {"dedup_until": "ended"},
        {"dedup_until": "later", "dedup_key": "k"},
        {"timeout_ms": 0},
        {"timeout_ms": "1m"},
        {"route": ""},
    ],
)
def test_an_invalid_draft_is_refused(api: Api, queue: str, wrong: dict[str, Any]) -> None:
    sent = api.call("POST", f"/v1/queues/{queue}/messages", {"body": 1, **wrong})

    assert_refused(sent, 400, "invalid_request")


def test_a_claim_of_some_kinds_gets_those(api: Api, queue: str) -> None:
    a, b, _ = (api.send(queue, kind=kind) for kind in "abc")

    claimed = api.claim(queue, limit=10, kinds=["b", "a", "b"])

    assert [m["id"] for m in claimed] == [a, b]


def test_a_claim_of_some_kinds_may_complete_what_is_done(api: Api, queue: str) -> None:
    api.send(queue, kind="a")
    second = api.send(queue, kind="a")
    receipt = api.claim_one(queue)["receipt"]

    wanted = {"kinds": ["a"], "complete": [receipt], "wait_ms": 1_000}
    answer = ok(api.call("POST", f"/v1/queues/{queue}/claims", wanted))

    assert [m["id"] for m in answer["messages"]] == [second]
    assert [done["state"] for done in answer["completed"]] == ["done"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"kinds": []},
        {"kinds": [""]},
        {"kinds": ["a\0"]},
        {"kinds": "a"},
        {"kinds": [str(n) for n in range(101)]},
        {"kinds": ["a"], "in_a_row": True},
    ],
)
def test_invalid_kinds_are_refused(api: Api, queue: str, wrong: dict[str, Any]) -> None:
    claimed = api.call("POST", f"/v1/queues/{queue}/claims", wrong)

    assert_refused(claimed, 400, "invalid_request")
