"""Claims of a front: those that wait do so in the writer, where one message wakes one claim."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Unpack

from msgspec.structs import replace

from penstock.domain.errors import OutcomeUnknown, QueueNotFound
from penstock.domain.queue.queue import Queue
from penstock.ports.link import WriterLink
from penstock.ports.store import Claimed
from penstock.runtime.abandoned_claims import await_claim
from penstock.services.messages import ClaimOptions, MessageService


class ForwardedClaims:
    """`patience_ms`: how long the writer may take in addition to the wait."""

    def __init__(self, messages: MessageService, link: WriterLink, *, patience_ms: int) -> None:
        self._messages = messages
        self._link = link
        self._patience_ms = patience_ms
        self._waiting: dict[int, int] = {}  # by number of the request: the queue's number
        self._is_closed = False

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def waiting_for(self, queue_nos: Iterable[int]) -> int:
        wanted = set(queue_nos)
        return sum(queue_no in wanted for queue_no in self._waiting.values())

    async def claim(
        self, queue: Queue, *, wait_ms: int, **options: Unpack[ClaimOptions]
    ) -> Claimed:
        may_wait = wait_ms > 0 and not self._is_closed
        try:
            if not may_wait or options.get("finishing"):
                ticket = self._messages.claim(queue, **options)
                claimed = await await_claim(ticket, options, self._messages)
                if claimed.messages or not may_wait:
                    return claimed
                # The results of its acts must not get lost if the wait is cancelled.
                finished, options["finishing"] = claimed.finished, ()
                return replace(await self._wait(queue, wait_ms, options), finished=finished)
            return await self._wait(queue, wait_ms, options)
        except QueueNotFound as error:
            raise self._messages.error_of(queue.name, error) from None

    def close(self) -> None:
        self._is_closed = True
        for number in self._waiting:
            self._link.cancel(number)

    async def _wait(self, queue: Queue, wait_ms: int, options: ClaimOptions) -> Claimed:
        wanted = self._messages.plan_claim(queue, **options)
        number, ticket = self._link.claim(wanted, queue=queue.name, wait_ms=wait_ms)
        self._waiting[number] = queue.queue_no
        try:
            async with asyncio.timeout((wait_ms + self._patience_ms) / 1000):
                return await await_claim(ticket, options, self._messages)
        except TimeoutError:
            self._link.cancel(number)
            raise OutcomeUnknown("the writer did not answer a waiting claim in time") from None
        except asyncio.CancelledError:
            self._link.cancel(number)
            raise
        finally:
            del self._waiting[number]
