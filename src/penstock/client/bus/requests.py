"""What an application asks of topics and subscriptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from penstock.api.topics import Published
from penstock.client.errors import no_transaction
from penstock.client.local.backend import ensure_queue, queue_settings
from penstock.client.remote.backend import to_wire
from penstock.client.remote.server import Remote
from penstock.client.request_kinds import Ask
from penstock.domain import topic as topics
from penstock.domain.errors import TopicNotFound
from penstock.domain.message.draft import Draft
from penstock.domain.topic import Dispatch
from penstock.ports.store import Session
from penstock.wiring.broker import Broker


class Declared(msgspec.Struct, frozen=True):
    """A subscription that this application has handlers for."""

    topic: str
    name: str
    kinds: tuple[str, ...]
    dispatch: Dispatch


class Subscribe(Ask[None]):
    def __init__(self, wanted: Declared) -> None:
        self._wanted = wanted

    def in_store(self, broker: Broker) -> Callable[[Session], None]:
        w = self._wanted
        do = broker.bus.subscribing(w.topic, w.name, kinds=w.kinds, dispatch=w.dispatch)

        def run(session: Session) -> None:
            do(session)

        return run

    def over_http(self, remote: Remote) -> None:
        w = self._wanted
        remote.topics.subscribe(w.topic, w.name, kinds=w.kinds, dispatch=w.dispatch)


class Publish(Ask[list[Published]]):
    """A topic that nobody has made yet is made."""

    def __init__(self, topic: str, drafts: Sequence[Draft], node: str | None) -> None:
        self._topic = topics.check_topic(topic)
        self._drafts = drafts
        self._node = node

    def in_store(self, broker: Broker) -> Callable[[Session], list[Published]]:
        do = broker.bus.publishing(self._topic, self._drafts, node=self._node, makes_topic=True)
        return lambda session: [Published.of(one) for one in do(session)]

    def over_http(self, remote: Remote) -> list[Published]:
        drafts = [to_wire(draft) for draft in self._drafts]
        try:
            return remote.topics.publish_batch(self._topic, drafts, node=self._node)
        except TopicNotFound:
            remote.topics.put(self._topic)
            return remote.topics.publish_batch(self._topic, drafts, node=self._node)


class AreSubscribed(Ask[bool]):
    """Whether all these subscriptions exist, committed and as declared."""

    def __init__(self, wanted: Sequence[Declared]) -> None:
        self._wanted = wanted

    def in_store(self, broker: Broker) -> Callable[[Session], bool]:
        return lambda session: not _missing(session, self._wanted)

    def over_http(self, remote: Remote) -> bool:
        raise no_transaction()


class SubscribeAndPublish(Ask[list[Published]]):
    """Create what is missing of the subscriptions and their queues, then publish."""

    def __init__(
        self,
        wanted: Sequence[Declared],
        queues: Mapping[str, Mapping[str, Any]],
        publish: Ask[list[Published]],
    ) -> None:
        self._wanted = wanted
        self._queues = queues
        self._publish = publish

    def in_store(self, broker: Broker) -> Callable[[Session], list[Published]]:
        publish, now = self._publish.in_store(broker), broker.clock.now()
        limits = broker.settings.limits
        queues = {name: queue_settings(name, s, limits) for name, s in self._queues.items()}

        def run(session: Session) -> list[Published]:
            for wanted in _missing(session, self._wanted):
                # The queue first, with its settings and without the directory: the caller may
                # still roll it back.
                name = topics.queue_name(wanted.topic, wanted.name)
                ensure_queue(session, name, queues[name], now=now)
                Subscribe(wanted).in_store(broker)(session)
            return publish(session)

        return run

    def over_http(self, remote: Remote) -> list[Published]:
        raise no_transaction()


def _missing(session: Session, wanted: Sequence[Declared]) -> list[Declared]:
    return [one for one in wanted if not _is_subscribed(session, one)]


def _is_subscribed(session: Session, wanted: Declared) -> bool:
    topic = session.topics.find(wanted.topic)
    found = None if topic is None else session.topics.subscription(topic.topic_no, wanted.name)
    return found is not None and found.kinds == wanted.kinds and found.dispatch is wanted.dispatch
