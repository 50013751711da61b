"""`penstock flows`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.edge.api import Api, a_name, ok


@pytest.fixture
def made(api: Api) -> dict[str, Any]:
    queue = api.make_queue(max_attempts=1)
    members = [
        {"queue": queue, "name": "fetch", "kind": "fetch", "body": {}},
        {"queue": queue, "name": "report", "body": {}, "after": ["fetch"]},
        {
            "queue": queue,
            "name": "clean",
            "body": {},
            "after": [{"member": "report", "on": "ended"}],
        },
    ]
    body = {"name": a_name("nightly"), "members": members}
    return {"queue": queue, **ok(api.call("POST", "/v1/flows", body))}


def test_flows_are_listed_and_shown(cli, made):
    flow, ids = made["flow"], made["members"]

    [listed] = cli("flows", "--name", flow["name"], "--json").records
    assert listed == flow
    assert "0/3" in cli("flows", "--name", flow["name"]).out
    assert cli("flows", "--name", flow["name"], "--state", "done").out.count(flow["id"]) == 0
    shown = cli("flows", "show", flow["id"]).out
    assert f"{ids[1]} ended" in shown
    members = cli("flows", "show", flow["id"], "--json").record["members"]
    assert [m["name"] for m in members] == ["fetch", "report", "clean"]


def test_a_flow_is_shown_as_a_graph(cli, api: Api):
    queue = api.make_queue()
    loads = [{"queue": queue, "kind": "load", "body": {}} for _ in range(12)]
    [ended] = [{"queue": queue, "name": "end", "kind": "merge", "body": {}}]
    made = ok(api.call("POST", "/v1/flows", {"name": "import", "members": [*loads, ended]}))
    flow, first = made["flow"]["id"], made["members"][0]

    nodes = cli("flows", "graph", flow, "--json").record["nodes"]
    assert [(n["member"]["kind"], n.get("count", 1)) for n in nodes] == [("load", 12), ("merge", 1)]
    assert "12 released" in cli("flows", "graph", flow).out
    assert len(cli("flows", "graph", flow, "--fold", "12", "--json").record["nodes"]) == 13
    alike = cli("flows", "show", flow, "--like", first, "--state", "released", "--json").record
    assert len(alike["members"]) == 12
    assert cli("flows", "show", flow, "--like", "end", "--state", "done").out.count("merge") == 0


def test_failing_flows_are_listed(cli, api: Api, made):
    name = made["flow"]["name"]
    assert cli("flows", "--name", name, "--failing", "--json").records == []
    [message] = api.claim(made["queue"])
    ok(api.call("POST", f"/v1/leases/{message['receipt']}/bury", {}))

    [failing] = cli("flows", "--name", name, "--failing", "--json").records
    assert failing["id"] == made["flow"]["id"]


def test_a_failed_flow_is_redriven(cli, api: Api, made):
    flow_id = made["flow"]["id"]
    [message] = api.claim(made["queue"])
    ok(api.call("POST", f"/v1/leases/{message['receipt']}/bury", {}))

    assert cli("flows", "redrive", flow_id, "--member", "fetch").out == "1 members run again\n"
    assert cli("flows", "show", flow_id, "--json").record["flow"]["failed"] == 0


def test_a_flow_is_cancelled(cli, api: Api, made):
    ran = cli("flows", "cancel", made["flow"]["id"], "--reason", "bad data")

    assert ran.out.endswith("cancelled, 3 of 3 members cancelled\n")
    assert api.message(made["members"][2])["reason"] == "bad data"


def test_an_open_flow_is_closed(cli, api: Api):
    made = ok(api.call("POST", "/v1/flows", {"name": "import", "is_open": True}))

    assert cli("flows", "close", made["flow"]["id"]).out.endswith("done\n")


def test_a_flow_that_does_not_exist(cli):
    ran = cli("flows", "show", "01ba4e95-8a00-7cc4-a3ba-2b1d1c5f8e11")
    assert ran.code == 1
    assert "flow_not_found" in ran.err
