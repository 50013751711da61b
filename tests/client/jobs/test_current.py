"""What a running job can see of itself, and the hooks around it."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from contextvars import copy_context
from datetime import UTC, datetime
from typing import cast

import msgspec
import pytest

from penstock import Current, Snooze, current
from penstock.client.jobs.current import CurrentJob, running_job_label
from penstock.domain.errors import InvalidRequest
from penstock.domain.message.lease import Verb
from penstock.worker.handling import run_async
from tests.client.calls import run
from tests.client.jobs.driver import FixedDice


def test_a_handler_can_ask_which_job_it_runs(app, queue, driver, clock):
    seen: list[Current] = []

    @app.job(queue=queue, kind="index", attempts=3)
    def index() -> None:
        seen.append(current())

    sent = index.using(group="g", tags=["a"], entity_id="e", attributes={"x": "y"}).enqueue()
    driver.controls.deadline = clock.now() + 1_000
    [work] = driver.claim()
    driver.act_of(work)

    [job] = seen
    assert (job.id, job.queue, job.kind) == (sent.id, queue, "index")
    assert (job.attempts, job.failures, job.max_attempts) == (1, 0, 3)
    assert (job.group, job.tags, job.entity_id) == ("g", ("a",), "e")
    assert job.attributes == {"x": "y"}
    assert job.sent_at == datetime.fromtimestamp(clock.now() / 1000, UTC)
    assert job.deadline == datetime.fromtimestamp(clock.now() / 1000 + 1, UTC)
    assert not job.is_completed


def test_attempts_and_failures_are_counted(app, queue, driver):
    seen = []

    @app.job(queue=queue, backoff="0s")
    def index() -> None:
        seen.append((current().attempts, current().failures))
        raise ValueError("no")

    index.enqueue()
    driver.run_due()
    driver.run_due()

    assert seen == [(1, 0), (2, 1)]


def test_no_job_runs_outside_of_a_handler(app, queue, driver):
    @app.job(queue=queue)
    def index() -> None: ...

    index.enqueue()
    driver.run_due()

    with pytest.raises(InvalidRequest, match="no job is running here"):
        current()


def test_async_handlers_on_one_loop_each_see_their_own_job(app, queue, driver):
    seen = {}

    @app.job(queue=queue)
    async def index(n: int) -> None:
        await asyncio.sleep(0)
        seen[n] = current().id

    sent = index.enqueue_many([{"n": n} for n in range(3)])

    async def run_all() -> None:
        assert [driver.prepare(job) for job in jobs] == [None] * 3
        await asyncio.gather(*(run_async(job, app.handlers, FixedDice()) for job in jobs))

    jobs = driver.claim()
    run(run_all())

    assert seen == {n: one.id for n, one in enumerate(sent)}


def test_a_handler_reports_progress_and_extends_its_lease(app, queue, driver):
    @app.job(queue=queue)
    def index() -> None:
        current().progress(0.5, "half")
        current().progress(note="still here")
        current().extend("5m")
        current().extend()

    index.enqueue()
    driver.run_due()

    reported = [asked["progress"] for asked in driver.controls.asked]
    assert [msgspec.json.decode(text) if text else None for text in reported] == [
        {"fraction": 0.5, "note": "half"},
        {"note": "still here"},
        None,
        None,
    ]
    assert [asked["lease_ms"] for asked in driver.controls.asked] == [None, None, 300_000, None]


def test_more_than_all_cannot_be_done(app, queue, driver):
    @app.job(queue=queue)
    def index() -> None:
        current().progress(1.5)

    index.enqueue()
    [work] = driver.claim()

    assert "from 0 to 1" in (driver.act_of(work).text or "")


def test_a_long_job_can_stop_when_the_worker_wants_to(app, queue, driver):
    @app.job(queue=queue)
    def index() -> Snooze | None:
        return Snooze("0s") if current().is_stopping else None

    index.enqueue()
    driver.controls.is_stopping = True

    assert [act.verb for act in driver.run_due()] == [Verb.SNOOZE]


def test_hooks_surround_every_handler_in_their_order(app, queue, driver):
    seen = []

    @app.around
    def log(job):
        seen.append(f"begin {job.kind}")
        try:
            yield
        finally:
            seen.append("end")

    @app.around
    @contextmanager
    def inner(job):
        seen.append("inner")
        yield

    @app.job(queue=queue)
    def index() -> None:
        seen.append("handler")

    @app.job(queue=queue)
    async def fail() -> None:
        raise ValueError("no")

    index.enqueue()
    fail.enqueue()
    acts = driver.run_due()

    assert seen == ["begin index", "inner", "handler", "end", "begin fail", "inner", "end"]
    assert [act.verb for act in acts] == [Verb.COMPLETE, Verb.FAIL]


def test_a_hook_that_fails_fails_the_job(app, queue, driver):
    @app.around
    def broken(job):
        raise ValueError("no database")
        yield

    @app.job(queue=queue)
    def index() -> None: ...

    index.enqueue()
    [act] = driver.run_due()

    assert act.verb is Verb.FAIL
    assert (act.text or "").startswith("ValueError: no database")


def test_an_unknown_kind_is_parked_and_run_when_its_handler_comes(app, queue, driver, clock):
    seen = []
    app.enqueue("later", {"n": 1}, queue=queue)

    [act] = driver.run_due()
    assert (act.verb, act.delay_ms) == (Verb.SNOOZE, 5_000)

    @app.job(queue=queue)
    def later(n: int) -> None:
        seen.append(current().attempts)

    clock.advance(seconds=5)
    driver.run_due()
    assert seen == [1]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (("abc",), "progress is a fraction from 0 to 1, not 'abc'"),
        ((True,), "progress is a fraction from 0 to 1, not True"),
        ((0.5, 5), "note must be text, not 5"),
    ],
)
def test_progress_of_a_wrong_type_is_refused(app, queue, driver, given, complaint):
    @app.job(queue=queue)
    def index() -> None:
        with pytest.raises(InvalidRequest, match=complaint):
            current().progress(*given)

    index.enqueue()
    assert [act.verb for act in driver.run_due()] == [Verb.COMPLETE]


@pytest.mark.no_store("context")
def test_a_job_whose_event_loop_is_gone_may_end_in_another_context():
    entered = CurrentJob(cast(Current, object()))
    copy_context().run(entered.__enter__)

    entered.__exit__(None, None, None)  # as the garbage collector does with its coroutine

    assert running_job_label() is None
