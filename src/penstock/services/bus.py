"""The bus: publishing events, and queues of events that one worker must handle itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from penstock.domain.bus import topic as topics
from penstock.domain.bus.formats import Arns, PublishedEvent
from penstock.domain.bus.subscription import Dispatch, Subscription, wants
from penstock.domain.bus.topic import Published, TakenKey, Topic
from penstock.domain.errors import (
    PenstockError,
    QueueExists,
    SubscriptionNotFound,
    TopicNotFound,
)
from penstock.domain.limits import MINUTE, Limits
from penstock.domain.message.draft import ID_DIGITS, Draft, NewMessage, send, uuid7
from penstock.domain.queue.queue import Queue
from penstock.domain.worker import Worker, is_alive
from penstock.ports.clock import Clock, Dice
from penstock.ports.store import Sent, Session, Store
from penstock.ports.unit_of_work import Work, read, write
from penstock.services.queues import CHUNK

STICKY = Dispatch.STICKY
DEDUP_WINDOW_MS = 5 * MINUTE  # of an ordered topic
_MAX_CACHED = 1_000  # topics

Targets = list[Subscription]
NO_ARNS = Arns("", "")  # without the SNS API


class AbandonedQueue(msgspec.Struct, frozen=True):
    """The queue of a worker that will no longer claim from it."""

    queue: str
    queue_no: int
    to: int | None  # the queue of its subscription, if that still exists


class Bus:
    def __init__(
        self, store: Store, clock: Clock, dice: Dice, limits: Limits, arns: Arns = NO_ARNS
    ) -> None:
        self._store = store
        self._clock = clock
        self._dice = dice
        self._limits = limits
        self._arns = arns
        # By topic; valid as long as the topic has this revision.
        self._subscriptions: dict[int, tuple[int, Targets]] = {}

    def publish(
        self,
        topic: str,
        drafts: Sequence[Draft],
        *,
        node: str | None = None,
        create_topic: bool = False,
        texts: Sequence[Mapping[str, str]] | None = None,
    ) -> Work[list[Published]]:
        """Send each event to every matching subscription, one message each: all or none.

        `node`: the worker that publishes; sticky subscriptions leave the event to it.
        `create_topic`: create a topic that does not exist.
        `texts`: for each event its bodies for single protocols, in place of the draft's.
        Raises InvalidRequest; TopicNotFound, TooLarge and QueueFull when it runs.
        """
        topics.check_topic(topic)
        for draft in drafts:
            topics.check_event(draft)
        now = self._clock.now()
        ids = [self._new_id(now) for _ in drafts]

        def do(session: Session) -> list[Published]:
            found = session.topics.to_publish(topic, now=now)
            if found is None and create_topic:
                session.topics.add(topic, now=now)
                found = session.topics.find(topic)
            if found is None:
                raise TopicNotFound(topic)
            events = [
                PublishedEvent(
                    draft, event_id=event_id, topic=found, texts=texts[i] if texts else {}
                )
                for i, (draft, event_id) in enumerate(zip(drafts, ids, strict=True))
            ]
            known: list[TakenKey | None] = [None] * len(events)
            if found.settings.is_ordered:
                known = self._number(session, events, now=now)
            goes_to, queues = self._targets(session, found, events)
            new_events = [
                (event, targets)
                for event, targets, first in zip(events, goes_to, known, strict=True)
                if first is None
            ]
            topics.check_fan_out(sum(len(targets) for _, targets in new_events))
            new = self._fan_out(session, new_events, queues, node=node, now=now)
            unmatched = sum(not targets for _, targets in new_events)
            sent = iter(
                session.topics.publish(
                    found.topic_no, new, events=len(new_events), unmatched=unmatched
                )
            )
            return [
                _published(event, targets, first, sent)
                for event, targets, first in zip(events, goes_to, known, strict=True)
            ]

        return write(self._store, do)

    def _number(
        self, session: Session, events: Sequence[PublishedEvent], *, now: int
    ) -> list[TakenKey | None]:
        """Number the events of an ordered topic; returns the first event of each duplicate."""
        topic = events[0].topic
        settings = topic.settings
        for event in events:
            topics.check_ordered(topic, event.draft)
            event.draft = topics.with_dedup_key(event.draft)
        last = session.topics.number(topic.topic_no, count=len(events))
        known: list[TakenKey | None] = []
        for number, event in enumerate(events, start=last - len(events) + 1):
            key = topics.stored_key(settings.dedup_scope, event.draft)
            wanted = TakenKey(key, event.id, number)
            taken = session.topics.take_key(
                topic.topic_no, wanted, until_at=now + DEDUP_WINDOW_MS, now=now
            )
            event.sequence = number
            known.append(None if taken == wanted else taken)
        return known

    def _targets(
        self, session: Session, topic: Topic, events: Sequence[PublishedEvent]
    ) -> tuple[list[Targets], dict[int, Queue]]:
        """For each event the subscriptions that it goes to, and their queues."""
        cached = self._subscriptions.get(topic.topic_no)
        if cached is None or cached[0] != topic.revision:
            if len(self._subscriptions) >= _MAX_CACHED:
                self._subscriptions.clear()
            cached = topic.revision, session.topics.subscriptions(topic.topic_no)
            self._subscriptions[topic.topic_no] = cached
        matched = [
            [s for s in cached[1] if wants(s, event.draft.kind, event.filtered(s))]
            for event in events
        ]
        queues = session.topics.queues_by_numbers({s.queue_no for found in matched for s in found})
        # A subscription ends with its queue.
        return [[s for s in found if s.queue_no in queues] for found in matched], queues

    def _fan_out(
        self,
        session: Session,
        events: Sequence[tuple[PublishedEvent, Targets]],
        queues: dict[int, Queue],
        *,
        node: str | None,
        now: int,
    ) -> list[NewMessage]:
        sticky = {s.queue_no: s for _, found in events for s in found if s.dispatch is STICKY}
        worker = _claiming(session, node, now=now) if sticky else None
        if worker is not None:
            for no, subscription in sticky.items():
                if _claims_from(worker, subscription.queue) and not queues[no].is_paused:
                    queues[no] = self._worker_queue(
                        session, subscription, queues[no], worker, now=now
                    )
        limits, arns = self._limits, self._arns
        return [
            send(
                event.draft_for(subscription, arns=arns, now=now),
                queues[subscription.queue_no],
                now=now,
                message_id=self._new_id(now),
                limits=limits,
                is_of_bus=True,
            )
            for event, found in events
            for subscription in found
        ]

    def _worker_queue(
        self,
        session: Session,
        subscription: Subscription,
        shared: Queue,
        worker: Worker,
        *,
        now: int,
    ) -> Queue:
        """The queue for events that a worker published itself; created when first needed."""
        name = topics.node_queue_name(shared.name, worker.id)
        found = session.queues.find(name)
        if found is None:
            try:
                found = session.queues.add(name, shared.settings, now=now)
            except QueueExists:  # the worker publishes on two threads
                return self._worker_queue(session, subscription, shared, worker, now=now)
            session.topics.add_node(
                found.queue_no, subscription_no=subscription.subscription_no, node=worker.id
            )
        return found

    # --- events that one worker must handle itself ---

    def abandoned(self, *, now: int) -> Work[list[AbandonedQueue]]:
        """Queues of workers that are gone or draining, or whose subscription is not sticky."""

        def do(session: Session) -> list[AbandonedQueue]:
            found = []
            for own, subscription in session.topics.node_queues():
                is_kept = subscription is not None and subscription.dispatch is STICKY
                if is_kept and _claiming(session, own.node, now=now) is not None:
                    continue
                name = session.queues.get(own.queue_no).name
                to = None if subscription is None else subscription.queue_no
                found.append(AbandonedQueue(name, own.queue_no, to))
            return found

        return read(self._store, do)

    def hand_over_some(self, left: AbandonedQueue, *, now: int) -> Work[int]:
        """Move a chunk of its ready messages to the shared queue; repeat until it answers 0.

        Leased and delayed messages follow when they are ready; dead ones stay for inspection.
        """
        to = left.to
        if to is None:  # unsubscribed: there is no queue to hand over to
            raise SubscriptionNotFound(left.queue)
        return write(
            self._store, lambda s: s.topics.hand_over(left.queue_no, to=to, limit=CHUNK, now=now)
        )

    def forget_removed(self) -> Work[int]:
        return write(self._store, lambda session: session.topics.forget_nodes())

    def _new_id(self, now: int) -> str:
        return uuid7(now, self._dice.digits(ID_DIGITS))


def _claiming(session: Session, node: str | None, *, now: int) -> Worker | None:
    """The worker with that id, unless it is gone or draining."""
    worker = None if node is None else session.workers.find(node)
    if worker is None or worker.is_draining or not is_alive(worker, now=now):
        return None
    return worker


def _claims_from(worker: Worker, queue: str) -> bool:
    return not worker.queues or queue in worker.queues


def _published(
    event: PublishedEvent,
    targets: Targets,
    first: TakenKey | None,
    sent: Iterator[Sent | PenstockError],
) -> Published:
    if first is not None:
        return Published(first.event_id, 0, len(targets), first.number)
    duplicates = 0
    for _ in targets:
        answer = next(sent)
        if isinstance(answer, PenstockError):
            raise answer  # if one is refused, none is published
        duplicates += answer.is_duplicate
    return Published(event.id, len(targets) - duplicates, duplicates, event.sequence)
