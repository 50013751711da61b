"""Groups of errors of dead messages, and retrying one of them."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.services import errors
from tests.clocks import ManualClock
from tests.edge.api import Api, assert_refused, ok


def fail(api: Api, queue: str, error: str, **fields: Any) -> str:
    """Send a message whose only attempt fails; returns its id."""
    message_id = api.send(queue, max_attempts=1, **fields)
    ok(api.act(api.claim_one(queue)["receipt"], "fail", error=error))
    return message_id


def declined(number: int) -> str:
    return (
        f"PaymentDeclined: card {number}\n  at /app/shopjobs.py:22 in charge: raise\n"
        "caused by KeyError: 1\n  at /app/cards.py:3 in find"
    )


@pytest.mark.both_stores
def test_errors_are_grouped_by_exception_and_place_with_a_sample(
    api: Api, clock: ManualClock
) -> None:
    first, second = api.make_queue("pay"), api.make_queue("refund")
    ids = []
    for number in range(3):
        ids.append(fail(api, first, declined(number), kind="charge"))
        clock.advance(seconds=10)
    latest = fail(api, second, declined(9), kind="refund")
    fail(api, first, "disk full")

    groups = api.get("/v1/errors")["groups"]
    [group] = [one for one in groups if one["place"] == "shopjobs.py:22"]

    assert (group["error"], group["messages"]) == ("PaymentDeclined", 4)
    assert group["queues"] == {first: 3, second: 1}
    assert group["kinds"] == ["charge", "refund"]
    assert group["first_at"] < group["last_at"]
    assert group["sample_id"] == latest
    assert group["sample_line"] == "PaymentDeclined: card 9 at shopjobs.py:22"
    assert group["sample_error"] == declined(9)
    of_first = api.get("/v1/errors", queue=first)
    assert [(one["error"], one["messages"]) for one in of_first["groups"]] == [
        ("PaymentDeclined", 3),
        ("disk full", 1),
    ]
    assert api.message(ids[0])["error_line"] == "PaymentDeclined: card 0 at shopjobs.py:22"
    [listed] = [
        message
        for message in api.get(f"/v1/queues/{first}/messages", state="dead")["messages"]
        if message["id"] == ids[1]
    ]
    assert listed["error_line"] == "PaymentDeclined: card 1 at shopjobs.py:22"
    assert_refused(api.call("GET", "/v1/errors?queue=none"), 404, "queue_not_found")


@pytest.mark.both_stores
def test_the_messages_of_a_group_are_retried_and_no_others(api: Api) -> None:
    letters = api.make_queue("letters")
    first, second = api.make_queue("pay"), api.make_queue("refund", dead_letter_queue=letters)
    for number in range(3):
        fail(api, first, declined(number))
    fail(api, second, declined(9))
    fail(api, first, "disk full")
    [group] = api.get("/v1/errors", queue=letters)["groups"]

    def redrive(**wanted: Any) -> dict[str, Any]:
        wanted = {"error": group["id"], **wanted}
        return dict(ok(api.call("POST", "/v1/errors/redrive", wanted)))

    assert redrive(queue=first, is_dry_run=True)["matched"] == 3
    assert api.counts(first) == {"dead": 4}
    assert redrive(queue=letters)["changed"] == 1
    assert api.counts(second) == {"ready": 1}
    assert redrive(queue=first)["changed"] == 3
    assert api.counts(first) == {"ready": 3, "dead": 1}
    assert redrive(error="0" * 16)["matched"] == 0


def test_a_message_that_was_buried_is_grouped_by_the_reason(api: Api) -> None:
    name = api.make_queue("buried")
    api.die(name)

    [group] = api.get("/v1/errors", queue=name)["groups"]

    assert (group["error"], group["place"]) == ("broken", None)


def test_messages_of_a_dead_letter_queue_that_never_died_count_as_examined(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = api.make_queue("letters")
    source = api.make_queue("pay", dead_letter_queue=letters)
    api.send_many(letters, range(5))
    fail(api, source, "disk full")

    complete = api.get("/v1/errors", queue=letters)
    monkeypatch.setattr(errors, "MAX_EXAMINED", 5)
    cut = api.get("/v1/errors", queue=letters)

    assert [group["messages"] for group in complete["groups"]] == [1]
    assert (complete["is_cut"], cut["is_cut"]) == (False, True)
