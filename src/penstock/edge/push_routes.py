"""Routes of gateleen's push API."""

from __future__ import annotations

from penstock.edge.gateleen.api import PushApi
from penstock.edge.gateleen.circuits import CircuitApi
from penstock.edge.gateleen.resources import ResourceApi
from penstock.edge.server.router import HttpRoute
from penstock.wiring.broker import Broker


def push_routes(broker: Broker) -> list[HttpRoute]:
    settings, circuits = broker.settings.push, broker.circuits
    if not settings.enabled:
        return []
    paths = settings.paths
    return [
        *PushApi(broker.deliveries, broker.clock, path=paths["path"]).routes(),
        *ResourceApi(broker.routes, circuits, broker.documents, settings).routes(),
        *CircuitApi(circuits, path=paths["circuits_path"]).routes(),
    ]


def accepts_encoded(broker: Broker, target: bytes) -> bool:
    """Whether a compressed body is accepted: only where it is forwarded unchanged."""
    settings = broker.settings.push
    return settings.enabled and target.startswith(settings.paths["path"].encode() + b"/")
