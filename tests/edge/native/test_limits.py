"""Limits and fair share over HTTP."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.edge.api import Api

pytestmark = pytest.mark.both_stores


def test_the_limits_of_a_queue_are_shown_as_they_were_given(api: Api) -> None:
    wanted: dict[str, Any] = {
        "max_leased": 5,
        "max_leased_per_group": 2,
        "rate": {"limit": 10, "per_ms": 1_000, "burst": 1},
        "rate_per_group": {"limit": 1, "per_ms": 60_000, "burst": 3},
        "is_fair": True,
        "weights": {"acme": 3, "": 2},
    }
    queue = api.make_queue(**wanted)

    shown = api.queue(queue)["settings"]

    assert {name: shown[name] for name in wanted} == wanted


def test_a_rate_may_leave_out_its_time_and_its_burst(api: Api) -> None:
    queue = api.make_queue(rate={"limit": 10})

    assert api.queue(queue)["settings"]["rate"] == {"limit": 10, "per_ms": 1_000, "burst": 1}


def test_limits_per_group_are_refused_where_groups_are_ordered(api: Api) -> None:
    queue = api.make_queue(ordering="group")

    refused = api.call("PATCH", f"/v1/queues/{queue}", {"max_leased_per_group": 2})

    assert refused.status_code == 400
    assert refused.json()["error"]["code"] == "invalid_request"
    assert "one message of a group at a time" in refused.json()["error"]["message"]


def test_a_claim_takes_what_the_limits_leave(api: Api) -> None:
    queue = api.make_queue(max_leased=3, max_leased_per_group=2)
    for group in "aaab":
        api.send(queue, group=group)

    assert len(api.claim(queue, limit=10)) == 3
    api.call("PATCH", f"/v1/queues/{queue}", {"max_leased": None, "max_leased_per_group": None})
    assert len(api.claim(queue, limit=10)) == 1


def test_groups_take_turns_in_a_fair_queue(api: Api) -> None:
    queue = api.make_queue(is_fair=True)
    for group in "aaaabb":
        api.send(queue, body=group, group=group)

    assert "".join(m["body"] for m in api.claim(queue, limit=10)) == "ababaa"


def test_a_claim_that_waits_gets_what_a_completion_makes_room_for(api: Api) -> None:
    queue = api.make_queue(max_leased=1)
    api.send(queue, body="first")
    api.send(queue, body="second")
    first = api.claim_one(queue)

    with ThreadPoolExecutor(1) as others:
        waiting = others.submit(api.claim_one, queue, wait_ms=20_000)
        assert api.act(first["receipt"], "complete").status_code == 200

        assert waiting.result(30)["body"] == "second"
