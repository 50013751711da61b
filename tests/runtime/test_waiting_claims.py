"""Waiting claims without a server: no wake-up is lost between them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Unpack

import pytest

from penstock.domain.errors import TooManyWaiting
from penstock.domain.message.draft import Draft
from penstock.domain.message.lease import Lease, LeaseAct, Verb
from penstock.domain.queue.queue import Queue, QueueSettings
from penstock.ports.store import Acted, Claimable, Claimed
from penstock.ports.ticket import Ticket
from penstock.runtime.waiting_claims import WaitingClaims
from penstock.services.messages import ClaimOptions
from penstock.wiring.broker import Broker, open_broker
from tests.clocks import ManualClock
from tests.edge.conftest import some_settings
from tests.store.driver import one_batch

SOON_S = 30.0
NEVER_MS = 60_000
OFTEN = 5


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """Wake-ups reach the room only from the tests."""
    opened = open_broker(some_settings(tmp_path))
    yield opened
    opened.close()


@pytest.fixture
def queue(broker: Broker) -> Queue:
    return broker.queues.put("mail", QueueSettings()).result().view.queue


class Scene:
    """A room with some who wait in it; each is served with one message."""

    def __init__(
        self, broker: Broker, queue: Queue, *, most: int = 100, poll_ms: int = NEVER_MS
    ) -> None:
        self._broker = broker
        self._queue = queue
        self.room = WaitingClaims(broker.messages, broker.clock, most=most, poll_ms=poll_ms)

    async def waiting(
        self, count: int, **options: Unpack[ClaimOptions]
    ) -> list[asyncio.Task[Claimed]]:
        tasks = [asyncio.create_task(self.claim(**options)) for _ in range(count)]
        await self.settle()  # each has looked once and found nothing
        return tasks

    async def settle(self) -> None:
        """All pending looks are done: the store serves in order."""
        for _ in range(3):
            await asyncio.sleep(0)
            await self._broker.store.write(lambda _: None)

    async def send(self, count: int, **draft: Any) -> None:
        new = [Draft(body="1", **draft) for _ in range(count)]
        messages = self._broker.messages
        await messages.send([messages.draft(self._queue, one) for one in new])

    async def completion_of_one(self) -> LeaseAct:
        """Send and claim one message; returns the act that completes it."""
        await self.send(1)
        claimed = await self._broker.messages.claim(self._queue)
        [(message, _)] = claimed.messages
        return self._broker.messages.plan(Lease.of(message), Verb.COMPLETE)

    async def completed_total(self) -> int:
        queue_no = self._queue.queue_no
        counts: int = await self._broker.store.read(
            lambda session: session.queues.counts([queue_no])[queue_no].done_total
        )
        return counts

    def wake(self, count: int = 1) -> None:
        self.room.on_wakeup({self._queue.queue_no: count})

    async def claim(self, **options: Unpack[ClaimOptions]) -> Claimed:
        return await self.room.claim(self._queue, wait_ms=NEVER_MS, **options)


class Work:
    """Counts what the room asks of the store."""

    def __init__(self, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
        self.claims = self.polls = 0
        self.acts: list[int] = []  # how many each claim finishes
        self.is_polled_often = asyncio.Event()
        messages = broker.messages
        claim, claimable = messages.claim, messages.claimable

        def counted_claim(queue: Queue, **options: Unpack[ClaimOptions]) -> Ticket[Claimed]:
            self.claims += 1
            self.acts.append(len(options.get("finishing", ())))
            return claim(queue, **options)

        def counted_poll(queue_nos: Sequence[int]) -> Ticket[list[Claimable]]:
            self.polls += 1
            if self.polls >= OFTEN:
                self.is_polled_often.set()
            return claimable(queue_nos)

        monkeypatch.setattr(messages, "claim", counted_claim)
        monkeypatch.setattr(messages, "claimable", counted_poll)


@pytest.fixture
def work(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Work:
    return Work(broker, monkeypatch)


async def served(tasks: list[asyncio.Task[Claimed]]) -> list[int]:
    async with asyncio.timeout(SOON_S):
        return [len((await task).messages) for task in tasks]


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


def test_claims_that_wait_do_no_work_of_their_own(broker: Broker, queue: Queue, work: Work) -> None:
    """However many wait, the store is asked once for all of them."""

    async def scene() -> None:
        s = Scene(broker, queue, poll_ms=10)
        tasks = [*await s.waiting(20), *await s.waiting(20, kinds=("a",))]
        async with asyncio.timeout(SOON_S):
            await work.is_polled_often.wait()

        assert work.claims == 40
        for task in tasks:
            task.cancel()

    asyncio.run(scene())


def test_a_claim_that_waits_applies_its_acts_before_it_waits(
    broker: Broker, queue: Queue, work: Work
) -> None:
    async def scene() -> None:
        s = Scene(broker, queue)
        act = await s.completion_of_one()
        [task] = await s.waiting(1, finishing=[act])

        assert not task.done()
        assert await s.completed_total() == 1
        await s.send(1)
        s.wake()
        claimed = await task
        assert [type(answer) for answer in claimed.finished] == [Acted]
        assert len(claimed.messages) == 1
        assert work.acts == [0, 1, 0]  # the first claim is that of the message to complete

    asyncio.run(scene())


def test_acts_are_applied_although_too_many_claims_wait(broker: Broker, queue: Queue) -> None:
    async def scene() -> None:
        s = Scene(broker, queue, most=1)
        act = await s.completion_of_one()
        [other] = await s.waiting(1)

        with pytest.raises(TooManyWaiting):
            await s.claim(finishing=[act])

        assert await s.completed_total() == 1
        other.cancel()

    asyncio.run(scene())


def test_a_waiting_claim_gets_a_message_with_the_commit_that_sends_it(
    broker: Broker, queue: Queue, work: Work
) -> None:
    """No wake-up arrives here: claims of other kinds keep waiting, and do not even try."""

    async def scene() -> None:
        s = Scene(broker, queue)
        broker.store.invite_claims(s.room.invite)
        [other] = await s.waiting(1, kinds=("b",))
        first, second = await s.waiting(2)

        await s.send(1, kind="a")

        assert await served([first]) == [1]
        await s.settle()
        assert work.claims == 4  # one by each when it began to wait, and one for the message
        second.cancel()
        other.cancel()

    asyncio.run(scene())


def test_a_message_that_is_not_due_invites_no_claim(
    broker: Broker, queue: Queue, work: Work
) -> None:
    async def scene() -> None:
        s = Scene(broker, queue)
        broker.store.invite_claims(s.room.invite)
        [task] = await s.waiting(1)

        await s.send(1, delay_ms=NEVER_MS)
        await s.settle()

        assert work.claims == 1
        task.cancel()

    asyncio.run(scene())


def test_lost_wakeups_only_delay_a_claim(broker: Broker, queue: Queue) -> None:
    async def scene() -> None:
        s = Scene(broker, queue, poll_ms=10)
        tasks = [*await s.waiting(3), *await s.waiting(1, kinds=("a",))]

        await s.send(3, kind="b")
        await s.send(1, kind="a")

        assert sum(await served(tasks)) == 4

    asyncio.run(scene())


def test_when_messages_fall_due_only_those_look_who_can_be_served(
    broker: Broker, queue: Queue, work: Work
) -> None:
    async def scene() -> None:
        s = Scene(broker, queue)
        tasks = await s.waiting(50)
        for delay_ms in (50, 100):
            await s.send(1, delay_ms=delay_ms)
            s.wake(0)

        async with asyncio.timeout(SOON_S):
            for served_one in itertools.islice(asyncio.as_completed(tasks), 2):
                await served_one
        await s.settle()

        # For each message: a look at its due date, the claim that gets it, a look after that.
        assert work.claims <= 50 + 2 * 3
        for task in tasks:
            task.cancel()

    asyncio.run(scene())


def test_after_the_clock_was_set_a_due_message_is_found(tmp_path: Path) -> None:
    clock = ManualClock()
    broker = open_broker(some_settings(tmp_path), clock=clock)
    queue = broker.queues.put("mail", QueueSettings()).result().view.queue

    async def scene() -> None:
        s = Scene(broker, queue, poll_ms=10)
        tasks = await s.waiting(1)
        await s.send(1, delay_ms=NEVER_MS // 2)
        s.wake(0)
        await s.settle()

        clock.advance(ms=NEVER_MS // 2)

        assert await served(tasks) == [1]

    asyncio.run(scene())
    broker.close()
