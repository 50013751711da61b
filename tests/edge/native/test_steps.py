"""Durable steps, waits and signals over HTTP, as programs in other languages use them."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.limits import DAY, HOUR
from penstock.edge.instants import to_text
from tests.clocks import ManualClock
from tests.edge.api import Api, a_name, assert_refused, ok

pytestmark = pytest.mark.both_stores


@pytest.fixture
def queue(api: Api) -> str:
    return api.make_queue(lease_ms=30_000)


@pytest.fixture
def lease(api: Api, queue: str) -> dict[str, Any]:
    api.send(queue)
    return api.claim_one(queue)


def record(api: Api, lease: dict[str, Any], name: str, outcome: Any) -> Any:
    path = f"/v1/leases/{lease['receipt']}/steps"
    return ok(api.call("POST", path, {"name": name, "outcome": outcome}))


def begin_wait(api: Api, lease: dict[str, Any], **wanted: Any) -> Any:
    return ok(api.call("POST", f"/v1/leases/{lease['receipt']}/waits", wanted))


def test_a_step_is_recorded_once_and_shown_to_the_holder_and_to_operators(
    api: Api, lease: dict[str, Any], clock: ManualClock
) -> None:
    at = to_text(clock.now())
    first = record(api, lease, "charge", {"payment": 17})
    second = record(api, lease, "charge", {"payment": 18})
    record(api, lease, "ship", None)

    charged = {"name": "charge", "outcome": {"payment": 17}, "at": at}
    assert first == {**charged, "is_new": True}
    assert second == {**charged, "is_new": False}
    steps = [charged, {"name": "ship", "outcome": None, "at": at}]
    held = api.get(f"/v1/leases/{lease['receipt']}/steps")
    assert held == {"steps": steps, "next": None}
    shown = api.get(f"/v1/messages/{lease['id']}/steps")
    assert shown == {"steps": steps, "next": None, "waits": []}


def test_steps_come_in_pages(api: Api, lease: dict[str, Any]) -> None:
    for name in "abc":
        record(api, lease, name, name)
    path = f"/v1/leases/{lease['receipt']}/steps"

    first = api.get(path, limit=2)
    second = api.get(path, limit=2, cursor=first["next"])

    assert [step["name"] for step in first["steps"]] == ["a", "b"]
    assert [step["name"] for step in second["steps"]] == ["c"]
    assert second["next"] is None
    text = assert_refused(api.call("GET", path, params={"cursor": "x"}), 400, "invalid_request")
    assert "cursor" in text


def test_the_steps_of_a_finished_message_are_shown(api: Api, lease: dict[str, Any]) -> None:
    record(api, lease, "charge", 1)
    ok(api.act(lease["receipt"], "complete"))

    [step] = api.get(f"/v1/messages/{lease['id']}/steps")["steps"]

    assert step["outcome"] == 1
    assert_refused(api.call("GET", f"/v1/messages/{'0' * 36}/steps"), 404, "message_not_found")


def test_a_lost_lease_can_neither_record_nor_read_nor_wait(
    api: Api, queue: str, lease: dict[str, Any]
) -> None:
    ok(api.act(lease["receipt"], "release"))
    api.claim_one(queue)

    path = f"/v1/leases/{lease['receipt']}"
    for receipt in (path, "/v1/leases/nonsense"):
        step = {"name": "a", "outcome": 1}
        assert_refused(api.call("POST", f"{receipt}/steps", step), 409, "lease_lost")
        assert_refused(api.call("GET", f"{receipt}/steps"), 409, "lease_lost")
        assert_refused(api.call("POST", f"{receipt}/waits", {"signal": "s"}), 409, "lease_lost")
    assert api.get(f"/v1/messages/{lease['id']}/steps")["steps"] == []


def test_bad_steps_are_refused(api: Api, lease: dict[str, Any]) -> None:
    path = f"/v1/leases/{lease['receipt']}/steps"

    for body in ({"name": "", "outcome": 1}, {"name": "x" * 289, "outcome": 1}, {"name": "a"}):
        assert_refused(api.call("POST", path, body), 400, "invalid_request")
    large = {"name": "a", "outcome": "x" * 256 * 1024}
    assert "max_step_bytes (262144)" in assert_refused(
        api.call("POST", path, large), 413, "too_large"
    )


def test_a_sleep_lasts_over_several_attempts(
    api: Api, queue: str, lease: dict[str, Any], clock: ManualClock
) -> None:
    wait = begin_wait(api, lease, step="rest", timeout_ms=HOUR)
    assert wait == {
        "step": {"name": "rest", "outcome": {"sleep_ms": HOUR}, "at": to_text(clock.now())},
        "delay_ms": HOUR,
    }
    ok(api.act(lease["receipt"], "snooze", delay_ms=HOUR // 2))
    clock.advance(minutes=30)
    again = api.claim_one(queue)

    assert begin_wait(api, again, step="rest", timeout_ms=1)["delay_ms"] == HOUR // 2
    clock.advance(minutes=30)
    assert begin_wait(api, again, step="rest", timeout_ms=1)["delay_ms"] == 0


def test_a_signal_ends_a_wait(api: Api, queue: str, lease: dict[str, Any]) -> None:
    name = a_name("approved: é/17")
    assert begin_wait(api, lease, signal=name, timeout_ms=HOUR) == {"step": None, "delay_ms": HOUR}
    snoozed = ok(api.act(lease["receipt"], "snooze", delay_ms=HOUR, signal=name))
    assert snoozed["state"] == "waiting"
    [wait] = api.get(f"/v1/messages/{lease['id']}/steps")["waits"]
    assert (wait["signal"], wait["step"]) == (name, name)

    path = "/v1/signals/" + name.replace("/", "%2F")
    sent = ok(api.call("POST", path, {"body": {"by": "ada"}}))

    assert (sent["name"], sent["is_duplicate"], sent["ended_waits"]) == (name, False, 1)
    again = api.claim_one(queue)
    assert again["attempts"] == 1
    found = begin_wait(api, again, signal=name)
    assert (found["step"]["outcome"], found["delay_ms"]) == ({"body": {"by": "ada"}}, 0)


def test_the_first_signal_of_a_name_is_kept(api: Api, clock: ManualClock) -> None:
    path = f"/v1/signals/{a_name('approved')}"
    first = api.call("POST", path, {"body": 1})
    second = api.call("POST", path, {"body": 2, "keep_ms": 1})

    assert (first.status_code, second.status_code) == (201, 200)
    assert (ok(second)["body"], ok(second)["is_duplicate"]) == (1, True)
    kept = api.get(path)
    assert (kept["body"], kept["until_at"]) == (1, to_text(clock.now() + 7 * DAY))


def test_a_signal_without_a_body_is_null(api: Api) -> None:
    path = f"/v1/signals/{a_name('approved')}"

    assert ok(api.call("POST", path, {}))["body"] is None


def test_unknown_and_bad_signals_are_refused(api: Api, lease: dict[str, Any]) -> None:
    path = f"/v1/signals/{a_name('missing')}"
    assert_refused(api.call("GET", path), 404, "signal_not_found")
    assert_refused(api.call("POST", path, {"body": "x" * 256 * 1024}), 413, "too_large")
    assert_refused(api.call("POST", path, {"keep_ms": -1}), 400, "invalid_request")
    assert_refused(api.call("POST", f"/v1/signals/{'x' * 257}", {}), 400, "invalid_request")
    waits = f"/v1/leases/{lease['receipt']}/waits"
    for wanted in ({}, {"step": "a"}, {"timeout_ms": 1}, {"signal": "s", "timeout_ms": -1}):
        assert_refused(api.call("POST", waits, wanted), 400, "invalid_request")
    text = assert_refused(api.act(lease["receipt"], "fail", signal="s"), 400, "invalid_request")
    assert "fail does not take signal" in text
