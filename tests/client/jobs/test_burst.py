"""A worker that runs what is due and exits, on every backend."""

from __future__ import annotations

import threading

import pytest

from penstock import Retry
from penstock.client.errors import Unreachable
from tests.edge.api import a_name

pytestmark = pytest.mark.environments("worker")


@pytest.fixture
def burst(app):
    def run(*queues: str, **options) -> None:
        app.worker(queues=queues, burst=True, is_registered=False, **options).run()

    return run


def test_a_burst_ends_when_nothing_is_due_in_any_of_its_queues(app, burst):
    first, second, other = a_name(), a_name(), a_name()
    done: list[int] = []

    @app.job(queue=second)
    def count(n: int) -> None:
        done.append(n)

    count.enqueue_many([{"n": n} for n in range(5)])
    count.using(delay="1h").enqueue(100)
    count.using(queue=other).enqueue(200)

    burst(first, "not-there", second)

    assert sorted(done) == list(range(5))


def test_a_burst_runs_what_its_jobs_enqueue(app, queue, burst):
    other = a_name()
    done: list[int] = []

    @app.job(queue=other)
    def leaf(n: int) -> None:
        done.append(n)

    @app.job(queue=queue)
    async def split(n: int) -> None:
        done.append(n)
        for _ in range(2 if n else 0):
            await split.enqueue_async(n - 1)
            await leaf.enqueue_async(-n)

    split.enqueue(3)

    burst(queue, other, slots=2)

    assert sorted(done) == sorted(
        [3] + [2] * 2 + [1] * 4 + [0] * 8 + [-3] * 2 + [-2] * 4 + [-1] * 8
    )


def test_a_burst_leaves_what_fails_for_its_retry(app, queue, burst, clock):
    tries: list[int] = []

    @app.job(queue=queue)
    def fail() -> None:
        tries.append(1)
        raise Retry("1m")

    fail.enqueue()

    burst(queue)
    assert len(tries) == 1
    clock.advance(minutes=1)
    burst(queue)

    assert len(tries) == 2


def test_a_burst_waits_for_jobs_that_still_run(app, queue, burst):
    may_end, has_begun, done = threading.Event(), threading.Event(), []

    @app.job(queue=queue)
    def long() -> None:
        has_begun.set()
        may_end.wait(30)
        done.append("long")

    long.enqueue()
    thread = threading.Thread(target=burst, args=(queue,))
    thread.start()
    assert has_begun.wait(60)
    assert thread.is_alive()

    may_end.set()
    thread.join(60)

    assert (done, thread.is_alive()) == (["long"], False)


@pytest.mark.environments("unreachable server")
def test_a_burst_does_not_end_on_a_queue_that_could_not_be_asked(app, burst, monkeypatch):
    """The completion of the first job is answered, and a claim from the other queue fails once."""
    first, second = a_name(), a_name()
    done: list[str] = []

    @app.job(queue=first)
    def early() -> None:
        done.append("early")
        late.enqueue()

    @app.job(queue=second)
    def late() -> None:
        done.append("late")

    early.enqueue()
    remote = app.job_source()._remote
    whole, failures = remote.complete_and_claim_raw, [Unreachable("gone", was_sent=False)]

    def claim(queue, *args, **options):
        if queue == second and done and failures:
            raise failures.pop()
        return whole(queue, *args, **options)

    monkeypatch.setattr(remote, "complete_and_claim_raw", claim)

    burst(first, second)

    assert done == ["early", "late"]
