"""Recurring work over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.runtime.duties import ScheduleDuty
from tests.clocks import ManualClock
from tests.edge.api import Api, a_name, assert_refused, ok
from tests.edge.live import LiveServer

HOUR = 3_600_000


@pytest.fixture
def queue(api: Api) -> str:
    return api.make_queue()


@pytest.fixture
def name() -> str:
    return a_name("schedule")


def put(api: Api, name: str, queue: str, **wanted: Any) -> dict[str, Any]:
    body = {"queue": queue, "every_ms": HOUR, **wanted}
    return ok(api.call("PUT", f"/v1/recurring/{name}", body))


def test_work_recurs_as_its_rhythm_says(
    api: Api, server: LiveServer, clock: ManualClock, queue: str, name: str
) -> None:
    made = put(api, name, queue, body={"a": [1]}, kind="report", tags=["x"], attributes={"n": "1"})

    clock.advance(hours=1)
    ScheduleDuty(server.broker.recurring).tick(clock.now())

    [message] = api.claim(queue, limit=10)
    assert (message["body"], message["kind"], message["tags"]) == ({"a": [1]}, "report", ["x"])
    assert message["attributes"]["penstock.schedule"] == name
    assert message["attributes"]["penstock.fire_at"] == made["next_at"]
    assert message["attributes"]["n"] == "1"
    found = api.get(f"/v1/recurring/{name}")
    assert (found["fired"], found["last_id"]) == (1, message["id"])


def test_the_same_again_changes_nothing(api: Api, queue: str, name: str) -> None:
    first = put(api, name, queue)

    assert put(api, name, queue) == first
    assert put(api, name, queue, priority=1) != first


def test_it_is_run_now_paused_and_resumed(api: Api, queue: str, name: str) -> None:
    put(api, name, queue)

    assert ok(api.call("POST", f"/v1/recurring/{name}/pause"))["is_paused"]
    sent = ok(api.call("POST", f"/v1/recurring/{name}/run"))["id"]
    assert not ok(api.call("POST", f"/v1/recurring/{name}/resume"))["is_paused"]

    assert [m["id"] for m in api.claim(queue)] == [sent]


def test_the_next_firings_are_previewed_before_and_after_creation(
    api: Api, queue: str, name: str
) -> None:
    put(api, name, queue, every_ms=None, cron="30 2 * * *", zone="Europe/Berlin")

    own = api.get(f"/v1/recurring/{name}/preview", count=3)["instants"]
    rhythm = {"cron": "30 2 * * *", "zone": "Europe/Berlin", "count": 3}
    tried = ok(api.call("POST", "/v1/recurring/preview", rhythm))["instants"]

    assert own == tried
    assert own[0] == api.get(f"/v1/recurring/{name}")["next_at"]
    assert own == sorted(set(own))


def test_it_is_listed_until_it_is_removed(api: Api, queue: str) -> None:
    names = sorted(a_name("listed") for _ in range(3))
    for name in names:
        put(api, name, queue)

    def listed() -> list[str]:
        found: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            page = api.get("/v1/recurring", limit=2, cursor=cursor)
            found += [one["name"] for one in page["recurring"] if one["name"] in names]
            cursor = page["next"]
        return found

    assert listed() == names
    assert api.call("DELETE", f"/v1/recurring/{names[1]}").status_code == 204
    assert listed() == [names[0], names[2]]
    assert_refused(api.call("GET", f"/v1/recurring/{names[1]}"), 404, "schedule_not_found")


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"cron": "* * * * *", "every_ms": HOUR},
        {"cron": "nonsense"},
        {"cron": "* * * * *", "zone": "Nowhere"},
        {"every_ms": 1},
        {"every_ms": HOUR, "catch_up": "maybe"},
        {"every_ms": HOUR, "priority": 10**9},
        {"every_ms": HOUR, "unknown": 1},
    ],
)
def test_nonsense_is_refused(api: Api, queue: str, name: str, wanted: dict[str, Any]) -> None:
    response = api.call("PUT", f"/v1/recurring/{name}", {"queue": queue, **wanted})

    assert_refused(response, 400, "invalid_request")


@pytest.mark.parametrize("rhythm", [{"every_ms": -1}, {"every_ms": 0}, {"cron": "x"}, {}])
def test_nonsense_has_no_preview_either(api: Api, rhythm: dict[str, Any]) -> None:
    assert_refused(api.call("POST", "/v1/recurring/preview", rhythm), 400, "invalid_request")


def test_a_queue_that_is_not_there_is_refused(api: Api, name: str) -> None:
    wanted = {"queue": a_name("none"), "every_ms": HOUR}

    response = api.call("PUT", f"/v1/recurring/{name}", wanted)

    assert_refused(response, 404, "queue_not_found")


def test_an_application_retires_what_it_declares_no_more_and_nothing_else(
    api: Api, clock: ManualClock, queue: str, name: str
) -> None:
    owner, by_hand = a_name("shop"), a_name("by-hand")
    kept, others = a_name("kept"), a_name("others")
    for one, of in ((name, owner), (kept, owner), (others, a_name("other")), (by_hand, None)):
        assert put(api, one, queue, owner=of).get("owner") == of
    clock.advance(minutes=1)

    def retire() -> Any:
        body = {"owner": owner, "declared": [kept]}
        return ok(api.call("POST", "/v1/recurring/retire", body))["retired"]

    assert (retire(), retire()) == ([name], [])
    assert_refused(api.call("GET", f"/v1/recurring/{name}"), 404, "schedule_not_found")
    for one in (kept, others, by_hand):
        assert api.get(f"/v1/recurring/{one}")["name"] == one
    [fact] = api.get("/v1/facts", kind="recurring_retired", subject=name)["facts"]
    assert fact["data"]["owner"] == owner
