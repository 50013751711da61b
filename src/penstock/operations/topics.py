"""Topics, their subscriptions, and the events published to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.api import topics
from penstock.api.topics import AllPublished, Event, Events, Published, Subscribe, Subscription
from penstock.domain.access.api_key import Role, allow, sees
from penstock.domain.bus.topic import check_own_queue, check_topic, queue_name
from penstock.domain.errors import TopicNotFound
from penstock.domain.limits import Limits
from penstock.domain.message.draft import Draft
from penstock.operations.call import Call, Handlers, StatusAnswer, put_answer
from penstock.operations.drafts import draft_of
from penstock.operations.paging import check_batch
from penstock.operations.queues import allow_dead_letters
from penstock.ports.unit_of_work import Steps, Work
from penstock.services.bus import Bus
from penstock.services.queues import QueueService
from penstock.services.topics import TopicService, TopicView


class TopicOperations:
    def __init__(
        self,
        service: TopicService,
        bus: Bus,
        queues: QueueService,
        limits: Limits,
        *,
        auto_create: bool,
    ) -> None:
        self._topics = service
        self._bus = bus
        self._queues = queues
        self._limits = limits
        self._auto_create = auto_create

    def handlers(self) -> Handlers:
        return {
            topics.PUT: self.put,
            topics.LIST: self.page,
            topics.GET: self.get,
            topics.REMOVE: self.remove,
            topics.SUBSCRIBE: self.subscribe,
            topics.GET_SUBSCRIPTION: self.subscription,
            topics.UNSUBSCRIBE: self.unsubscribe,
            topics.PUBLISH: self.publish,
            topics.PUBLISH_BATCH: self.publish_batch,
        }

    # --- topics ---

    def put(self, call: Call[None, None]) -> Work[topics.Topic | StatusAnswer[topics.Topic]]:
        put = self._topics.put(_name(call, Role.OPERATE))
        return put.map(lambda done: put_answer(_topic(call, done.view), done.is_new))

    def page(self, call: Call[None, topics.ListTopics]) -> Steps[topics.Topics]:
        limit = call.query.limit
        found = yield from self._topics.visible(
            lambda name: sees(call.caller, name),
            prefix=call.query.prefix or "",
            after=call.query.cursor or "",
            limit=limit,
        )
        return topics.Topics(
            topics=[topics.Topic.of(topic, call.instant) for topic in found],
            next=found[-1].name if len(found) == limit else None,
        )

    def get(self, call: Call[None, None]) -> Work[topics.Topic]:
        return self._topics.get(_name(call, Role.READ)).map(lambda view: _topic(call, view))

    def remove(self, call: Call[None, topics.RemoveTopic]) -> Work[None]:
        return self._topics.remove(_name(call, Role.OPERATE), force=call.query.force)

    # --- subscriptions ---

    def subscribe(
        self, call: Call[Subscribe, None]
    ) -> Work[Subscription | StatusAnswer[Subscription]]:
        topic, name = _subscription(call, Role.OPERATE)
        wanted = call.body
        allow_dead_letters(call.caller, wanted.settings and wanted.settings.dead_letter_queue)
        subscribed = self._topics.subscribe(
            topic,
            name,
            kinds=wanted.kinds,
            dispatch=wanted.dispatch,
            settings=wanted.settings,
            change=wanted.change,
            is_enabled=None if wanted.endpoint is None else wanted.endpoint.enabled,
        )
        return subscribed.map(
            lambda done: put_answer(Subscription.of(done.subscription, call.instant), done.is_new)
        )

    def subscription(self, call: Call[None, None]) -> Work[Subscription]:
        found = self._topics.subscription(*_subscription(call, Role.READ))
        return found.map(lambda one: Subscription.of(one, call.instant))

    def unsubscribe(self, call: Call[None, topics.RemoveSubscription]) -> Steps[None]:
        with_queue = call.query.with_queue
        topic, name = _subscription(call, Role.OPERATE)
        found = yield from self._topics.subscription(topic, name)
        if with_queue:
            check_own_queue(found)
            yield from self._queues.purge(found.queue)
        yield from self._topics.unsubscribe(topic, name, with_queue=with_queue)

    # --- events ---

    def publish(self, call: Call[Event, None]) -> Steps[Published]:
        [published] = yield from self._publish(call, [draft_of(call.body)], call.body.node)
        return published

    def publish_batch(self, call: Call[Events, None]) -> Steps[AllPublished]:
        events = call.body.events
        check_batch(len(events), self._limits)
        drafts = [draft_of(event) for event in events]
        published = yield from self._publish(call, drafts, call.body.node)
        return AllPublished(events=published)

    def _publish(
        self, call: Call[Any, None], drafts: Sequence[Draft], node: str | None
    ) -> Steps[list[Published]]:
        topic = _name(call, Role.PRODUCE)
        try:
            published = yield from self._bus.publish(topic, drafts, node=node)
        except TopicNotFound:
            if not self._auto_create:
                raise
            yield from self._topics.put(topic)
            published = yield from self._bus.publish(topic, drafts, node=node)
        return [Published.copy_of(one) for one in published]


def _name(call: Call[Any, Any], role: Role) -> str:
    """The name of the topic; a key's queue patterns apply to topics, too."""
    name = check_topic(call.path["topic"])
    allow(call.caller, role, name)
    return name


def _subscription(call: Call[Any, Any], role: Role) -> tuple[str, str]:
    topic, name = call.path["topic"], call.path["subscription"]
    allow(call.caller, role, queue_name(topic, name))
    return topic, name


def _topic(call: Call[Any, Any], view: TopicView) -> topics.Topic:
    return topics.Topic.of(view.topic, call.instant, view.subscriptions)
