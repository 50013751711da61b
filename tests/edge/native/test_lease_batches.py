"""Several acts in one request: one transaction, a result for each."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.edge.api import Api, assert_refused, ok

pytestmark = pytest.mark.both_stores


def act_batch(api: Api, acts: Any) -> httpx.Response:
    return api.call("POST", "/v1/leases/batch", {"acts": acts})


def leases(api: Api, queue: str, count: int) -> list[dict[str, Any]]:
    for n in range(count):
        api.send(queue, n)
    return api.claim(queue, limit=count)


def test_each_act_has_its_own_result_in_order(api: Api) -> None:
    queue = api.make_queue()
    held = leases(api, queue, 5)
    acts = [
        {"receipt": held[0]["receipt"], "act": "complete"},
        {"receipt": held[1]["receipt"], "act": "fail", "error": "x", "retry_in_ms": 0},
        {"receipt": "forged", "act": "complete"},
        {"receipt": held[2]["receipt"], "act": "bury", "reason": "y"},
        {"receipt": held[3]["receipt"], "act": "snooze", "delay_ms": 5},
        {"receipt": held[4]["receipt"], "act": "extend", "lease_ms": 5},
    ]

    results = ok(act_batch(api, acts))["results"]

    assert [result.get("state") for result in results] == [
        "done", "ready", None, "dead", "waiting", "leased",
    ]  # fmt: skip
    assert results[2]["error"]["code"] == "lease_lost"
    ids = [result.get("id") for result in results]
    assert ids == [m["id"] for m in [*held[:2], {"id": None}, *held[2:]]]
    assert api.counts(queue) == {"ready": 1, "dead": 1, "waiting": 1, "leased": 1}


def test_the_same_receipt_twice_finishes_once(api: Api) -> None:
    [held] = leases(api, api.make_queue(), 1)
    act = {"receipt": held["receipt"], "act": "complete"}

    first, second = ok(act_batch(api, [act, act]))["results"]

    assert first["state"] == "done"
    assert second["error"]["code"] == "lease_lost"


def test_acts_on_one_message_are_decided_in_the_order_given(api: Api) -> None:
    [held] = leases(api, api.make_queue(), 1)
    receipt = held["receipt"]

    results = ok(
        act_batch(
            api,
            [
                {"receipt": receipt, "act": "extend", "lease_ms": 1_000},
                {"receipt": receipt, "act": "complete"},
                {"receipt": receipt, "act": "fail"},
            ],
        )
    )["results"]

    assert [result.get("state") for result in results] == ["leased", "done", None]
    assert results[2]["error"]["code"] == "lease_lost"


def test_an_invalid_act_does_not_affect_the_others(api: Api) -> None:
    held = leases(api, api.make_queue(), 3)
    acts = [
        {"receipt": held[0]["receipt"], "act": "complete"},
        {"receipt": held[1]["receipt"], "act": "snooze"},
        {"receipt": held[1]["receipt"], "act": "fail", "reason": "not for failures"},
        {"receipt": held[2]["receipt"], "act": "release", "delay_ms": -1},
    ]

    first, *others = ok(act_batch(api, acts))["results"]

    assert first["state"] == "done"
    assert [other["error"]["code"] for other in others] == ["invalid_request"] * 3


@pytest.mark.parametrize(
    "acts",
    [
        [],
        [{"receipt": "x", "act": "complete"}] * 1_001,
        [{"receipt": "x", "act": "explode"}],
        [{"receipt": "x", "act": "complete", "why": "not"}],
        [{"act": "complete"}],
        [{"receipt": "x"}],
        [{"receipt": 5, "act": "complete"}],
        {"receipt": "x", "act": "complete"},
        None,
    ],
)
def test_an_invalid_batch_is_refused(api: Api, acts: Any) -> None:
    assert_refused(act_batch(api, acts), 400, "invalid_request")
