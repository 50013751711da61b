"""The workflow of Izenda's document, call by call, and how its tasks end."""

from __future__ import annotations

import pytest

from tests.clocks import ManualClock
from tests.edge.api import Api, assert_refused, ok
from tests.edge.conftest import InBackground
from tests.edge.izenda.client import IzendaClient
from tests.edge.izenda.conftest import Reap
from tests.edge.native.waiting import LONG_MS, waiting_claims
from tests.support.waiting import eventually

NO_SUCH_ID = "01ba4e95-8a00-7cc4-a3ba-2b1d1c5f8e11"


def test_a_task_is_enqueued_given_to_a_worker_and_done(izenda: IzendaClient) -> None:
    task = izenda.enqueue("SendReport", "0b6f3a52", "weekly € \U0001f426")
    worker = izenda.register()

    given = izenda.dequeue(worker)
    assert given == {
        "id": task,
        "jobKind": "SendReport",
        "jobEntityId": "0b6f3a52",
        "jobData": "weekly € \U0001f426",
    }
    assert izenda.status(task) == "processing"
    answer = izenda.report(task, "Succeeded", worker)

    assert ok(answer) == {"id": task, "status": "succeeded"}
    assert izenda.status(task) == "succeeded"
    assert izenda.dequeue(worker) is None


def test_an_empty_queue_answers_null(izenda: IzendaClient) -> None:
    answer = izenda.ask(izenda.register())

    assert (answer.status_code, answer.content) == (200, b"null")


def test_tasks_are_given_out_in_the_order_of_their_enqueuing(izenda: IzendaClient) -> None:
    tasks = [izenda.enqueue() for _ in range(3)]
    first, second = izenda.register(), izenda.register()

    given = [izenda.take(worker) for worker in (first, second, first)]

    assert given == tasks, "and a worker may hold several"


def test_a_worker_asks_for_the_kinds_that_it_serves(izenda: IzendaClient) -> None:
    tasks = {kind: izenda.enqueue(kind) for kind in ("a", "b", "c")}
    all_kinds, only_c = izenda.register(), izenda.register(kinds=["c"])

    assert izenda.dequeue(all_kinds, kinds=["no such"]) is None
    assert izenda.take(all_kinds, kinds=["b", "c"]) == tasks["b"]
    assert izenda.take(only_c) == tasks["c"], "those that it has registered for"
    assert izenda.take(only_c, kinds=["a"]) == tasks["a"], "unless it says otherwise"


def test_a_worker_that_is_not_valid_gets_an_error_instead_of_no_task(
    izenda: IzendaClient, clock: ManualClock
) -> None:
    izenda.enqueue()
    expired, left = izenda.register(), izenda.register()
    izenda.api.call("DELETE", f"/v1/workers/{left}")
    clock.advance(minutes=3)

    for worker in (expired, left, NO_SUCH_ID, "nonsense"):
        assert_refused(izenda.ask(worker), 409, "worker_gone")


@pytest.mark.parametrize(
    ("outcome", "status", "reason"),
    [("Failed", "failed", "failed"), ("TimedOut", "timedOut", "timed_out")],
)
def test_a_failure_or_a_timeout_is_final(
    izenda: IzendaClient, clock: ManualClock, outcome: str, status: str, reason: str
) -> None:
    task, worker = izenda.enqueue(), izenda.register()
    izenda.take(worker)

    answer = izenda.report(task, outcome, worker)

    assert ok(answer) == {"id": task, "status": status}
    clock.advance(minutes=2)
    assert izenda.dequeue(worker) is None, "it is not tried again"
    assert izenda.status(task) == status
    message = izenda.api.message(task)
    assert (message["state"], message["reason"]) == ("dead", reason)


def test_a_failed_task_is_still_found_in_a_dead_letter_queue(izenda: IzendaClient) -> None:
    worker = izenda.register()
    izenda.dequeue(worker)
    letters = izenda.api.make_queue("letters")
    ok(izenda.api.call("PATCH", "/v1/queues/tasks", {"dead_letter_queue": letters}))
    task = izenda.enqueue()
    izenda.take(worker)

    izenda.report(task, "Failed", worker)

    assert izenda.status(task) == "failed"
    assert_refused(izenda.report(task, "Succeeded", worker), 409, "lease_lost")


