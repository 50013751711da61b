"""Topics, subscriptions and events over HTTP."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.domain.access import api_key as access
from penstock.domain.access.api_key import Role, Scope
from penstock.domain.errors import (
    InvalidRequest,
    QueueExists,
    QueueFull,
    SubscriptionNotFound,
    TopicNotEmpty,
    TopicNotFound,
)
from penstock.domain.limits import Limits
from penstock.domain.topic import check_topic, queue_name
from penstock.edge.native import wire_bus as wire
from penstock.edge.native.operations.results import check_batch
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import Route
from penstock.operations.cursor import read_limit
from penstock.operations.queues import allow_dead_letters
from penstock.ports.unit_of_work import await_steps
from penstock.services.bus import Bus, Published
from penstock.services.queues import Queues


class TopicApi:
    def __init__(self, bus: Bus, queues: Queues, limits: Limits, *, auto_create: bool) -> None:
        self._bus = bus
        self._queues = queues
        self._limits = limits
        self._auto_create = auto_create

    def routes(self) -> list[Route]:
        one = "/v1/topics/{topic}"
        return [*self._of_topics(one), *self._of_subscriptions(one), *self._of_events(one)]

    def _of_topics(self, one: str) -> list[Route]:
        return [
            Route(
                method="PUT",
                path=one,
                handler=self.put,
                role=Role.OPERATE,
                name="putTopic",
                scope=Scope.NAMED,
                summary="Make a topic, unless it is there.",
                gives=wire.TopicOut,
                status=201,
                also=(200,),
            ),
            Route(
                method="GET",
                path="/v1/topics",
                handler=self.page,
                role=Role.READ,
                name="listTopics",
                scope=Scope.FILTERED,
                summary="The topics by name.",
                gives=wire.TopicsOut,
                query=("prefix", "limit", "cursor"),
            ),
            Route(
                method="GET",
                path=one,
                handler=self.get,
                role=Role.READ,
                name="getTopic",
                scope=Scope.NAMED,
                summary="One topic with its subscriptions.",
                gives=wire.TopicOut,
                refuses=(TopicNotFound,),
            ),
            Route(
                method="DELETE",
                path=one,
                handler=self.remove,
                role=Role.OPERATE,
                name="removeTopic",
                scope=Scope.NAMED,
                summary="Remove a topic; with force its subscriptions too, but not their queues.",
                status=204,
                query=("force",),
                refuses=(TopicNotFound, TopicNotEmpty),
            ),
        ]

    def _of_subscriptions(self, one: str) -> list[Route]:
        subscription = f"{one}/subscriptions/{{subscription}}"
        return [
            Route(
                method="PUT",
                path=subscription,
                handler=self.subscribe,
                role=Role.OPERATE,
                name="putSubscription",
                scope=Scope.NAMED,
                summary="Make or change a subscription; with it the topic and its queue.",
                takes=wire.SubscribeIn,
                example={"kinds": ["order.*"]},
                gives=wire.SubscriptionOut,
                status=201,
                also=(200,),
                refuses=(QueueExists,),
            ),
            Route(
                method="GET",
                path=subscription,
                handler=self.subscription,
                role=Role.READ,
                name="getSubscription",
                scope=Scope.NAMED,
                summary="One subscription.",
                gives=wire.SubscriptionOut,
                refuses=(TopicNotFound, SubscriptionNotFound),
            ),
            Route(
                method="DELETE",
                path=subscription,
                handler=self.unsubscribe,
                role=Role.OPERATE,
                name="removeSubscription",
                scope=Scope.NAMED,
                summary="No more events for it; its queue stays, unless it is to go as well.",
                status=204,
                query=("with_queue",),
                refuses=(TopicNotFound, SubscriptionNotFound),
            ),
        ]

    def _of_events(self, one: str) -> list[Route]:
        return [
            Route(
                method="POST",
                path=f"{one}/events",
                handler=self.publish,
                role=Role.PRODUCE,
                name="publishEvent",
                scope=Scope.NAMED,
                summary="Publish an event: one message for each subscription that wants it.",
                takes=wire.EventIn,
                example={"kind": "order.placed", "body": {"order": 7}},
                gives=wire.PublishedOut,
                status=201,
                refuses=(TopicNotFound, QueueFull),
            ),
            Route(
                method="POST",
                path=f"{one}/events/batch",
                handler=self.publish_batch,
                role=Role.PRODUCE,
                name="publishEvents",
                scope=Scope.NAMED,
                summary="Publish several events, all of them or none.",
                takes=wire.EventsIn,
                example={"events": [{"kind": "order.placed", "body": 7}, {"body": 8}]},
                gives=wire.AllPublishedOut,
                status=201,
                refuses=(TopicNotFound, QueueFull),
            ),
        ]

    # --- topics ---

    async def put(self, request: Request, respond: Respond) -> Response:
        put = await self._bus.put(_topic(request, Role.OPERATE))
        out = wire.topic_out(put.view.topic, put.view.subscriptions)
        return json_response(out, 201 if put.is_new else 200)

    async def page(self, request: Request, respond: Respond) -> Response:
        query = request.query("prefix", "limit", "cursor")
        limit = read_limit(query.get("limit"))
        found = await self._bus.page(
            prefix=query.get("prefix", ""), after=query.get("cursor", ""), limit=limit
        )
        seen = [topic for topic in found if access.sees(request.caller, topic.name)]
        following = found[-1].name if len(found) == limit else None
        return json_response(wire.TopicsOut([wire.topic_out(t) for t in seen], following))

    async def get(self, request: Request, respond: Respond) -> Response:
        view = await self._bus.get(_topic(request, Role.READ))
        return json_response(wire.topic_out(view.topic, view.subscriptions))

    async def remove(self, request: Request, respond: Respond) -> Response:
        force = _flag(request, "force")
        await self._bus.remove(_topic(request, Role.OPERATE), force=force)
        return Response(204)

    # --- subscriptions ---

    async def subscribe(self, request: Request, respond: Respond) -> Response:
        topic, name = _subscription(request, Role.OPERATE)
        wanted = wire.read_subscribe(request.body)
        allow_dead_letters(request.caller, wanted.settings and wanted.settings.dead_letter_queue)
        made = await self._bus.subscribe(
            topic, name, kinds=wanted.kinds, dispatch=wanted.dispatch, settings=wanted.settings
        )
        out = wire.subscription_out(made.subscription)
        return json_response(out, 201 if made.is_new else 200)

    async def subscription(self, request: Request, respond: Respond) -> Response:
        found = await self._bus.subscription(*_subscription(request, Role.READ))
        return json_response(wire.subscription_out(found))

    async def unsubscribe(self, request: Request, respond: Respond) -> Response:
        with_queue = _flag(request, "with_queue")
        topic, name = _subscription(request, Role.OPERATE)
        found = await self._bus.subscription(topic, name)
        if with_queue:
            await await_steps(self._queues.purge(found.queue))
        await self._bus.unsubscribe(topic, name, with_queue=with_queue)
        return Response(204)

    # --- events ---

    async def publish(self, request: Request, respond: Respond) -> Response:
        event = wire.read_event(request.body)
        [published] = await self._publish(request, [event.draft()], event.node)
        return json_response(_out(published), 201)

    async def publish_batch(self, request: Request, respond: Respond) -> Response:
        wanted = wire.read_events(request.body)
        check_batch(len(wanted.events), self._limits)
        drafts = [event.draft() for event in wanted.events]
        published = await self._publish(request, drafts, wanted.node)
        return json_response(wire.AllPublishedOut([_out(one) for one in published]), 201)

    async def _publish(
        self, request: Request, drafts: list[Any], node: str | None
    ) -> list[Published]:
        topic = _topic(request, Role.PRODUCE)
        try:
            return await self._bus.publish(topic, drafts, node=node)
        except TopicNotFound:
            if not self._auto_create:
                raise
            await self._bus.put(topic)
            return await self._bus.publish(topic, drafts, node=node)


def _topic(request: Request, role: Role) -> str:
    """Its name; keys that are for some queues are for the topics whose names fit as well."""
    name = check_topic(request.params["topic"])
    access.allow(request.caller, role, name)
    return name


def _subscription(request: Request, role: Role) -> tuple[str, str]:
    topic, name = request.params["topic"], request.params["subscription"]
    access.allow(request.caller, role, queue_name(topic, name))
    return topic, name


def _flag(request: Request, name: str) -> bool:
    text = request.query(name).get(name, "false")
    if text not in ("true", "false"):
        raise InvalidRequest(f"{name} is true or false")
    return text == "true"


def _out(published: Published) -> wire.PublishedOut:
    return msgspec.convert(msgspec.structs.asdict(published), wire.PublishedOut)
