"""Reads the definitions of a broker and applies changes to them, over HTTP or in process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from penstock.api.deliveries import Route
from penstock.api.recurring import NewRecurring, Recurring
from penstock.api.topics import Subscribe, Topic
from penstock.client.channel import Channel
from penstock.client.definitions.document import Definitions
from penstock.client.definitions.plan import Action, Kind, Plan, PlannedChange, plan
from penstock.client.resources.circuits import CircuitClient, RouteClient
from penstock.client.resources.queues import QueueClient
from penstock.client.resources.recurring import RecurringClient
from penstock.client.resources.topics import TopicClient
from penstock.client.resources.workers import ScalingClient
from penstock.domain.bus.topic import queue_name
from penstock.domain.delivery.route_rules import parse_rules
from penstock.domain.queue.queue import QueueSettings


class BrokerDefinitions:
    def __init__(self, channel: Channel) -> None:
        self._queues = QueueClient(channel)
        self._topics = TopicClient(channel)
        self._routes = RouteClient(channel)
        self._circuits = CircuitClient(channel)
        self._scaling = ScalingClient(channel)
        self._recurring = RecurringClient(channel)

    def present(self) -> Definitions:
        """All definitions but the routes, whose secrets a broker does not reveal.

        Recurring work that an application declares belongs to its code, and is left out.
        """
        queues = {queue.name: queue.settings for queue in self._queues.list()}
        topics = {topic.name: self._subscriptions(topic, queues) for topic in self._all_topics()}
        return Definitions(
            queues=queues,
            topics=topics,
            breaker=self._circuits.settings(),
            circuits={one.route: one.overrides for one in self._circuits.all_own_settings()},
            fleets=self._fleets(),
            recurring={one.name: _new(one) for one in self._recurring.list() if one.owner is None},
        )

    def plan(self, wanted: Definitions, *, prune: bool) -> Plan:
        present = self.present()
        if not isinstance(wanted.routes, UnsetType):
            present.routes = self._routes_to_compare(wanted.routes)
        return plan(present, wanted, prune=prune)

    def apply(self, planned: Plan, wanted: Definitions) -> Iterator[PlannedChange]:
        """Make the changes in order; yields each one when it is done."""
        for change in planned.changes:
            if change.action is Action.REMOVE:
                self._remove(change)
            else:
                self._put(change, wanted)
            yield change

    def _put(self, change: PlannedChange, wanted: Definitions) -> None:
        name = change.name
        match change.kind:
            case Kind.QUEUE:
                self._queues.put(name, _section(wanted.queues)[name])
            case Kind.TOPIC:
                self._topics.put(name)
            case Kind.SUBSCRIPTION:
                topic, _, subscription = name.partition("/")
                one: Subscribe = _section(wanted.topics)[topic][subscription]
                self._topics.put_subscription(topic, subscription, one)
            case Kind.ROUTES:
                self._routes.put(msgspec.Raw(msgspec.json.encode(wanted.routes)))
            case Kind.BREAKER:
                self._circuits.change_settings(msgspec.to_builtins(wanted.breaker))
            case Kind.CIRCUIT:
                overrides = _section(wanted.circuits)[name].values()
                self._circuits.put_own_settings(overrides, route=name)
            case Kind.FLEET:
                self._scaling.reset_profile(name)
                self._scaling.change_profile(name, _section(wanted.fleets)[name].values())
            case Kind.RECURRING:
                self._recurring.put(name, _section(wanted.recurring)[name])

    def _remove(self, change: PlannedChange) -> None:
        name = change.name
        match change.kind:
            case Kind.QUEUE:
                self._queues.delete(name)
            case Kind.TOPIC:
                self._topics.remove(name)
            case Kind.SUBSCRIPTION:
                topic, _, subscription = name.partition("/")
                self._topics.unsubscribe(topic, subscription)
            case Kind.CIRCUIT:
                self._circuits.reset_own_settings(route=name)
            case Kind.FLEET:
                self._scaling.reset_profile(name)
            case Kind.RECURRING:
                self._recurring.remove(name)

    def _all_topics(self) -> Iterator[Topic]:
        cursor: str | None = None
        while True:
            page = self._topics.page(cursor=cursor)
            for topic in page.topics:
                yield self._topics.get(topic.name)
            cursor = page.next
            if cursor is None:
                return

    def _subscriptions(
        self, topic: Topic, queues: dict[str, QueueSettings]
    ) -> dict[str, Subscribe]:
        """Takes the queues of its subscriptions out of `queues`: they belong to the topic."""
        listed = [] if isinstance(topic.subscriptions, UnsetType) else topic.subscriptions
        return {
            one.name: one.as_request(queues.pop(one.queue, None))
            for one in listed
            if one.queue == queue_name(topic.name, one.name)  # SNS also subscribes other queues
        }

    def _fleets(self) -> dict[str, Any]:
        overrides = {one.name: self._scaling.profile(one.name) for one in self._scaling.list()}
        return {name: one.overrides for name, one in overrides.items() if one.overrides.values()}

    def _routes_to_compare(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """The wanted rules if the present ones are the same; otherwise the present patterns.

        A broker shows neither secrets nor header values, so rules that have some are put again.
        """
        table = parse_rules(msgspec.json.encode(wanted).decode())
        present = list(self._routes.list())
        is_hidden = any(route.headers or route.signing_secrets for route in table.routes)
        if not is_hidden and [Route.of(route) for route in table.routes] == present:
            return wanted
        return {route.pattern: None for route in present}


def _section(section: Any) -> Any:
    assert section is not UNSET
    return section


def _new(one: Recurring) -> NewRecurring:
    shown = msgspec.to_builtins(one)
    values = {name: shown[name] for name in NewRecurring.__struct_fields__ if name in shown}
    return msgspec.json.decode(msgspec.json.encode(values), type=NewRecurring)