def test_only_the_lease_holder_reports_the_outcome(
    izenda: IzendaClient, clock: ManualClock
) -> None:
    task, holder, other = izenda.enqueue(), izenda.register(), izenda.register()
    assert_refused(izenda.report(task, "Succeeded", holder), 409, "lease_lost")
    izenda.take(holder)

    assert_refused(izenda.report(task, "Failed", other), 409, "lease_lost")
    assert_refused(izenda.report(task, "Failed", NO_SUCH_ID), 409, "worker_gone")
    assert izenda.status(task) == "processing"
    ok(izenda.report(task, "Succeeded", holder))
    assert_refused(izenda.report(task, "Failed", holder), 409, "lease_lost")
    assert izenda.status(task) == "succeeded"


def test_an_outcome_that_comes_after_the_workers_time_changes_nothing(
    izenda: IzendaClient, clock: ManualClock, reap: Reap
) -> None:
    task, late = izenda.enqueue(), izenda.register()
    izenda.take(late)
    clock.advance(minutes=3)
    assert_refused(izenda.report(task, "Succeeded", late), 409, "worker_gone")
    reap()
    successor = izenda.register()
    izenda.take(successor)

    assert_refused(izenda.report(task, "Failed", late), 409, "worker_gone")

    assert izenda.task(task)["workerId"] == successor
    ok(izenda.report(task, "Succeeded", successor))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"outcome": "Perhaps", "workerId": "x"}, "invalid_request"),
        ({"outcome": "Succeeded"}, "invalid_request"),
        ({}, "invalid_request"),
    ],
)
def test_nonsense_is_refused(izenda: IzendaClient, body: dict[str, str], code: str) -> None:
    task = izenda.enqueue()

    assert_refused(izenda.api.call("POST", f"/v1/tasks/{task}/outcome", body), 400, code)
    assert_refused(izenda.api.call("POST", "/v1/tasks", {"jobData": "x"}), 400, code)
    assert_refused(izenda.api.call("POST", "/v1/tasks", {"jobKind": ""}), 400, code)
    worker = izenda.register()
    assert_refused(izenda.ask(worker, wait_ms=10**9), 400, code)
    assert_refused(izenda.ask(worker, kinds=[""]), 400, code)


def test_only_tasks_are_found_among_the_tasks(izenda: IzendaClient) -> None:
    api, worker = izenda.api, izenda.register()
    izenda.dequeue(worker)
    other = api.send(api.make_queue())

    for task in (other, NO_SUCH_ID):
        assert_refused(api.call("GET", f"/v1/tasks/{task}"), 404, "message_not_found")
        assert_refused(izenda.report(task, "Succeeded", worker), 404, "message_not_found")


def test_a_worker_that_drains_is_given_no_more_tasks(izenda: IzendaClient) -> None:
    task, worker = izenda.enqueue(), izenda.register()
    izenda.take(worker)
    izenda.enqueue()

    ok(izenda.api.call("POST", f"/v1/workers/{worker}/drain"))

    assert izenda.dequeue(worker) is None
    ok(izenda.report(task, "Succeeded", worker))


def test_a_task_shows_its_progress(izenda: IzendaClient, clock: ManualClock) -> None:
    task, worker = izenda.enqueue("Report", "e1", "all"), izenda.register()
    queued = izenda.task(task)
    assert queued == {
        "id": task,
        "status": "queued",
        "attempts": 0,
        "enqueuedAt": queued["enqueuedAt"],
        "jobKind": "Report",
        "jobEntityId": "e1",
        "jobData": "all",
    }
    izenda.take(worker)
    progress = {"progress": {"percent": 40}, "workerId": worker}

    ok(izenda.api.call("POST", f"/v1/tasks/{task}/progress", progress))

    held = izenda.task(task)
    assert (held["status"], held["progress"]) == ("processing", {"percent": 40})
    assert (held["workerId"], held["attempts"]) == (worker, 1)
    progress["workerId"] = izenda.register()
    answer = izenda.api.call("POST", f"/v1/tasks/{task}/progress", progress)
    assert_refused(answer, 409, "lease_lost")
    clock.advance(seconds=1)
    izenda.report(task, "Succeeded", worker)
    done = izenda.task(task)
    assert (done["status"], done["workerId"]) == ("succeeded", worker)
    assert done["finishedAt"] > done["startedAt"] == held["startedAt"]


