"""Claims that wait without a server; wake-ups reach them only from the tests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Unpack

import pytest

from penstock.domain.message.draft import Draft
from penstock.domain.message.lease import Lease, LeaseAct, Verb
from penstock.domain.queue.queue import Queue, QueueSettings
from penstock.ports.store import Claimable, Claimed
from penstock.ports.ticket import Ticket
from penstock.runtime.waiting_claims import WaitingClaims
from penstock.services.messages import ClaimOptions
from penstock.wiring.broker import Broker, open_broker
from tests.edge.conftest import some_settings

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
