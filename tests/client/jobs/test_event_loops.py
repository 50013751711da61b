"""The first use of an application inside a running event loop, of any kind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from penstock import Penstock, current
from penstock.testing import Kit


def _open(app: Penstock, queue: str) -> None:
    app.open()


def _enter(app: Penstock, queue: str) -> None:
    with app:
        app.enqueue("mail", {}, queue=queue)


def _enqueue(app: Penstock, queue: str) -> None:
    app.queue(queue, max_attempts=3)
    app.enqueue("mail", {}, queue=queue)


def _notifications(app: Penstock, queue: str) -> None:
    due = app.notifications(queue)
    recorded = due.record("x", delay="1h", tags=(queue,))
    assert [one.id for one in due.find(tag1=queue)] == [recorded.id]
    due.remove(recorded.id)
    assert [one.id for one in due.past(tag1=queue)] == [recorded.id]


def _find(app: Penstock, queue: str) -> None:
    app.notifications(queue).record("x", delay="1h", tags=(queue,))
    app.close()
    assert len(list(app.notifications(queue).find(tag1=queue))) == 1


def _publish(app: Penstock, queue: str) -> None:
    @app.subscribe(queue, name="s")
    def on_event(event: int) -> None: ...

    assert app.publish(queue, 1).messages == 1


def _work(app: Penstock, queue: str) -> None:
    @app.recurring(every="1h", name=queue)
    @app.job(queue=queue)
    def tick() -> None: ...

    app.worker(is_registered=False)


def _breaker(app: Penstock, queue: str) -> None:
    app.breaker()


def _use_twice(app: Penstock, queue: str) -> None:
    app.enqueue("mail", {}, queue=queue)
    app.close()
    app.enqueue("mail", {}, queue=queue)


@pytest.mark.parametrize(
    "use", [_open, _enter, _enqueue, _notifications, _find, _publish, _work, _breaker, _use_twice]
)
async def test_every_sync_call_works_as_the_first_one_on_a_loop(
    app: Penstock, queue: str, use: Callable[[Penstock, str], None]
) -> None:
    use(app, queue)
    app.close()


async def _open_async(app: Penstock, queue: str) -> None:
    assert await app.open_async() is app
    assert app._lazy_backend.is_open
    await app.close_async()
    assert not app._lazy_backend.is_open


async def _enter_async(app: Penstock, queue: str) -> None:
    async with app as opened:
        assert (await opened.enqueue_async("mail", {}, queue=queue)).id
    assert not app._lazy_backend.is_open


async def _notifications_async(app: Penstock, queue: str) -> None:
    due = app.notifications(queue)
    assert [one async for one in due.find_async(tag1=queue)] == []
    recorded = await due.record_async("x", delay="1h", tags=(queue,))
    [found] = [one async for one in due.find_async(tag1=queue)]
    assert found.id == recorded.id
    assert recorded.due_at is not None
    await due.move_async(recorded.id, recorded.due_at.replace(microsecond=0))
    await due.remove_async(recorded.id)
    assert [one.id async for one in due.past_async(tag1=queue)] == [recorded.id]


async def _publish_async(app: Penstock, queue: str) -> None:
    _subscribe(app, queue)
    assert (await app.publish_async(queue, 1)).messages == 1
    assert len(await app.publish_many_async(queue, [1, 2])) == 2


def _subscribe(app: Penstock, queue: str) -> None:
    @app.subscribe(queue, name="s")
    def on_event(event: int) -> None: ...


@pytest.mark.parametrize("use", [_open_async, _enter_async, _notifications_async, _publish_async])
async def test_every_async_call_works_as_the_first_one(
    app: Penstock, queue: str, use: Callable[[Penstock, str], Awaitable[None]]
) -> None:
    await use(app, queue)
    await app.close_async()


async def test_a_kit_is_made_used_and_closed_on_a_loop(app: Penstock, queue: str) -> None:
    did: list[Any] = []

    @app.recurring(every="1h", name=queue)
    @app.job(queue=queue)
    async def count(by: int = 1) -> None:
        current().progress(0.5)
        await count_more.enqueue_async(by)

    @app.job(queue=queue)
    def count_more(by: int) -> None:
        current().progress(0.5)
        did.append(by)

    with Kit(app) as kit:
        count.enqueue(1)
        await kit.run_async()
        count.enqueue(2)
        kit.run()
        kit.perform(count_more, 3)
        assert len(kit.ended()) == 5
        kit.advance("2h")
        await kit.run_async()

    assert did[:3] == [1, 2, 3]
