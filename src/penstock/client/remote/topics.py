"""Topics of a server elsewhere: subscriptions, and events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack
from urllib.parse import quote, urlencode

import msgspec

from penstock.api.sends import Draft, SendOptions
from penstock.client.bus.answers import Published, Subscription, Topic, TopicPage
from penstock.client.remote.transport import Transport
from penstock.domain.topic import Dispatch


class _AllPublished(msgspec.Struct):
    events: list[Published]


_topic = msgspec.json.Decoder(Topic)
_page = msgspec.json.Decoder(TopicPage)
_subscription = msgspec.json.Decoder(Subscription)
_published = msgspec.json.Decoder(Published)
_all_published = msgspec.json.Decoder(_AllPublished)


class RemoteTopics:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def put(self, topic: str) -> Topic:
        """Make it, unless it is there."""
        return _topic.decode(self._transport.call("PUT", _path(topic), is_safe=True).body)

    def page(self, *, prefix: str = "", limit: int = 100, cursor: str | None = None) -> TopicPage:
        wanted: dict[str, object] = {"prefix": prefix, "limit": limit}
        if cursor is not None:
            wanted["cursor"] = cursor
        return _page.decode(self._transport.call("GET", f"/v1/topics?{urlencode(wanted)}").body)

    def get(self, topic: str) -> Topic:
        """With its subscriptions; raises TopicNotFound."""
        return _topic.decode(self._transport.call("GET", _path(topic)).body)

    def remove(self, topic: str, *, force: bool = False) -> None:
        """With force also its subscriptions, but not their queues."""
        query = "?force=true" if force else ""
        self._transport.call("DELETE", f"{_path(topic)}{query}")

    def subscribe(
        self,
        topic: str,
        name: str,
        *,
        kinds: Sequence[str] = (),
        dispatch: Dispatch | str = Dispatch.SHARED,
        settings: Mapping[str, Any] | None = None,
    ) -> Subscription:
        """Make or change it; with it the topic and its queue."""
        body: dict[str, object] = {"kinds": list(kinds), "dispatch": str(dispatch)}
        if settings is not None:
            body["settings"] = settings
        answer = self._transport.call("PUT", _path(topic, name), body=body, is_safe=True)
        return _subscription.decode(answer.body)

    def subscription(self, topic: str, name: str) -> Subscription:
        return _subscription.decode(self._transport.call("GET", _path(topic, name)).body)

    def unsubscribe(self, topic: str, name: str, *, with_queue: bool = False) -> None:
        """Its queue stays to be emptied, or goes with all that it holds."""
        query = "?with_queue=true" if with_queue else ""
        self._transport.call("DELETE", f"{_path(topic, name)}{query}")

    def publish(
        self, topic: str, body: object, *, node: str | None = None, **options: Unpack[SendOptions]
    ) -> Published:
        """Returns when it is on disk for every subscription that wants it.

        With a `dedup_key` a lost answer is asked for again.
        """
        draft = Draft(body, **options)
        told = fields_of(draft)
        if node is not None:
            told["node"] = node
        is_safe = draft.dedup_key is not None
        path = f"{_path(topic)}/events"
        return _published.decode(
            self._transport.call("POST", path, body=told, is_safe=is_safe).body
        )

    def publish_batch(
        self, topic: str, drafts: Sequence[Draft], *, node: str | None = None
    ) -> list[Published]:
        """All of them or none."""
        body: dict[str, object] = {"events": drafts}
        if node is not None:
            body["node"] = node
        is_safe = all(draft.dedup_key is not None for draft in drafts)
        path = f"{_path(topic)}/events/batch"
        answer = self._transport.call("POST", path, body=body, is_safe=is_safe)
        return _all_published.decode(answer.body).events


def fields_of(draft: Draft) -> dict[str, object]:
    """Without those that stand at their defaults, to have others put beside them."""
    fields = msgspec.structs.fields(Draft)
    given = {field.name: (getattr(draft, field.name), field.default) for field in fields}
    return {name: value for name, (value, default) in given.items() if value != default}


def _path(topic: str, subscription: str | None = None) -> str:
    path = f"/v1/topics/{quote(topic, safe='')}"
    if subscription is None:
        return path
    return f"{path}/subscriptions/{quote(subscription, safe='')}"
