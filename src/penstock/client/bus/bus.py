"""The bus as an application uses it: `@app.subscribe("orders")`, `app.publish("orders", …)`."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar, Unpack

import msgspec

from penstock.api.topics import Published
from penstock.client.backend import Backend
from penstock.client.bus.listener import ListenerSettings, QueueListener
from penstock.client.bus.sticky_source import StickySource
from penstock.client.bus.subscription import DeclaredSubscription, Publication, are_subscribed
from penstock.client.channel import run, run_async
from penstock.client.declared_queues import QueueOptions
from penstock.client.jobs import tracing
from penstock.client.jobs.current import Current
from penstock.client.jobs.handlers import JobHandlers
from penstock.client.jobs.options import JobOptions, ResolvedOptions
from penstock.client.local.lazy_backend import LazyBackend
from penstock.client.resources.topics import TopicClient
from penstock.client.sending import with_trace
from penstock.client.values.json_values import json_of
from penstock.domain.bus import topic as topics
from penstock.domain.bus.filter_policy import FilterScope, compile_filter
from penstock.domain.bus.subscription import Dispatch, check_kinds
from penstock.domain.bus.topic import EVENT_ID, TOPIC
from penstock.domain.errors import InvalidRequest
from penstock.domain.message.draft import Draft
from penstock.worker.application import JobSource

F = TypeVar("F", bound=Callable[..., Any])


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """What a handler can see of an event besides its body."""

    id: str  # the same for all subscriptions; the message's own id is current().id
    topic: str
    kind: str | None
    published_at: datetime
    tags: tuple[str, ...]
    group: str | None
    attempts: int


class SubscribeSettings(ListenerSettings, total=False):
    """The keyword arguments of `@app.subscribe(…)`."""

    name: str  # default: the function's name
    kinds: str | Sequence[str]  # patterns of the event kinds to receive; empty: all events
    dispatch: Dispatch | str
    filter: Mapping[str, Any] | None  # conditions on attributes or body
    filter_scope: FilterScope | str  # "attributes" or "body"
    queue: QueueOptions  # settings of the subscription's queue


class PublishOptions(JobOptions, total=False):
    """The keyword arguments of `publish` and `publish_many`."""

    kind: str | None
    node: str | None  # the worker that publishes, for sticky subscriptions; default: this process


class BusMixin(ABC):
    """The part of an application that publishes and subscribes."""

    handlers: JobHandlers
    _lazy_backend: LazyBackend

    def __init__(self) -> None:
        self._subscriptions: dict[str, DeclaredSubscription] = {}  # by queue
        self._subscribed_at: Backend | None = None
        self._found_at: Backend | None = None  # where they existed, maybe with older settings
        self._sticky: StickySource | None = None

    def subscribe(self, topic: str, **settings: Unpack[SubscribeSettings]) -> Callable[[F], F]:
        """Make a function the handler of a subscription.

        The subscription is created when this process first publishes or runs a worker; it does not
        receive earlier events.  Several functions may share a name, each for its own kinds.
        """

        def decorate(function: F) -> F:
            name = settings.get("name") or function.__name__
            queue = topics.queue_name(topic, name)
            given = settings.get("kinds", ())
            kinds = check_kinds((given,) if isinstance(given, str) else tuple(given))
            listener = QueueListener(
                function,
                kinds=kinds,
                about=_event,
                clock=lambda: self._lazy_backend.get().clock,
                settings=settings,
            )
            dispatch = _dispatch(settings.get("dispatch", Dispatch.SHARED))
            scope = _filter_scope(settings.get("filter_scope", FilterScope.ATTRIBUTES))
            wanted = DeclaredSubscription(
                topic, name, kinds, dispatch, settings.get("filter"), scope
            )
            if wanted.filter is not None:
                compile_filter(msgspec.json.encode(wanted.filter).decode(), scope)
            self._declare(queue, wanted)
            self.handlers.listen(queue, listener)
            if "queue" in settings:
                self.queue(queue, **settings["queue"])
            self.queue_at_least(queue, max_attempts=listener.max_attempts)
            return function

        return decorate

    def publish(self, topic: str, event: object, **options: Unpack[PublishOptions]) -> Published:
        """Send a message to every matching subscription, or to none on failure.

        `tx`: the caller's own transaction.  `node`: the worker that publishes, for sticky
        subscriptions; by default the worker that runs in this process, if there is one.
        """
        [published] = self.publish_many(topic, [event], **options)
        return published

    def publish_many(
        self, topic: str, events: Sequence[object], **options: Unpack[PublishOptions]
    ) -> list[Published]:
        """Publish all of the events or none."""
        node = options.pop("node", None)
        resolved, drafts = _event_drafts(events, options)
        backend = self.backend_for(resolved.tx)
        if resolved.tx is None:
            self._subscribe_all(backend)
        elif not self._has_subscriptions(backend):
            flow = are_subscribed(self._subscriptions.values())
            self._note_found(backend, run(backend.channel, flow))
        with tracing.producing(topic, drafts) as span:
            wanted = self._publication(topic, with_trace(drafts, span.trace), node, backend)
            published = backend.publish(wanted, tx=resolved.tx)
        return self._note_published(published)

    async def publish_async(
        self, topic: str, event: object, **options: Unpack[PublishOptions]
    ) -> Published:
        [published] = await self.publish_many_async(topic, [event], **options)
        return published

    async def publish_many_async(
        self, topic: str, events: Sequence[object], **options: Unpack[PublishOptions]
    ) -> list[Published]:
        node = options.pop("node", None)
        resolved, drafts = _event_drafts(events, options)
        backend = await self.backend_for_async(resolved.tx)
        if resolved.tx is None:
            if self._subscribed_at is not backend:
                await asyncio.to_thread(self._subscribe_all, backend)
        elif not self._has_subscriptions(backend):
            flow = are_subscribed(self._subscriptions.values())
            self._note_found(backend, await run_async(backend.channel, flow))
        with tracing.producing(topic, drafts) as span:
            wanted = self._publication(topic, with_trace(drafts, span.trace), node, backend)
            published = await backend.publish_async(wanted, tx=resolved.tx)
        return self._note_published(published)

    # --- provided by the application ---

    @abstractmethod
    def queue(self, name: str, **options: Unpack[QueueOptions]) -> None: ...

    @abstractmethod
    def queue_at_least(self, name: str, *, max_attempts: int | None) -> None: ...

    @abstractmethod
    def backend_for(self, tx: object) -> Backend: ...

    @abstractmethod
    async def backend_for_async(self, tx: object) -> Backend: ...

    @abstractmethod
    def declared(self, backend: Backend, queue: str) -> Mapping[str, Any]: ...

    @abstractmethod
    def _apply_declared(self, backend: Backend, queue: str) -> None: ...

    # --- private ---

    def _declare(self, queue: str, wanted: DeclaredSubscription) -> None:
        """Declare one subscription for functions that share it, with the kinds of all of them."""
        before = self._subscriptions.get(queue)
        if before is not None:
            if (before.topic, before.name) != (wanted.topic, wanted.name):
                raise InvalidRequest(f"two subscriptions would share the queue {queue!r}")
            if before.dispatch is not wanted.dispatch:
                raise InvalidRequest(
                    f"subscription {wanted.name!r} already has dispatch {before.dispatch}"
                )
            if (before.filter, before.filter_scope) != (wanted.filter, wanted.filter_scope):
                raise InvalidRequest(f"subscription {wanted.name!r} already has another filter")
            everything = not before.kinds or not wanted.kinds
            kinds = () if everything else tuple(dict.fromkeys(before.kinds + wanted.kinds))
            wanted = msgspec.structs.replace(wanted, kinds=kinds)
        self._subscriptions[queue] = wanted
        self._subscribed_at = self._found_at = None

    def _subscribe_all(self, backend: Backend) -> None:
        """Create the subscriptions, once per backend, and again after another one is declared."""
        if self._subscribed_at is not backend:
            for queue, wanted in self._subscriptions.items():
                self._apply_declared(
                    backend, queue
                )  # first, because a queue's ordering can never change
                client = TopicClient(backend.channel)
                client.put_subscription(wanted.topic, wanted.name, wanted.wanted)
            self._subscribed_at = backend

    def _has_subscriptions(self, backend: Backend) -> bool:
        return backend is self._subscribed_at or backend is self._found_at

    def _note_found(self, backend: Backend, are_subscribed: bool) -> None:
        if are_subscribed:
            self._found_at = backend

    def _with_own(self, source: JobSource) -> JobSource:
        """Wrap the source to also claim from the queue of this worker's own events."""
        queues = frozenset(
            queue for queue, s in self._subscriptions.items() if s.dispatch is Dispatch.STICKY
        )
        if not queues:
            return source
        if self._sticky is None or not self._sticky.is_for(source, queues):
            self._sticky = StickySource(source, queues)
        return self._sticky

    @property
    def _node(self) -> str | None:
        """The worker that runs in this process."""
        return None if self._sticky is None else self._sticky.worker_id

    def _publication(
        self, topic: str, drafts: Sequence[Draft], node: str | None, backend: Backend
    ) -> Publication:
        missing = {} if self._has_subscriptions(backend) else self._subscriptions
        return Publication(
            topic=topic,
            drafts=drafts,
            node=node or self._node,
            # Created in the caller's transaction: a separate one would wait for it.
            subscriptions=[
                msgspec.structs.replace(declared, settings=self.declared(backend, queue))
                for queue, declared in missing.items()
            ],
        )

    def _note_published(self, published: list[Published]) -> list[Published]:
        if self._sticky is not None:
            self._sticky.published()
        return published


def _event_drafts(
    events: Sequence[object], options: PublishOptions
) -> tuple[ResolvedOptions, list[Draft]]:
    kind = options.pop("kind", None)
    resolved = ResolvedOptions().merged(options)
    drafts = [
        msgspec.structs.replace(resolved.draft, kind=kind, body=json_of(event)) for event in events
    ]
    return resolved, drafts


def _dispatch(given: Dispatch | str) -> Dispatch:
    try:
        return Dispatch(given)
    except ValueError:
        raise InvalidRequest(f"dispatch must be shared or sticky, not {given!r}") from None


def _filter_scope(given: FilterScope | str) -> FilterScope:
    try:
        return FilterScope(given)
    except ValueError:
        raise InvalidRequest(f"filter_scope must be attributes or body, not {given!r}") from None


def _event(job: Current) -> Event:
    return Event(
        id=job.attributes.get(EVENT_ID, ""),
        topic=job.attributes.get(TOPIC, ""),
        kind=job.kind,
        published_at=job.sent_at,
        tags=job.tags,
        group=job.group,
        attempts=job.attempts,
    )
