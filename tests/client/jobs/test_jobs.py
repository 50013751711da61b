"""`app.jobs`: inspecting and controlling jobs, the same on all three backends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from penstock import Bury, Cancel, Enqueued, Job, Penstock
from penstock.api import browsing, queues
from penstock.client.channel import Flow
from penstock.client.jobs.job_listing import list_jobs
from penstock.domain.datetimes import moment_of
from penstock.domain.errors import InvalidRequest, MessageNotFound, WrongState
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Counts, Queue, QueueSettings
from penstock.operations.messages import record_of
from penstock.wiring.broker import Broker
from penstock.worker.claimed_job import JobAct
from tests.client.jobs.driver import JobDriver
from tests.clocks import ManualClock
from tests.edge.api import a_name


@pytest.fixture
def mail(app: Penstock, queue: str) -> Job[[int], None]:
    @app.job(queue=queue, kind="mail", attempts=1)
    def mail(n: int) -> None:
        match n:
            case 13:
                raise ValueError("thirteen")
            case 14:
                raise Bury("fourteen")
            case 15:
                raise Cancel("fifteen")

    return mail


def put_into(state: State, mail: Job[[int], None], driver: JobDriver) -> Enqueued:
    if state is State.WAITING:
        return mail.using(tags=["a", "b"], delay="1m").enqueue(1)
    numbers = {State.DEAD: 13, State.CANCELLED: 15}
    sent = mail.using(tags=["a", "b"]).enqueue(numbers.get(state, 1))
    if state is State.LEASED:
        driver.claim()
    elif state is not State.READY:
        driver.run_due()
    return sent


@pytest.mark.parametrize("state", State)
def test_a_job_is_described_in_the_same_words_by_every_backing(
    app: Penstock, broker: Broker, mail: Job[[int], None], driver: JobDriver, state: State
) -> None:
    sent = put_into(state, mail, driver)

    job = app.jobs.get(sent)

    assert (job.id, job.state, job.kind, job.queue) == (sent.id, state, "mail", mail.queue)
    assert (job.tags, job.body["n"]) == (("a", "b"), job.body["n"])
    assert job == app.jobs.get(sent.id)
    view = broker.messages.get(sent.id).result()
    assert job == record_of(view, moment_of, msgspec.json.decode)


def test_a_failed_job_shows_its_error_and_a_running_one_its_worker_and_progress(
    app: Penstock, mail: Job[[int], None], driver: JobDriver, clock: ManualClock
) -> None:
    failed = mail.enqueue(13)
    driver.run_due()
    running = mail.enqueue(1)
    [work] = driver.claim()
    driver.act(JobAct(receipt=work.receipt, verb=Verb.EXTEND, delay_ms=60_000, progress="42"))

    assert "ValueError: thirteen" in str(app.jobs.get(failed).last_error)
    job = app.jobs.get(running)
    assert (job.leased_by, job.attempts, job.progress) == ("worker", 1, 42)
    assert job.leased_at == moment_of(clock.now())


def test_a_job_that_was_never_enqueued_is_not_found(app: Penstock) -> None:
    for act in (app.jobs.get, app.jobs.cancel, app.jobs.redrive, app.jobs.wait):
        with pytest.raises(MessageNotFound):
            act("01890000-0000-7000-8000-000000000000")
    with pytest.raises(InvalidRequest, match="not 7"):
        app.jobs.get(7)  # type: ignore[arg-type]


def test_jobs_are_listed_by_queue_state_kind_and_tag(
    app: Penstock, mail: Job[[int], None], driver: JobDriver, queue: str
) -> None:
    other = app.job(queue=queue, kind="other")(lambda: None)
    done, dead = put_into(State.DONE, mail, driver), put_into(State.DEAD, mail, driver)
    waiting, ready = put_into(State.WAITING, mail, driver), mail.using(tags=["c"]).enqueue(1)
    plain = other.enqueue()

    def ids(**wanted: Any) -> set[str]:
        return {job.id for job in app.jobs.list(queue=queue, **wanted)}

    assert ids() == {dead.id, waiting.id, ready.id, plain.id}
    assert ids(state="ready") == {ready.id, plain.id}
    assert ids(state=State.DEAD) == {dead.id}
    assert ids(state="done") == {done.id}
    assert ids(state="done", kind="other") == set()
    assert ids(kind="other") == {plain.id}
    assert ids(tag="b") == {dead.id, waiting.id}
    assert app.jobs.list(queue=a_name()).jobs == []
    with pytest.raises(InvalidRequest, match="not 'running'"):
        app.jobs.list(state="running")


@pytest.mark.parametrize("state", [None, "done"])
def test_long_lists_are_read_page_by_page(
    app: Penstock, driver: JobDriver, queue: str, state: str | None
) -> None:
    job = app.job(queue=queue)(lambda: None)
    sent = [one.id for one in job.enqueue_many([{}] * 7)]
    if state == "done":
        driver.run_due()
    else:
        driver.claim(limit=2)

    found: list[str] = []
    cursor: str | None = None
    while True:
        page = app.jobs.list(queue=queue, state=state, limit=3, cursor=cursor)
        assert len(page) <= 3
        found += [one.id for one in page]
        cursor = page.next
        if cursor is None:
            break

    assert sorted(found) == sorted(sent)
    with pytest.raises(InvalidRequest):
        app.jobs.list(queue=queue, state=state, cursor="made up")


def test_without_a_queue_the_jobs_of_all_queues_are_listed(app: Penstock) -> None:
    tag = a_name()
    sent = set()
    for _ in range(3):
        job = app.job(queue=a_name(), kind=a_name())(lambda: None)
        sent.add(job.using(tags=[tag]).enqueue().id)

    found: list[str] = []
    cursor: str | None = None
    while True:
        page = app.jobs.list(tag=tag, limit=2, cursor=cursor)
        found += [one.id for one in page]
        cursor = page.next
        if cursor is None:
            break

    assert sorted(found) == sorted(sent)


def test_jobs_are_counted_by_state(
    app: Penstock, mail: Job[[int], None], driver: JobDriver, queue: str
) -> None:
    assert app.jobs.count(queue).ready == 0, "a queue that does not exist has no jobs"
    for state in State:
        put_into(state, mail, driver)

    counts = app.jobs.count(queue)

    assert (counts.waiting, counts.ready, counts.leased, counts.dead) == (1, 0, 2, 1)
    assert (counts.totals.sent, counts.totals.dead, counts.totals.cancelled) == (6, 1, 1)
    assert app.jobs.count().totals.sent >= 6


@pytest.mark.parametrize("state", [State.WAITING, State.READY, State.LEASED, State.DEAD])
def test_a_job_is_cancelled_whatever_its_state(
    app: Penstock, mail: Job[[int], None], driver: JobDriver, state: State
) -> None:
    sent = put_into(state, mail, driver)

    assert app.jobs.cancel(sent, reason="no").state is State.CANCELLED

    if state is not State.DEAD:
        job = app.jobs.get(sent)
        assert (job.state, job.reason) == (State.CANCELLED, "no")
    with pytest.raises(MessageNotFound):
        app.jobs.cancel(sent)


def test_a_running_job_can_be_left_alone(
    app: Penstock, mail: Job[[int], None], driver: JobDriver
) -> None:
    sent = put_into(State.LEASED, mail, driver)

    with pytest.raises(WrongState):
        app.jobs.cancel(sent, is_running_ok=False)

    assert app.jobs.get(sent).state is State.LEASED


def test_a_waiting_job_is_rescheduled(
    app: Penstock, mail: Job[[int], None], clock: ManualClock
) -> None:
    sent = mail.enqueue_in("1h", 1)
    later = moment_of(clock.now()) + timedelta(days=2)

    app.jobs.reschedule(sent, due_at=later)
    assert app.jobs.get(sent).due_at == later
    app.jobs.reschedule(sent, delay="0s")
    assert app.jobs.get(sent).state is State.READY
    for wrong in ({}, {"due_at": later, "delay": "1s"}):
        with pytest.raises(InvalidRequest):
            app.jobs.reschedule(sent, **wrong)  # type: ignore[arg-type]


def test_dead_jobs_are_redriven_one_or_a_queue_at_a_time(
    app: Penstock, mail: Job[[int], None], driver: JobDriver, queue: str
) -> None:
    dead = [put_into(State.DEAD, mail, driver) for _ in range(3)]

    assert app.jobs.redrive(dead[0]) == 1
    assert app.jobs.get(dead[0]).state is State.READY
    assert app.jobs.redrive(queue=queue) == 2
    assert {app.jobs.get(one).state for one in dead} == {State.READY}
    for wrong in ({}, {"job": dead[0], "queue": queue}):
        with pytest.raises(InvalidRequest):
            app.jobs.redrive(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(("n", "state"), [(1, "done"), (14, "dead"), (15, "cancelled")])
def test_waiting_for_a_job_returns_how_it_ended(
    app: Penstock, mail: Job[[int], None], driver: JobDriver, n: int, state: str
) -> None:
    sent = mail.enqueue(n)
    runs = threading.Timer(0.1, driver.run_due)
    runs.start()

    ended = app.jobs.wait(sent, timeout="30s")

    runs.join()
    assert (ended.id, ended.state) == (sent.id, state)


def test_waiting_for_a_job_that_moves_to_a_dead_letter_queue_ends_too(
    app: Penstock, driver: JobDriver, queue: str
) -> None:
    letters = a_name()
    app.queue(letters)
    app.queue(queue, dead_letter_queue=letters)

    @app.job(queue=queue)
    def broken() -> None:
        raise Bury("no")

    app.job_source()  # creates both queues
    sent = broken.enqueue()
    driver.run_due()

    ended = app.jobs.wait(sent, timeout="30s")

    assert (ended.state, ended.queue, ended.dead_from) == (State.DEAD, letters, queue)


def test_waiting_gives_up_in_time(app: Penstock, mail: Job[[int], None]) -> None:
    sent = mail.enqueue(1)

    with pytest.raises(TimeoutError, match="still ready"):
        app.jobs.wait(sent, timeout="100ms")


async def test_everything_has_an_async_twin_that_does_not_hold_up_the_loop(
    app: Penstock, mail: Job[[int], None], driver: JobDriver, queue: str
) -> None:
    app.open()

    first, second = await mail.enqueue_async(1), await mail.enqueue_async(2)
    assert (await app.jobs.get_async(first)).state is State.READY
    assert len(await app.jobs.list_async(queue=queue)) == 2
    assert (await app.jobs.count_async(queue)).ready == 2
    await app.jobs.reschedule_async(second, delay="1h")
    assert (await app.jobs.cancel_async(second)).state is State.CANCELLED
    waiting = asyncio.create_task(app.jobs.wait_async(first, timeout="30s"))
    await asyncio.sleep(0)
    assert not waiting.done()
    await asyncio.to_thread(driver.run_due)
    assert (await waiting).state is State.DONE
    dead = await mail.enqueue_async(13)
    await asyncio.to_thread(driver.run_due)
    assert await app.jobs.redrive_async(dead) == 1


@pytest.mark.no_store("flow")
def test_the_names_of_queues_are_fetched_once_for_all_of_them() -> None:
    names = [f"queue-{n:02}" for n in range(20)]
    fetched: list[str] = []

    def answer(step: Any) -> Any:
        if step.operation is browsing.BROWSE:
            return browsing.Page([], None)
        assert step.operation is queues.LIST
        behind = [] if fetched else names
        fetched.extend(behind or ["no more"])
        counts = Counts(ready=1)
        return queues.Queues(
            queues=[
                queues.Queue.of(
                    Queue(queue_no=1, name=name, created_at=0, settings=QueueSettings()),
                    counts,
                    moment_of,
                )
                for name in behind
            ],
            next=None,
        )

    page = drive(list_jobs(None, State.READY, {}, 1_000, None), answer)

    assert page.jobs == []
    assert fetched == [*names, "no more"]


def drive(flow: Flow[Any], answer: Callable[[Any], Any]) -> Any:
    sent: Any = None
    while True:
        try:
            step = flow.send(sent)
        except StopIteration as end:
            return end.value
        sent = answer(step)
