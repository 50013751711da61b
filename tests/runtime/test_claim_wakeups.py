"""Wake-ups of waiting claims: none is lost between them."""

from __future__ import annotations

import asyncio

import pytest

from penstock.domain.errors import TooManyWaiting
from penstock.domain.queue.queue import Queue
from penstock.wiring.broker import Broker
from tests.runtime.waiting_claims import SOON_S, Scene, broker, queue, served
from tests.store.driver import one_batch

__all__ = ["broker", "queue"]


def test_one_wakeup_wakes_one_claim(broker: Broker, queue: Queue) -> None:
    async def scene() -> None:
        s = Scene(broker, queue)
        first, second = await s.waiting(2)
        await s.send(1)

        s.wake()

        assert await served([first]) == [1]
        assert not second.done()
        second.cancel()

    asyncio.run(scene())


def test_two_wakeups_at_once_wake_two_claims(broker: Broker, queue: Queue) -> None:
    async def scene() -> None:
        s = Scene(broker, queue)
        tasks = await s.waiting(2)
        await s.send(2)

        s.wake()
        s.wake()

        assert await served(tasks) == [1, 1]

    asyncio.run(scene())


def test_a_wakeup_that_finds_nothing_keeps_the_order_of_waiting_claims(
    broker: Broker, queue: Queue
) -> None:
    async def play() -> None:
        scene = Scene(broker, queue)
        first, second = await scene.waiting(2)
        scene.wake()
        await scene.settle()

        await scene.send(1)
        scene.wake()

        assert await served([first]) == [1]
        assert not second.done()
        second.cancel()

    asyncio.run(play())


def test_a_wakeup_with_count_0_wakes_claims_until_one_finds_nothing(
    broker: Broker, queue: Queue
) -> None:
    async def scene() -> None:
        s = Scene(broker, queue)
        tasks = await s.waiting(3)
        await s.send(3)

        s.wake(0)

        assert await served(tasks) == [1, 1, 1]

    asyncio.run(scene())


def test_a_claim_that_leaves_with_an_unused_wakeup_passes_it_on(
    broker: Broker, queue: Queue
) -> None:
    async def scene() -> None:
        s = Scene(broker, queue)
        leaver, stayer = await s.waiting(2)
        await s.send(1)

        s.wake()
        await asyncio.sleep(0)  # the wake-up has arrived, and no claim has acted on it yet
        leaver.cancel()

        assert await served([stayer]) == [1]

    asyncio.run(scene())


def test_a_wakeup_from_another_thread_arrives(broker: Broker, queue: Queue) -> None:
    async def scene() -> None:
        s = Scene(broker, queue)
        tasks = await s.waiting(1)
        await s.send(1)

        await asyncio.to_thread(s.wake)

        assert await served(tasks) == [1]

    asyncio.run(scene())


def test_a_wakeup_for_another_queue_wakes_no_claim(broker: Broker, queue: Queue) -> None:
    async def scene() -> None:
        s = Scene(broker, queue)
        [task] = await s.waiting(1)
        await s.send(1)

        s.room.on_wakeup({queue.queue_no + 1: 1})
        await s.settle()

        assert not task.done()
        task.cancel()

    asyncio.run(scene())


def test_a_claim_that_has_ended_is_not_counted(broker: Broker, queue: Queue) -> None:
    async def scene() -> None:
        s = Scene(broker, queue, most=2)
        tasks = await s.waiting(2)
        assert s.room.waiting == 2
        with pytest.raises(TooManyWaiting):
            await s.claim()

        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

        assert s.room.waiting == 0

    asyncio.run(scene())


@pytest.mark.parametrize(("claim_key", "is_kept"), [(None, False), ("k", True)])
def test_messages_claimed_for_a_lost_client_are_released_unless_its_claim_can_be_repeated(
    broker: Broker, queue: Queue, claim_key: str | None, is_kept: bool
) -> None:
    async def scene() -> None:
        s = Scene(broker, queue)
        await s.send(1)
        with one_batch(broker.store):
            task = asyncio.create_task(s.claim(claim_key=claim_key))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await s.settle()

        view = await broker.queues.get(queue.name)
        assert view.counts.leased == is_kept

    asyncio.run(scene())


def test_a_wakeup_is_not_used_up_by_claims_of_other_kinds(broker: Broker, queue: Queue) -> None:
    async def scene() -> None:
        s = Scene(broker, queue)
        others = await s.waiting(2, kinds=("b",))
        wanting = await s.waiting(1, kinds=("a",))
        plain = await s.waiting(1)
        await s.send(1, kind="a")

        s.wake()

        async with asyncio.timeout(SOON_S):
            done, _ = await asyncio.wait([*wanting, *plain], return_when=asyncio.FIRST_COMPLETED)
        assert len(done) == 1
        assert not any(task.done() for task in others)
        for task in (*others, *wanting, *plain):
            task.cancel()

    asyncio.run(scene())


def test_one_wakeup_wakes_one_of_the_claims_of_the_same_kinds(broker: Broker, queue: Queue) -> None:
    async def scene() -> None:
        s = Scene(broker, queue)
        first, second = await s.waiting(2, kinds=("a",))
        await s.send(2, kind="a")

        s.wake()
        assert await served([first]) == [1]
        await s.settle()
        assert not second.done()

        s.wake()
        assert await served([second]) == [1]

    asyncio.run(scene())


def test_a_claim_that_leaves_passes_its_wakeup_on_to_a_claim_of_the_same_kinds(
    broker: Broker, queue: Queue
) -> None:
    async def scene() -> None:
        s = Scene(broker, queue)
        first, second = await s.waiting(2, kinds=("a",))
        await s.send(1, kind="a")

        s.room.on_wakeup({queue.queue_no: 1})
        first.cancel()

        assert await served([second]) == [1]

    asyncio.run(scene())
