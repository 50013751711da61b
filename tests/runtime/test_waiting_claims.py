"""What waiting claims ask of the store, and how they get messages without a wake-up."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest
from msgspec.structs import replace

from penstock.domain.errors import TooManyWaiting
from penstock.domain.queue.queue import Ordering, Queue, QueueSettings
from penstock.ports.store import Acted
from penstock.wiring.broker import Broker, open_broker
from tests.clocks import ManualClock
from tests.edge.conftest import some_settings
from tests.runtime.waiting_claims import NEVER_MS, SOON_S, Scene, Work, broker, queue, served, work

__all__ = ["broker", "queue", "work"]


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


def test_a_claim_that_completes_beside_one_that_sleeps_waits_without_a_try(
    broker: Broker, queue: Queue, work: Work
) -> None:
    """The one that sleeps has found nothing, and no message has come since."""

    async def scene() -> None:
        s = Scene(broker, queue)
        act = await s.completion_of_one()
        [other] = await s.waiting(1)
        tries = work.claims
        [task] = await s.waiting(1, finishing=[act])

        assert (work.claims - tries, await s.completed_total()) == (0, 1)
        await s.send(2)
        s.wake(2)
        assert await served([other, task]) == [1, 1]
        assert [type(answer) for answer in task.result().finished] == [Acted]

    asyncio.run(scene())


def test_a_repeated_claim_that_completes_gets_its_messages_at_once(
    broker: Broker, queue: Queue
) -> None:
    """Its answer was lost, and meanwhile another claim has found nothing and sleeps."""

    async def scene() -> None:
        s = Scene(broker, queue)
        act = await s.completion_of_one()
        await s.send(1)
        first = await s.claim(finishing=[act], claim_key="k")
        [other] = await s.waiting(1)
        async with asyncio.timeout(SOON_S):
            again = await s.claim(finishing=[act], claim_key="k")

        ids = [[message.id for message, _ in claimed.messages] for claimed in (first, again)]
        assert ids[0] == ids[1] != []
        other.cancel()

    asyncio.run(scene())


def test_a_claim_that_completes_tries_if_messages_have_come_since_the_other_slept(
    broker: Broker, queue: Queue, work: Work
) -> None:
    async def scene() -> None:
        s = Scene(broker, queue)
        act = await s.completion_of_one()
        [other] = await s.waiting(1)
        await s.send(2)
        s.wake(1)
        [task] = await s.waiting(1, finishing=[act])

        assert await served([other, task]) == [1, 1]

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("settings", "result"),
    [
        (QueueSettings(ordering=Ordering.GROUP), None),
        (QueueSettings(max_leased=5), None),
        (QueueSettings(), "1"),
    ],
    ids=["ordered by group", "limited", "with a result"],
)
def test_a_completion_that_may_release_messages_shares_its_transaction_with_the_claim(
    broker: Broker, work: Work, settings: QueueSettings, result: str | None
) -> None:
    queue = broker.queues.put("special", settings).result().view.queue

    async def scene() -> None:
        s = Scene(broker, queue)
        act = replace(await s.completion_of_one(), result=result)
        [other] = await s.waiting(1)
        [task] = await s.waiting(1, finishing=[act])

        assert work.acts == [0, 0, 1]
        assert await s.completed_total() == 1
        other.cancel()
        task.cancel()

    asyncio.run(scene())


def test_a_claim_that_sleeps_gets_the_message_of_a_lease_that_expires(
    broker: Broker, queue: Queue
) -> None:
    """It slept before the lease began, and no other claim looks in the meantime."""

    async def scene() -> None:
        s = Scene(broker, queue)
        [holder] = await s.waiting(1, lease_ms=50)
        [other] = await s.waiting(1)
        await s.send(1)
        s.wake(1)
        assert await served([holder]) == [1]

        assert await served([other]) == [1]

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
