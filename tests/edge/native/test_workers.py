"""Workers over HTTP: they register, beat and leave; operators list and drain them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from penstock.domain.access.api_key import Role
from penstock.runtime.worker_duties import WorkerReaper
from tests.clocks import ManualClock
from tests.edge.api import Api, assert_refused, ok
from tests.edge.live import LiveServer
from tests.edge.native.conftest import LetIn

NO_SUCH_ID = "01ba4e95-8a00-7cc4-a3ba-2b1d1c5f8e11"

Reap = Callable[[], object]


@pytest.fixture
def reap(server: LiveServer, clock: ManualClock) -> Reap:
    """Run the reaper's duty now, as the server does."""
    reaper = WorkerReaper(server.broker.workers, every_ms=1_000)
    return lambda: reaper.tick(clock.now())


def register(api: Api, **about: Any) -> dict[str, Any]:
    return dict(ok(api.call("POST", "/v1/workers", about or None)))


def ask(api: Api, worker: dict[str, Any], what: str) -> httpx.Response:
    return api.call("POST", f"/v1/workers/{worker['id']}/{what}")


def listed(api: Api, **query: Any) -> list[str]:
    return [worker["id"] for worker in api.get("/v1/workers", limit=1000, **query)["workers"]]


def facts(api: Api, worker: dict[str, Any], **query: Any) -> list[str]:
    found = api.get("/v1/facts", subject=worker["id"], **query)["facts"]
    return [fact["kind"] for fact in found]


def test_a_worker_registers_with_an_empty_request(api: Api) -> None:
    answer = api.call("POST", "/v1/workers")

    assert answer.status_code == 201
    worker = answer.json()
    assert (worker["state"], worker["slots"]) == ("active", 1)
    assert (worker["valid_ms"], worker["beat_ms"]) == (180_000, 15_000)
    assert worker.keys() == {
        *("id", "state", "slots", "registered_at", "beat_at", "alive_until", "valid_ms"),
        "beat_ms",
    }


def test_the_description_that_a_worker_registers_with_is_shown(api: Api) -> None:
    about = {
        "name": "mailer",
        "host": "node-1",
        "pid": 4711,
        "queues": ["mail"],
        "kinds": ["welcome"],
        "slots": 4,
        "labels": {"zone": "b"},
    }

    worker = register(api, **about)

    shown = api.get(f"/v1/workers/{worker['id']}")
    assert shown.items() >= about.items()
    assert (shown["holding"], shown["leases"]) == (0, [])


@pytest.mark.parametrize(
    "about",
    [
        {"slots": 0},
        {"nmae": "x"},
        {"queues": ["no such!"]},
        {"name": ""},
        {"pid": "x"},
        {"labels": 1},
    ],
)
def test_nonsense_is_refused(api: Api, about: dict[str, Any]) -> None:
    assert_refused(api.call("POST", "/v1/workers", about), 400, "invalid_request")


def test_an_alive_ping_answers_true_and_prolongs(api: Api, clock: ManualClock) -> None:
    worker = register(api)
    for _ in range(3):
        clock.advance(minutes=2)

        answer = ask(api, worker, "alive")

        assert (answer.status_code, answer.content) == (200, b"true")


def test_an_alive_ping_answers_false_to_who_is_unknown_expired_or_has_left(
    api: Api, clock: ManualClock, reap: Reap
) -> None:
    expired, lost, left = register(api), register(api), register(api)
    assert api.call("DELETE", f"/v1/workers/{left['id']}").status_code == 204
    clock.advance(minutes=3)
    assert ask(api, expired, "alive").content == b"false"
    reap()

    for worker in (expired, lost, left, {"id": NO_SUCH_ID}, {"id": "nonsense"}):
        answer = ask(api, worker, "alive")
        assert (answer.status_code, answer.content) == (200, b"false")
        assert_refused(ask(api, worker, "beat"), 409, "worker_gone")


