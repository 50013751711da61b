"""A worker keeps its tasks exactly as long as it is valid."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.domain.access.api_key import Role
from penstock.runtime.worker_duties import WorkerReaper
from tests.clocks import ManualClock
from tests.edge.api import Api, assert_refused, ok
from tests.edge.conftest import MakeServer
from tests.edge.izenda.client import IzendaClient
from tests.edge.izenda.conftest import Reap
from tests.edge.native.conftest import let_in, server_with_keys

__all__ = ["server_with_keys", "let_in"]


def test_the_queue_is_made_when_it_is_first_needed(izenda: IzendaClient) -> None:
    assert izenda.api.call("GET", "/v1/queues/tasks").status_code == 404

    izenda.enqueue()

    settings = izenda.api.queue("tasks")["settings"]
    assert (settings["max_attempts"], settings["redelivery"]) == (None, "front")
    assert settings["max_crashes"] == 3


def test_an_alive_ping_prolongs_all_tasks_that_the_worker_holds(
    izenda: IzendaClient, clock: ManualClock, reap: Reap
) -> None:
    tasks = [izenda.enqueue() for _ in range(2)]
    worker, other = izenda.register(), izenda.register()
    for _ in tasks:
        izenda.take(worker)
    for _ in range(10):
        clock.advance(minutes=2)
        assert izenda.is_alive(worker)
        assert izenda.is_alive(other)
        reap()

    assert izenda.dequeue(other) is None
    for task in tasks:
        ok(izenda.report(task, "Succeeded", worker))


def test_without_pings_a_task_comes_back_at_once_to_its_old_place(
    izenda: IzendaClient, clock: ManualClock, reap: Reap
) -> None:
    first, second = izenda.enqueue(), izenda.enqueue()
    lost = izenda.register(name="left-behind", host="node-1", pid=4711)
    izenda.take(lost)
    clock.advance(minutes=2)
    successor = izenda.register()
    clock.advance(minutes=1, ms=-1)
    reap()
    assert izenda.status(first) == "processing", "up to the last instant"
    clock.advance(ms=1)

    reap()

    waiting = izenda.task(first)
    assert (waiting["status"], waiting["attempts"]) == ("queued", 1)
    for known in ("left-behind", "node-1", "4711"):
        assert known in waiting["error"]
    assert [izenda.take(successor) for _ in range(2)] == [first, second]


def test_a_task_outlasts_its_workers_time_a_little_so_that_the_loss_is_noticed_first(
    izenda: IzendaClient, clock: ManualClock
) -> None:
    izenda.enqueue()
    worker = izenda.register()
    clock.advance(minutes=1)
    izenda.take(worker)

    def shown() -> tuple[str, str]:
        found = izenda.api.get(f"/v1/workers/{worker}")
        return found["alive_until"], found["leases"][0]["leased_until"]

    alive_until, leased_until = shown()
    assert alive_until < leased_until
    clock.advance(minutes=1)
    izenda.is_alive(worker)
    later = shown()
    assert later[0] < later[1]
    assert later > (alive_until, leased_until)


def test_to_dequeue_does_not_prolong_a_workers_time(
    izenda: IzendaClient, clock: ManualClock
) -> None:
    worker = izenda.register()
    clock.advance(minutes=2)
    izenda.dequeue(worker)
    clock.advance(minutes=1)

    assert not izenda.is_alive(worker)


def test_a_task_that_loses_three_workers_is_quarantined(
    izenda: IzendaClient, clock: ManualClock, reap: Reap
) -> None:
    task = izenda.enqueue()
    for _ in range(3):
        izenda.take(izenda.register())
        clock.advance(minutes=3)
        reap()

    assert izenda.status(task) == "quarantined"
    assert izenda.dequeue(izenda.register()) is None


def test_a_worker_that_leaves_gives_its_tasks_back(izenda: IzendaClient) -> None:
    task, leaving, other = izenda.enqueue(), izenda.register(), izenda.register()
    izenda.take(leaving)

    izenda.api.call("DELETE", f"/v1/workers/{leaving}")

    assert izenda.take(other) == task


def test_a_beat_of_our_own_workers_prolongs_tasks_too(
    izenda: IzendaClient, clock: ManualClock, reap: Reap
) -> None:
    task, worker = izenda.enqueue(), izenda.register(queues=["mail"])
    izenda.take(worker)
    for _ in range(4):
        clock.advance(minutes=2)
        ok(izenda.api.call("POST", f"/v1/workers/{worker}/beat"))
        reap()

    ok(izenda.report(task, "Succeeded", worker))


@pytest.fixture
def limited(make_server: MakeServer) -> tuple[IzendaClient, ManualClock, Reap]:
    clock = ManualClock()
    server = make_server(
        clock=clock, tasks={"timeout_ms": 600_000, "queue": "jobs"}, workers={"valid_ms": 60_000}
    )
    reaper = WorkerReaper(server.broker.workers, every_ms=1_000)
    return IzendaClient(Api(server.url)), clock, lambda: reaper.tick(clock.now())


def test_a_task_that_takes_too_long_is_timed_out_however_alive_its_worker_is(
    limited: tuple[IzendaClient, ManualClock, Reap],
) -> None:
    izenda, clock, reap = limited
    task, worker = izenda.enqueue(), izenda.register()
    izenda.take(worker)
    for _ in range(20):
        clock.advance(seconds=30)
        assert izenda.is_alive(worker)
        reap()

    assert izenda.dequeue(worker) is None, "it is not tried again"

    assert izenda.status(task) == "timedOut"
    assert_refused(izenda.report(task, "Succeeded", worker), 409, "lease_lost")
    assert izenda.api.message(task)["queue"] == "jobs"


def held_until_shortly_before(izenda: IzendaClient, clock: ManualClock) -> tuple[str, str]:
    """A task and the worker that holds it and pings, half a minute before the deadline."""
    task, worker = izenda.enqueue(), izenda.register()
    izenda.take(worker)
    for _ in range(19):
        clock.advance(seconds=30)
        izenda.is_alive(worker)
    return task, worker


def test_a_ping_past_the_deadline_times_a_task_out_and_prolongs_the_others(
    limited: tuple[IzendaClient, ManualClock, Reap],
) -> None:
    izenda, clock, _ = limited
    late, worker = izenda.enqueue(), izenda.register()
    izenda.take(worker)
    for _ in range(19):
        clock.advance(seconds=30)
        assert izenda.is_alive(worker)
    other = izenda.enqueue()
    izenda.take(worker)
    clock.advance(seconds=30)
    assert izenda.status(late) == "processing"

    assert izenda.is_alive(worker), "it is the task that is late"

    assert [izenda.status(task) for task in (late, other)] == ["timedOut", "processing"]
    clock.advance(seconds=40)
    ok(izenda.report(other, "Succeeded", worker))


def test_progress_reported_after_the_deadline_times_the_task_out(
    limited: tuple[IzendaClient, ManualClock, Reap],
) -> None:
    izenda, clock, _ = limited
    task, worker = izenda.enqueue(), izenda.register()
    clock.advance(seconds=30)
    izenda.is_alive(worker)
    izenda.take(worker)
    for _ in range(19):
        clock.advance(seconds=30)
        izenda.is_alive(worker)
    clock.advance(seconds=30)

    progress = {"progress": {"percent": 99}, "workerId": worker}
    answer = izenda.api.call("POST", f"/v1/tasks/{task}/progress", progress)

    assert_refused(answer, 409, "lease_lost")
    assert izenda.status(task) == "timedOut"


def test_a_task_that_is_completed_late_is_done_if_the_timeout_was_not_noticed(
    limited: tuple[IzendaClient, ManualClock, Reap],
) -> None:
    izenda, clock, _ = limited
    task, worker = held_until_shortly_before(izenda, clock)
    clock.advance(seconds=31)

    ok(izenda.report(task, "Succeeded", worker))

    assert izenda.status(task) == "succeeded"


def test_a_task_of_a_silent_worker_is_run_again_although_its_time_is_over(
    limited: tuple[IzendaClient, ManualClock, Reap],
) -> None:
    izenda, clock, reap = limited
    task, _ = held_until_shortly_before(izenda, clock)
    clock.advance(seconds=60)

    reap()

    assert izenda.status(task) == "queued"
    assert izenda.take(izenda.register()) == task


def test_the_validity_is_a_setting(limited: tuple[IzendaClient, ManualClock, Reap]) -> None:
    izenda, clock, _ = limited
    worker = izenda.register()
    clock.advance(seconds=59)
    assert izenda.is_alive(worker)
    clock.advance(seconds=60)

    assert not izenda.is_alive(worker)


def test_tasks_survive_a_restart_and_so_do_workers(make_server: MakeServer, tmp_path: Path) -> None:
    clock = ManualClock()
    first = make_server(data=tmp_path / "kept", clock=clock)
    izenda = IzendaClient(Api(first.url))
    task, worker = izenda.enqueue(), izenda.register()
    izenda.take(worker)
    first.stop()

    izenda = IzendaClient(Api(make_server(data=tmp_path / "kept", clock=clock).url))

    assert izenda.is_alive(worker)
    ok(izenda.report(task, "Succeeded", worker))


def test_each_call_needs_its_role_on_the_queue_of_tasks(let_in) -> None:
    everything = IzendaClient(let_in())
    task, worker = everything.enqueue(), everything.register()
    elsewhere = IzendaClient(let_in(queues=("mail*",)))
    body = {"jobKind": "k"}

    for client in (elsewhere.api, let_in(Role.CONSUME), let_in(Role.READ)):
        assert_refused(client.call("POST", "/v1/tasks", body), 403, "forbidden")
    for client in (elsewhere.api, let_in(Role.PRODUCE), let_in(Role.OPERATE)):
        assert_refused(IzendaClient(client).ask(worker), 403, "forbidden")
        assert_refused(IzendaClient(client).report(task, "Failed", worker), 403, "forbidden")
    assert_refused(elsewhere.api.call("GET", f"/v1/tasks/{task}"), 403, "forbidden")
    assert IzendaClient(let_in(Role.PRODUCE, queues=("tasks",))).enqueue()
    assert IzendaClient(let_in(Role.CONSUME, queues=("tasks",))).take(worker) == task
    assert IzendaClient(let_in(Role.READ, queues=("tasks",))).status(task) == "processing"
