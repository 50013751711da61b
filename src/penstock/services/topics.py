"""Topics and subscriptions: create, change, find, remove."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from penstock.domain.bus import topic as topics
from penstock.domain.bus.endpoint import ENDPOINTS, Endpoint, queue_settings
from penstock.domain.bus.subscription import (
    DEFAULTS,
    Dispatch,
    MessageFormat,
    Subscription,
    SubscriptionSettings,
    check_kinds,
    check_subscription,
)
from penstock.domain.bus.topic import PLAIN, Topic, TopicSettings
from penstock.domain.circuit.circuit import circuit_hash
from penstock.domain.delivery.delivery import is_of_endpoint
from penstock.domain.errors import (
    InvalidRequest,
    NotForDeliveries,
    QueueExists,
    QueueNotFound,
    SubscriptionNotFound,
    TopicNotEmpty,
    TopicNotFound,
)
from penstock.domain.queue.queue import Queue, QueueSettings, check_settings
from penstock.ports.clock import Clock, Dice
from penstock.ports.store import Session, Store
from penstock.ports.unit_of_work import Steps, Work, read, write
from penstock.services.circuits import transitions
from penstock.services.directory import Directory
from penstock.services.queues import CHUNK

_REVISION_DIGITS = 13
ChangeQueue = Callable[[SubscriptionSettings, QueueSettings], QueueSettings]


class TopicView(msgspec.Struct, frozen=True):
    topic: Topic
    subscriptions: list[Subscription]


class PutTopic(msgspec.Struct, frozen=True):
    view: TopicView
    is_new: bool


class SubscribeResult(msgspec.Struct, frozen=True):
    subscription: Subscription
    is_new: bool


class TopicService:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        dice: Dice,
        directory: Directory,
        *,
        prepare_envelopes: Callable[[Session], None] = lambda session: None,
        check_address: Callable[[Endpoint], None] = lambda endpoint: None,
    ) -> None:
        """`prepare_envelopes`: in the transaction of a subscription to SNS's envelopes.

        `check_address`: raises InvalidRequest for an endpoint that deliveries must not reach.
        """
        self._store = store
        self._clock = clock
        self._dice = dice
        self._directory = directory
        self._prepare_envelopes = prepare_envelopes
        self._check_address = check_address

    # --- topics ---

    def put(self, name: str, settings: TopicSettings = PLAIN) -> Work[PutTopic]:
        """Create the topic; one that exists keeps its settings."""
        topics.check_topic(name)
        now = self._clock.now()

        def do(session: Session) -> PutTopic:
            revision = self._revision()
            is_new = session.topics.add(name, now=now, settings=settings, revision=revision)
            return PutTopic(_view(session, existing_topic(session, name)), is_new)

        return write(self._store, do)

    def change(self, name: str, change: Callable[[TopicSettings], TopicSettings]) -> Work[Topic]:
        """Derive its settings from the present ones; `change` may run more than once."""

        def do(session: Session) -> Topic:
            revision = self._revision()
            topic_no = existing_topic(session, name).topic_no
            session.topics.touch(topic_no, revision=revision)
            settings = change(existing_topic(session, name).settings)
            session.topics.change(topic_no, settings, revision=revision)
            return existing_topic(session, name)

        return write(self._store, do)

    def get(self, name: str) -> Work[TopicView]:
        return read(self._store, lambda session: _view(session, existing_topic(session, name)))

    def page(self, *, prefix: str = "", after: str = "", limit: int = 100) -> Work[list[Topic]]:
        return read(self._store, lambda s: s.topics.page(prefix=prefix, after=after, limit=limit))

    def visible(
        self, sees: Callable[[str], bool], *, prefix: str = "", after: str = "", limit: int
    ) -> Steps[list[Topic]]:
        """A page of the topics that the caller sees: a cursor must not name another one."""
        shown: list[Topic] = []
        while True:
            found = yield from self.page(prefix=prefix, after=after, limit=limit)
            shown += [topic for topic in found if sees(topic.name)]
            if len(found) < limit or len(shown) >= limit:
                return shown[:limit]
            after = found[-1].name

    def remove(self, name: str, *, force: bool = False) -> Work[None]:
        """Remove it; with force also its subscriptions, but not their queues and messages."""
        now = self._clock.now()

        def do(session: Session) -> None:
            view = _view(session, existing_topic(session, name))
            if view.subscriptions and not force:
                raise TopicNotEmpty(f"topic {name!r} has subscriptions; remove them or use force")
            session.topics.remove(view.topic.topic_no)
            _remove_endpoints(session, view.subscriptions, now=now)

        return write(self._store, do)

    # --- subscriptions ---

    def subscribe(
        self,
        topic: str,
        name: str,
        *,
        kinds: Sequence[str] = (),
        dispatch: Dispatch = Dispatch.SHARED,
        settings: QueueSettings | None = None,
        change: Callable[[SubscriptionSettings], SubscriptionSettings] = lambda present: present,
        is_enabled: bool | None = None,
    ) -> Work[SubscribeResult]:
        """Create or change the subscription; also the topic and the queue, if needed.

        It receives events that are published from now on.  `settings`: of its queue; None leaves
        the queue as it is.  `change`: derives the subscription's settings from the present ones.
        `is_enabled`: whether deliveries to its endpoint go out; None leaves that as it is.
        """
        queue_name = topics.queue_name(topic, name)
        wanted = check_kinds(tuple(kinds))
        topics.check_dispatch(queue_name, dispatch)
        if settings is not None:
            check_settings(settings, name=queue_name)
        endpoint = check_subscription(change(DEFAULTS)).endpoint  # before a transaction
        if endpoint is not None:
            if dispatch is Dispatch.STICKY:
                raise InvalidRequest("events for an endpoint have dispatch shared: no worker runs")
            self._check_address(endpoint)
        now = self._clock.now()

        def do(session: Session) -> SubscribeResult:
            revision = self._revision()
            topic_no = self._touch_or_add(session, topic, now=now, revision=revision)
            before = session.topics.subscription(topic_no, name)
            present = DEFAULTS if before is None else before.settings
            changed = change(present)
            if before is not None and (changed.endpoint is None) is not (present.endpoint is None):
                raise InvalidRequest(
                    "a subscription keeps or does not have an endpoint; remove it with its queue "
                    "and create it again"
                )
            queue = self._queue_for(session, queue_name, settings, changed, now=now)
            _check_subscription_limit(session, topic_no, name)
            is_new = session.topics.subscribe(
                topic_no,
                name,
                queue_no=queue.queue_no,
                kinds=wanted,
                dispatch=dispatch,
                now=now,
                settings=self._checked(session, changed, now=now),
            )
            if is_enabled is not None and queue.is_paused is is_enabled:
                self._directory.cache(
                    session.queues.change(queue.queue_no, is_paused=not is_enabled, now=now)
                )
            return SubscribeResult(existing_subscription(session, topic, name), is_new)

        return write(self._store, do)

    def subscribe_queue(
        self, topic: str, name: str, queue: str, settings: SubscriptionSettings
    ) -> Work[SubscribeResult]:
        """Subscribe a queue that exists, and that others may feed, too, to an existing topic."""
        check_subscription(settings)
        now = self._clock.now()

        def do(session: Session) -> SubscribeResult:
            revision = self._revision()
            topic_no = existing_topic(session, topic).topic_no
            session.topics.touch(topic_no, revision=revision)
            found = session.queues.lock(queue)
            if found is None:
                raise QueueNotFound(queue)
            _check_subscription_limit(session, topic_no, name)
            is_new = session.topics.subscribe(
                topic_no,
                name,
                queue_no=found.queue_no,
                kinds=(),
                dispatch=Dispatch.SHARED,
                now=now,
                settings=self._checked(session, settings, now=now),
                shares_queue=True,
            )
            return SubscribeResult(existing_subscription(session, topic, name), is_new)

        return write(self._store, do)

    def change_subscription(
        self,
        topic: str,
        name: str,
        change: Callable[[SubscriptionSettings], SubscriptionSettings],
        *,
        change_queue: ChangeQueue | None = None,
    ) -> Work[Subscription]:
        """Derive its settings from the present ones; `change` may run more than once.

        `change_queue`: derives the settings of its queue from its own and the present ones.
        """
        now = self._clock.now()

        def do(session: Session) -> Subscription:
            revision = self._revision()
            topic_no = existing_topic(session, topic).topic_no
            session.topics.touch(topic_no, revision=revision)
            found = existing_subscription(session, topic, name)
            settings = self._checked(session, change(found.settings), now=now)
            if change_queue is not None:
                queue = session.queues.lock(found.queue) or session.queues.named(found.queue)
                wanted = check_settings(change_queue(settings, queue.settings), name=queue.name)
                self._queue(session, queue.name, wanted, now=now)
            session.topics.subscribe(
                topic_no,
                name,
                queue_no=found.queue_no,
                kinds=found.kinds,
                dispatch=found.dispatch,
                now=now,
                settings=settings,
                shares_queue=True,
            )
            return existing_subscription(session, topic, name)

        return write(self._store, do)

    def subscription(self, topic: str, name: str) -> Work[Subscription]:
        return read(self._store, lambda session: existing_subscription(session, topic, name))

    def subscriptions(
        self, *, after: tuple[str, str] = ("", ""), limit: int
    ) -> Work[list[Subscription]]:
        """Of all topics."""
        return read(self._store, lambda s: s.topics.all_subscriptions(after=after, limit=limit))

    def unsubscribe(self, topic: str, name: str, *, with_queue: bool = False) -> Work[None]:
        """Remove the subscription; its queue stays, so that its messages can still be handled.

        `with_queue` also removes the queue and its messages; if there may be many, purge it first
        (`Queues.purge_some`).  Raises InvalidRequest for a queue that existed before.
        """
        now = self._clock.now()

        def do(session: Session) -> None:
            revision = self._revision()
            found = existing_subscription(session, topic, name)
            if with_queue:
                topics.check_own_queue(found)
            session.topics.touch(existing_topic(session, topic).topic_no, revision=revision)
            session.topics.unsubscribe(found.subscription_no)
            _remove_endpoints(session, [found], now=now)
            if with_queue and session.queues.find_to_remove(found.queue) is not None:
                while session.messages.purge(found.queue_no, limit=CHUNK, now=now):
                    pass
                session.queues.remove(found.queue_no, now=now)
                self._directory.forget(found.queue)

        return write(self._store, do)

    def _checked(
        self, session: Session, settings: SubscriptionSettings, *, now: int
    ) -> SubscriptionSettings:
        check_subscription(settings)
        if settings.endpoint is not None:
            session.documents.put(ENDPOINTS, "", now=now)  # so that nodes notice
        if settings.format is MessageFormat.SNS:
            self._prepare_envelopes(session)
        return settings

    def _touch_or_add(self, session: Session, topic: str, *, now: int, revision: int) -> int:
        session.topics.add(topic, now=now, revision=revision)
        topic_no = existing_topic(session, topic).topic_no
        session.topics.touch(topic_no, revision=revision)
        return topic_no

    def _queue_for(
        self,
        session: Session,
        name: str,
        settings: QueueSettings | None,
        wanted: SubscriptionSettings,
        *,
        now: int,
    ) -> Queue:
        if wanted.endpoint is None:
            return self._queue(session, name, settings, now=now)
        is_new = session.queues.find(name) is None
        if is_new or settings is not None:
            settings = queue_settings(settings)
        found = self._queue(session, name, settings, now=now)
        if not is_of_endpoint(found):
            raise NotForDeliveries(name)
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

    def _revision(self) -> int:
        """A random number: a rolled-back transaction's is never used again, also not by a retry."""
        return int(self._dice.digits(_REVISION_DIGITS), 16)


