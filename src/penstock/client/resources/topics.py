"""Topics, their subscriptions, and the events published to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from penstock.api import topics
from penstock.api.messages import Draft, SendOptions
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
from penstock.client.resources.resource import ResourceClient
from penstock.domain.bus.filter_policy import FilterScope
from penstock.domain.bus.subscription import Dispatch, MessageFormat


class TopicClient(ResourceClient):
    def put(self, topic: str) -> Topic:
        """Create a topic unless it exists."""
        return self._request(topics.PUT, topic=topic)

    def page(
        self, *, prefix: str = "", limit: int = 100, cursor: str | None = None
    ) -> topics.Topics:
        wanted = ListTopics(prefix=prefix or None, limit=limit, cursor=cursor)
        return self._request(topics.LIST, query=wanted)

    def get(self, topic: str) -> Topic:
        """Return a topic with its subscriptions; raises TopicNotFound."""
        return self._request(topics.GET, topic=topic)

    def remove(self, topic: str, *, force: bool = False) -> None:
        """Remove a topic; with `force` also its subscriptions, but not their queues."""
        self._request(topics.REMOVE, query=RemoveTopic(force=force), topic=topic)

    def subscribe(
        self,
        topic: str,
        name: str,
        *,
        kinds: Sequence[str] = (),
        dispatch: Dispatch | str = Dispatch.SHARED,
        filter: Mapping[str, Any] | None = None,
        filter_scope: FilterScope | str = FilterScope.ATTRIBUTES,
        format: MessageFormat | str = MessageFormat.EVENT,
        endpoint: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Subscription:
        """Create or change a subscription; creates a missing topic and queue."""
        wanted: dict[str, Any] = {
            "kinds": list(kinds),
            "dispatch": str(dispatch),
            "filter": filter,
            "filter_scope": str(filter_scope),
            "format": str(format),
            "endpoint": endpoint,
        }
        if settings is not None:
            wanted["settings"] = settings
        return self._request(topics.SUBSCRIBE, wanted, topic=topic, subscription=name)

    def put_subscription(self, topic: str, name: str, wanted: topics.Subscribe) -> Subscription:
        """The same with a record."""
        return self._request(topics.SUBSCRIBE, wanted, topic=topic, subscription=name)

    def subscription(self, topic: str, name: str) -> Subscription:
        return self._request(topics.GET_SUBSCRIPTION, topic=topic, subscription=name)

    def unsubscribe(self, topic: str, name: str, *, with_queue: bool = False) -> None:
        """Remove a subscription; its queue and messages stay, unless `with_queue` is set."""
        query = RemoveSubscription(with_queue=with_queue)
        self._request(topics.UNSUBSCRIBE, query=query, topic=topic, subscription=name)

    def publish(
        self, topic: str, body: object, *, node: str | None = None, **options: Unpack[SendOptions]
    ) -> Published:
        """Publish an event; returns when it is on disk for every matching subscription.

        With a `dedup_key`, the client repeats the request if the answer is lost.
        """
        event = Event(body=body, node=node, **options)
        return self._request(topics.PUBLISH, event, topic=topic)

    def publish_batch(
        self, topic: str, drafts: Sequence[Draft], *, node: str | None = None
    ) -> list[Published]:
        """Publish all of the events or none."""
        wanted = Events(events=list(drafts), node=node)
        return self._request(topics.PUBLISH_BATCH, wanted, topic=topic).events
