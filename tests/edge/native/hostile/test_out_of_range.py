"""Values out of range are rejected: never with a 5xx, and never silently clamped."""

from __future__ import annotations

from typing import Any

import pytest

from tests.edge.api import Api

pytestmark = pytest.mark.both_stores

HUGE = 2**63
DAY = 86_400_000
LONG = 3_660 * DAY + 1

# Each value is rejected by its operation, although the rest of the request is valid.
DRAFTS: list[dict[str, Any]] = [
    {"delay_ms": -1},
    {"delay_ms": LONG},
    {"delay_ms": HUGE},
    {"delay_ms": -HUGE},
    {"delay_ms": 0.5},
    {"delay_ms": "5"},
    {"delay_ms": True},
    {"due_at": -1},
    {"due_at": 253_402_300_800_000},
    {"due_at": HUGE},
    {"due_at": "10000-01-01T00:00:00Z"},
    {"due_at": "2030-02-30T00:00:00Z"},
    {"due_at": "0001-01-01T00:00:00+23:59"},
    {"due_at": ""},
    {"due_at": 1.5},
    {"expires_at": -1},
    {"expires_at": HUGE},
    {"expires_in_ms": -1},
    {"expires_in_ms": LONG},
    {"priority": 1_000_001},
    {"priority": -1_000_001},
    {"priority": HUGE},
    {"priority": 1e3},
    {"max_attempts": 0},
    {"max_attempts": -1},
    {"max_attempts": 1_000_001},
    {"kind": ""},
    {"kind": "k" * 257},
    {"kind": "a\x00b"},
    {"entity_id": "e" * 257},
    {"entity_id": ""},
    {"group": ""},
    {"group": "g" * 257},
    {"group": "\x00"},
    {"dedup_key": ""},
    {"dedup_key": "d" * 257},
    {"tags": ["t" * 257]},
    {"tags": [""]},
    {"tags": ["a", "b", "c"]},
    {"tags": [1]},
    {"trace": "t" * 1_025},
    {"trace": "a\x00b"},
    {"attributes": {str(n): "x" for n in range(33)}},
    {"attributes": {"a": "x" * 8_193}},
    {"attributes": {"": "x"}},
    {"attributes": {"a": None}},
    {"attributes": []},
]
SETTINGS: list[dict[str, Any]] = [
    {"lease_ms": -1},
    {"lease_ms": 12 * 3_600_000 + 1},
    {"lease_ms": None},
    {"lease_ms": HUGE},
    {"delay_ms": -1},
    {"delay_ms": 366 * DAY + 1},
    {"retention_ms": 999},
    {"retention_ms": LONG},
    {"max_attempts": 0},
    {"max_attempts": 1_000_001},
    {"max_body_bytes": 0},
    {"max_body_bytes": 64 * 1024 * 1024 + 1},
    {"max_messages": 0},
    {"max_messages": 10**12 + 1},
    {"max_messages": HUGE},
    {"max_leased": 0},
    {"max_leased": 1_000_001},
    {"max_leased_per_group": 0},
    {"max_leased_per_group": 10_001},
    {"ordering": "group", "max_leased_per_group": 1},
    {"rate": {"limit": 0}},
    {"rate": {"limit": HUGE}},
    {"rate": {"limit": 1, "per_ms": 0}},
    {"rate": {"limit": 1, "burst": 0}},
    {"rate": {}},
    {"rate": 5},
    {"rate_per_group": {"limit": 1, "burst": 10_001}},
    {"ordering": "group", "rate_per_group": {"limit": 1}},
    {"is_fair": None},
    {"weights": {"a": 0}},
    {"weights": {"a": 1_001}},
    {"weights": {str(n): 1 for n in range(1_001)}},
    {"weights": None},
    {"dedup_window_ms": -1},
    {"dedup_window_ms": 366 * DAY + 1},
    {"wait_ms": -1},
    {"wait_ms": 3_600_001},
    {"dedup_by_content": "yes"},
    {"dedup_by_content": None},
    {"dedup_scope": "world"},
    {"labels": {"": "x"}},
    {"labels": {"l": "x" * 257}},
    {"labels": {"l": None}},
    {"labels": None},
    {"labels": {str(n): "x" for n in range(51)}},
    {"annotations": {"a" * 129: "x"}},
    {"annotations": {"a": "x" * 10_001}},
    {"annotations": {str(n): "x" * 9_999 for n in range(7)}},
    {"ordering": "random"},
    {"redelivery": "never"},
    {"ordering": "group", "redelivery": "back"},
    {"dead_letter_queue": ""},
    {"dead_letter_queue": "a b"},
    {"dead_letter_queue": "d" * 81},
    {"backoff": {"type": "fixed", "delay_ms": -1}},
    {"backoff": {"type": "fixed", "delay_ms": 366 * DAY + 1}},
    {"backoff": {"type": "list", "delays_ms": []}},
    {"backoff": {"type": "list", "delays_ms": [1] * 101}},
    {"backoff": {"type": "list", "delays_ms": [-1]}},
    {"backoff": {"type": "exponential", "factor": 0.5}},
    {"backoff": {"type": "exponential", "factor": 101}},
    {"backoff": {"type": "exponential", "factor": 1e300}},
    {"backoff": {"type": "exponential", "jitter": 1.1}},
    {"backoff": {"type": "exponential", "jitter": -0.1}},
    {"backoff": {"type": "exponential", "first_ms": HUGE}},
    {"backoff": {"type": "none"}},
    {"backoff": {}},
    {"backoff": None},
    {"max_atempts": 3},
]
CLAIMS: list[dict[str, Any]] = [
    {"limit": 0},
    {"limit": -1},
    {"limit": 1_001},
    {"limit": HUGE},
    {"limit": 1.5},
    {"limit": None},
    {"wait_ms": -1},
    {"wait_ms": 20_001},
    {"wait_ms": HUGE},
    {"lease_ms": -1},
    {"lease_ms": 12 * 3_600_000 + 1},
    {"lease_ms": HUGE},
    {"claimed_by": ""},
    {"claimed_by": "w" * 257},
    {"claimed_by": "a\x00b"},
]
ACTS: list[tuple[str, dict[str, Any]]] = [
    ("fail", {"retry_in_ms": -1}),
    ("fail", {"retry_in_ms": LONG}),
    ("fail", {"retry_in_ms": HUGE}),
    ("release", {"delay_ms": -1}),
    ("release", {"delay_ms": HUGE}),
    ("snooze", {"delay_ms": -1}),
    ("snooze", {"delay_ms": LONG}),
    ("extend", {"lease_ms": -1}),
    ("extend", {"lease_ms": 12 * 3_600_000 + 1}),
    ("extend", {"lease_ms": HUGE}),
    ("bury", {"reason": 5}),
    ("cancel", {"reason": []}),
]
QUERIES = [
    "/v1/queues?limit=0",
    "/v1/queues?limit=1001",
    "/v1/queues?limit=99999999999999999999",
    "/v1/queues?limit=%D9%A1",  # a digit, but not an ASCII one
    "/v1/queues?limit=+1",
    "/v1/queues?limit=1e1",
    "/v1/queues?prefix=%00",
    "/v1/queues?cursor=%00",
    "/v1/history?from=-1",
    "/v1/history?to=99999999999999999999",
    "/v1/history?from=9999-99-99",
    "/v1/history?kind=%00",
    "/v1/history?entity_id=%00",
    "/v1/history?tag=%00",
    "/v1/history?queue=%00",
    "/v1/history?cursor=W10",
    "/v1/history?cursor=WzEsMl0" + "A" * 5_000,
    "/v1/history?cursor=WzllOTksMV0",
    "/v1/history?cursor=WzkyMjMzNzIwMzY4NTQ3NzU4MDgsMV0",
    "/v1/history?outcome=DONE",
]


