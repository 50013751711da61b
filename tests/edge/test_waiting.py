"""The waiting room by itself: no hint is lost between those who wait."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Unpack

import pytest

from penstock.domain.draft import Draft
from penstock.domain.errors import TooManyWaiting
from penstock.domain.queue import Queue, QueueSettings
from penstock.edge.waiting import WaitingRoom
from penstock.ports.store import Claimed
from penstock.services.messages import ClaimOptions
from penstock.wiring import Broker, open_broker
from tests.edge.conftest import some_settings
from tests.store.desk import one_batch

SOON_S = 2.0
NEVER_MS = 60_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """Nobody tells the room of what is sent: the tests do."""
    opened = open_broker(some_settings(tmp_path))
    yield opened
    opened.close()


@pytest.fixture
def queue(broker: Broker) -> Queue:
    return broker.queues.put("mail", QueueSettings()).result().view.queue


class Scene:
    """A room with some who wait in it; each is served with one message."""

    def __init__(self, broker: Broker, queue: Queue, *, most: int = 100) -> None:
        self._broker = broker
        self._queue = queue
        self.room = WaitingRoom(broker.messages, broker.clock, most=most, poll_ms=NEVER_MS)

    async def waiting(
        self, count: int, **options: Unpack[ClaimOptions]
    ) -> list[asyncio.Task[Claimed]]:
        tasks = [asyncio.create_task(self._claim(**options)) for _ in range(count)]
        await self.settle()  # each has looked once and found nothing
        return tasks

    async def settle(self) -> None:
        """Whoever wanted to look has looked: the store serves in order."""
        for _ in range(3):
            await asyncio.sleep(0)
            await self._broker.store.write(lambda _: None)

    async def send(self, count: int, kind: str | None = None) -> None:
        draft = self._broker.messages.draft
        await self._broker.messages.send(
            [draft(self._queue, Draft(body="1", kind=kind)) for _ in range(count)]
        )

    def hint(self, count: int = 1) -> None:
        self.room.heard({self._queue.queue_no: count})

    async def _claim(self, **options: Unpack[ClaimOptions]) -> Claimed:
        return await self.room.claim(self._queue, wait_ms=NEVER_MS, **options)


async def served(tasks: list[asyncio.Task[Claimed]]) -> list[int]:
    async with asyncio.timeout(SOON_S):
        return [len((await task).messages) for task in tasks]


def test_one_hint_wakes_one(broker: Broker, queue: Queue) -> None:
    async def scene() -> None:
        s = Scene(broker, queue)
        first, second = await s.waiting(2)
        await s.send(1)

        s.hint()

        assert await served([first]) == [1]
        assert not second.done()
        second.cancel()

    asyncio.run(scene())


def test_two_hints_at_once_wake_two(broker: Broker, queue: Queue) -> None:
    async def scene() -> None:
        s = Scene(broker, queue)
        tasks = await s.waiting(2)
        await s.send(2)

        s.hint()
        s.hint()

        assert await served(tasks) == [1, 1]

    asyncio.run(scene())


def test_a_hint_of_nothing_wakes_all_to_judge_anew(broker: Broker, queue: Queue) -> None:
    async def scene() -> None:
        s = Scene(broker, queue)
        tasks = await s.waiting(3)
        await s.send(3)

        s.hint(0)

        assert await served(tasks) == [1, 1, 1]

    asyncio.run(scene())


def test_who_leaves_with_a_hint_in_hand_passes_it_on(broker: Broker, queue: Queue) -> None:
    async def scene() -> None:
        s = Scene(broker, queue)
        leaver, stayer = await s.waiting(2)
        await s.send(1)

        s.hint()
        await asyncio.sleep(0)  # the hint has arrived, and nobody has acted on it yet
        leaver.cancel()

        assert await served([stayer]) == [1]

    asyncio.run(scene())


def test_a_hint_from_another_thread_arrives(broker: Broker, queue: Queue) -> None:
    async def scene() -> None:
        s = Scene(broker, queue)
        tasks = await s.waiting(1)
        await s.send(1)

        await asyncio.to_thread(s.hint)

        assert await served(tasks) == [1]

    asyncio.run(scene())


def test_a_hint_for_another_queue_wakes_nobody(broker: Broker, queue: Queue) -> None:
    async def scene() -> None:
        s = Scene(broker, queue)
        [task] = await s.waiting(1)
        await s.send(1)

        s.room.heard({queue.queue_no + 1: 1})
        await s.settle()

        assert not task.done()
        task.cancel()

    asyncio.run(scene())


def test_nobody_is_counted_who_has_left(broker: Broker, queue: Queue) -> None:
    async def scene() -> None:
        s = Scene(broker, queue, most=2)
        tasks = await s.waiting(2)
        assert s.room.waiting == 2
        with pytest.raises(TooManyWaiting):
            await s._claim()

        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

        assert s.room.waiting == 0

    asyncio.run(scene())


@pytest.mark.parametrize(("claim_key", "is_kept"), [(None, False), ("k", True)])
def test_what_was_claimed_for_who_has_gone_is_given_back_unless_it_can_be_asked_for_again(
    broker: Broker, queue: Queue, claim_key: str | None, is_kept: bool
) -> None:
    async def scene() -> None:
        s = Scene(broker, queue)
        await s.send(1)
        with one_batch(broker.store):
            task = asyncio.create_task(s._claim(claim_key=claim_key))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await s.settle()

        view = await broker.queues.get(queue.name)
        assert view.counts.leased == is_kept

    asyncio.run(scene())


def test_a_hint_is_not_used_up_by_those_who_want_other_kinds(broker: Broker, queue: Queue) -> None:
    async def scene() -> None:
        s = Scene(broker, queue)
        others = await s.waiting(2, kinds=("b",))
        wanting = await s.waiting(1, kinds=("a",))
        plain = await s.waiting(1)
        await s.send(1, kind="a")

        s.hint()

        async with asyncio.timeout(SOON_S):
            done, _ = await asyncio.wait([*wanting, *plain], return_when=asyncio.FIRST_COMPLETED)
        assert len(done) == 1
        assert not any(task.done() for task in others)
        for task in (*others, *wanting, *plain):
            task.cancel()

    asyncio.run(scene())


def test_of_those_who_want_the_same_kinds_one_hint_wakes_one(broker: Broker, queue: Queue) -> None:
    async def scene() -> None:
        s = Scene(broker, queue)
        first, second = await s.waiting(2, kinds=("a",))
        await s.send(2, kind="a")

        s.hint()
        assert await served([first]) == [1]
        await s.settle()
        assert not second.done()

        s.hint()
        assert await served([second]) == [1]

    asyncio.run(scene())


def test_who_leaves_passes_its_hint_on_to_who_wants_the_same(broker: Broker, queue: Queue) -> None:
    async def scene() -> None:
        s = Scene(broker, queue)
        first, second = await s.waiting(2, kinds=("a",))
        await s.send(1, kind="a")

        s.room.heard({queue.queue_no: 1})
        first.cancel()

        assert await served([second]) == [1]

    asyncio.run(scene())