def test_a_worker_that_misses_two_beats_is_silent_until_the_next(
    api: Api, clock: ManualClock
) -> None:
    worker = register(api)
    path = f"/v1/workers/{worker['id']}"
    assert "is_silent" not in api.get(path)

    clock.advance(ms=3 * worker["beat_ms"])
    assert api.get(path)["is_silent"] is True
    page = api.get("/v1/workers", limit=1_000)["workers"]
    [found] = [one for one in page if one["id"] == worker["id"]]
    assert (found["state"], found["is_silent"]) == ("active", True)

    ok(api.call("POST", f"{path}/beat"))
    assert "is_silent" not in api.get(path)


def test_the_next_beat_reports_a_drain_to_the_worker(api: Api) -> None:
    worker = register(api)
    assert ok(ask(api, worker, "beat"))["state"] == "active"

    assert ok(ask(api, worker, "drain"))["state"] == "draining"

    assert ok(ask(api, worker, "beat"))["state"] == "draining"
    assert ask(api, worker, "alive").content == b"true"
    assert facts(api, worker) == ["changed_by_caller", "worker_drained", "worker_registered"]


def test_only_who_is_there_can_be_drained(api: Api) -> None:
    worker = register(api)
    api.call("DELETE", f"/v1/workers/{worker['id']}")

    assert_refused(ask(api, worker, "drain"), 409, "worker_gone")
    assert_refused(ask(api, {"id": NO_SUCH_ID}, "drain"), 404, "worker_not_found")


def test_a_worker_that_leaves_releases_its_messages(api: Api) -> None:
    queue = api.make_queue()
    worker = register(api)
    api.send(queue)
    api.claim(queue, claimed_by=worker["id"])

    for _ in range(2):
        assert api.call("DELETE", f"/v1/workers/{worker['id']}").status_code == 204

    [message] = api.claim(queue)
    assert message["attempts"] == 1, "it was not handled, so it does not count"
    assert facts(api, worker) == ["worker_left", "worker_registered"]
    assert_refused(api.call("DELETE", f"/v1/workers/{NO_SUCH_ID}"), 404, "worker_not_found")


def test_workers_are_listed_with_what_they_hold(api: Api) -> None:
    queue = api.make_queue()
    busy, idle, left = register(api), register(api), register(api)
    api.call("DELETE", f"/v1/workers/{left['id']}")
    ids = [api.send(queue, kind="k") for _ in range(2)]
    [first, _] = api.claim(queue, limit=2, claimed_by=busy["id"])

    shown = {w["id"]: w for w in api.get("/v1/workers", limit=1000)["workers"]}

    assert (shown[busy["id"]]["holding"], shown[idle["id"]]["holding"]) == (2, 0)
    assert left["id"] not in shown
    assert left["id"] in listed(api, gone="true")
    one = api.get(f"/v1/workers/{busy['id']}")
    assert [lease["id"] for lease in one["leases"]] == ids
    lease = one["leases"][0]
    assert (lease["queue"], lease["kind"], lease["attempts"]) == (queue, "k", 1)
    assert lease["leased_until"] == first["leased_until"]


def test_the_list_comes_page_by_page(api: Api) -> None:
    made = [register(api)["id"] for _ in range(3)]

    seen: list[str] = []
    cursor = None
    while True:
        page = api.get("/v1/workers", limit=2, **({"cursor": cursor} if cursor else {}))
        seen += [worker["id"] for worker in page["workers"]]
        cursor = page["next"]
        if cursor is None:
            break

    assert seen == sorted(seen)
    assert set(made) <= set(seen)
    assert_refused(api.call("GET", "/v1/workers?gone=perhaps"), 400, "invalid_request")


