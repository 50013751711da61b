"""Whatever a job does, it ends, and its worker keeps running.  Real threads and a real loop."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from penstock import Penstock, current
from penstock.domain.message.lifecycle import Message
from penstock.worker.slots.lifespan import StartFailed
from tests.support.waiting import eventually

pytestmark = pytest.mark.parametrize("backend", ["sqlite"])


class Interrupt(BaseException):
    """Not an Exception, like those that end a program."""


@pytest.fixture
def app(timed_app: Penstock) -> Penstock:
    return timed_app


@pytest.mark.parametrize("how", [SystemExit(3), KeyboardInterrupt(), Interrupt("no")])
def test_an_async_job_that_calls_sys_exit_fails_and_the_loop_keeps_running(app, start, how):
    done = []

    @app.job(queue="mail", attempts=1)
    async def leave() -> None:
        raise how

    @app.job(queue="mail")
    async def write() -> None:
        done.append(threading.current_thread())

    @app.job(queue="mail")
    def write_sync() -> None:
        done.append(threading.current_thread())

    left = leave.enqueue()
    write.enqueue()
    write_sync.enqueue()
    start(slots=1)
    eventually(lambda: len(done) == 2)

    dead = soon_dead(app, left.id)
    assert type(how).__name__ in (dead.last_error or "")
    assert (dead.attempts, dead.crashes) == (1, 0)


def test_an_exit_in_a_task_of_a_job_fails_the_job_and_its_neighbours_continue(app, start):
    done = []

    async def deep() -> None:
        await asyncio.sleep(0)
        sys.exit("no such option")

    @app.job(queue="mail", attempts=1)
    async def leave() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(deep())

    @app.job(queue="mail", attempts=1)
    async def leave_behind() -> None:
        forgotten = asyncio.create_task(deep())  # its result is not used
        await asyncio.wait([forgotten], timeout=10)

    @app.job(queue="mail")
    async def write() -> None:
        done.append(1)

    left = leave.enqueue()
    leave_behind.enqueue()
    write.enqueue()
    start(slots=1)
    eventually(lambda: done)

    assert "no such option" in (soon_dead(app, left.id).last_error or "")


def test_a_job_that_stops_the_loop_stops_nothing(app, start):
    done = []

    @app.job(queue="mail")
    async def stop() -> None:
        asyncio.get_running_loop().stop()
        await asyncio.sleep(0.01)
        done.append("stopped")

    @app.job(queue="mail")
    async def write() -> None:
        done.append("written")

    stop.enqueue()
    write.enqueue()
    start(slots=1)

    eventually(lambda: done == ["stopped", "written"])


def test_a_job_that_cancels_itself_fails(app, start):
    done = []

    @app.job(queue="mail", attempts=1)
    async def cancel() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    @app.job(queue="mail")
    async def write() -> None:
        done.append(1)

    sent = cancel.enqueue()
    write.enqueue()
    start(slots=1)
    eventually(lambda: done)

    assert "cancelled" in (soon_dead(app, sent.id).last_error or "")


def test_a_job_that_breaks_the_loop_fails_and_the_next_one_gets_a_new_loop(app, start):
    done = []

    @app.job(queue="mail", attempts=1)
    async def break_it() -> None:
        loop: Any = asyncio.get_running_loop()
        loop._selector.select = _broken
        await asyncio.sleep(3600)

    @app.job(queue="mail")
    async def write() -> None:
        done.append(1)

    sent = break_it.enqueue()
    write.enqueue()
    start(slots=1)
    eventually(lambda: done)

    assert soon_dead(app, sent.id).attempts == 1


@pytest.mark.parametrize("is_async", [False, True])
def test_a_job_whose_error_a_hook_swallows_is_done_and_its_slot_is_free(app, start, is_async):
    done = []

    @app.around
    def swallow(job) -> Iterator[None]:
        with contextlib.suppress(ValueError):
            yield

    def fail() -> None:
        raise ValueError("no")

    async def fail_async() -> None:
        raise ValueError("no")

    @app.job(queue="mail")
    def write() -> None:
        done.append(1)

    failing = app.job(queue="mail", attempts=1)(fail_async if is_async else fail)
    sent = failing.enqueue()
    write.enqueue()
    start(slots=1)
    eventually(lambda: done)

    eventually(lambda: message(app, sent.id) is None)
    assert ending(app, sent.id).outcome == "done"


def test_an_exception_that_escapes_in_a_slot_fails_the_job_and_keeps_the_slot(
    app, start, monkeypatch
):
    done = []

    @app.job(queue="mail", attempts=1)
    def first() -> None: ...

    @app.job(queue="mail")
    def write() -> None:
        done.append(1)

    worker = start(slots=1)
    begin, broken = worker._begin, ["once"]

    def begin_badly(held: Any) -> bool:
        if broken and held.kind == "first":
            raise SystemExit(broken.pop())
        return begin(held)

    monkeypatch.setattr(worker, "_begin", begin_badly)
    sent = first.enqueue()
    write.enqueue()
    eventually(lambda: done)

    assert (soon_dead(app, sent.id).last_error or "").startswith("SystemExit: once")


def test_an_awaitable_that_a_sync_job_returns_is_awaited_on_the_loop_of_the_async_jobs(app, start):
    loops = []
    jobs = []

    def logged(function: Any) -> Any:
        @functools.wraps(function)
        def call(*args: object) -> object:
            return function(*args)

        return call

    @app.job(queue="mail")
    @logged
    async def decorated(n: int) -> None:
        await asyncio.sleep(0)
        loops.append(asyncio.get_running_loop())
        jobs.append(current().kind)

    @app.job(queue="mail")
    async def plain() -> None:
        loops.append(asyncio.get_running_loop())

    decorated.enqueue(1)
    plain.enqueue()
    start(slots=1)
    eventually(lambda: len(loops) == 2)

    assert loops[0] is loops[1]
    assert jobs == ["decorated"]


def test_a_returned_coroutine_that_raises_fails_its_job(app, start):
    async def fail() -> None:
        sys.exit("no")

    @app.job(queue="mail", attempts=1)
    def call() -> Any:
        return fail()

    sent = call.enqueue()
    start(slots=1)

    assert (soon_dead(app, sent.id).last_error or "").startswith("SystemExit: no")


def test_a_worker_in_a_program_runs_the_hooks_of_its_start_and_its_end(app):
    seen: list[object] = []

    @app.on_worker_start
    def first() -> None:
        seen.append("first")

    @app.on_worker_start
    async def second() -> None:
        seen.append(asyncio.get_running_loop())

    @app.on_worker_stop
    async def last() -> None:
        seen.append(asyncio.get_running_loop())

    @app.on_worker_stop
    def fails() -> None:
        seen.append("fails")
        raise ValueError("no")

    @app.job(queue="mail")
    async def write() -> None:
        seen.append(asyncio.get_running_loop())
        worker.drain()

    write.enqueue()
    worker = app.worker(queues=["mail"], slots=1)
    worker.run()

    loop = seen[1]
    assert seen == ["first", loop, loop, "fails", loop]


def test_a_worker_whose_start_hook_fails_claims_nothing(app):
    @app.on_worker_start
    def connect() -> None:
        sys.exit("no database")

    @app.job(queue="mail")
    def write() -> None: ...

    sent = write.enqueue()
    with pytest.raises(StartFailed, match=r"hook .*connect failed: SystemExit: no database"):
        app.worker(queues=["mail"]).run()

    left = message(app, sent.id)
    assert left is not None
    assert left.attempts == 0


def _broken(timeout: float) -> None:
    raise OSError("bad file descriptor")


def message(app: Penstock, message_id: str) -> Message | None:
    backend: Any = app.backend
    found: Message | None = backend.broker.messages.find(message_id).result()
    return found


def ending(app: Penstock, message_id: str) -> Any:
    backend: Any = app.backend
    return backend.broker.messages.get(message_id).result().message


def soon_dead(app: Penstock, message_id: str) -> Message:
    def look() -> Message | None:
        found = message(app, message_id)
        return found if found is not None and found.state == "dead" else None

    return eventually(look)  # type: ignore[return-value]
