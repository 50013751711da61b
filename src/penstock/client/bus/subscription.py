"""Subscriptions that an application declares, and events that it publishes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from penstock.api import topics
from penstock.client.channel import Ask, Flow
from penstock.domain.bus.filter_policy import FilterScope
from penstock.domain.bus.subscription import Dispatch, MessageFormat
from penstock.domain.bus.topic import queue_name
from penstock.domain.errors import SubscriptionNotFound, TopicNotFound
from penstock.domain.message.draft import Draft


class DeclaredSubscription(msgspec.Struct, frozen=True):
    topic: str
    name: str
    kinds: tuple[str, ...]
    dispatch: Dispatch
    filter: Mapping[str, Any] | None = None
    filter_scope: FilterScope = FilterScope.ATTRIBUTES
    settings: Mapping[str, Any] = {}  # settings of its queue

    @property
    def queue(self) -> str:
        return queue_name(self.topic, self.name)

    @property
    def wanted(self) -> topics.Subscribe:
        """The request that creates or changes it."""
        return topics.Subscribe(
            kinds=self.kinds,
            dispatch=self.dispatch,
            filter=None if self.filter is None else dict(self.filter),
            filter_scope=self.filter_scope,
        )

    def is_like(self, other: topics.Subscribe) -> bool:
        """Whether a stored subscription is as declared."""
        return self.wanted == msgspec.structs.replace(
            other, format=MessageFormat.EVENT, settings=None
        )


class Publication(msgspec.Struct, frozen=True, kw_only=True):
    """Events to publish together."""

    topic: str
    drafts: Sequence[Draft]
    node: str | None  # the worker that publishes, for sticky subscriptions
    subscriptions: Sequence[DeclaredSubscription] = ()  # to create in the caller's transaction


def are_subscribed(declared: Iterable[DeclaredSubscription]) -> Flow[bool]:
    """Whether all of them exist, committed and as declared."""
    for one in declared:
        path = {"topic": one.topic, "subscription": one.name}
        try:
            found: topics.Subscription = yield Ask(topics.GET_SUBSCRIPTION, path)
        except (TopicNotFound, SubscriptionNotFound):
            return False
        if not one.is_like(found.as_request()):
            return False
    return True
