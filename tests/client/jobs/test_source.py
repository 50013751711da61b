"""What every source guarantees a worker."""

from __future__ import annotations

import threading
from typing import Any

import httpx
import pytest

from penstock import Penstock
from penstock.client.remote.source import RemoteSource
from penstock.domain.errors import Forbidden, LeaseLost
from penstock.domain.message.lease import Verb
from penstock.worker.claimed_job import JobAct
from tests.client.jobs.driver import JobDriver
from tests.edge.api import a_name

pytestmark = pytest.mark.environments("worker")


@pytest.fixture
def job(app, queue):
    @app.job(queue=queue)
    def count(n: int) -> None: ...

    return count


def act(work, verb, **more):
    return JobAct(receipt=work.receipt, verb=verb, **more)


def _refuse(source, queue, monkeypatch):
    """Make claims from that queue fail, as if the key did not cover it."""
    if isinstance(source, RemoteSource):
        home, verb = source._remote, "complete_and_claim_raw"
    else:
        home, verb = source._broker.messages, "claim"
    whole = getattr(home, verb)

    def claim(where, *args, **options):
        if queue == getattr(where, "name", where):
            raise Forbidden("this key is for other queues")
        return whole(where, *args, **options)

    monkeypatch.setattr(home, verb, claim)


def _remove(queue, url, clock):
    """Remove it as another process would."""
    if url.startswith("http"):
        httpx.delete(f"{url}/v1/queues/{queue}?force=true").raise_for_status()
        return
    other = Penstock(url, clock=clock)
    source: Any = other.job_source()
    source._broker.queues.remove(queue, force=True).result()
    other.close()


def test_a_claim_returns_at_most_the_limit_and_leased_messages_are_hidden(job, driver):
    job.enqueue_many([{"n": n} for n in range(3)])

    assert [work.body for work in driver.claim(limit=2)] == ['{"n":0}', '{"n":1}']
    assert [work.body for work in driver.claim(limit=2)] == ['{"n":2}']
    assert driver.claim() == []


def test_a_claimed_job_has_everything_that_a_worker_needs(app, queue, driver, clock):
    @app.job(queue=queue, attempts=4, timeout="10s")
    def count(n: int) -> None: ...

    sent = count.using(trace="00-" + "1" * 32 + "-" + "2" * 16 + "-01").enqueue(1)
    [work] = driver.claim(lease_ms=5_000)

    assert (work.id, work.sent_at, work.leased_until) == (
        sent.id,
        clock.now(),
        clock.now() + 5_000,
    )
    assert (work.attempts, work.failures, work.max_attempts) == (1, 0, 4)
    assert work.timeout_ms == 10_000
    assert work.trace == "00-" + "1" * 32 + "-" + "2" * 16 + "-01"


def test_several_queues_are_claimed_in_their_order(app, clock):
    names = [a_name(), a_name(), a_name()]
    for name in (*names, *names):
        app.enqueue("kind", {"queue": name}, queue=name)
    source = app.job_source()

    found, _ = source.claim(
        [names[2], "not-there", names[0], names[1]], limit=3, lease_ms=1_000, worker_id="w"
    )

    assert [work.queue for work in found] == [names[2], names[2], names[0]]


def test_jobs_of_one_queue_are_not_lost_when_another_queue_rejects_the_claim(app, monkeypatch):
    names = [a_name(), a_name()]
    for name in names:
        app.enqueue("kind", {}, queue=name)
    source = app.job_source()
    _refuse(source, names[1], monkeypatch)

    found, _ = source.claim(names, limit=5, lease_ms=1_000, worker_id="w")

    assert [work.queue for work in found] == names[:1]
    with pytest.raises(Forbidden):
        source.claim(names, limit=5, lease_ms=1_000, worker_id="w")


def test_jobs_of_one_queue_are_not_lost_when_another_queue_has_just_been_removed(app, url, clock):
    names = [a_name(), a_name()]
    for name in names:
        app.enqueue("kind", {}, queue=name)
    source = app.job_source()
    assert source.claim(names[1:], limit=1, lease_ms=1_000, worker_id="w")[0], "it is known"
    _remove(names[1], url, clock)

    found, _ = source.claim(names, limit=5, lease_ms=1_000, worker_id="w")

    assert [work.queue for work in found] == names[:1]
    assert source.claim(names, limit=5, lease_ms=1_000, worker_id="w")[0] == []


