"""The workflow of Izenda's document, call by call, and how its tasks end."""

from __future__ import annotations

import pytest

from tests.clocks import ManualClock
from tests.edge.api import Api, assert_refused, ok
from tests.edge.conftest import InBackground
from tests.edge.izenda.conftest import Reap
from tests.edge.izenda.outsider import Outsider
from tests.edge.native.waiting import LONG_MS, waiting_claims
from tests.support.waiting import eventually

NO_SUCH_ID = "01ba4e95-8a00-7cc4-a3ba-2b1d1c5f8e11"


def test_a_task_is_enqueued_given_to_a_worker_and_done(outsider: Outsider) -> None:
    task = outsider.enqueue("SendReport", "0b6f3a52", "weekly € \U0001f426")
    worker = outsider.register()

    given = outsider.dequeue(worker)
    assert given == {
        "id": task,
        "jobKind": "SendReport",
        "jobEntityId": "0b6f3a52",
        "jobData": "weekly € \U0001f426",
    }
    assert outsider.status(task) == "processing"
    answer = outsider.report(task, "Succeeded", worker)

    assert ok(answer) == {"id": task, "status": "succeeded"}
    assert outsider.status(task) == "succeeded"
    assert outsider.dequeue(worker) is None


def test_an_empty_queue_answers_null(outsider: Outsider) -> None:
    answer = outsider.ask(outsider.register())

    assert (answer.status_code, answer.content) == (200, b"null")


def test_tasks_are_given_out_in_the_order_of_their_enqueuing(outsider: Outsider) -> None:
    tasks = [outsider.enqueue() for _ in range(3)]
    first, second = outsider.register(), outsider.register()

    given = [outsider.take(worker) for worker in (first, second, first)]

    assert given == tasks, "and a worker may hold several"


def test_a_worker_asks_for_the_kinds_that_it_serves(outsider: Outsider) -> None:
    tasks = {kind: outsider.enqueue(kind) for kind in ("a", "b", "c")}
    all_kinds, only_c = outsider.register(), outsider.register(kinds=["c"])

    assert outsider.dequeue(all_kinds, kinds=["no such"]) is None
    assert outsider.take(all_kinds, kinds=["b", "c"]) == tasks["b"]
    assert outsider.take(only_c) == tasks["c"], "those that it has registered for"
    assert outsider.take(only_c, kinds=["a"]) == tasks["a"], "unless it says otherwise"


def test_a_worker_that_is_not_valid_hears_so_instead_of_nothing(
    outsider: Outsider, clock: ManualClock
) -> None:
    outsider.enqueue()
    expired, left = outsider.register(), outsider.register()
    outsider.api.call("DELETE", f"/v1/workers/{left}")
    clock.advance(minutes=3)

    for worker in (expired, left, NO_SUCH_ID, "nonsense"):
        assert_refused(outsider.ask(worker), 409, "worker_gone")


@pytest.mark.parametrize(
    ("outcome", "status", "reason"),
    [("Failed", "failed", "failed"), ("TimedOut", "timedOut", "timed_out")],
)
def test_a_failure_or_a_timeout_is_final(
    outsider: Outsider, clock: ManualClock, outcome: str, status: str, reason: str
) -> None:
    task, worker = outsider.enqueue(), outsider.register()
    outsider.take(worker)

    answer = outsider.report(task, outcome, worker)

    assert ok(answer) == {"id": task, "status": status}
    clock.advance(minutes=2)
    assert outsider.dequeue(worker) is None, "it is not tried again"
    assert outsider.status(task) == status
    message = outsider.api.message(task)
    assert (message["state"], message["reason"]) == ("dead", reason)


def test_a_failed_task_is_still_found_in_a_dead_letter_queue(outsider: Outsider) -> None:
    worker = outsider.register()
    outsider.dequeue(worker)
    letters = outsider.api.make_queue("letters")
    ok(outsider.api.call("PATCH", "/v1/queues/tasks", {"dead_letter_queue": letters}))
    task = outsider.enqueue()
    outsider.take(worker)

    outsider.report(task, "Failed", worker)

    assert outsider.status(task) == "failed"
    assert_refused(outsider.report(task, "Succeeded", worker), 409, "lease_lost")