@pytest.fixture
def queue(api: Api) -> str:
    name = api.make_queue()
    api.send(name)
    return name


def test_there_are_enough_of_them() -> None:
    assert len(DRAFTS) + len(SETTINGS) + len(CLAIMS) + len(ACTS) + len(QUERIES) >= 40


def refused(status: int) -> bool:
    return status in (400, 413)


@pytest.mark.parametrize("fields", DRAFTS, ids=str)
def test_a_draft_out_of_bounds_is_refused(api: Api, queue: str, fields: dict[str, Any]) -> None:
    draft = {"body": 1, **fields}
    path = f"/v1/queues/{queue}/messages"

    alone = api.call("POST", path, draft)
    batch = api.call("POST", f"{path}/batch", {"messages": [draft]})

    assert refused(alone.status_code), alone.text
    assert batch.json()["results"][0]["error"] == alone.json()["error"]
    assert api.counts(queue) == {"ready": 1}


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_settings_out_of_bounds_are_refused(api: Api, queue: str, settings: dict[str, Any]) -> None:
    before = api.queue(queue)

    for method in ("PUT", "PATCH"):
        answer = api.call(method, f"/v1/queues/{queue}", settings)

        assert refused(answer.status_code), answer.text
    assert api.queue(queue) == before


@pytest.mark.parametrize("wanted", CLAIMS, ids=str)
def test_a_claim_out_of_bounds_is_refused(api: Api, queue: str, wanted: dict[str, Any]) -> None:
    for wait in ({}, {"wait_ms": 1}):
        answer = api.call("POST", f"/v1/queues/{queue}/claims", {**wait, **wanted})

        assert refused(answer.status_code), answer.text
    assert api.counts(queue) == {"ready": 1}