def test_the_status_of_a_cancelled_task_is_cancelled(izenda: IzendaClient) -> None:
    task = izenda.enqueue()

    ok(izenda.api.call("POST", f"/v1/messages/{task}/cancel"))

    assert izenda.status(task) == "cancelled"
    assert izenda.dequeue(izenda.register()) is None


def test_a_message_that_is_sent_natively_to_the_queue_is_a_task_too(izenda: IzendaClient) -> None:
    worker = izenda.register()
    izenda.dequeue(worker)  # creates the queue
    izenda.api.send("tasks", {"a": [1]}, kind="k")
    izenda.enqueue(entity=None, data=None)

    assert izenda.dequeue(worker)["jobData"] == '{"a":[1]}'
    given = izenda.dequeue(worker)
    assert (given["jobEntityId"], given["jobData"]) == (None, None)


def test_a_worker_waits_for_the_next_task(
    izenda: IzendaClient, api: Api, in_background: InBackground
) -> None:
    worker = izenda.register()
    before = waiting_claims(api)

    waiting = in_background(izenda.dequeue, worker, wait_ms=LONG_MS)
    eventually(lambda: waiting_claims(api) == before + 1)
    task = izenda.enqueue()

    assert waiting.result(60)["id"] == task


def test_a_worker_that_leaves_while_it_waits_gets_no_task(
    izenda: IzendaClient, api: Api, in_background: InBackground
) -> None:
    worker = izenda.register()
    before = waiting_claims(api)
    waiting = in_background(izenda.ask, worker, wait_ms=LONG_MS)
    eventually(lambda: waiting_claims(api) == before + 1)

    api.call("DELETE", f"/v1/workers/{worker}")
    task = izenda.enqueue()

    assert_refused(waiting.result(60), 409, "worker_gone")
    assert izenda.task(task)["attempts"] == 0
    assert izenda.take(izenda.register()) == task


def test_a_queued_task_can_be_cancelled(izenda: IzendaClient) -> None:
    task, worker = izenda.enqueue(), izenda.register()

    answer = ok(izenda.api.call("DELETE", f"/v1/tasks/{task}"))

    assert answer == {"id": task, "status": "cancelled"}
    assert izenda.status(task) == "cancelled"
    assert izenda.dequeue(worker) is None


def test_a_task_in_process_can_be_cancelled_and_its_worker_loses_it(izenda: IzendaClient) -> None:
    task, worker = izenda.enqueue(), izenda.register()
    izenda.take(worker)

    ok(izenda.api.call("DELETE", f"/v1/tasks/{task}"))

    shown = izenda.task(task)
    assert (shown["status"], shown["workerId"]) == ("cancelled", worker)
    assert_refused(izenda.report(task, "Succeeded", worker), 409, "lease_lost")
    assert izenda.status(task) == "cancelled"


def test_a_task_that_has_ended_or_never_was_cannot_be_cancelled(izenda: IzendaClient) -> None:
    task, worker = izenda.enqueue(), izenda.register()
    izenda.take(worker)
    ok(izenda.report(task, "Succeeded", worker))

    ended = izenda.api.call("DELETE", f"/v1/tasks/{task}")
    unknown = izenda.api.call("DELETE", "/v1/tasks/nothing")

    assert_refused(ended, 409, "wrong_state")
    assert_refused(unknown, 404, "message_not_found")
    assert izenda.status(task) == "succeeded"
