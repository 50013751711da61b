"""Topics, their subscriptions, and the events published to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Self

from msgspec import UNSET, Meta, UnsetType

from penstock.api.operation import (
    AnswerRecord,
    Cursor,
    Id,
    Instant,
    Limit,
    Next,
    Operation,
    QueryRecord,
    RequestRecord,
    about,
)
from penstock.api.sends import Draft
from penstock.domain import topic as domain
from penstock.domain.access.api_key import Role, Scope
from penstock.domain.errors import (
    QueueExists,
    QueueFull,
    SubscriptionNotFound,
    TopicNotEmpty,
    TopicNotFound,
)
from penstock.domain.queue.queue import QueueSettings
from penstock.domain.topic import Dispatch

DispatchPolicy = Annotated[
    Dispatch,
    about("Which worker handles its events: shared: any; sticky: the one that published."),
]
Node = Annotated[
    str | None,
    about("The id of the worker that publishes; it gets the events of sticky subscriptions."),
]


class Subscribe(RequestRecord):
    kinds: Annotated[
        tuple[str, ...], about("Patterns (order.*) of the kinds it gets; none: every event.")
    ] = ()
    dispatch: DispatchPolicy = Dispatch.SHARED
    settings: Annotated[
        QueueSettings | None,
        about("The settings of its queue. Null: its present settings, or the defaults."),
    ] = None


class Subscription(AnswerRecord, frozen=True):
    topic: Annotated[str, about("The topic's name.")]
    name: Annotated[str, about("The subscription's name.")]
    queue: Annotated[str, about("The queue that its messages are sent to.")]
    kinds: Annotated[
        tuple[str, ...], about("Patterns of the kinds it receives. Empty: every event.")
    ]
    dispatch: DispatchPolicy
    created_at: Annotated[Instant, about("When it was created.")]

    @classmethod
    def of(cls, subscription: domain.Subscription, instant: Callable[[int], Instant]) -> Self:
        return cls(
            topic=subscription.topic,
            name=subscription.name,
            queue=subscription.queue,
            kinds=subscription.kinds,
            dispatch=subscription.dispatch,
            created_at=instant(subscription.created_at),
        )


class Topic(AnswerRecord, frozen=True):
    name: Annotated[str, about("The topic's name.")]
    created_at: Annotated[Instant, about("When it was created.")]
    published: Annotated[int, about("How many events were published.")]
    unmatched: Annotated[int, about("How many of them matched no subscription.")]
    subscriptions: Annotated[
        list[Subscription] | UnsetType,
        about("Its subscriptions, by name. Absent in lists."),
    ] = UNSET

    @classmethod
    def of(
        cls,
        topic: domain.Topic,
        instant: Callable[[int], Instant],
        subscriptions: Sequence[domain.Subscription] | UnsetType = UNSET,
    ) -> Self:
        return cls(
            name=topic.name,
            created_at=instant(topic.created_at),
            published=topic.published,
            unmatched=topic.unmatched,
            subscriptions=(
                UNSET
                if isinstance(subscriptions, UnsetType)
                else [Subscription.of(one, instant) for one in subscriptions]
            ),
        )


class Topics(AnswerRecord, frozen=True):
    topics: Annotated[list[Topic], about("The topics, by name.")]
    next: Next


class Event(Draft, kw_only=True):
    node: Node = None

    @property
    def is_idempotent(self) -> bool:
        return self.dedup_key is not None


class Events(RequestRecord):
    events: Annotated[list[Draft], about("The events, in order.")]
    node: Node = None

    @property
    def is_idempotent(self) -> bool:
        return all(event.dedup_key is not None for event in self.events)


class Published(AnswerRecord, frozen=True):
    id: Annotated[Id, about("The event's id; its messages have ids of their own.")]
    messages: Annotated[int, about("How many messages were sent for it.")]
    duplicates: Annotated[
        int, about("How many were not sent because their dedup key was already held.")
    ]

    @classmethod
    def of(cls, published: domain.Published) -> Self:
        return cls(id=published.id, messages=published.messages, duplicates=published.duplicates)


class AllPublished(AnswerRecord, frozen=True):
    events: Annotated[list[Published], about("One result per event, in the same order.")]


class ListTopics(QueryRecord):
    prefix: Annotated[
        str | None, Meta(description="Only topics whose names begin with this.", examples=["ma"])
    ] = None
    limit: Limit = 100
    cursor: Cursor = None


class RemoveTopic(QueryRecord):
    force: Annotated[bool, Meta(description="Remove its subscriptions, too.", examples=[True])] = (
        False
    )


class RemoveSubscription(QueryRecord):
    with_queue: Annotated[
        bool,
        Meta(description="Remove its queue, too, and all messages in it.", examples=[True]),
    ] = False


PUT = Operation(
    name="putTopic",
    method="PUT",
    path="/v1/topics/{topic}",
    summary="Create a topic. An existing topic stays as it is.",
    role=Role.OPERATE,
    scope=Scope.NAMED,
    answer=Topic,
    status=201,
    also=(200,),
    is_idempotent=True,
)
LIST = Operation(
    name="listTopics",
    method="GET",
    path="/v1/topics",
    summary="List topics by name.",
    role=Role.READ,
    scope=Scope.FILTERED,
    query=ListTopics,
    answer=Topics,
)
GET = Operation(
    name="getTopic",
    method="GET",
    path="/v1/topics/{topic}",
    summary="Retrieve a topic with its subscriptions.",
    role=Role.READ,
    scope=Scope.NAMED,
    answer=Topic,
    errors=(TopicNotFound,),
)
REMOVE: Operation[None] = Operation(
    name="removeTopic",
    method="DELETE",
    path="/v1/topics/{topic}",
    summary="Delete a topic; with `force=true` also its subscriptions, but not their queues.",
    role=Role.OPERATE,
    scope=Scope.NAMED,
    query=RemoveTopic,
    status=204,
    errors=(TopicNotFound, TopicNotEmpty),
)
SUBSCRIBE = Operation(
    name="putSubscription",
    method="PUT",
    path="/v1/topics/{topic}/subscriptions/{subscription}",
    summary="Create or change a subscription. Creates its topic and its queue if needed.",
    role=Role.OPERATE,
    scope=Scope.NAMED,
    request=Subscribe,
    example={"kinds": ["order.*"]},
    answer=Subscription,
    status=201,
    also=(200,),
    errors=(QueueExists,),
    is_idempotent=True,
)
GET_SUBSCRIPTION = Operation(
    name="getSubscription",
    method="GET",
    path="/v1/topics/{topic}/subscriptions/{subscription}",
    summary="Retrieve a subscription.",
    role=Role.READ,
    scope=Scope.NAMED,
    answer=Subscription,
    errors=(TopicNotFound, SubscriptionNotFound),
)
UNSUBSCRIBE: Operation[None] = Operation(
    name="removeSubscription",
    method="DELETE",
    path="/v1/topics/{topic}/subscriptions/{subscription}",
    summary="Delete a subscription. Its queue stays unless `with_queue=true`.",
    role=Role.OPERATE,
    scope=Scope.NAMED,
    query=RemoveSubscription,
    status=204,
    errors=(TopicNotFound, SubscriptionNotFound),
)
PUBLISH = Operation(
    name="publishEvent",
    method="POST",
    path="/v1/topics/{topic}/events",
    summary="Publish an event. Each matching subscription receives one message.",
    role=Role.PRODUCE,
    scope=Scope.NAMED,
    request=Event,
    example={"kind": "order.placed", "body": {"order": 7}},
    answer=Published,
    status=201,
    errors=(TopicNotFound, QueueFull),
)
PUBLISH_BATCH = Operation(
    name="publishEvents",
    method="POST",
    path="/v1/topics/{topic}/events/batch",
    summary="Publish several events: all of them or none.",
    role=Role.PRODUCE,
    scope=Scope.NAMED,
    request=Events,
    example={"events": [{"kind": "order.placed", "body": 7}, {"body": 8}]},
    answer=AllPublished,
    status=201,
    errors=(TopicNotFound, QueueFull),
)