def test_a_lost_workers_messages_come_back_and_name_it(
    api: Api, clock: ManualClock, reap: Reap
) -> None:
    queue = api.make_queue(lease_ms=3_600_000)
    worker = register(api, name="mailer", host="node-1", pid=4711)
    message_id = api.send(queue)
    api.claim(queue, claimed_by=worker["id"])
    clock.advance(minutes=3)

    reap()

    assert api.counts(queue) == {"ready": 1}
    assert "mailer" in api.message(message_id)["last_error"]
    assert api.get(f"/v1/workers/{worker['id']}")["state"] == "lost"
    assert facts(api, worker) == ["worker_lost", "worker_registered"]


def test_facts_are_searched_by_kind_and_time_page_by_page(api: Api, clock: ManualClock) -> None:
    worker = register(api, name="a")
    noon = worker["registered_at"]
    clock.advance(seconds=1)
    ask(api, worker, "drain")

    assert facts(api, worker, kind="worker_drained") == ["worker_drained"]
    assert facts(api, worker, **{"from": noon, "to": clock.now()}) == ["worker_registered"]
    page = api.get("/v1/facts", subject=worker["id"], limit=2)
    assert [fact["kind"] for fact in page["facts"]] == ["changed_by_caller", "worker_drained"]
    rest = api.get("/v1/facts", subject=worker["id"], limit=2, cursor=page["next"])
    [fact] = rest["facts"]
    assert (fact["kind"], fact["at"], fact["subject"]) == ("worker_registered", noon, worker["id"])
    assert fact["data"]["name"] == "a"
    assert_refused(api.call("GET", "/v1/facts?cursor=x"), 400, "invalid_request")


def test_a_key_for_some_queues_is_for_their_workers_only(let_in: LetIn) -> None:
    admin, mail = let_in(), let_in(queues=("mail*",))
    ours = register(mail, queues=["mail"])
    theirs = register(admin, queues=["mail", "reports"])
    anyones = register(admin)

    assert_refused(mail.call("POST", "/v1/workers", {"queues": ["reports"]}), 403, "forbidden")
    assert {ours["id"], anyones["id"]} <= set(listed(mail))
    assert theirs["id"] not in listed(mail)
    for what in ("alive", "beat", "drain"):
        assert_refused(ask(mail, theirs, what), 403, "forbidden")
        assert ask(mail, ours, what).status_code == 200
    assert_refused(mail.call("GET", f"/v1/workers/{theirs['id']}"), 403, "forbidden")
    assert_refused(mail.call("DELETE", f"/v1/workers/{theirs['id']}"), 403, "forbidden")
    assert_refused(mail.call("GET", "/v1/facts"), 403, "forbidden")
    assert_refused(ask(let_in(Role.CONSUME), ours, "drain"), 403, "forbidden")


def test_a_worker_that_may_claim_anywhere_is_not_for_keys_that_may_not(let_in: LetIn) -> None:
    admin, mail = let_in(), let_in(queues=("mail*",))
    queue = admin.make_queue("reports")
    anyones = register(admin)
    admin.send(queue)
    admin.claim(queue, claimed_by=anyones["id"])

    for what in ("alive", "beat", "drain"):
        assert_refused(ask(mail, anyones, what), 403, "forbidden")
    assert_refused(mail.call("DELETE", f"/v1/workers/{anyones['id']}"), 403, "forbidden")

    assert admin.claim(queue) == [], "it was not released"
    assert ask(admin, anyones, "alive").json() is True


def test_a_key_for_some_queues_registers_workers_for_these_or_for_tasks(let_in: LetIn) -> None:
    mail, tasks = let_in(queues=("mail*",)), let_in(queues=("tasks",))

    assert_refused(mail.call("POST", "/v1/workers", {}), 403, "forbidden")
    worker = register(tasks)

    assert worker["queues"] == ["tasks"]
    assert ask(tasks, worker, "dequeue").json() is None
    assert ask(tasks, worker, "alive").json() is True
    assert tasks.call("DELETE", f"/v1/workers/{worker['id']}").status_code == 204
