"""A worker keeps its tasks exactly as long as it is valid."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.domain.access.api_key import Role
from penstock.runtime.worker_duties import WorkerReaper
from tests.clocks import ManualClock
from tests.edge.api import Api, assert_refused, ok
from tests.edge.conftest import MakeServer
from tests.edge.izenda.conftest import Reap
from tests.edge.izenda.outsider import Outsider
from tests.edge.native.conftest import guarded, let_in

__all__ = ["guarded", "let_in"]


def test_the_queue_is_made_when_it_is_first_needed(outsider: Outsider) -> None:
    assert outsider.api.call("GET", "/v1/queues/tasks").status_code == 404

    outsider.enqueue()

    settings = outsider.api.queue("tasks")["settings"]
    assert (settings["max_attempts"], settings["redelivery"]) == (None, "front")
    assert settings["max_crashes"] == 3


def test_an_alive_ping_prolongs_all_tasks_that_the_worker_holds(
    outsider: Outsider, clock: ManualClock, reap: Reap
) -> None:
    tasks = [outsider.enqueue() for _ in range(2)]
    worker, other = outsider.register(), outsider.register()
    for _ in tasks:
        outsider.take(worker)
    for _ in range(10):
        clock.advance(minutes=2)
        assert outsider.is_alive(worker)
        assert outsider.is_alive(other)
        reap()

    assert outsider.dequeue(other) is None
    for task in tasks:
        ok(outsider.report(task, "Succeeded", worker))


def test_without_pings_a_task_comes_back_at_once_to_its_old_place(
    outsider: Outsider, clock: ManualClock, reap: Reap
) -> None:
    first, second = outsider.enqueue(), outsider.enqueue()
    lost = outsider.register(name="left-behind", host="node-1", pid=4711)
    outsider.take(lost)
    clock.advance(minutes=2)
    successor = outsider.register()
    clock.advance(minutes=1, ms=-1)
    reap()
    assert outsider.status(first) == "processing", "up to the last instant"
    clock.advance(ms=1)

    reap()

    waiting = outsider.task(first)
    assert (waiting["status"], waiting["attempts"]) == ("queued", 1)
    for known in ("left-behind", "node-1", "4711"):
        assert known in waiting["error"]
    assert [outsider.take(successor) for _ in range(2)] == [first, second]


def test_a_task_outlasts_its_workers_time_a_little_so_that_the_loss_is_noticed_first(
    outsider: Outsider, clock: ManualClock
) -> None:
    outsider.enqueue()
    worker = outsider.register()
    clock.advance(minutes=1)
    outsider.take(worker)

    def shown() -> tuple[str, str]:
        found = outsider.api.get(f"/v1/workers/{worker}")
        return found["alive_until"], found["leases"][0]["leased_until"]

    alive_until, leased_until = shown()
    assert alive_until < leased_until
    clock.advance(minutes=1)
    outsider.is_alive(worker)
    later = shown()
    assert later[0] < later[1]
    assert later > (alive_until, leased_until)


def test_to_dequeue_does_not_prolong_a_workers_time(outsider: Outsider, clock: ManualClock) -> None:
    worker = outsider.register()
    clock.advance(minutes=2)
    outsider.dequeue(worker)
    clock.advance(minutes=1)

    assert not outsider.is_alive(worker)


def test_a_task_that_loses_three_workers_is_quarantined(
    outsider: Outsider, clock: ManualClock, reap: Reap
) -> None:
    task = outsider.enqueue()
    for _ in range(3):
        outsider.take(outsider.register())
        clock.advance(minutes=3)
        reap()

    assert outsider.status(task) == "quarantined"
    assert outsider.dequeue(outsider.register()) is None


def test_a_worker_that_leaves_gives_its_tasks_back(outsider: Outsider) -> None:
    task, leaving, other = outsider.enqueue(), outsider.register(), outsider.register()
    outsider.take(leaving)

    outsider.api.call("DELETE", f"/v1/workers/{leaving}")

    assert outsider.take(other) == task


def test_a_beat_of_our_own_workers_prolongs_tasks_too(
    outsider: Outsider, clock: ManualClock, reap: Reap
) -> None:
    task, worker = outsider.enqueue(), outsider.register(queues=["mail"])
    outsider.take(worker)
    for _ in range(4):
        clock.advance(minutes=2)
        ok(outsider.api.call("POST", f"/v1/workers/{worker}/beat"))
        reap()

    ok(outsider.report(task, "Succeeded", worker))


@pytest.fixture
def limited(make_server: MakeServer) -> tuple[Outsider, ManualClock, Reap]:
    clock = ManualClock()
    server = make_server(
        clock=clock, tasks={"timeout_ms": 600_000, "queue": "jobs"}, workers={"valid_ms": 60_000}
    )
    reaper = WorkerReaper(server.broker.workers, every_ms=1_000)
    return Outsider(Api(server.url)), clock, lambda: reaper.tick(clock.now())


def test_a_task_that_takes_too_long_is_timed_out_however_alive_its_worker_is(
    limited: tuple[Outsider, ManualClock, Reap],
) -> None:
    outsider, clock, reap = limited
    task, worker = outsider.enqueue(), outsider.register()
    outsider.take(worker)
    for _ in range(20):
        clock.advance(seconds=30)
        assert outsider.is_alive(worker)
        reap()

    assert outsider.dequeue(worker) is None, "it is not tried again"

    assert outsider.status(task) == "timedOut"
    assert_refused(outsider.report(task, "Succeeded", worker), 409, "lease_lost")
    assert outsider.api.message(task)["queue"] == "jobs"


def held_until_shortly_before(outsider: Outsider, clock: ManualClock) -> tuple[str, str]:
    """A task and the worker that holds it and pings, half a minute before the deadline."""
    task, worker = outsider.enqueue(), outsider.register()
    outsider.take(worker)
    for _ in range(19):
        clock.advance(seconds=30)
        outsider.is_alive(worker)
    return task, worker


def test_a_ping_past_the_deadline_times_a_task_out_and_prolongs_the_others(
    limited: tuple[Outsider, ManualClock, Reap],
) -> None:
    outsider, clock, _ = limited
    late, worker = outsider.enqueue(), outsider.register()
    outsider.take(worker)
    for _ in range(19):
        clock.advance(seconds=30)
        assert outsider.is_alive(worker)
    other = outsider.enqueue()
    outsider.take(worker)
    clock.advance(seconds=30)
    assert outsider.status(late) == "processing"

    assert outsider.is_alive(worker), "it is the task that is late"

    assert [outsider.status(task) for task in (late, other)] == ["timedOut", "processing"]
    clock.advance(seconds=40)
    ok(outsider.report(other, "Succeeded", worker))


def test_progress_reported_after_the_deadline_times_the_task_out(
    limited: tuple[Outsider, ManualClock, Reap],
) -> None:
    outsider, clock, _ = limited
    task, worker = outsider.enqueue(), outsider.register()
    clock.advance(seconds=30)
    outsider.is_alive(worker)
    outsider.take(worker)
    for _ in range(19):
        clock.advance(seconds=30)
        outsider.is_alive(worker)
    clock.advance(seconds=30)

    progress = {"progress": {"percent": 99}, "workerId": worker}
    answer = outsider.api.call("POST", f"/v1/tasks/{task}/progress", progress)

    assert_refused(answer, 409, "lease_lost")
    assert outsider.status(task) == "timedOut"


def test_a_task_that_is_completed_late_is_done_if_the_timeout_was_not_noticed(
    limited: tuple[Outsider, ManualClock, Reap],
) -> None:
    outsider, clock, _ = limited
    task, worker = held_until_shortly_before(outsider, clock)
    clock.advance(seconds=31)

    ok(outsider.report(task, "Succeeded", worker))

    assert outsider.status(task) == "succeeded"


def test_a_task_of_a_silent_worker_is_run_again_although_its_time_is_over(
    limited: tuple[Outsider, ManualClock, Reap],
) -> None:
    outsider, clock, reap = limited
    task, _ = held_until_shortly_before(outsider, clock)
    clock.advance(seconds=60)

    reap()

    assert outsider.status(task) == "queued"
    assert outsider.take(outsider.register()) == task


def test_the_validity_is_a_setting(limited: tuple[Outsider, ManualClock, Reap]) -> None:
    outsider, clock, _ = limited
    worker = outsider.register()
    clock.advance(seconds=59)
    assert outsider.is_alive(worker)
    clock.advance(seconds=60)

    assert not outsider.is_alive(worker)


def test_tasks_survive_a_restart_and_so_do_workers(make_server: MakeServer, tmp_path: Path) -> None:
    clock = ManualClock()
    first = make_server(data=tmp_path / "kept", clock=clock)
    outsider = Outsider(Api(first.url))
    task, worker = outsider.enqueue(), outsider.register()
    outsider.take(worker)
    first.stop()

    outsider = Outsider(Api(make_server(data=tmp_path / "kept", clock=clock).url))

    assert outsider.is_alive(worker)
    ok(outsider.report(task, "Succeeded", worker))


def test_each_call_needs_its_role_on_the_queue_of_tasks(let_in) -> None:
    everything = Outsider(let_in())
    task, worker = everything.enqueue(), everything.register()
    elsewhere = Outsider(let_in(queues=("mail*",)))
    body = {"jobKind": "k"}

    for client in (elsewhere.api, let_in(Role.CONSUME), let_in(Role.READ)):
        assert_refused(client.call("POST", "/v1/tasks", body), 403, "forbidden")
    for client in (elsewhere.api, let_in(Role.PRODUCE), let_in(Role.OPERATE)):
        assert_refused(Outsider(client).ask(worker), 403, "forbidden")
        assert_refused(Outsider(client).report(task, "Failed", worker), 403, "forbidden")
    assert_refused(elsewhere.api.call("GET", f"/v1/tasks/{task}"), 403, "forbidden")
    assert Outsider(let_in(Role.PRODUCE, queues=("tasks",))).enqueue()
    assert Outsider(let_in(Role.CONSUME, queues=("tasks",))).take(worker) == task
    assert Outsider(let_in(Role.READ, queues=("tasks",))).status(task) == "processing"
