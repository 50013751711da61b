"""Flows over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.access.api_key import Role
from tests.edge.api import Api, a_name, assert_refused, ok
from tests.edge.conftest import InBackground
from tests.edge.live import LiveServer
from tests.edge.native.conftest import LetIn
from tests.edge.native.waiting import LONG_MS
from tests.support.waiting import eventually

pytestmark = pytest.mark.both_stores


@pytest.fixture
def queue(api: Api) -> str:
    return api.make_queue(max_attempts=1)


def create(api: Api, queue: str, *members: dict[str, Any], **fields: Any) -> dict[str, Any]:
    drafts = [{"queue": queue, "body": {}, **member} for member in members]
    body = {"name": "nightly", "members": drafts, **fields}
    return dict(ok(api.call("POST", "/v1/flows", body)))


def flow(api: Api, made: dict[str, Any], **query: Any) -> dict[str, Any]:
    return dict(api.get(f"/v1/flows/{made['flow']['id']}", **query))


def states(api: Api, made: dict[str, Any]) -> dict[str, str]:
    page = api.get(f"/v1/flows/{made['flow']['id']}/members")
    return {m.get("name", m.get("role")): m["state"] for m in page["members"]}


def claim_and(api: Api, queue: str, act: str, **body: Any) -> dict[str, Any]:
    [message] = api.claim(queue)
    ok(api.call("POST", f"/v1/leases/{message['receipt']}/{act}", body))
    return message


def post(api: Api, made: dict[str, Any], what: str, body: Any = None) -> Any:
    return ok(api.call("POST", f"/v1/flows/{made['flow']['id']}/{what}", body))


def test_members_run_after_their_parents_with_their_results(api: Api, queue: str) -> None:
    made = create(
        api,
        queue,
        {"name": "report", "inputs": {"rows": "fetch"}, "body": {"day": 1}},
        {"name": "fetch"},
        on_finish={"queue": queue, "body": "ended"},
    )
    assert made["flow"]["state"] == "running"
    waiting = api.message(made["members"][0])
    assert (waiting["state"], waiting["waits_for"]) == ("waiting", 1)
    assert waiting["flow_id"] == made["flow"]["id"]
    assert "due_at" not in waiting

    fetched = claim_and(api, queue, "complete", result=[1, 2])
    assert fetched["id"] == made["members"][1]
    report = claim_and(api, queue, "complete")
    assert report["body"] == {"day": 1, "rows": [1, 2]}
    ended = flow(api, made)
    assert (ended["state"], ended["total"], ended["done"]) == ("done", 2, 2)
    assert api.claim(queue)[0]["body"] == "ended"


def test_the_graph_can_be_read(api: Api, queue: str) -> None:
    made = create(
        api,
        queue,
        {"name": "a", "kind": "fetch"},
        {"name": "b", "after": ["a"]},
        {"name": "c", "after": [{"member": "b", "on": "failed"}, {"member": "a", "on": "ended"}]},
    )
    page = api.get(f"/v1/flows/{made['flow']['id']}/members", limit=2)
    rest = api.get(f"/v1/flows/{made['flow']['id']}/members", cursor=page["next"])

    a, b, c = page["members"] + rest["members"]
    assert (a["kind"], a["state"], a["queue"]) == ("fetch", "released", queue)
    assert b["after"] == [{"member": a["id"], "on": "done"}]
    assert c["after"] == [
        {"member": a["id"], "on": "ended"},
        {"member": b["id"], "on": "failed"},
    ]
    assert rest["next"] is None


def test_a_member_that_waits_has_no_history_no_steps_and_no_log_yet(api: Api, queue: str) -> None:
    made = create(api, queue, {"name": "a"}, {"name": "b", "after": ["a"]})
    waiting = made["members"][1]

    assert api.get(f"/v1/history/{waiting}") == {"endings": [], "attempts": []}
    assert api.get(f"/v1/messages/{waiting}/steps")["steps"] == []
    assert api.get(f"/v1/messages/{waiting}/logs")["lines"] == []


def test_failed_members_are_redriven_with_those_cancelled_for_them(api: Api, queue: str) -> None:
    made = create(api, queue, {"name": "a"}, {"name": "b", "after": ["a"]})
    claim_and(api, queue, "bury", reason="broken")
    assert states(api, made) == {"a": "dead", "b": "cancelled"}
    cancelled = api.message(made["members"][1])
    assert (cancelled["state"], cancelled["reason"]) == ("cancelled", "parent_failed")

    redriven = post(api, made, "redrive", {})
    assert (redriven["redriven"], redriven["flow"]["state"]) == (1, "running")
    claim_and(api, queue, "complete")
    claim_and(api, queue, "complete")
    assert flow(api, made)["state"] == "done"

    path = f"/v1/flows/{made['flow']['id']}/redrive"
    assert_refused(api.call("POST", path, {"member": "a"}), 409, "wrong_state")
    assert_refused(api.call("POST", path, {"member": "x"}), 404, "message_not_found")


def test_one_member_is_redriven_by_its_name(api: Api, queue: str) -> None:
    made = create(api, queue, {"name": "a"}, {"name": "b"})
    claim_and(api, queue, "bury")
    claim_and(api, queue, "bury")

    assert post(api, made, "redrive", {"member": "b"})["redriven"] == 1
    assert states(api, made) == {"a": "dead", "b": "released"}


def test_cancelling_takes_running_members_from_their_workers(api: Api, queue: str) -> None:
    made = create(api, queue, *({"name": f"m{i}"} for i in range(3)), {"after": ["m0"]})
    [held] = api.claim(queue)

    assert post(api, made, "cancel", {"reason": "wrong data"})["state"] == "cancelled"

    answer = api.call("POST", f"/v1/leases/{held['receipt']}/complete", {})
    assert_refused(answer, 409, "lease_lost")
    assert api.claim(queue) == []
    assert api.message(made["members"][3])["reason"] == "wrong data"
    assert post(api, made, "cancel", {})["failed"] == 4  # again, without effect


def test_a_flow_is_created_once_with_the_same_key(api: Api, queue: str) -> None:
    plan = ({"name": "b", "after": ["a"]}, {"name": "a"})
    first = create(api, queue, *plan, dedup_key=queue)

    again = create(api, queue, *plan, dedup_key=queue)
    assert again == {**first, "is_duplicate": True}
    assert api.counts(queue)["ready"] == 1

    other = create(api, queue, {"name": "c"}, dedup_key=queue)
    assert (other["flow"]["id"], other["members"]) == (first["flow"]["id"], [])
    for bad in (
        {"dedup_key": ""},
        {"dedup_key": "k", "dedup_window_ms": -1},
        {"dedup_window_ms": -1},
    ):
        refused = api.call("POST", "/v1/flows", {"name": "f", "members": [], **bad})
        assert_refused(refused, 400, "invalid_request")


def test_members_are_added_until_it_is_closed(api: Api, queue: str) -> None:
    made = create(api, queue, is_open=True, on_success={"queue": queue, "body": "all done"})
    added = post(api, made, "members", {"members": [{"queue": queue, "body": 1, "name": "a"}]})
    assert added["flow"]["total"] == 1
    claim_and(api, queue, "complete")
    assert flow(api, made)["state"] == "running"

    assert post(api, made, "close")["state"] == "done"

    assert api.claim(queue)[0]["body"] == "all done"
    path = f"/v1/flows/{made['flow']['id']}/members"
    refused = api.call("POST", path, {"members": [{"queue": queue, "body": 1}]})
    assert_refused(refused, 409, "wrong_state")


def test_the_end_of_a_flow_is_waited_for(
    api: Api, server: LiveServer, queue: str, in_background: InBackground
) -> None:
    made = create(api, queue, {"name": "a"})
    waiting = server.broker.waiting_results
    before = waiting.waiting
    found = in_background(flow, api, made, wait_ms=LONG_MS)
    eventually(lambda: waiting.waiting == before + 1)

    claim_and(api, queue, "complete")

    assert found.result(30)["state"] == "done"
    assert flow(api, made, wait_ms=LONG_MS)["state"] == "done"  # at once


def test_the_end_of_a_member_is_waited_for(
    api: Api, server: LiveServer, queue: str, in_background: InBackground
) -> None:
    made = create(api, queue, {"name": "a"}, {"name": "b", "after": ["a"]})
    path = f"/v1/messages/{made['members'][1]}/result"
    assert api.get(path)["state"] == "waiting"
    waiting = server.broker.waiting_results
    before = waiting.waiting
    found = in_background(api.get, path, wait_ms=LONG_MS)
    eventually(lambda: waiting.waiting == before + 1)

    claim_and(api, queue, "bury")

    ended = found.result(30)
    assert (ended["state"], ended["reason"]) == ("cancelled", "parent_failed")


def test_flows_are_listed_newest_first(api: Api, queue: str) -> None:
    name = a_name("flow")
    made = [create(api, queue, {"name": "a"}, name=name) for _ in range(3)]
    claim_and(api, queue, "complete")

    page = api.get("/v1/flows", name=name, limit=2)
    rest = api.get("/v1/flows", name=name, limit=2, cursor=page["next"])
    ids = [f["id"] for f in page["flows"] + rest["flows"]]
    assert ids == [m["flow"]["id"] for m in reversed(made)]
    assert [f["id"] for f in api.get("/v1/flows", name=name, state="done")["flows"]] == ids[-1:]
    assert len(api.get("/v1/flows", name=name, state="running")["flows"]) == 2


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ([{"name": "a", "after": ["b"]}, {"name": "b", "after": ["a"]}], "in a cycle: 'a', 'b'"),
        ([{"name": "a", "after": ["a"]}], "in a cycle"),
        ([{"name": "a"}, {"name": "a"}], "two members"),
        ([{"name": "a", "after": ["x"]}], "no member 'x'"),
        ([{"name": "a", "dedup_key": "k"}], "dedup_key"),
        ([{"name": "a"}, {"body": 17, "inputs": {"n": "a"}}], "JSON object"),
        ([{"name": "", "body": 1}], "1 to 256 characters"),
        ([{"delay_ms": -1}], "delay_ms"),
        ([{"name": "a"}, {"after": ["a", {"member": "a", "on": "ended"}]}], "twice"),
        ([{"name": "a"}, {"after": [{"member": "a", "on": "never"}]}], "never"),
    ],
)
def test_bad_plans_are_refused_and_nothing_is_sent(
    api: Api, queue: str, members: list[dict[str, Any]], text: str
) -> None:
    drafts = [{"queue": queue, "body": {}, **member} for member in members]
    answer = api.call("POST", "/v1/flows", {"name": "f", "members": drafts})

    assert_refused(answer, 400, "invalid_request")
    assert text in answer.text
    assert api.claim(queue) == []


def test_unknown_flows_and_queues(api: Api) -> None:
    path = "/v1/flows/01a1f20b-c491-7ddc-bb10-8b730d143b82"
    assert_refused(api.call("GET", path), 404, "flow_not_found")
    for what, body in (
        ("close", None),
        ("cancel", {}),
        ("redrive", {}),
        ("members", {"members": []}),
    ):
        assert_refused(api.call("POST", f"{path}/{what}", body), 404, "flow_not_found")
    for what in ("members", "members?like=a", "graph"):
        assert_refused(api.call("GET", f"{path}/{what}"), 404, "flow_not_found")
    wanted = {"name": "f", "members": [{"queue": "nowhere", "body": 1}]}
    assert_refused(api.call("POST", "/v1/flows", wanted), 404, "queue_not_found")


def test_a_key_sees_flows_whose_queues_it_covers(let_in: LetIn) -> None:
    everything = let_in()
    mail, other = everything.make_queue("mail"), everything.make_queue("other")
    mailer = let_in(Role.PRODUCE, Role.READ, queues=("mail*",))
    name = a_name("flow")
    mine = create(mailer, mail, {"name": "a"}, name=name)
    mixed = create(everything, mail, {"name": "a"}, {"name": "b", "queue": other}, name=name)

    body = {"name": name, "members": [{"queue": other, "body": 1}]}
    assert_refused(mailer.call("POST", "/v1/flows", body), 403, "forbidden")
    assert flow(mailer, mine)["total"] == 1
    for what in ("", "/members", "/graph"):
        refused = mailer.call("GET", f"/v1/flows/{mixed['flow']['id']}{what}")
        assert_refused(refused, 403, "forbidden")
    listed = mailer.get("/v1/flows", name=name)["flows"]
    assert [f["id"] for f in listed] == [mine["flow"]["id"]]
    refused = mailer.call("POST", f"/v1/flows/{mine['flow']['id']}/cancel", {})
    assert_refused(refused, 403, "forbidden")
