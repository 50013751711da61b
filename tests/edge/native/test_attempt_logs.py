"""Logs of attempts over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clocks import ManualClock
from tests.edge.api import Api, assert_refused, ok

pytestmark = pytest.mark.both_stores


def test_a_log_is_kept_while_the_lease_is_held_and_read_after_the_end(
    api: Api, clock: ManualClock
) -> None:
    queue = api.make_queue()
    message_id = api.send(queue)
    receipt = api.claim_one(queue)["receipt"]

    assert _keep(api, receipt, 1, "first") == ["kept"]
    assert _keep(api, receipt, 1, "first") == ["kept"]  # the answer was lost; it is kept once
    assert _keep(api, receipt, 2, "second", level="warning", source="shop") == ["kept"]
    ok(api.act(receipt, "complete"))
    assert _keep(api, receipt, 3, "late") == ["lease_lost"]

    logs = api.get(f"/v1/messages/{message_id}/logs")
    assert [(line["lease_no"], line["level"], line["text"]) for line in logs["lines"]] == [
        (1, "info", "first"),
        (1, "warning", "second"),
    ]
    assert logs["lines"][0]["at"] == "2030-05-01T09:00:00.000Z"
    assert api.get(f"/v1/messages/{message_id}/logs", cursor=logs["next"])["lines"] == []


def test_a_message_that_was_given_back_takes_no_more_lines(api: Api) -> None:
    queue = api.make_queue()
    api.send(queue)
    receipt = api.claim_one(queue)["receipt"]
    ok(api.act(receipt, "fail", retry_in_ms=60_000))

    assert _keep(api, receipt, 1, "late") == ["lease_lost"]


def test_pages_go_part_by_part_and_attempt_by_attempt(api: Api) -> None:
    queue = api.make_queue()
    message_id = api.send(queue)
    for attempt in range(2):
        receipt = api.claim_one(queue)["receipt"]
        for seq in (1, 2):
            _keep(api, receipt, seq, f"{attempt} {seq}")
        ok(api.act(receipt, "release"))

    found, cursor = [], None
    for _ in range(4):
        page = api.get(f"/v1/messages/{message_id}/logs", limit=1, cursor=cursor)
        found += [line["text"] for line in page["lines"]]
        cursor = page["next"]

    assert found == ["0 1", "0 2", "1 1", "1 2"]


def test_a_log_beyond_the_limit_is_rejected_and_other_parts_are_kept(api: Api) -> None:
    queue = api.make_queue()
    api.send_many(queue, ["a", "b"])
    one, two = api.claim(queue, limit=2)

    parts = [_part(one["receipt"], 1, "x" * 70_000), _part(two["receipt"], 1, "fits")]
    parts += [_part("nonsense", 1, ""), _part(two["receipt"], 0, "")]
    results = ok(api.call("POST", "/v1/leases/logs", {"logs": parts}))["results"]

    assert results == ["too_large", "kept", "lease_lost", "invalid_request"]


def test_the_log_of_an_unknown_message_is_not_found(api: Api) -> None:
    unknown = "01ba4e95-8a00-7cc4-a3ba-2b1d1c5f8e11"

    assert_refused(api.call("GET", f"/v1/messages/{unknown}/logs"), 404, "message_not_found")


def _part(receipt: str, seq: int, text: str, **more: Any) -> dict[str, Any]:
    line = {"at": "2030-05-01T09:00:00Z", "text": text, **more}
    return {"receipt": receipt, "seq": seq, "lines": [line]}


def _keep(api: Api, receipt: str, seq: int, text: str, **more: Any) -> list[str]:
    body = {"logs": [_part(receipt, seq, text, **more)]}
    return list(ok(api.call("POST", "/v1/leases/logs", body))["results"])
