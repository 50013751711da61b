"""`penstock workers`"""

from __future__ import annotations

from typing import Any

import pytest

from tests.edge.api import Api, ok


@pytest.fixture
def worker(api: Api) -> dict[str, Any]:
    about = {"name": "mailer", "host": "node-1", "pid": 4711, "slots": 4, "kinds": ["welcome"]}
    return dict(ok(api.call("POST", "/v1/workers", about)))


def test_workers_are_listed_with_their_leases(cli, api: Api, worker):
    queue = api.make_queue()
    api.send(queue)
    api.claim(queue, claimed_by=worker["id"])

    records = {record["id"]: record for record in cli("workers", "--json").records}
    ran = cli("workers")

    shown = records[worker["id"]]
    assert (shown["name"], shown["slots"], shown["holding"]) == ("mailer", 4, 1)
    assert ran.code == 0
    [line] = [line for line in ran.out.splitlines() if worker["id"] in line]
    for text in ("mailer", "node-1", "4711", "active"):
        assert text in line


def test_ended_workers_are_listed_on_request(cli, api: Api, worker):
    api.call("DELETE", f"/v1/workers/{worker['id']}")

    assert worker["id"] not in cli("workers").out
    assert worker["id"] in cli("workers", "--gone").out


def test_one_worker_is_shown_with_its_leases(cli, api: Api, worker):
    queue = api.make_queue()
    message_id = api.send(queue, kind="welcome")
    api.claim(queue, claimed_by=worker["id"])

    ran = cli("workers", "show", worker["id"])

    assert ran.code == 0
    for text in ("mailer", "node-1", "4711", "welcome", message_id, queue):
        assert text in ran.out
    record = cli("workers", "show", worker["id"], "--json").record
    assert [lease["id"] for lease in record["leases"]] == [message_id]
    assert cli("workers", "show", "none").err.endswith("(worker_not_found)\n")


def test_a_worker_is_drained(cli, api: Api, worker):
    ran = cli("workers", "drain", worker["id"])

    assert (ran.code, ran.out) == (
        0,
        f"{worker['id']} is draining; the worker learns of it with its next beat\n",
    )
    assert cli("workers", "drain", worker["id"], "--json").record["state"] == "draining"
    api.call("DELETE", f"/v1/workers/{worker['id']}")
    assert cli("workers", "drain", worker["id"]).err.endswith("(worker_gone)\n")


def test_the_variable_of_a_flag_is_not_mistaken_for_a_setting(run, monkeypatch):
    monkeypatch.setenv("PENSTOCK_WORKERS_GONE", "true")

    assert run("settings").code == 0
    monkeypatch.setenv("PENSTOCK_WORKERS_VALIDMS", "1")
    assert "did you mean PENSTOCK_WORKERS_VALID_MS?" in run("settings").err
