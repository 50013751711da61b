"""A store opened in the application's own process: no server is needed, though there may be one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from penstock.api.sends import SendResult, Sent
from penstock.client.acts import planned
from penstock.client.channel import Channel
from penstock.client.local.channel import LocalChannel
from penstock.client.local.source import EmbeddedSource
from penstock.client.off_loop import aside
from penstock.client.worker.roll import OwnRoll
from penstock.domain.circuit import overrides as breaker_overrides
from penstock.domain.circuit.circuit import circuit_hash
from penstock.domain.circuit.settings import BreakerSettings, change
from penstock.domain.errors import InvalidRequest, PenstockError, QueueExists, QueueNotFound
from penstock.domain.limits import Limits
from penstock.domain.message.draft import Draft, NewMessage
from penstock.domain.queue.queue import Queue, QueueSettings, check_settings
from penstock.domain.worker import NewWorker
from penstock.ports import store
from penstock.ports.clock import Clock
from penstock.ports.store import Session
from penstock.ports.ticket import Ticket
from penstock.ports.work import WorkAct, WorkSource
from penstock.settings import Settings
from penstock.wiring.broker import open_broker
from penstock.wiring.handlers import handlers_of
from penstock.worker.registration import Roll

T = TypeVar("T")


class Embedded:
    def __init__(self, settings: Settings, *, clock: Clock | None = None) -> None:
        # The caller's thread may run an event loop, on which the tickets of opening cannot wait.
        self.broker = aside(lambda: open_broker(settings, clock=clock))
        self.channel: Channel = LocalChannel(
            handlers_of(self.broker), refuse_deadlock=self.broker.store.refuse_deadlock
        )
        self._source: EmbeddedSource | None = None
        self._has_duties = False

    @property
    def clock(self) -> Clock:
        return self.broker.clock

    def send(self, queue: str, drafts: Sequence[Draft]) -> list[SendResult]:
        messages = self.broker.messages
        return self._results(queue, self.write(lambda: messages.send_to(queue, drafts)))

    async def send_async(self, queue: str, drafts: Sequence[Draft]) -> list[SendResult]:
        return self._results(queue, await self.broker.messages.send_to(queue, drafts))

    def send_in(
        self, tx: object, queue: str, drafts: Sequence[Draft], settings: Mapping[str, Any]
    ) -> list[SendResult]:
        directory, messages = self.broker.directory, self.broker.messages
        try:
            found = directory.cached(queue) or wait_for(lambda: directory.load(queue))
        except QueueNotFound:
            found = self.broker.store.write_in(tx, self._making(queue, settings))
        return self._results(queue, messages.send_in(tx, self._new(found, drafts)))

    async def send_in_async(
        self, tx: object, queue: str, drafts: Sequence[Draft], settings: Mapping[str, Any]
    ) -> list[SendResult]:
        directory, messages = self.broker.directory, self.broker.messages
        try:
            found = directory.cached(queue) or await directory.load(queue)
        except QueueNotFound:
            found = await self.broker.store.write_in_async(tx, self._making(queue, settings))
        return self._results(queue, await messages.send_in_async(tx, self._new(found, drafts)))

    def act_in(self, tx: object, act: WorkAct) -> None:
        messages = self.broker.messages
        _raise(messages.act_in(tx, [planned(messages, act)]))

    async def act_in_async(self, tx: object, act: WorkAct) -> None:
        messages = self.broker.messages
        _raise(await messages.act_in_async(tx, [planned(messages, act)]))

    def declare(self, queue: str, settings: Mapping[str, Any]) -> None:
        wanted = self._wanted(queue, settings)
        try:
            self.write(lambda: self.broker.queues.put(queue, wanted, only_new=True))
        except QueueExists:
            if settings:
                self.write(lambda: self.broker.queues.patch(queue, settings))

    async def declare_async(self, queue: str, settings: Mapping[str, Any]) -> None:
        wanted = self._wanted(queue, settings)
        try:
            await self.broker.queues.put(queue, wanted, only_new=True)
        except QueueExists:
            if settings:
                await self.broker.queues.patch(queue, settings)

    def queue_names(self, *, prefix: str, limit: int) -> list[str]:
        page = wait_for(lambda: self.broker.queues.page(prefix=prefix, limit=limit))
        return [view.queue.name for view in page]

    def change_breaker(self, changes: Mapping[str, Any], route: str | None) -> BreakerSettings:
        circuits = self.broker.circuits
        if route is None:
            return self.write(lambda: circuits.breaker.change(partial(change, changes)))
        one, how = circuit_hash(route), partial(breaker_overrides.change, changes)
        return self.write(lambda: circuits.own_settings.change(one, how, route=route)).settings

    def source(self) -> WorkSource:
        if self._source is None:
            self._source = EmbeddedSource(self.broker)
        return self._source

    def roll(self, about: NewWorker) -> Roll:
        return OwnRoll(self.broker.workers, about)

    def start_duties(self) -> None:
        if not self._has_duties:
            self._has_duties = True
            self.broker.start_duties()

    def write(self, ask: Callable[[], Ticket[T]]) -> T:
        """Wait for a write, unless the calling thread's own transaction is what it waits for."""
        self.broker.store.refuse_deadlock()
        return wait_for(ask)

    def close(self) -> None:
        aside(self.broker.close)

    def _making(self, name: str, settings: Mapping[str, Any]) -> Callable[[Session], Queue]:
        """By the caller's own transaction: ours would wait for its end.

        The directory does not hear of it, as it may be undone.
        """
        wanted, now = self._wanted(name, settings), self.clock.now()
        return lambda session: ensure_queue(session, name, wanted, now=now)

    def _wanted(self, queue: str, settings: Mapping[str, Any]) -> QueueSettings:
        return queue_settings(queue, settings, self.broker.settings.limits)

    def _results(
        self, queue: str, answers: Sequence[store.Sent | PenstockError]
    ) -> list[SendResult]:
        error_of = self.broker.messages.error_of
        return [
            error_of(queue, a) if isinstance(a, PenstockError) else Sent(a.id, a.is_duplicate)
            for a in answers
        ]

    def _new(self, queue: Queue, drafts: Sequence[Draft]) -> list[NewMessage]:
        return [self.broker.messages.draft(queue, draft) for draft in drafts]


def ensure_queue(session: Session, name: str, wanted: QueueSettings, *, now: int) -> Queue:
    """Find the queue, or create it with these settings, without the directory's knowledge."""
    return session.queues.find(name) or session.queues.add(name, wanted, now=now)


def queue_settings(name: str, settings: Mapping[str, Any], limits: Limits) -> QueueSettings:
    """Raises InvalidRequest also for what the limits of the store keep from taking effect."""
    try:
        wanted = check_settings(msgspec.convert(dict(settings), QueueSettings), name=name)
    except msgspec.ValidationError as error:
        raise InvalidRequest(str(error)) from None
    most = limits.max_body_bytes
    if wanted.max_body_bytes is not None and wanted.max_body_bytes > most:
        raise InvalidRequest(
            f"queue {name!r}: max_body_bytes is {wanted.max_body_bytes}, but the store takes at "
            f"most {most}: raise limits.max_body_bytes with Penstock(url, settings={{…}}), "
            "PENSTOCK_LIMITS_MAX_BODY_BYTES or the config file"
        )
    return wanted


def _raise(answers: Sequence[store.Acted | PenstockError]) -> None:
    for answer in answers:
        if isinstance(answer, PenstockError):
            raise answer


def wait_for(ask: Callable[[], Ticket[T]]) -> T:
    """A ticket belongs to the thread or loop that it is made on."""
    return aside(lambda: ask().result())