def test_the_outcome_is_the_holders_to_tell(outsider: Outsider, clock: ManualClock) -> None:
    task, holder, other = outsider.enqueue(), outsider.register(), outsider.register()
    assert_refused(outsider.report(task, "Succeeded", holder), 409, "lease_lost")
    outsider.take(holder)

    assert_refused(outsider.report(task, "Failed", other), 409, "lease_lost")
    assert_refused(outsider.report(task, "Failed", NO_SUCH_ID), 409, "worker_gone")
    assert outsider.status(task) == "processing"
    ok(outsider.report(task, "Succeeded", holder))
    assert_refused(outsider.report(task, "Failed", holder), 409, "lease_lost")
    assert outsider.status(task) == "succeeded"


def test_an_outcome_that_comes_after_the_workers_time_changes_nothing(
    outsider: Outsider, clock: ManualClock, reap: Reap
) -> None:
    task, late = outsider.enqueue(), outsider.register()
    outsider.take(late)
    clock.advance(minutes=3)
    assert_refused(outsider.report(task, "Succeeded", late), 409, "worker_gone")
    reap()
    successor = outsider.register()
    outsider.take(successor)

    assert_refused(outsider.report(task, "Failed", late), 409, "worker_gone")

    assert outsider.task(task)["workerId"] == successor
    ok(outsider.report(task, "Succeeded", successor))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"outcome": "Perhaps", "workerId": "x"}, "invalid_request"),
        ({"outcome": "Succeeded"}, "invalid_request"),
        ({}, "invalid_request"),
    ],
)
def test_nonsense_is_refused(outsider: Outsider, body: dict[str, str], code: str) -> None:
    task = outsider.enqueue()

    assert_refused(outsider.api.call("POST", f"/v1/tasks/{task}/outcome", body), 400, code)
    assert_refused(outsider.api.call("POST", "/v1/tasks", {"jobData": "x"}), 400, code)
    assert_refused(outsider.api.call("POST", "/v1/tasks", {"jobKind": ""}), 400, code)
    worker = outsider.register()
    assert_refused(outsider.ask(worker, wait_ms=10**9), 400, code)
    assert_refused(outsider.ask(worker, kinds=[""]), 400, code)


def test_only_tasks_are_found_among_the_tasks(outsider: Outsider) -> None:
    api, worker = outsider.api, outsider.register()
    outsider.dequeue(worker)
    other = api.send(api.make_queue())

    for task in (other, NO_SUCH_ID):
        assert_refused(api.call("GET", f"/v1/tasks/{task}"), 404, "message_not_found")
        assert_refused(outsider.report(task, "Succeeded", worker), 404, "message_not_found")


def test_a_worker_that_drains_is_given_no_more_tasks(outsider: Outsider) -> None:
    task, worker = outsider.enqueue(), outsider.register()
    outsider.take(worker)
    outsider.enqueue()

    ok(outsider.api.call("POST", f"/v1/workers/{worker}/drain"))

    assert outsider.dequeue(worker) is None
    ok(outsider.report(task, "Succeeded", worker))


