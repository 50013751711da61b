"""Topics, their subscriptions, and the events published to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, Meta, UnsetType

from penstock.api.messages import Draft
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
    ToInstant,
    about,
    filtered,
    named,
)
from penstock.domain.access.api_key import Role
from penstock.domain.bus import endpoint, subscription
from penstock.domain.bus import topic as domain
from penstock.domain.bus.endpoint import DeliveryOrder
from penstock.domain.bus.filter_policy import FilterScope
from penstock.domain.bus.subscription import Dispatch, MessageFormat
from penstock.domain.errors import (
    InvalidRequest,
    QueueExists,
    QueueFull,
    TopicNotEmpty,
)
from penstock.domain.queue.queue import QueueSettings

DispatchPolicy = Annotated[
    Dispatch,
    about("Which worker handles its events: shared: any; sticky: the one that published."),
]
Node = Annotated[
    str | None,
    about("The id of the worker that publishes; it gets the events of sticky subscriptions."),
]


EventFilter = Annotated[
    dict[str, Any] | None,
    about("Conditions on attributes or body, in the language of SNS's filter policies."),
]
FilterTarget = Annotated[FilterScope, about("What the filter looks at.")]
EventFormat = Annotated[
    MessageFormat,
    about("event: the body, with topic and id as attributes; raw: the body; sns: SNS's envelope."),
]


class Endpoint(RequestRecord):
    url: Annotated[str, about("Where events are pushed to: an http:// or https:// URL.")]
    signing_secrets: Annotated[
        tuple[str, ...] | None,
        about(
            "Secrets (`whsec_…`) that sign deliveries, several while one replaces another. "
            "Null: the present ones."
        ),
    ] = None
    order: Annotated[
        DeliveryOrder,
        about(
            "none: several deliveries at a time; group: one of each group, in order; strict: one."
        ),
    ] = DeliveryOrder.NONE
    concurrency: Annotated[
        int, about("The number of requests that a node may have in progress.")
    ] = 10
    timeout_ms: Annotated[int, about("After how long without an answer a request has failed.")] = (
        30_000
    )
    retry_intervals_ms: Annotated[
        tuple[int, ...] | None,
        about("Delays after the first failure, the second …; the last repeats. Null: defaults."),
    ] = None
    headers: Annotated[
        dict[str, str] | None, about("Headers of every request. Null: the present ones.")
    ] = None
    enabled: Annotated[
        bool | None,
        about("Whether deliveries go out; otherwise they wait. Null: as it is, at first true."),
    ] = None

    def change(self, present: endpoint.Endpoint | None) -> endpoint.Endpoint:
        """The stored endpoint, with what this request leaves out from the present one."""
        inherits = present and present.headers and self.headers is None
        if present and inherits and _origin(self.url) != _origin(present.url):
            raise InvalidRequest(
                "the url has another scheme, host or port: give headers again, as their values "
                "may be secret"
            )
        made = endpoint.Endpoint(
            url=self.url,
            order=self.order,
            concurrency=self.concurrency,
            timeout_ms=self.timeout_ms,
            signing_secrets=present.signing_secrets if present else (),
            headers=present.headers if present else {},
        )
        given = {
            name: value
            for name in ("signing_secrets", "retry_intervals_ms", "headers")
            if (value := getattr(self, name)) is not None
        }
        return msgspec.structs.replace(made, **given)


def _origin(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
    except ValueError:  # it is rejected later
        return "", ""
    return parts.scheme, parts.netloc.rpartition("@")[2].lower()


EndpointTarget = Annotated[
    Endpoint | None,
    about("A URL that events are pushed to. Null: workers claim them from the queue."),
]


class Subscribe(RequestRecord):
    kinds: Annotated[
        tuple[str, ...], about("Patterns (order.*) of the kinds it gets; none: every event.")
    ] = ()
    dispatch: DispatchPolicy = Dispatch.SHARED
    filter: EventFilter = None
    filter_scope: FilterTarget = FilterScope.ATTRIBUTES
    format: EventFormat = MessageFormat.EVENT
    endpoint: EndpointTarget = None
    settings: Annotated[
        QueueSettings | None,
        about("The settings of its queue. Null: its present settings, or the defaults."),
    ] = None

    def change(
        self, present: subscription.SubscriptionSettings
    ) -> subscription.SubscriptionSettings:
        """The settings of a subscription that exists, with those of this request."""
        return msgspec.structs.replace(
            present,
            filter=None if self.filter is None else msgspec.json.encode(self.filter).decode(),
            filter_scope=self.filter_scope,
            format=self.format,
            endpoint=None if self.endpoint is None else self.endpoint.change(present.endpoint),
        )


class EndpointState(AnswerRecord, frozen=True):
    """An endpoint without its secrets and the values of its headers."""

    url: Annotated[str, about("Where events are pushed to.")]
    signing_secrets: Annotated[int, about("How many secrets sign deliveries.")]
    order: Annotated[DeliveryOrder, about("none, group or strict.")]
    concurrency: Annotated[int, about("The number of requests a node may have in progress.")]
    timeout_ms: Annotated[int, about("After how long without an answer a request has failed.")]
    retry_intervals_ms: Annotated[tuple[int, ...], about("Delays between attempts.")]
    headers: Annotated[list[str], about("The names of headers that every request gets.")]
    enabled: Annotated[bool, about("Whether deliveries go out.")]
    route: Annotated[str, about("The name of its circuit.")]

    @classmethod
    def of_subscription(cls, one: subscription.Subscription) -> Self | None:
        found = one.settings.endpoint
        if found is None:
            return None
        return cls.copy_of(
            found,
            signing_secrets=len(found.signing_secrets),
            headers=sorted(found.headers),
            enabled=not one.is_paused,
            route=one.path,
        )

    def as_request(self) -> Endpoint:
        """Without what is not shown."""
        return Endpoint(
            url=self.url,
            order=self.order,
            concurrency=self.concurrency,
            timeout_ms=self.timeout_ms,
            retry_intervals_ms=self.retry_intervals_ms,
            enabled=self.enabled,
        )


class Subscription(AnswerRecord, frozen=True):
    topic: Annotated[str, about("The topic's name.")]
    name: Annotated[str, about("The subscription's name.")]
    queue: Annotated[str, about("The queue that its messages are sent to.")]
    kinds: Annotated[
        tuple[str, ...], about("Patterns of the kinds it receives. Empty: every event.")
    ]
    dispatch: DispatchPolicy
    filter: EventFilter
    filter_scope: FilterTarget
    format: EventFormat
    endpoint: Annotated[
        EndpointState | None, about("The URL that its events are pushed to, if it has one.")
    ]
    is_pending: Annotated[bool, about("True until its endpoint has confirmed it.")]
    created_at: Annotated[Instant, about("When it was created.")]

    @classmethod
    def of(cls, one: subscription.Subscription, instant: ToInstant) -> Self:
        settings = one.settings
        return cls.copy_of(
            one,
            instant,
            filter=settings.filter and msgspec.json.decode(settings.filter),
            filter_scope=settings.filter_scope,
            format=settings.format,
            endpoint=EndpointState.of_subscription(one),
            is_pending=settings.is_pending,
        )

    def as_request(self, settings: QueueSettings | None = None) -> Subscribe:
        """The request that would create it; `settings`: of its queue."""
        return Subscribe(
            kinds=self.kinds,
            dispatch=self.dispatch,
            filter=self.filter,
            filter_scope=self.filter_scope,
            format=self.format,
            endpoint=None if self.endpoint is None else self.endpoint.as_request(),
            settings=settings,
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
        instant: ToInstant,
        subscriptions: Sequence[subscription.Subscription] | UnsetType = UNSET,
    ) -> Self:
        if isinstance(subscriptions, UnsetType):
            return cls.copy_of(topic, instant)
        listed = [Subscription.of(one, instant) for one in subscriptions]
        return cls.copy_of(topic, instant, subscriptions=listed)


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
        int, about("How many were not sent because their dedup key was already taken.")
    ]


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


PUT = named.put(
    "putTopic",
    "/v1/topics/{topic}",
    "Create a topic. An existing topic stays as it is.",
    Topic,
    status=201,
    also=(200,),
)
LIST = filtered.get(
    "listTopics",
    "/v1/topics",
    "List topics by name.",
    Topics,
    query=ListTopics,
)
GET = named.get(
    "getTopic",
    "/v1/topics/{topic}",
    "Retrieve a topic with its subscriptions.",
    Topic,
)
REMOVE: Operation[None] = named.delete(
    "removeTopic",
    "/v1/topics/{topic}",
    "Delete a topic; with `force=true` also its subscriptions, but not their queues.",
    query=RemoveTopic,
    status=204,
    errors=(TopicNotEmpty,),
)
SUBSCRIBE = named.put(
    "putSubscription",
    "/v1/topics/{topic}/subscriptions/{subscription}",
    "Create or change a subscription. Creates its topic and its queue if needed.",
    Subscription,
    request=Subscribe,
    example={"kinds": ["order.*"]},
    status=201,
    also=(200,),
    errors=(QueueExists,),
)
GET_SUBSCRIPTION = named.get(
    "getSubscription",
    "/v1/topics/{topic}/subscriptions/{subscription}",
    "Retrieve a subscription.",
    Subscription,
)
UNSUBSCRIBE: Operation[None] = named.delete(
    "removeSubscription",
    "/v1/topics/{topic}/subscriptions/{subscription}",
    "Delete a subscription. Its queue stays unless `with_queue=true`.",
    query=RemoveSubscription,
    status=204,
)
PUBLISH = named.post(
    "publishEvent",
    "/v1/topics/{topic}/events",
    "Publish an event. Each matching subscription receives one message.",
    Published,
    role=Role.PRODUCE,
    request=Event,
    example={"kind": "order.placed", "body": {"order": 7}},
    status=201,
    errors=(QueueFull,),
)
PUBLISH_BATCH = named.post(
    "publishEvents",
    "/v1/topics/{topic}/events/batch",
    "Publish several events: all of them or none.",
    AllPublished,
    role=Role.PRODUCE,
    request=Events,
    example={"events": [{"kind": "order.placed", "body": 7}, {"body": 8}]},
    status=201,
    errors=(QueueFull,),
)