def _remove_endpoints(session: Session, gone: Sequence[Subscription], *, now: int) -> None:
    """Close and remove the circuits of their endpoints, which releases their queues."""
    paths = [one.path for one in gone if one.settings.endpoint is not None]
    if paths:
        patterns = {circuit_hash(path): path for path in paths}
        transitions.close_and_remove(session, patterns, now=now)
        session.documents.put(ENDPOINTS, "", now=now)  # so that nodes notice


def existing_topic(session: Session, name: str) -> Topic:
    found = session.topics.find(name)
    if found is None:
        raise TopicNotFound(name)
    return found


def existing_subscription(session: Session, topic: str, name: str) -> Subscription:
    found = session.topics.subscription(existing_topic(session, topic).topic_no, name)
    if found is None:
        raise SubscriptionNotFound(f"{topic}/{name}")
    return found


def _check_subscription_limit(session: Session, topic_no: int, name: str) -> None:
    is_full = session.topics.number_of_subscriptions(topic_no) >= topics.MAX_SUBSCRIPTIONS
    if is_full and session.topics.subscription(topic_no, name) is None:
        raise InvalidRequest(f"a topic has at most {topics.MAX_SUBSCRIPTIONS} subscriptions")


def _view(session: Session, topic: Topic) -> TopicView:
    return TopicView(topic, session.topics.subscriptions(topic.topic_no))
