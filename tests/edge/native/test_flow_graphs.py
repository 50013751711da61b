"""Flows as the console shows them: graphs, timing, failing flows, flows that jobs created."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.services.flows import members
from tests.clocks import ManualClock
from tests.edge.api import Api, a_name, assert_refused, ok
from tests.edge.live import LiveServer

pytestmark = pytest.mark.both_stores

MANY = 25


@pytest.fixture
def queue(api: Api) -> str:
    return api.make_queue(max_attempts=1)


def create(api: Api, queue: str, *members: dict[str, Any], **fields: Any) -> dict[str, Any]:
    drafts = [{"queue": queue, "body": {}, **member} for member in members]
    body = {"name": "nightly", "members": drafts, **fields}
    return dict(ok(api.call("POST", "/v1/flows", body)))


def a_wide_flow(api: Api, queue: str) -> dict[str, Any]:
    """list → many loads → merge, and a callback."""
    loads = [{"name": f"load-{n}", "kind": "load", "after": ["list"]} for n in range(MANY)]
    merge = {"name": "merge", "kind": "merge", "after": [load["name"] for load in loads]}
    root = {"name": "list", "kind": "list"}
    return create(
        api, queue, root, *loads, merge, on_finish={"queue": queue, "kind": "tell", "body": 1}
    )


def path_of(made: dict[str, Any], what: str = "") -> str:
    return f"/v1/flows/{made['flow']['id']}{what}"


def test_a_graph_has_one_node_for_many_members_that_are_alike(api: Api, queue: str) -> None:
    made = a_wide_flow(api, queue)
    ids = made["members"]
    ok(api.act(api.claim_one(queue)["receipt"], "complete"))
    for message in api.claim(queue, limit=4):
        ok(api.act(message["receipt"], "complete"))

    graph = api.get(path_of(made, "/graph"))

    root, loads, merge, callback = graph["nodes"]
    assert (root["member"]["id"], root["layer"], root["member"]["state"]) == (ids[0], 0, "done")
    assert "states" not in root
    assert (loads["member"]["id"], loads["layer"], loads["count"]) == (ids[1], 1, MANY)
    assert loads["states"] == {"done": 4, "released": MANY - 4}
    assert loads["member"]["after"] == [{"member": ids[0], "on": "done"}]
    assert merge["member"]["after"] == [{"member": ids[1], "on": "done"}]
    assert (callback["member"]["role"], callback["layer"]) == ("on_finish", 3)
    assert graph["flow"]["done"] == 5
    assert graph["is_cut"] is False


def test_few_enough_members_are_nodes_of_their_own(api: Api, queue: str) -> None:
    made = a_wide_flow(api, queue)

    graph = api.get(path_of(made, "/graph"), fold=MANY)
    cut = api.get(path_of(made, "/graph"), fold=MANY, limit=10)

    assert len(graph["nodes"]) == MANY + 3
    merge = graph["nodes"][-2]
    assert len(merge["member"]["after"]) == MANY
    assert cut["nodes"] == graph["nodes"][:10]
    assert cut["is_cut"] is True
    assert_refused(api.call("GET", path_of(made, "/graph?fold=0")), 400, "invalid_request")


def test_the_members_of_a_node_are_listed_page_by_page(
    api: Api, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "CHUNK", 7)
    made = a_wide_flow(api, queue)
    ids = made["members"]
    path = path_of(made, "/members")
    ok(api.act(api.claim_one(queue)["receipt"], "complete"))
    ok(api.act(api.claim_one(queue)["receipt"], "complete"))

    first = api.get(path, like=ids[5], limit=20)
    rest = api.get(path, like=ids[5], limit=20, cursor=first["next"])
    assert [m["id"] for m in first["members"] + rest["members"]] == ids[1 : MANY + 1]
    assert rest["next"] is None
    [done] = api.get(path, like="load-7", state="done")["members"]
    assert done["id"] == ids[1]
    assert [m["name"] for m in api.get(path, like="merge")["members"]] == ["merge"]
    assert_refused(api.call("GET", f"{path}?like=nothing"), 404, "message_not_found")
    graph = api.get(path_of(made, "/graph"))
    assert [node.get("count", 1) for node in graph["nodes"]] == [1, MANY, 1, 1]


def test_members_have_the_times_of_their_messages(api: Api, server: LiveServer, queue: str) -> None:
    clock = server.clock
    assert isinstance(clock, ManualClock)
    made = create(api, queue, {"name": "a"}, {"name": "b", "after": ["a"]})
    clock.advance(seconds=2)
    held = api.claim_one(queue)
    a, b = api.get(path_of(made, "/members"))["members"]
    assert (a["state"], a["message_state"], a["attempts"]) == ("released", "leased", 1)
    assert "sent_at" not in b
    assert "message_state" not in b

    clock.advance(seconds=3)
    ok(api.act(held["receipt"], "complete"))
    a, b = api.get(path_of(made, "/members"))["members"]
    past = api.get(f"/v1/history/{a['id']}")["endings"][0]
    assert (a["sent_at"], a["leased_at"]) == (past["sent_at"], past["leased_at"])
    assert a["ended_at"] == past["finished_at"] == b["sent_at"]
    assert b["message_state"] == "ready"


def test_failing_flows_are_found_among_many(api: Api, queue: str) -> None:
    name = a_name("flow")
    made = [create(api, queue, {"name": "a"}, {"name": "b"}, name=name) for _ in range(3)]
    [first] = api.claim(queue)
    ok(api.act(first["receipt"], "bury"))

    failing = api.get("/v1/flows", name=name, is_failing=True)["flows"]

    assert [(f["id"], f["state"], f["failed"]) for f in failing] == [
        (made[0]["flow"]["id"], "running", 1)
    ]
    assert len(api.get("/v1/flows", name=name)["flows"]) == 3


def test_a_flow_names_the_message_that_created_it(api: Api, queue: str) -> None:
    outer = create(api, queue, {"name": "a"}, {"name": "b"})
    creator = outer["members"][0]

    inner = create(api, queue, {"name": "x"}, created_by=creator)

    assert api.get(path_of(inner))["created_by"] == creator
    listed = api.get("/v1/flows", created_by=creator)["flows"]
    assert [flow["id"] for flow in listed] == [inner["flow"]["id"]]
    a, b = api.get(path_of(outer, "/members"))["members"]
    assert a["created"] == [inner["flow"]["id"]]
    assert "created" not in b
    refused = api.call("POST", "/v1/flows", {"name": "f", "created_by": "x" * 1_000})
    assert_refused(refused, 400, "invalid_request")
