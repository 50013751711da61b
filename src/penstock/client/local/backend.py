"""An in-process store: no server is needed, though one may use the same store."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from penstock.api.messages import SendResult, Sent
from penstock.api.topics import Published
from penstock.client.backend import Backend, Drafts, Values
from penstock.client.blocking import run_off_loop
from penstock.client.bus.subscription import DeclaredSubscription, Publication
from penstock.client.local.channel import LocalChannel
from penstock.client.local.source import LocalSource
from penstock.domain.errors import PenstockError, QueueNotFound
from penstock.domain.message.draft import NewMessage
from penstock.domain.message.lease import LeaseAct, Verb
from penstock.domain.queue.queue import Queue, QueueSettings
from penstock.ports import store
from penstock.ports.clock import Clock
from penstock.ports.store import Session
from penstock.ports.unit_of_work import Work, write
from penstock.settings import Settings
from penstock.wiring.broker import open_broker
from penstock.wiring.handlers import handlers_of
from penstock.worker.application import JobSource


class LocalBackend(Backend):
    def __init__(self, settings: Settings, *, clock: Clock | None = None) -> None:
        # The calling thread may run an event loop, on which nothing can wait for the store.
        self.broker = run_off_loop(lambda: open_broker(settings, clock=clock))
        self.clock = self.broker.clock
        self.limits = self.broker.settings.limits
        self.channel = LocalChannel(
            handlers_of(self.broker),
            refuse_deadlock=self.broker.store.refuse_deadlock,
        )
        self._source: LocalSource | None = None
        self._has_duties = False

    def send(
        self, queue: str, drafts: Drafts, *, tx: object = None, settings: Values | None = None
    ) -> list[SendResult]:
        directory, messages = self.broker.directory, self.broker.messages
        if tx is None:
            self.broker.store.refuse_deadlock()
            sent = run_off_loop(lambda: messages.send_to(queue, drafts).result())
            return self._results(queue, sent)
        try:
            found = directory.cached(queue) or run_off_loop(lambda: directory.load(queue).result())
        except QueueNotFound:
            found = self.broker.store.write_in(tx, self._creation(queue, settings))
        return self._results(queue, messages.send_in(tx, self._new(found, drafts)))

    async def send_async(
        self, queue: str, drafts: Drafts, *, tx: object = None, settings: Values | None = None
    ) -> list[SendResult]:
        directory, messages = self.broker.directory, self.broker.messages
        if tx is None:
            return self._results(queue, await messages.send_to(queue, drafts))
        try:
            found = directory.cached(queue) or await directory.load(queue)
        except QueueNotFound:
            creation = self._creation(queue, settings)
            found = await self.broker.store.write_in_async(tx, creation)
        return self._results(queue, await messages.send_in_async(tx, self._new(found, drafts)))

    def publish(self, wanted: Publication, *, tx: object = None) -> list[Published]:
        if tx is None:
            self.broker.store.refuse_deadlock()
        work = self._publication(wanted)
        return run_off_loop(work.result) if tx is None else work.result_in(tx)

    async def publish_async(self, wanted: Publication, *, tx: object = None) -> list[Published]:
        work = self._publication(wanted)
        return await work if tx is None else await work.result_in_async(tx)

    def complete(self, receipt: str, *, tx: object, result: str | None = None) -> None:
        act = self._completion(receipt, result)
        _raise_error(self.broker.messages.act_in(tx, [act]))

    async def complete_async(self, receipt: str, *, tx: object, result: str | None = None) -> None:
        act = self._completion(receipt, result)
        _raise_error(await self.broker.messages.act_in_async(tx, [act]))

    def source(self) -> JobSource:
        if self._source is None:
            self._source = LocalSource(self.broker, self.channel)
        return self._source

    def start_duties(self) -> None:
        if not self._has_duties:
            self._has_duties = True
            self.broker.start_duties()

    def close(self) -> None:
        run_off_loop(self.broker.close)

    def _creation(self, name: str, settings: Values | None) -> Callable[[Session], Queue]:
        """Create a queue in the caller's transaction: a separate one would wait for it to end.

        The directory is not updated, because the caller may roll back.
        """
        wanted, now = msgspec.convert(settings or {}, QueueSettings), self.clock.now()
        return lambda session: (
            session.queues.find(name) or session.queues.add(name, wanted, now=now)
        )

    def _publication(self, wanted: Publication) -> Work[list[Published]]:
        bus = self.broker.bus
        publish = bus.publish(wanted.topic, wanted.drafts, node=wanted.node, create_topic=True)

        def do(session: Session) -> list[Published]:
            for declared in wanted.subscriptions:
                if not _is_subscribed(session, declared):
                    self._creation(declared.queue, declared.settings)(session)
                    self.broker.topics.subscribe(
                        declared.topic,
                        declared.name,
                        kinds=declared.kinds,
                        dispatch=declared.dispatch,
                        change=declared.wanted.change,
                    ).within(session)
            return [Published.copy_of(one) for one in publish.within(session)]

        return write(self.broker.store, do)

    def _completion(self, receipt: str, result: str | None) -> LeaseAct:
        messages = self.broker.messages
        return messages.plan(messages.read_receipt(receipt), Verb.COMPLETE, result=result)

    def _results(
        self, queue: str, answers: Sequence[store.Sent | PenstockError]
    ) -> list[SendResult]:
        error_of = self.broker.messages.error_of
        return [
            error_of(queue, a) if isinstance(a, PenstockError) else Sent(a.id, a.is_duplicate)
            for a in answers
        ]

    def _new(self, queue: Queue, drafts: Drafts) -> list[NewMessage]:
        return [self.broker.messages.draft(queue, draft) for draft in drafts]


def _is_subscribed(session: Session, wanted: DeclaredSubscription) -> bool:
    topic = session.topics.find(wanted.topic)
    found = None if topic is None else session.topics.subscription(topic.topic_no, wanted.name)
    if found is None:
        return False
    is_same = found.kinds == wanted.kinds and found.dispatch is wanted.dispatch
    return is_same and wanted.wanted.change(found.settings) == found.settings


def _raise_error(answers: Sequence[store.Acted | PenstockError]) -> None:
    for answer in answers:
        if isinstance(answer, PenstockError):
            raise answer