def test_a_task_tells_how_far_it_is(outsider: Outsider, clock: ManualClock) -> None:
    task, worker = outsider.enqueue("Report", "e1", "all"), outsider.register()
    queued = outsider.task(task)
    assert queued == {
        "id": task,
        "status": "queued",
        "attempts": 0,
        "enqueuedAt": queued["enqueuedAt"],
        "jobKind": "Report",
        "jobEntityId": "e1",
        "jobData": "all",
    }
    outsider.take(worker)
    progress = {"progress": {"percent": 40}, "workerId": worker}

    ok(outsider.api.call("POST", f"/v1/tasks/{task}/progress", progress))

    held = outsider.task(task)
    assert (held["status"], held["progress"]) == ("processing", {"percent": 40})
    assert (held["workerId"], held["attempts"]) == (worker, 1)
    progress["workerId"] = outsider.register()
    answer = outsider.api.call("POST", f"/v1/tasks/{task}/progress", progress)
    assert_refused(answer, 409, "lease_lost")
    clock.advance(seconds=1)
    outsider.report(task, "Succeeded", worker)
    done = outsider.task(task)
    assert (done["status"], done["workerId"]) == ("succeeded", worker)
    assert done["finishedAt"] > done["startedAt"] == held["startedAt"]


def test_a_cancelled_task_says_so(outsider: Outsider) -> None:
    task = outsider.enqueue()

    ok(outsider.api.call("POST", f"/v1/messages/{task}/cancel"))

    assert outsider.status(task) == "cancelled"
    assert outsider.dequeue(outsider.register()) is None


def test_what_others_send_to_the_queue_is_a_task_too(outsider: Outsider) -> None:
    worker = outsider.register()
    outsider.dequeue(worker)  # creates the queue
    outsider.api.send("tasks", {"a": [1]}, kind="k")
    outsider.enqueue(entity=None, data=None)

    assert outsider.dequeue(worker)["jobData"] == '{"a":[1]}'
    given = outsider.dequeue(worker)
    assert (given["jobEntityId"], given["jobData"]) == (None, None)


def test_a_worker_waits_for_the_next_task(
    outsider: Outsider, api: Api, in_background: InBackground
) -> None:
    worker = outsider.register()
    before = waiting_claims(api)

    waiting = in_background(outsider.dequeue, worker, wait_ms=LONG_MS)
    eventually(lambda: waiting_claims(api) == before + 1)
    task = outsider.enqueue()

    assert waiting.result(60)["id"] == task


def test_who_leaves_while_it_waits_is_given_nothing(
    outsider: Outsider, api: Api, in_background: InBackground
) -> None:
    worker = outsider.register()
    before = waiting_claims(api)
    waiting = in_background(outsider.ask, worker, wait_ms=LONG_MS)
    eventually(lambda: waiting_claims(api) == before + 1)

    api.call("DELETE", f"/v1/workers/{worker}")
    task = outsider.enqueue()

    assert_refused(waiting.result(60), 409, "worker_gone")
    assert outsider.task(task)["attempts"] == 0
    assert outsider.take(outsider.register()) == task


def test_a_queued_task_can_be_cancelled(outsider: Outsider) -> None:
    task, worker = outsider.enqueue(), outsider.register()

    answer = ok(outsider.api.call("DELETE", f"/v1/tasks/{task}"))

    assert answer == {"id": task, "status": "cancelled"}
    assert outsider.status(task) == "cancelled"
    assert outsider.dequeue(worker) is None


def test_a_task_in_process_can_be_cancelled_and_its_worker_loses_it(outsider: Outsider) -> None:
    task, worker = outsider.enqueue(), outsider.register()
    outsider.take(worker)

    ok(outsider.api.call("DELETE", f"/v1/tasks/{task}"))

    shown = outsider.task(task)
    assert (shown["status"], shown["workerId"]) == ("cancelled", worker)
    assert_refused(outsider.report(task, "Succeeded", worker), 409, "lease_lost")
    assert outsider.status(task) == "cancelled"


def test_a_task_that_has_ended_or_never_was_cannot_be_cancelled(outsider: Outsider) -> None:
    task, worker = outsider.enqueue(), outsider.register()
    outsider.take(worker)
    ok(outsider.report(task, "Succeeded", worker))

    ended = outsider.api.call("DELETE", f"/v1/tasks/{task}")
    unknown = outsider.api.call("DELETE", "/v1/tasks/nothing")

    assert_refused(ended, 409, "wrong_state")
    assert_refused(unknown, 404, "message_not_found")
    assert outsider.status(task) == "succeeded"