def test_acts_are_done_with_a_claim_and_answered_in_their_order(app, job, queue, driver):
    job.enqueue_many([{"n": n} for n in range(4)])
    first, second, third = driver.claim(limit=3)
    finishing = [
        act(first, Verb.COMPLETE),
        JobAct(receipt="forged", verb=Verb.FAIL),
        act(second, Verb.RELEASE),
        act(third, Verb.COMPLETE),
        act(first, Verb.COMPLETE),
    ]

    found, answers = app.job_source().claim(
        [queue], limit=5, lease_ms=1_000, worker_id="w", finishing=finishing
    )

    assert sorted(work.body for work in found) == ['{"n":1}', '{"n":3}']
    assert [type(answer) for answer in answers] == [
        type(None),
        LeaseLost,
        type(None),
        type(None),
        LeaseLost,
    ]


@pytest.mark.parametrize("verb", [Verb.COMPLETE, Verb.EXTEND, Verb.FAIL])
def test_every_act_gets_its_answer(app, job, queue, driver, verb):
    """A worker with a thousand slots may have that many acts to report at once."""
    job.enqueue_many([{"n": n} for n in range(5)])
    works = driver.claim()
    finishing = [JobAct(receipt="forged", verb=verb)] * 1_000
    finishing += [act(work, verb, text="ü" * 4_096) for work in works] + finishing

    _, answers = app.job_source().claim(
        [queue], limit=1, lease_ms=1_000, worker_id="w", finishing=finishing
    )

    assert [i for i, answer in enumerate(answers) if answer is None] == [*range(1_000, 1_005)]


@pytest.mark.parametrize("queues", [[], ["not-there"]])
def test_acts_are_done_even_if_there_is_nothing_to_claim_from(app, job, driver, queues):
    job.enqueue(1)
    [work] = driver.claim()

    _, answers = app.job_source().claim(
        queues, limit=1, lease_ms=1_000, worker_id="w", finishing=[act(work, Verb.COMPLETE)]
    )

    assert answers == [None]
    assert isinstance(driver.act(act(work, Verb.COMPLETE))[0], LeaseLost)


def test_a_failed_job_comes_back_after_the_time_it_was_given(job, driver, clock):
    job.enqueue(1)
    [work] = driver.claim()

    driver.act(act(work, Verb.FAIL, delay_ms=60_000, text="no"))

    assert driver.claim() == []
    clock.advance(minutes=1)
    [again] = driver.claim()
    assert (again.attempts, again.failures) == (2, 1)


def test_a_snoozed_job_has_lost_no_attempt(job, driver, clock):
    job.enqueue(1)
    [work] = driver.claim()

    driver.act(act(work, Verb.SNOOZE, delay_ms=60_000, text="no handler"))

    clock.advance(minutes=1)
    [again] = driver.claim()
    assert (again.attempts, again.failures) == (1, 0)


def test_listeners_are_called_when_there_may_be_work(app, job, queue, driver):
    heard = threading.Event()
    stop = app.job_source().listen([queue], heard.set)
    assert driver.claim() == []

    job.enqueue(1)

    assert heard.wait(60)
    assert [work.body for work in driver.claim()] == ['{"n":1}']
    stop()


def test_listeners_are_called_while_a_worker_could_do_more(app, job, queue, driver):
    heard = threading.Event()
    job.enqueue(1)
    stop = app.job_source().listen([queue], heard.set)
    assert len(driver.claim(limit=2)) == 1
    heard.clear()

    job.enqueue(2)

    assert heard.wait(60)
    assert [work.body for work in driver.claim()] == ['{"n":2}']
    stop()


def test_jobs_left_when_listening_ends_are_available_to_others(app, job, queue, driver, url, clock):
    heard = threading.Event()
    stop = app.job_source().listen([queue], heard.set)
    driver.claim()
    job.enqueue(1)
    assert heard.wait(60)

    stop()

    with Penstock(url, clock=clock) as other:
        [work] = JobDriver(other, clock, queue).claim()
    assert work.attempts == 1


def test_listeners_of_one_source_do_not_get_the_work_of_others(app, clock):
    names = [a_name(), a_name()]
    source = app.job_source()
    heard = [threading.Event(), threading.Event()]
    stops = [source.listen([name], event.set) for name, event in zip(names, heard, strict=True)]
    for name in names:
        app.enqueue("kind", {"n": name}, queue=name)
        JobDriver(app, clock, name).run_due()

    app.enqueue("kind", {"n": 2}, queue=names[0])
    assert heard[0].wait(60)

    assert JobDriver(app, clock, names[1]).claim() == []
    assert len(JobDriver(app, clock, names[0]).claim()) == 1
    for stop in stops:
        stop()
