"""Messages selected by their fields, over HTTP: listed, counted, and changed in bulk."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from penstock.edge.instants import to_text
from tests.clocks import ManualClock
from tests.edge.api import Api, assert_refused, ok


@pytest.fixture
def queue(api: Api) -> str:
    return api.make_queue()


def bulk(api: Api, queue: str, **wanted: Any) -> httpx.Response:
    return api.call("POST", f"/v1/queues/{queue}/messages/bulk", wanted)


def states(api: Api, ids: list[str]) -> list[str]:
    return [api.message(one)["state"] for one in ids]


def test_messages_are_found_by_what_they_are(api: Api, queue: str, clock: ManualClock) -> None:
    api.send(queue, kind="other")
    clock.advance(seconds=1)
    mine = api.send(queue, kind="k", tags=["a", "b"], group="g", entity_id="e")
    path = f"/v1/queues/{queue}/messages"

    for query in (
        {"kind": "k"},
        {"tag": "b"},
        {"group": "g"},
        {"entity_id": "e"},
        {"sent_from": to_text(clock.now())},
        {"kind": "k", "tag": "a", "sent_before": str(clock.now() + 1)},
    ):
        page = api.get(path, **query)
        assert ([m["id"] for m in page["messages"]], page["next"]) == ([mine], None), query
    assert api.get(path, kind="nothing") == {"messages": [], "next": None}
    assert_refused(api.call("GET", f"{path}?sent_from=yesterday"), 400, "invalid_request")
    assert_refused(api.call("GET", f"{path}?kind="), 400, "invalid_request")


def test_a_dry_run_counts_and_changes_nothing(api: Api, queue: str) -> None:
    ids = [api.send(queue, kind="k") for _ in range(3)]
    api.send(queue, kind="other")

    counted = ok(
        bulk(api, queue, act="cancel", where={"state": "ready", "kind": "k"}, is_dry_run=True)
    )

    assert counted == {"matched": 3, "changed": 0, "refused": 0, "is_cut": False}
    assert states(api, ids) == ["ready"] * 3


@pytest.mark.parametrize(
    ("act", "more", "after"),
    [
        ("complete", {"reason": "by hand"}, "done"),
        ("cancel", {"reason": "by hand"}, "cancelled"),
        ("bury", {"reason": "by hand"}, "dead"),
        ("reschedule", {"due_at": "2090-01-01T00:00:00Z"}, "waiting"),
    ],
)
def test_an_act_reaches_all_that_fit_and_no_other(
    api: Api, queue: str, act: str, more: dict[str, Any], after: str
) -> None:
    ids = [api.send(queue, kind="k") for _ in range(5)]
    spared = api.send(queue, kind="other")

    done = ok(bulk(api, queue, act=act, where={"state": "ready", "kind": "k"}, **more))

    assert done == {"matched": 5, "changed": 5, "refused": 0, "is_cut": False}
    assert states(api, [*ids, spared]) == [after] * 5 + ["ready"]
    if "reason" in more:
        assert api.message(ids[0])["reason"] == "by hand"


def test_the_dead_are_brought_back(api: Api, queue: str) -> None:
    ids = [api.die(queue, kind="k") for _ in range(3)]

    done = ok(bulk(api, queue, act="redrive", where={"state": "dead", "kind": "k"}))

    assert done["changed"] == 3
    assert states(api, ids) == ["ready"] * 3


def test_dead_letters_go_home(api: Api) -> None:
    letters = api.make_queue("letters")
    home = api.make_queue("home", dead_letter_queue=letters)
    message_id = api.die(home)

    ok(bulk(api, letters, act="redrive", ids=[message_id]))

    assert api.message(message_id)["queue"] == home


def test_waiting_messages_are_all_rescheduled_once_although_their_order_changes(
    api: Api, queue: str, clock: ManualClock
) -> None:
    ids = [api.send(queue, delay_ms=60_000 + n) for n in range(4)]

    due_at = to_text(clock.now() + 60_002)
    done = ok(bulk(api, queue, act="reschedule", where={"state": "waiting"}, due_at=due_at))

    assert (done["matched"], done["changed"]) == (4, 4)
    assert {api.message(one)["due_at"] for one in ids} == {due_at}


def test_waiting_ones_are_brought_forward_to_now(api: Api, queue: str) -> None:
    ids = [api.send(queue, delay_ms=60_000) for _ in range(2)]

    ok(api.call("PATCH", f"/v1/messages/{ids[0]}", {"delay_ms": 0}))
    ok(bulk(api, queue, act="reschedule", ids=ids, delay_ms=0))

    assert states(api, ids) == ["ready"] * 2


def test_messages_named_by_their_ids_must_be_in_this_queue(api: Api, queue: str) -> None:
    mine, elsewhere = api.send(queue), api.send(api.make_queue())
    held = api.send(queue, priority=-1)
    api.claim_one(queue)

    ids = [mine, mine, elsewhere, held, "no-such-id"]
    done = ok(bulk(api, queue, act="cancel", ids=ids))

    # The leased one matches and is refused, like the ids that are not in this queue.
    assert done == {"matched": 2, "changed": 1, "refused": 3, "is_cut": False}
    assert states(api, [mine, elsewhere, held]) == ["cancelled", "ready", "leased"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"act": "cancel"},
        {"act": "cancel", "ids": []},
        {"act": "cancel", "ids": ["x"] * 1_001},
        {"act": "cancel", "ids": ["x"], "where": {"state": "ready"}},
        {"act": "cancel", "where": {}},
        {"act": "cancel", "where": {"state": "done"}},
        {"act": "cancel", "where": {"state": "leased"}},
        {"act": "complete", "where": {"state": "dead"}},
        {"act": "purge", "where": {"state": "ready"}},
        {"act": "reschedule", "where": {"state": "ready"}},
        {"act": "cancel", "where": {"state": "ready"}, "due_at": 1},
        {"act": "redrive", "where": {"state": "dead"}, "reason": "x"},
        {"act": "reschedule", "where": {"state": "ready"}, "due_at": 1, "delay_ms": 1},
        {"act": "reschedule", "where": {"state": "ready"}, "delay_ms": -1},
        {"act": "cancel", "where": {"state": "ready", "kind": ""}},
        {"act": "cancel", "where": {"state": "ready", "colour": "red"}},
        {"act": "reschedule", "where": {"state": "ready"}, "due_at": "soon"},
    ],
)
def test_an_invalid_request_is_rejected_and_changes_nothing(
    api: Api, queue: str, wrong: dict[str, Any]
) -> None:
    message_id = api.send(queue)

    assert_refused(bulk(api, queue, **wrong), 400, "invalid_request")
    assert api.message(message_id)["state"] == "ready"


def test_one_message_is_completed_by_hand(api: Api, queue: str) -> None:
    message_id, held = api.send(queue), api.send(queue, priority=-1)
    api.claim_one(queue)

    path = f"/v1/messages/{message_id}/complete"
    done = ok(api.call("POST", path, {"reason": "by telephone"}))

    assert done["state"] == "done"
    assert api.message(message_id)["reason"] == "by telephone"
    assert api.queue(queue)["totals"]["done"] == 1
    assert_refused(api.call("POST", path), 404, "message_not_found")
    assert_refused(api.call("POST", f"/v1/messages/{held}/complete"), 409, "wrong_state")


def test_leased_messages_are_cancelled_together_only_if_the_request_says_so(
    api: Api, queue: str
) -> None:
    ids = [api.send(queue, kind="k") for _ in range(2)]
    held = api.claim(queue, limit=2)
    where = {"state": "leased", "kind": "k"}

    assert_refused(bulk(api, queue, act="cancel", where=where), 400, "invalid_request")
    done = ok(bulk(api, queue, act="cancel", where=where, is_running_ok=True))

    assert (done["matched"], done["changed"]) == (2, 2)
    assert states(api, ids) == ["cancelled"] * 2
    for one in held:
        assert_refused(api.act(one["receipt"], "complete"), 409, "lease_lost")


@pytest.mark.parametrize("act", ["complete", "redrive"])
def test_only_cancel_and_bury_end_what_is_leased(api: Api, queue: str, act: str) -> None:
    refused = bulk(api, queue, act=act, where={"state": "leased"}, is_running_ok=True)

    assert_refused(refused, 400, "invalid_request")