@pytest.mark.parametrize(("verb", "fields"), ACTS, ids=str)
def test_an_act_out_of_bounds_is_refused(
    api: Api, queue: str, verb: str, fields: dict[str, Any]
) -> None:
    receipt = api.claim_one(queue)["receipt"]

    answer = api.act(receipt, verb, **fields)

    assert refused(answer.status_code), answer.text
    assert api.counts(queue) == {"leased": 1}


@pytest.mark.parametrize("path", QUERIES)
def test_a_query_out_of_bounds_is_refused(api: Api, path: str) -> None:
    answer = api.call("GET", path)

    assert refused(answer.status_code), answer.text


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"priority": 1_000_000}, {"priority": 1_000_000}),
        ({"priority": -1_000_000}, {"priority": -1_000_000}),
        ({"due_at": 253_402_300_799_999}, {"due_at": "9999-12-31T23:59:59.999Z"}),
        ({"due_at": 0}, {"due_at": "1970-01-01T00:00:00.000Z"}),
        ({"max_attempts": 1_000_000}, {"max_attempts": 1_000_000}),
        ({"kind": "k" * 256}, {"kind": "k" * 256}),
        ({"kind": "☃" * 256}, {"kind": "☃" * 256}),
        ({"trace": "t" * 1_024}, {"trace": "t" * 1_024}),
        ({"attributes": {"a": "x" * 8_191}}, {"attributes": {"a": "x" * 8_191}}),
        ({"expires_at": 253_402_300_799_999}, {"expires_at": "9999-12-31T23:59:59.999Z"}),
    ],
    ids=str,
)
def test_the_last_value_within_bounds_is_taken_as_it_is(
    api: Api, fields: dict[str, Any], shown: dict[str, Any]
) -> None:
    queue = api.make_queue()

    message = api.message(api.send(queue, **fields))

    assert shown.items() <= message.items()


def test_the_longest_delays_can_be_read_back(api: Api) -> None:
    queue = api.make_queue(lease_ms=12 * 3_600_000, backoff={"type": "fixed", "delay_ms": 0})
    api.send(queue, delay_ms=LONG - 1)
    api.send(queue)
    held = api.claim_one(queue)

    assert api.act(held["receipt"], "snooze", delay_ms=LONG - 1).status_code == 200
    assert api.counts(queue) == {"waiting": 2}
