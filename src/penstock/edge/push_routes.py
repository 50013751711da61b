"""Everything about pushing that is served: natively, and as gateleen does it."""

from __future__ import annotations

from penstock.edge.gateleen import circuits as foreign_circuits
from penstock.edge.gateleen.api import PushApi
from penstock.edge.gateleen.resources import ResourceApi
from penstock.edge.native.bind import routes_of
from penstock.edge.server.router import HttpRoute
from penstock.operations.circuit_settings import CircuitSettingsOperations
from penstock.operations.circuits import CircuitOperations
from penstock.operations.deliveries import DeliveryOperations
from penstock.operations.job_circuits import JobCircuitOperations
from penstock.operations.routes import RouteOperations
from penstock.services.deliveries import Deliveries
from penstock.wiring.broker import Broker


def push_routes(broker: Broker) -> list[HttpRoute]:
    settings, circuits = broker.settings.push, broker.circuits
    deliveries = Deliveries(broker.messages, broker.queues, broker.routes, broker.settings.limits)
    native = [
        *routes_of(DeliveryOperations(deliveries, broker.clock).handlers()),
        *routes_of(RouteOperations(broker.routes).handlers()),
        *routes_of(CircuitOperations(circuits, broker.circuit_insight).handlers()),
        *routes_of(CircuitSettingsOperations(circuits.breaker, circuits.own_settings).handlers()),
        *routes_of(
            JobCircuitOperations(
                circuits, broker.routes, broker.job_routes, broker.settings.limits
            ).handlers()
        ),
    ]
    if not settings.enabled:
        return native
    paths = settings.paths
    return [
        *native,
        *PushApi(deliveries, broker.clock, path=paths["path"]).routes(),
        *ResourceApi(broker.routes, circuits, broker.documents, settings).routes(),
        *foreign_circuits.CircuitApi(circuits, path=paths["circuits_path"]).routes(),
    ]


def takes_coded(broker: Broker, target: bytes) -> bool:
    """Compressed bodies are taken only where they are handed on as they are."""
    settings = broker.settings.push
    return settings.enabled and target.startswith(settings.paths["path"].encode() + b"/")
