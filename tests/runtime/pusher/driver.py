"""A pusher on a real store, with a manual clock and a fake sender."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, UnsetType

from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.delivery.delivery import GROUP, KIND, Delivery, queue_settings, to_body
from penstock.domain.limits import MINUTE, SECOND
from penstock.domain.message.lifecycle import Message
from penstock.domain.queue.queue import Queue
from penstock.ports.sender import PushRequest, Sender
from penstock.runtime.duties import Reaper
from penstock.runtime.pusher.outgoing import BackoffSettings
from penstock.runtime.pusher.pusher import Pusher, PusherSettings
from penstock.runtime.pusher.tally import PushTally
from penstock.services.circuits.circuits import CircuitService
from penstock.services.routes import RouteService
from tests.fakes import FakeSender
from tests.store.driver import StoreDriver

LEASE_MS = MINUTE
RETRY_MS = 10 * SECOND


class PusherDriver:
    def __init__(self, store_driver: StoreDriver, **settings: Any) -> None:
        self.store_driver = store_driver
        self.clock = store_driver.clock
        self.sender = FakeSender()
        self.tally = PushTally()
        self.routes = RouteService(store_driver.store, store_driver.clock)
        self.circuits = CircuitService(store_driver.store, store_driver.clock, self.routes)
        self.rule("/(.*)", url="http://backend/$1")
        self.pusher = self.another(self.sender, **settings)

    def another(self, sender: Sender, holder: str = "node-1", **settings: Any) -> Pusher:
        """Looks for work at every step, so that no test depends on wake-ups."""
        names = [name for name in BackoffSettings.__struct_fields__ if name in settings]
        backoff = BackoffSettings(**{name: settings.pop(name) for name in names})
        given: dict[str, Any] = {
            "concurrency": 100,
            "lease_ms": LEASE_MS,
            "scan_ms": 0,
            "backoff": backoff,
        } | settings
        return Pusher(
            self.store_driver.store,
            sender,
            self.routes,
            self.circuits,
            settings=PusherSettings(**given),
            holder=holder,
            tally=self.tally,
        )

    def rule(self, pattern: str, **rule: Any) -> None:
        self.rules({pattern: rule})

    def rules(self, rules: dict[str, Any]) -> None:
        self.routes.put(json.dumps(rules)).result()

    def breaker(self, **settings: Any) -> None:
        wanted = BreakerSettings(
            **{"circuit_check_enabled": True, "statistics_update_enabled": True} | settings
        )
        self.circuits.breaker.put(wanted).result()

    def queue(self, name: str = "out") -> Queue:
        return self.store_driver.queue(name, **msgspec.structs.asdict(queue_settings()))

    def deliver(
        self,
        queue: Queue,
        uri: str,
        *,
        method: str = "POST",
        unique_id: str | UnsetType | None = UNSET,
        **headers: str,
    ) -> str:
        named = tuple((name.replace("_", "-"), text) for name, text in headers.items())
        delivery = Delivery(
            method=method,
            uri=uri,
            headers=named,
            payload=b"{}",
            queued_at=self.clock.now(),
            unique_id=unique_id,
        )
        return self.store_driver.send(
            queue,
            body=to_body(delivery),
            group=GROUP,
            kind=KIND,
            entity_id=delivery.request_id,
        )

    def step(self) -> int:
        return self.pusher.tick(self.clock.now())

    def reap(self) -> None:
        """As every node does by itself: due messages become ready."""
        Reaper(self.store_driver.store, every_ms=1).tick(self.clock.now())

    def sent(self) -> list[str]:
        """Paths of all that was sent so far."""
        return paths(self.sender.sent)

    def open(self) -> list[str]:
        """Paths of all that wait for an answer."""
        return paths([request for request, _ in self.sender.open])

    def answer(self, status: int | None = 200, **response: Any) -> None:
        self.sender.answer(status, **response)
        self.step()

    def message(self, message_id: str) -> Message:
        return self.store_driver.get(message_id)


def paths(requests: list[PushRequest]) -> list[str]:
    return [urlsplit(request.url).path for request in requests]
