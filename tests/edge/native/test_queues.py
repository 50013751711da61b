"""Queues: created, changed, shown, paused, emptied and removed."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.edge.instants import to_text
from tests.clocks import ManualClock
from tests.edge.api import Api, a_name, assert_refused, ok

DEFAULTS = {
    "lease_ms": 30_000,
    "delay_ms": 0,
    "retention_ms": None,
    "max_attempts": 5,
    "dead_letter_queue": None,
    "ordering": "standard",
    "redelivery": "front",
    "backoff": {
        "type": "exponential",
        "first_ms": 1_000,
        "factor": 2.0,
        "max_ms": 3_600_000,
        "jitter": 0.2,
    },
    "max_body_bytes": None,
    "max_messages": None,
    "dedup_window_ms": 300_000,
    "dedup_by_content": False,
    "dedup_scope": "queue",
    "wait_ms": None,
    "labels": {},
    "annotations": {},
    "max_crashes": 3,
    "max_leased": None,
    "max_leased_per_group": None,
    "rate": None,
    "rate_per_group": None,
    "is_fair": False,
    "weights": {},
}
NOTHING = {"waiting": 0, "ready": 0, "leased": 0, "dead": 0}


def test_a_new_queue_is_shown_with_the_defaults_that_are_documented(
    api: Api, clock: ManualClock
) -> None:
    name = a_name()

    made = api.call("PUT", f"/v1/queues/{name}", {})

    assert made.status_code == 201
    shown = made.json()
    assert set(shown.pop("totals").values()) == {0}
    assert shown == {
        "name": name,
        "settings": DEFAULTS,
        "is_paused": False,
        "created_at": to_text(clock.now()),
        "counts": NOTHING,
        "oldest_ready_at": None,
    }


def test_a_queue_can_be_made_without_saying_anything_about_it(api: Api) -> None:
    made = api.call("PUT", f"/v1/queues/{a_name()}")

    assert made.status_code == 201
    assert made.json()["settings"] == DEFAULTS


def test_put_again_replaces_all_settings(api: Api) -> None:
    name = api.make_queue(lease_ms=1_000, max_attempts=2)

    replaced = api.call("PUT", f"/v1/queues/{name}", {"lease_ms": 2_000})

    assert replaced.status_code == 200
    assert replaced.json()["settings"] == {**DEFAULTS, "lease_ms": 2_000}


def test_patch_changes_only_what_is_named(api: Api) -> None:
    name = api.make_queue(lease_ms=1_000, max_attempts=2)

    changed = ok(api.call("PATCH", f"/v1/queues/{name}", {"max_attempts": None}))

    assert changed["settings"] == {**DEFAULTS, "lease_ms": 1_000, "max_attempts": None}
    assert api.queue(name) == changed


@pytest.mark.parametrize(
    "backoff",
    [
        {"type": "fixed", "delay_ms": 5},
        {"type": "list", "delays_ms": [1, 2, 3]},
        {"type": "exponential", "first_ms": 1, "factor": 3.0, "max_ms": 9, "jitter": 0.0},
    ],
)
def test_every_kind_of_back_off_is_kept_as_it_was_given(api: Api, backoff: dict[str, Any]) -> None:
    name = api.make_queue(backoff=backoff)

    assert api.queue(name)["settings"]["backoff"] == backoff


def test_labels_and_annotations_are_kept_as_they_were_given(api: Api) -> None:
    texts: dict[str, Any] = {
        "labels": {"team": "mail", "Überschrift": ""},
        "annotations": {"sqs.Policy": '{"Version": "2012-10-17"}', "other": "a\r\nb"},
    }
    name = api.make_queue(**texts)

    changed = ok(api.call("PATCH", f"/v1/queues/{name}", {"labels": {"team": "post"}}))

    assert changed["settings"]["labels"] == {"team": "post"}
    assert changed["settings"]["annotations"] == texts["annotations"]
    assert api.queue(name) == changed


def test_the_ordering_of_a_queue_cannot_be_changed(api: Api) -> None:
    name = api.make_queue(ordering="group")

    refused = api.call("PATCH", f"/v1/queues/{name}", {"ordering": "standard"})

    assert_refused(refused, 400, "invalid_request")
    assert api.queue(name)["settings"]["ordering"] == "group"


def test_a_queue_shows_what_it_holds_and_what_went_through(api: Api, clock: ManualClock) -> None:
    name = api.make_queue()
    api.finish(name)
    api.die(name)
    api.send(name, delay_ms=60_000)
    api.send(name, priority=-1)
    api.claim_one(name)
    api.send(name)

    shown = api.queue(name)

    assert shown["counts"] == {"waiting": 1, "ready": 1, "leased": 1, "dead": 1}
    assert shown["totals"] == {
        "sent": 5,
        "done": 1,
        "dead": 1,
        "cancelled": 0,
        "failed": 0,
        "expired_leases": 0,
        "claimed": 3,
    }
    assert shown["oldest_ready_at"] == to_text(clock.now())


def test_an_empty_queue_can_be_removed_and_its_name_used_again(api: Api) -> None:
    name = api.make_queue()
    api.finish(name)

    removed = api.call("DELETE", f"/v1/queues/{name}")

    assert (removed.status_code, removed.content) == (204, b"")
    assert_refused(api.call("GET", f"/v1/queues/{name}"), 404, "queue_not_found")
    assert api.call("PUT", f"/v1/queues/{name}").status_code == 201
    assert api.queue(name)["totals"]["sent"] == 0


@pytest.mark.parametrize("query", ["", "?force=false"])
def test_a_queue_that_holds_messages_is_not_removed_by_mistake(api: Api, query: str) -> None:
    name = api.make_queue()
    api.send(name)

    assert_refused(api.call("DELETE", f"/v1/queues/{name}{query}"), 409, "queue_not_empty")
    assert api.counts(name) == {"ready": 1}


@pytest.mark.parametrize("value", ["1", "yes", "True", ""])
def test_a_boolean_in_a_query_is_true_or_false(api: Api, value: str) -> None:
    name = api.make_queue()

    refused = api.call("DELETE", f"/v1/queues/{name}?force={value}")

    assert_refused(refused, 400, "invalid_request")
    assert refused.json()["error"]["message"] == f"force must be true or false, not {value!r}"
    assert api.queue(name)["name"] == name


def test_dead_messages_count_as_messages_when_a_queue_is_removed(api: Api) -> None:
    name = api.make_queue()
    api.die(name)

    assert_refused(api.call("DELETE", f"/v1/queues/{name}"), 409, "queue_not_empty")


def test_with_force_a_queue_goes_with_all_it_holds(api: Api) -> None:
    name = api.make_queue()
    api.die(name)
    message_id = api.send(name)

    assert api.call("DELETE", f"/v1/queues/{name}?force=true").status_code == 204

    assert_refused(api.call("GET", f"/v1/queues/{name}"), 404, "queue_not_found")
    assert api.message(message_id)["state"] == "cancelled"


def test_a_send_to_a_queue_that_was_just_removed_is_refused(api: Api) -> None:
    name = api.make_queue()
    api.send(name)
    api.call("DELETE", f"/v1/queues/{name}?force=true")

    for path, body in (("messages", {"body": 1}), ("claims", {})):
        assert_refused(api.call("POST", f"/v1/queues/{name}/{path}", body), 404, "queue_not_found")


def test_nothing_is_claimed_from_a_paused_queue_until_it_is_resumed(api: Api) -> None:
    name = api.make_queue()

    paused = ok(api.call("POST", f"/v1/queues/{name}/pause"))
    message_id = api.send(name)

    assert paused["is_paused"]
    assert api.claim(name) == []
    resumed = ok(api.call("POST", f"/v1/queues/{name}/resume"))
    assert not resumed["is_paused"]
    assert api.claim_one(name)["id"] == message_id


def test_a_purge_cancels_whatever_state_a_message_is_in(api: Api) -> None:
    name = api.make_queue()
    api.send(name)
    lease = api.claim_one(name)
    api.die(name)
    api.send(name, delay_ms=60_000)
    ready = api.send(name)

    purged = ok(api.call("POST", f"/v1/queues/{name}/purge"))

    assert purged == {"cancelled": 4}
    assert api.counts(name) == {}
    assert (api.message(ready)["state"], api.message(ready)["reason"]) == ("cancelled", "purged")
    assert_refused(api.act(lease["receipt"], "complete"), 409, "lease_lost")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        ("DELETE", "?force=true"),
        ("POST", "/pause"),
        ("POST", "/resume"),
        ("POST", "/purge"),
        ("POST", "/redrive"),
        ("GET", "/messages"),
    ],
)
def test_whatever_is_asked_of_an_unknown_queue_is_refused(api: Api, method: str, path: str) -> None:
    body: dict[str, Any] | None = {} if method == "PATCH" else None

    refused = api.call(method, f"/v1/queues/no-such{path}", body)

    assert "no-such" in assert_refused(refused, 404, "queue_not_found")


@pytest.mark.parametrize("name", ["a" * 81, "-a", ".a", "a%20b", "a%2Fb", "%C3%A4", "a%00b", "a:b"])
def test_an_invalid_name_creates_no_queue(api: Api, name: str) -> None:
    assert api.call("PUT", f"/v1/queues/{name}", {}).status_code in (400, 404)
    assert api.call("GET", f"/v1/queues/{name}").status_code == 404


@pytest.mark.parametrize("name", ["a", "A-b_c.9", "_", "9" * 80])
def test_names_take_letters_digits_and_a_few_signs(api: Api, name: str) -> None:
    assert api.call("PUT", f"/v1/queues/{name}", {}).status_code in (200, 201)

    assert api.queue(name)["name"] == name


def test_force_is_true_or_false(api: Api) -> None:
    name = api.make_queue()

    refused = api.call("DELETE", f"/v1/queues/{name}?force=yes")

    assert_refused(refused, 400, "invalid_request")
    assert api.queue(name)["name"] == name


def test_a_queue_can_be_made_only_if_it_is_new(api: Api) -> None:
    name = api.make_queue(lease_ms=1_000)

    refused = api.call("PUT", f"/v1/queues/{name}", {}, headers={"If-None-Match": "*"})

    assert_refused(refused, 409, "queue_exists")
    assert api.queue(name)["settings"]["lease_ms"] == 1_000
