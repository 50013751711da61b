"""Hooks around jobs, and jobs that behave badly, as the kit runs them."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from penstock import Penstock, current
from penstock.domain.errors import InvalidRequest
from penstock.testing import Kit

pytestmark = pytest.mark.no_store("hooks")


@pytest.fixture
def app() -> Penstock:
    return Penstock("sqlite:///never-opened.db")


@pytest.fixture
def kit(app: Penstock) -> Iterator[Kit]:
    with Kit(app) as kit:
        yield kit


Run = Callable[[Kit], list[Any]]


def run(kit: Kit) -> list[Any]:
    return kit.run(raises=False)


def run_on_a_loop(kit: Kit) -> list[Any]:
    return asyncio.run(kit.run_async(raises=False))


both_ways = pytest.mark.parametrize("run", [run, run_on_a_loop])


@both_ways
@pytest.mark.parametrize("is_async", [False, True])
def test_a_job_whose_error_a_hook_swallows_is_done_without_a_result(
    app: Penstock, kit: Kit, run: Run, is_async: bool
) -> None:
    @app.around
    def swallow(job: object) -> Iterator[None]:
        with contextlib.suppress(ValueError):
            yield

    def fail() -> None:
        raise ValueError("no")

    async def fail_async() -> None:
        raise ValueError("no")

    app.job(fail_async if is_async else fail).enqueue()
    [ran] = run(kit)

    assert (ran.outcome, ran.result, ran.error) == ("done", None, None)


@both_ways
def test_an_async_job_that_exits_has_failed(app: Penstock, kit: Kit, run: Run) -> None:
    async def deep() -> None:
        sys.exit("deep")

    @app.job(attempts=1)
    async def leave() -> None:
        sys.exit("at once")

    @app.job(attempts=1)
    async def leave_in_a_task() -> None:
        await asyncio.create_task(deep())

    leave.enqueue()
    if run is not run_on_a_loop:  # the loop of a test is not the kit's to keep
        leave_in_a_task.enqueue()

    for ran in run(kit):
        assert ran.outcome == "failed"
        assert ran.text.startswith("SystemExit: ")


@both_ways
def test_an_awaitable_that_a_job_returns_is_awaited(app: Penstock, kit: Kit, run: Run) -> None:
    async def other() -> str:
        await asyncio.sleep(0)
        return f"result of {current().kind}"

    @app.job
    def call() -> Awaitable[str]:
        return other()

    call.enqueue()
    [ran] = run(kit)

    assert (ran.outcome, ran.result) == ("done", "result of call")


def test_inline_jobs_are_awaited_as_well(app: Penstock, kit: Kit) -> None:
    seen = []

    async def other() -> None:
        seen.append(current().kind)

    @app.job
    def call() -> Awaitable[None]:
        return other()

    with kit.inline():
        call.enqueue()

    assert seen == ["call"]


def test_an_awaitable_that_a_subscriber_returns_is_awaited_and_its_last_failure_is_reported(
    app: Penstock, kit: Kit
) -> None:
    errors: list[BaseException] = []

    async def fail() -> None:
        raise ValueError("no")

    @app.subscribe("orders", attempts=1, on_exhausted=lambda event, error: errors.append(error))
    def bill(order: int) -> Awaitable[None]:
        return fail()

    app.publish("orders", 17)
    [ran] = kit.run(raises=False)

    assert ran.outcome == "buried"
    assert [str(error) for error in errors] == ["no"]


def test_async_hooks_surround_async_jobs_and_no_others(app: Penstock, kit: Kit) -> None:
    seen = []

    @app.around
    async def session(job: Any) -> AsyncIterator[None]:
        seen.append(f"open for {job.kind}")
        await asyncio.sleep(0)
        yield
        seen.append("closed")

    @app.around
    def log(job: Any) -> Iterator[None]:
        seen.append(f"begin {current().kind}")
        yield

    @app.around
    @asynccontextmanager
    async def managed(job: Any) -> AsyncIterator[None]:
        seen.append("managed")
        yield

    @app.job
    async def mail() -> None:
        seen.append("mail")

    @app.job
    def index() -> None:
        seen.append("index")

    mail.enqueue()
    index.enqueue()
    kit.run()

    assert seen == [
        "open for mail",
        "begin mail",
        "managed",
        "mail",
        "closed",
        "begin index",
        "index",
    ]


def test_an_async_hook_may_swallow_an_error_and_its_own_fails_the_job(
    app: Penstock, kit: Kit
) -> None:
    @app.around
    async def lenient(job: Any) -> AsyncIterator[None]:
        with contextlib.suppress(ValueError):
            yield
        if job.kind == "bad":
            raise RuntimeError("no session")

    @app.job
    async def good() -> None:
        raise ValueError("no")

    @app.job
    async def bad() -> None: ...

    good.enqueue()
    bad.enqueue()

    assert [ran.outcome for ran in kit.run(raises=False)] == ["done", "failed"]


def no_arguments() -> Iterator[None]:
    yield


async def no_yield(job: object) -> None: ...


def two_arguments(job: object, more: object) -> Iterator[None]:
    yield


@pytest.mark.parametrize("hook", [no_arguments, no_yield, two_arguments, "text", None])
def test_a_hook_that_cannot_wrap_a_job_is_rejected_where_it_is_declared(
    app: Penstock, hook: Any
) -> None:
    with pytest.raises(InvalidRequest, match=r"@app\.around"):
        app.around(hook)


def test_a_hook_that_returns_no_context_manager_fails_the_job_with_its_name(
    app: Penstock, kit: Kit
) -> None:
    @app.around
    def forgetful(job: object) -> None:
        return None

    @app.job(attempts=1)
    def index() -> None: ...

    index.enqueue()
    [ran] = kit.run(raises=False)

    assert "forgetful' returned None, not a context manager" in (ran.text or "")


@pytest.mark.parametrize("hook", [no_arguments, two_arguments, "text"])
@pytest.mark.parametrize("place", ["on_worker_start", "on_worker_stop"])
def test_a_hook_that_cannot_start_or_stop_a_worker_is_rejected_where_it_is_declared(
    app: Penstock, hook: Any, place: str
) -> None:
    with pytest.raises(InvalidRequest, match=place):
        getattr(app, place)(hook)
