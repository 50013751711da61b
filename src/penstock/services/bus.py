"""The bus: topics, subscriptions and publishing."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.domain import topic as topics
from penstock.domain.errors import (
    InvalidRequest,
    PenstockError,
    QueueExists,
    SubscriptionNotFound,
    TopicNotEmpty,
    TopicNotFound,
)
from penstock.domain.limits import Limits
from penstock.domain.message.draft import ID_DIGITS, Draft, NewMessage, send, uuid7
from penstock.domain.queue.queue import Queue, QueueSettings, check_settings
from penstock.domain.topic import Dispatch, Published, Subscription, Topic
from penstock.domain.worker import Worker, is_alive
from penstock.ports.clock import Clock, Dice
from penstock.ports.store import Sent, Session, Store
from penstock.ports.unit_of_work import Work, read, write
from penstock.services.directory import Directory
from penstock.services.queues import CHUNK

STICKY = Dispatch.STICKY


class TopicView(msgspec.Struct, frozen=True):
    topic: Topic
    subscriptions: list[Subscription]


class PutTopic(msgspec.Struct, frozen=True):
    view: TopicView
    is_new: bool


class SubscribeResult(msgspec.Struct, frozen=True):
    subscription: Subscription
    is_new: bool


class AbandonedQueue(msgspec.Struct, frozen=True):
    """The queue of a worker that will no longer claim from it."""

    queue: str
    queue_no: int
    to: int | None  # the queue of its subscription, if that still exists


class Bus:
    def __init__(
        self, store: Store, clock: Clock, dice: Dice, limits: Limits, directory: Directory
    ) -> None:
        self._store = store
        self._clock = clock
        self._dice = dice
        self._limits = limits
        self._directory = directory

    def put(self, name: str) -> Work[PutTopic]:
        """Create the topic, unless it exists."""
        topics.check_topic(name)
        now = self._clock.now()

        def do(session: Session) -> PutTopic:
            is_new = session.topics.add(name, now=now)
            return PutTopic(_view(session, _existing(session, name)), is_new)

        return write(self._store, do)

    def get(self, name: str) -> Work[TopicView]:
        return read(self._store, lambda session: _view(session, _existing(session, name)))

    def page(self, *, prefix: str = "", after: str = "", limit: int = 100) -> Work[list[Topic]]:
        return read(self._store, lambda s: s.topics.page(prefix=prefix, after=after, limit=limit))

    def remove(self, name: str, *, force: bool = False) -> Work[None]:
        """Remove it; with force also its subscriptions, but not their queues and messages."""

        def do(session: Session) -> None:
            view = _view(session, _existing(session, name))
            if view.subscriptions and not force:
                raise TopicNotEmpty(f"topic {name!r} has subscriptions; remove them or use force")
            session.topics.remove(view.topic.topic_no)

        return write(self._store, do)

    def subscribe(
        self,
        topic: str,
        name: str,
        *,
        kinds: Sequence[str] = (),
        dispatch: Dispatch = Dispatch.SHARED,
        settings: QueueSettings | None = None,
    ) -> Work[SubscribeResult]:
        """Create or change the subscription; also the topic and the queue, if needed.

        It receives events that are published from now on.  `settings`: of its queue; None leaves
        the queue as it is.
        """
        queue_name = topics.queue_name(topic, name)
        wanted = topics.check_kinds(tuple(kinds))
        topics.check_dispatch(queue_name, dispatch)
        if settings is not None:
            check_settings(settings, name=queue_name)
        now = self._clock.now()

        def do(session: Session) -> SubscribeResult:
            queue = self._queue(session, queue_name, settings, now=now)
            session.topics.add(topic, now=now)
            topic_no = _existing(session, topic).topic_no
            _check_subscription_limit(session, topic_no, name)
            is_new = session.topics.subscribe(
                topic_no, name, queue_no=queue.queue_no, kinds=wanted, dispatch=dispatch, now=now
            )
            return SubscribeResult(_subscription(session, topic, name), is_new)

        return write(self._store, do)

    def subscription(self, topic: str, name: str) -> Work[Subscription]:
        return read(self._store, lambda session: _subscription(session, topic, name))

    def unsubscribe(self, topic: str, name: str, *, with_queue: bool = False) -> Work[None]:
        """Remove the subscription; its queue stays, so that its messages can still be handled.

        `with_queue` also removes the queue and its messages; if there may be many, purge it first
        (`Queues.purge_some`).
        """
        now = self._clock.now()

        def do(session: Session) -> None:
            found = _subscription(session, topic, name)
            session.topics.unsubscribe(found.subscription_no)
            if with_queue and session.queues.find_to_remove(found.queue) is not None:
                while session.messages.purge(found.queue_no, limit=CHUNK, now=now):
                    pass
                session.queues.remove(found.queue_no, now=now)
                self._directory.forget(found.queue)

        return write(self._store, do)

    def publish(
        self,
        topic: str,
        drafts: Sequence[Draft],
        *,
        node: str | None = None,
        create_topic: bool = False,
    ) -> Work[list[Published]]:
        """Send each event to every matching subscription, one message each: all or none.

        `node`: the worker that publishes; sticky subscriptions leave the event to it.
        `create_topic`: create a topic that does not exist.
        Raises InvalidRequest; TopicNotFound, TooLarge and QueueFull when it runs.
        """
        topics.check_topic(topic)
        for draft in drafts:
            topics.check_event(draft)
        now = self._clock.now()
        ids = [self._new_id(now) for _ in drafts]
        marked = [
            topics.as_event(draft, topic=topic, event_id=event_id)
            for draft, event_id in zip(drafts, ids, strict=True)
        ]

        def do(session: Session) -> list[Published]:
            found = session.topics.to_publish(topic, now=now)
            if found is None and create_topic:
                session.topics.add(topic, now=now)
                found = session.topics.find(topic)
            if found is None:
                raise TopicNotFound(topic)
            wanting = session.topics.subscriptions(found.topic_no)
            goes_to = [[s for s in wanting if topics.wants(s, draft.kind)] for draft in marked]
            topics.check_fan_out(sum(map(len, goes_to)))
            new = self._fan_out(session, marked, goes_to, node=node, now=now)
            unmatched = sum(not subscriptions for subscriptions in goes_to)
            sent = session.topics.publish(
                found.topic_no, new, events=len(marked), unmatched=unmatched
            )
            return _publish_results(ids, goes_to, sent)

        return write(self._store, do)

    def _fan_out(
        self,
        session: Session,
        drafts: Sequence[Draft],
        goes_to: Sequence[Sequence[Subscription]],
        *,
        node: str | None,
        now: int,
    ) -> list[NewMessage]:
        queues = session.topics.queues_by_numbers({s.queue_no for found in goes_to for s in found})
        sticky = {s.queue_no: s for found in goes_to for s in found if s.dispatch is STICKY}
        worker = _claiming(session, node, now=now) if sticky else None
        if worker is not None:
            for no, subscription in sticky.items():
                if _claims_from(worker, subscription.queue) and not queues[no].is_paused:
                    queues[no] = self._worker_queue(
                        session, subscription, queues[no], worker, now=now
                    )
        limits = self._limits
        return [
            send(
                draft,
                queues[subscription.queue_no],
                now=now,
                message_id=self._new_id(now),
                limits=limits,
            )
            for draft, found in zip(drafts, goes_to, strict=True)
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

    def _queue(
        self, session: Session, name: str, settings: QueueSettings | None, *, now: int
    ) -> Queue:
        found = session.queues.lock(name)
        if found is None:
            try:
                made = session.queues.add(name, settings or QueueSettings(), now=now)
            except QueueExists:  # another caller has just created it
                return self._queue(session, name, settings, now=now)
            return self._directory.cache(made)
        if settings is None or settings == found.settings:
            return found
        if settings.ordering is not found.settings.ordering:
            raise InvalidRequest("the ordering of a queue cannot be changed; create another queue")
        changed = session.queues.change(found.queue_no, settings=settings, now=now)
        return self._directory.cache(changed)

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


def _publish_results(
    ids: Sequence[str],
    goes_to: Sequence[Sequence[Subscription]],
    sent: Sequence[Sent | PenstockError],
) -> list[Published]:
    answers = iter(sent)
    published = []
    for event_id, subscriptions in zip(ids, goes_to, strict=True):
        duplicates = 0
        for _ in subscriptions:
            answer = next(answers)
            if isinstance(answer, PenstockError):
                raise answer  # if one is refused, none is published
            duplicates += answer.is_duplicate
        published.append(Published(event_id, len(subscriptions) - duplicates, duplicates))
    return published


def _check_subscription_limit(session: Session, topic_no: int, name: str) -> None:
    is_full = session.topics.number_of_subscriptions(topic_no) >= topics.MAX_SUBSCRIPTIONS
    if is_full and session.topics.subscription(topic_no, name) is None:
        raise InvalidRequest(f"a topic has at most {topics.MAX_SUBSCRIPTIONS} subscriptions")


def _existing(session: Session, name: str) -> Topic:
    found = session.topics.find(name)
    if found is None:
        raise TopicNotFound(name)
    return found


def _subscription(session: Session, topic: str, name: str) -> Subscription:
    found = session.topics.subscription(_existing(session, topic).topic_no, name)
    if found is None:
        raise SubscriptionNotFound(f"{topic}/{name}")
    return found


def _view(session: Session, topic: Topic) -> TopicView:
    return TopicView(topic, session.topics.subscriptions(topic.topic_no))
