"""Circuits of jobs and keys for some queues: they ask and report for jobs of those only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.client.remote.server import Remote
from penstock.domain.access.api_key import Role
from penstock.domain.circuit.circuit import OutcomeReport, RequestOutcome, circuit_hash
from penstock.domain.errors import Forbidden
from tests.edge.api import Api, a_name, assert_refused, ok
from tests.edge.live import LiveServer
from tests.edge.native.conftest import LetIn, new_key

PERMITS, OUTCOMES = "/v1/circuits/permits", "/v1/circuits/outcomes"
ON = {
    "circuit_check_enabled": True,
    "statistics_update_enabled": True,
    "min_queue_sample_count": 2,
}


@pytest.fixture
def admin(let_in: LetIn, server_with_keys: LiveServer) -> Iterator[Api]:
    """An operator; the breaker is on."""
    client = let_in()
    ok(client.call("PATCH", "/v1/breaker", ON))
    server_with_keys.broker.circuits.refresh()
    yield client
    ok(client.call("DELETE", "/v1/breaker"))
    server_with_keys.broker.circuits.refresh()


@pytest.fixture
def worker(let_in: LetIn) -> Api:
    """A worker whose key covers only the jobs of `mail-…`."""
    return let_in(Role.CONSUME, queues=("mail-*",))


@pytest.fixture
def route() -> str:
    return a_name("stripe")


def claimed(admin: Api, queue: str, route: str) -> dict[str, Any]:
    admin.send(queue, route=route)
    return admin.claim_one(queue)


def failed(route: str, *ids: str) -> dict[str, Any]:
    return {"outcomes": [{"route": route, "id": one, "outcome": "failure"} for one in ids]}


def is_known(admin: Api, route: str) -> bool:
    return admin.call("GET", f"/v1/circuits/{circuit_hash(route)}").status_code == 200


def test_roles_that_do_not_claim_have_no_business_with_circuits(let_in: LetIn, route: str) -> None:
    other = let_in(Role.PRODUCE, Role.READ)

    assert_refused(other.call("POST", PERMITS, {"routes": [route]}), 403, "forbidden")
    assert_refused(other.call("POST", OUTCOMES, failed(route, "1")), 403, "forbidden")


def test_a_limited_worker_asks_for_the_routes_of_jobs_it_has_claimed(
    admin: Api, worker: Api, route: str
) -> None:
    job = claimed(admin, admin.make_queue("mail"), route)

    asked = ok(worker.call("POST", PERMITS, {"routes": [route], "ids": [job["id"]]}))

    assert asked["permits"] == [{"route": route, "permit": "go", "generation": -1}]


def test_it_reports_how_its_jobs_ended_before_and_after_they_are_gone(
    admin: Api, worker: Api, route: str
) -> None:
    queue = admin.make_queue("mail")
    jobs = [claimed(admin, queue, route) for _ in range(3)]
    ok(worker.act(jobs[0]["receipt"], "complete"))
    ok(worker.act(jobs[1]["receipt"], "bury", reason="broken"))

    reported = worker.call("POST", OUTCOMES, failed(route, *(job["id"] for job in jobs)))

    assert reported.status_code == 204
    assert admin.get(f"/v1/circuits/{circuit_hash(route)}")["state"] == "open"


def test_a_dead_letter_is_still_a_job_of_the_queue_it_died_in(
    admin: Api, worker: Api, route: str
) -> None:
    letters = admin.make_queue("dead-letters")
    queue = admin.make_queue("mail", dead_letter_queue=letters)
    job = claimed(admin, queue, route)
    ok(worker.act(job["receipt"], "bury", reason="broken"))
    assert admin.message(job["id"])["queue"] == letters

    assert worker.call("POST", OUTCOMES, failed(route, job["id"])).status_code == 204


def test_it_opens_no_circuit_with_outcomes_that_it_made_up(
    admin: Api, worker: Api, route: str
) -> None:
    foreign = claimed(admin, admin.make_queue("bank"), route)["id"]
    other_route = claimed(admin, admin.make_queue("mail"), "other")["id"]

    for ids in ([f"made-up-{n}" for n in range(100)], [foreign], [other_route], [foreign, "x"]):
        assert_refused(worker.call("POST", OUTCOMES, failed(route, *ids)), 403, "forbidden")

    assert not is_known(admin, route)


def test_it_takes_no_probe_of_a_route_that_its_jobs_do_not_have(
    admin: Api, worker: Api, route: str
) -> None:
    mail = admin.make_queue("mail")
    foreign = claimed(admin, admin.make_queue("bank"), route)["id"]
    unclaimed = admin.send(mail, route=route)
    other_route = claimed(admin, admin.make_queue("mail"), "other")["id"]

    for ids in ([], [foreign], [unclaimed], [other_route], ["made-up"]):
        asked = worker.call("POST", PERMITS, {"routes": [route], "ids": ids})
        assert_refused(asked, 403, "forbidden")


def test_circuits_of_deliveries_are_the_servers_business(admin: Api, worker: Api) -> None:
    pattern = "/hook/(.*)"
    ok(admin.call("PUT", "/v1/routes", {"rules": {pattern: {"url": "http://127.0.0.1:9/$1"}}}))
    job = claimed(admin, admin.make_queue("mail"), pattern)

    reported = worker.call("POST", OUTCOMES, failed(pattern, job["id"]))
    asked = worker.call("POST", PERMITS, {"routes": [f" {pattern}"], "ids": [job["id"]]})

    assert_refused(reported, 403, "forbidden")
    assert_refused(asked, 403, "forbidden")


def test_a_key_for_all_queues_need_not_name_jobs(admin: Api, let_in: LetIn, route: str) -> None:
    worker = let_in(Role.CONSUME)

    assert worker.call("POST", PERMITS, {"routes": [route]}).status_code == 200
    assert worker.call("POST", OUTCOMES, failed(route, "1", "2")).status_code == 204
    assert admin.get(f"/v1/circuits/{circuit_hash(route)}")["state"] == "open"


def test_our_own_client_names_the_jobs_that_it_asks_for(
    admin: Api, server_with_keys: LiveServer, route: str
) -> None:
    job = claimed(admin, admin.make_queue("mail"), route)
    key = new_key(server_with_keys, Role.CONSUME, queues=("mail-*",))
    with Remote(server_with_keys.url, key=key) as remote:
        permits = remote.circuits.permits({route: job["id"]})
        assert permits is not None
        remote.circuits.report([OutcomeReport(permits[route], job["id"], RequestOutcome.FAILURE)])

        with pytest.raises(Forbidden):
            remote.circuits.permits({route: "made-up"})

    assert is_known(admin, route)
