"""Sending single messages."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from penstock.edge.instants import to_text
from tests.clocks import ManualClock
from tests.edge.api import Api, a_name, assert_refused, ok

EVERYTHING: dict[str, Any] = {
    "attributes": {"colour": "blue", "size": "☃"},
    "kind": "mail.welcome",
    "entity_id": "user-7",
    "tags": ["eu", "trial"],
    "group": "user-7",
    "priority": -3,
    "dedup_key": "welcome-7",
    "max_attempts": 2,
    "trace": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
}


def test_a_send_is_answered_with_the_new_id(api: Api) -> None:
    queue = api.make_queue()

    sent = api.call("POST", f"/v1/queues/{queue}/messages", {"body": {"to": "ada"}})

    assert sent.status_code == 201
    assert sent.json() == {"id": sent.json()["id"], "is_duplicate": False}
    assert uuid.UUID(sent.json()["id"]).version == 7
    assert api.counts(queue) == {"ready": 1}


@pytest.mark.parametrize(
    "body",
    [
        None,
        False,
        0,
        -1.5,
        "",
        "naïve ☃ 𝄞",
        [],
        {},
        [1, [2, {"three": None}]],
        {"nul": "\x00", "quote": '"', "slash": "\\/", "line": "\n"},
        2**53,
    ],
)
def test_any_json_value_comes_back_as_it_was_sent(api: Api, body: Any) -> None:
    queue = api.make_queue()
    message_id = api.send(queue, body)

    assert api.message(message_id)["body"] == body
    assert api.claim_one(queue)["body"] == body


def test_a_body_is_kept_to_the_letter(api: Api) -> None:
    queue = api.make_queue()
    body = b'{"b": 1.50,  "a":"\\u00e9", "b": 12345678901234567890123 }'

    ok(api.call("POST", f"/v1/queues/{queue}/messages", raw=b'{"body":' + body + b"}"))

    assert body in api.call("POST", f"/v1/queues/{queue}/claims").content


def test_a_claim_returns_every_field_of_the_draft(api: Api, clock: ManualClock) -> None:
    queue = api.make_queue()
    expires_at = to_text(clock.now() + 3_600_000)
    message_id = api.send(queue, "x", **EVERYTHING, expires_at=expires_at)

    claimed = api.claim_one(queue)

    assert claimed == {
        "id": message_id,
        "queue": queue,
        "receipt": claimed["receipt"],
        "state": "leased",
        "lease_no": 1,
        "attempts": 1,
        "body": "x",
        "size": 3,
        "sent_at": to_text(clock.now()),
        "leased_until": to_text(clock.now() + 30_000),
        "first_leased_at": to_text(clock.now()),
        "expires_at": expires_at,
        **EVERYTHING,
    }


def test_fields_that_a_message_does_not_have_are_left_out(api: Api) -> None:
    queue = api.make_queue()
    api.send(queue, None)

    shown = set(api.claim_one(queue))

    assert shown == {
        "id", "queue", "receipt", "state", "lease_no", "attempts", "body", "size", "sent_at",
        "leased_until", "first_leased_at",
    }  # fmt: skip


def test_a_delayed_message_waits_until_it_is_due(api: Api, clock: ManualClock) -> None:
    queue = api.make_queue()
    message_id = api.send(queue, delay_ms=5_000)

    assert api.counts(queue) == {"waiting": 1}
    assert api.message(message_id)["due_at"] == to_text(clock.now() + 5_000)
    clock.advance(ms=4_999)
    assert api.claim(queue) == []
    clock.advance(ms=1)
    assert api.claim_one(queue)["id"] == message_id


@pytest.mark.parametrize("as_text", [True, False])
def test_a_due_date_is_text_or_milliseconds(api: Api, clock: ManualClock, as_text: bool) -> None:
    queue = api.make_queue()
    due_at = clock.now() + 5_000

    message_id = api.send(queue, due_at=to_text(due_at) if as_text else due_at)

    assert api.message(message_id)["due_at"] == to_text(due_at)


def test_a_due_date_in_the_past_means_now(api: Api) -> None:
    queue = api.make_queue()

    message_id = api.send(queue, due_at="1999-12-31T23:59:59+02:00")

    assert api.claim_one(queue)["id"] == message_id


def test_the_delay_of_a_queue_holds_for_messages_without_their_own(api: Api) -> None:
    queue = api.make_queue(delay_ms=5_000)

    api.send(queue)
    api.send(queue, delay_ms=0)

    assert api.counts(queue) == {"waiting": 1, "ready": 1}


def test_a_message_that_expires_unclaimed_is_cancelled(api: Api, clock: ManualClock) -> None:
    queue = api.make_queue()
    message_id = api.send(queue, expires_in_ms=1_000)
    clock.advance(ms=1_000)

    assert api.claim(queue) == []

    ended = api.message(message_id)
    assert (ended["state"], ended["reason"]) == ("cancelled", "expired")


def test_smaller_priorities_come_first(api: Api) -> None:
    queue = api.make_queue()
    ids = [api.send(queue, priority=priority) for priority in (5, -5, 0)]

    claimed = [message["id"] for message in api.claim(queue, limit=3)]

    assert claimed == [ids[1], ids[2], ids[0]]


def test_the_same_key_twice_is_one_message(api: Api) -> None:
    queue = api.make_queue()
    first = api.send(queue, 1, dedup_key="k")

    again = ok(api.call("POST", f"/v1/queues/{queue}/messages", {"body": 2, "dedup_key": "k"}))

    assert again == {"id": first, "is_duplicate": True}
    assert api.counts(queue) == {"ready": 1}


def test_a_key_is_free_again_after_the_window(api: Api, clock: ManualClock) -> None:
    queue = api.make_queue(dedup_window_ms=1_000)
    first = api.send(queue, dedup_key="k")
    clock.advance(ms=1_000)

    assert api.send(queue, dedup_key="k") != first


def test_the_same_key_means_nothing_in_another_queue(api: Api) -> None:
    first, second = api.make_queue(), api.make_queue()

    assert api.send(first, dedup_key="k") != api.send(second, dedup_key="k")


def test_a_full_queue_takes_nothing_more(api: Api) -> None:
    queue = api.make_queue(max_messages=1)
    api.send(queue)

    refused = api.call("POST", f"/v1/queues/{queue}/messages", {"body": 1})

    assert_refused(refused, 409, "queue_full")
    assert api.counts(queue) == {"ready": 1}


def test_a_body_over_the_limit_of_its_queue_is_refused(api: Api) -> None:
    queue = api.make_queue(max_body_bytes=10)

    api.send(queue, "12345678")

    refused = api.call("POST", f"/v1/queues/{queue}/messages", {"body": "123456789"})
    assert_refused(refused, 413, "too_large")
    assert api.counts(queue) == {"ready": 1}


def test_bytes_count_and_not_characters(api: Api) -> None:
    queue = api.make_queue(max_body_bytes=10)

    refused = api.call("POST", f"/v1/queues/{queue}/messages", {"body": "ééééé"})

    assert_refused(refused, 413, "too_large")


def test_a_send_to_an_unknown_queue_is_refused(api: Api) -> None:
    refused = api.call("POST", f"/v1/queues/{a_name('none')}/messages", {"body": 1})

    assert_refused(refused, 404, "queue_not_found")


@pytest.mark.parametrize(
    "draft",
    [
        {},
        {"Body": 1},
        {"body": 1, "delay": 5},
        {"body": 1, "delay_ms": 5, "due_at": "2031-01-01"},
        {"body": 1, "expires_in_ms": 5, "expires_at": "2031-01-01"},
        {"body": 1, "tags": ["a", "b", "c"]},
        {"body": 1, "tags": "a"},
        {"body": 1, "attributes": {"": "nameless"}},
        {"body": 1, "attributes": {"n": 1}},
        {"body": 1, "due_at": "soon"},
        {"body": 1, "priority": "high"},
        [],
    ],
)
def test_an_invalid_draft_is_refused(api: Api, draft: Any) -> None:
    queue = api.make_queue()

    refused = api.call("POST", f"/v1/queues/{queue}/messages", draft)

    assert_refused(refused, 400, "invalid_request")
    assert api.counts(queue) == {}


def test_an_attribute_load_over_the_limit_is_refused(api: Api) -> None:
    queue = api.make_queue()
    draft = {"body": 1, "attributes": {"a": "x" * 9_000}}

    refused = api.call("POST", f"/v1/queues/{queue}/messages", draft)

    assert_refused(refused, 413, "too_large")


@pytest.mark.parametrize("number", ["1e400", "-1e999", '[1, {"a": 2e308}]', "9" * 5000])
def test_a_number_that_no_program_can_hold_is_refused(api: Api, number: str) -> None:
    name = api.make_queue()

    refused = api.call("POST", f"/v1/queues/{name}/messages", raw=b'{"body": %s}' % number.encode())

    assert_refused(refused, 400, "invalid_request")
    assert api.queue(name)["counts"]["ready"] == 0


def test_a_text_is_the_same_content_however_it_is_written_in_json(api: Api) -> None:
    queue = api.make_queue(dedup_by_content=True)
    path = f"/v1/queues/{queue}/messages"

    first = ok(api.call("POST", path, raw=b'{"body": "h\\u00e4"}'))
    again = ok(api.call("POST", path, raw='{"body": "hä"}'.encode()))

    assert first == {"id": first["id"], "is_duplicate": False}
    assert again == {"id": first["id"], "is_duplicate": True}


def test_a_dedup_key_of_a_purged_message_can_be_used_again(api: Api) -> None:
    queue = api.make_queue()
    api.send(queue, dedup_key="waits")
    api.finish(queue, dedup_key="done", priority=-1)

    purged = ok(api.call("POST", f"/v1/queues/{queue}/purge"))

    assert purged == {"cancelled": 1}
    sent = [api.call("POST", f"/v1/queues/{queue}/messages", {"body": 1, "dedup_key": key})
            for key in ("waits", "done", "waits")]  # fmt: skip
    assert [ok(answer)["is_duplicate"] for answer in sent] == [False, False, True]


def test_a_purge_forgets_more_keys_than_fit_in_one_step(api: Api) -> None:
    queue = api.make_queue()
    drafts = [{"body": n, "dedup_key": str(n)} for n in range(1_000)]
    for extra in ([], [{"body": 1_000, "dedup_key": "1000"}]):
        batch = {"messages": extra or drafts}
        ok(api.call("POST", f"/v1/queues/{queue}/messages/batch", batch))
    for receipt in [m["receipt"] for m in api.claim(queue, limit=1_000)[:3]]:
        ok(api.act(receipt, "complete"))

    ok(api.call("POST", f"/v1/queues/{queue}/purge"))

    again = ok(api.call("POST", f"/v1/queues/{queue}/messages/batch", {"messages": drafts}))
    assert not any(result["is_duplicate"] for result in again["results"])
    assert api.send(queue, dedup_key="1000")
    assert api.counts(queue) == {"ready": 1_001}
