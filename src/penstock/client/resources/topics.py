"""Topics, their subscriptions, and the events that are published to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from penstock.api import topics
from penstock.api.sends import Draft, SendOptions
from penstock.api.topics import (
    Event,
    Events,
    ListTopics,
    Published,
    RemoveSubscription,
    RemoveTopic,
    Subscription,
    Topic,
)
from penstock.client.channel import Channel
from penstock.domain.topic import Dispatch


class TopicClient:
    def __init__(self, channel: Channel) -> None:
        self._request = channel.request

    def put(self, topic: str) -> Topic:
        """Create it, unless it exists."""
        return self._request(topics.PUT, topic=topic)

    def page(
        self, *, prefix: str = "", limit: int = 100, cursor: str | None = None
    ) -> topics.Topics:
        wanted = ListTopics(prefix=prefix or None, limit=limit, cursor=cursor)
        return self._request(topics.LIST, query=wanted)

    def get(self, topic: str) -> Topic:
        """With its subscriptions; raises TopicNotFound."""
        return self._request(topics.GET, topic=topic)

    def remove(self, topic: str, *, force: bool = False) -> None:
        """With `force` also its subscriptions, but not their queues."""
        self._request(topics.REMOVE, query=RemoveTopic(force=force), topic=topic)

    def subscribe(
        self,
        topic: str,
        name: str,
        *,
        kinds: Sequence[str] = (),
        dispatch: Dispatch | str = Dispatch.SHARED,
        settings: Mapping[str, Any] | None = None,
    ) -> Subscription:
        """Create or change it; the topic and its queue are created if they are missing."""
        wanted: dict[str, Any] = {"kinds": list(kinds), "dispatch": str(dispatch)}
        if settings is not None:
            wanted["settings"] = settings
        return self._request(topics.SUBSCRIBE, wanted, topic=topic, subscription=name)

    def subscription(self, topic: str, name: str) -> Subscription:
        return self._request(topics.GET_SUBSCRIPTION, topic=topic, subscription=name)

    def unsubscribe(self, topic: str, name: str, *, with_queue: bool = False) -> None:
        """Its queue stays with its messages, unless `with_queue` removes both."""
        query = RemoveSubscription(with_queue=with_queue)
        self._request(topics.UNSUBSCRIBE, query=query, topic=topic, subscription=name)

    def publish(
        self, topic: str, body: object, *, node: str | None = None, **options: Unpack[SendOptions]
    ) -> Published:
        """Returns when it is on disk for every subscription that matches.

        With a `dedup_key` the client repeats the request if the answer is lost.
        """
        event = Event(body=body, node=node, **options)
        return self._request(topics.PUBLISH, event, topic=topic)

    def publish_batch(
        self, topic: str, drafts: Sequence[Draft], *, node: str | None = None
    ) -> list[Published]:
        """All of them or none."""
        wanted = Events(events=list(drafts), node=node)
        return self._request(topics.PUBLISH_BATCH, wanted, topic=topic).events
