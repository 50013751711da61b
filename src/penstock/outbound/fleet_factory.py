"""Creates the load sources, replica managers and alerts that the fleets file names.

Modules that need an optional library are imported only when the file names them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from penstock.domain.scaling.fleet import (
    CommandSpec,
    External,
    Fleet,
    Fleets,
    Kubernetes,
    Processes,
)
from penstock.domain.scaling.fleet_sources import (
    OwnSource,
    PrometheusSource,
    RabbitSource,
    RedisSource,
    SourceSpec,
    SqsSource,
)
from penstock.outbound.alerts import EndpointAlerts, LoggedAlerts
from penstock.outbound.clock import WallClock
from penstock.ports.clock import Clock, Dice
from penstock.ports.scaling import Alerts, FleetRegistry, LoadSource, ReplicaManager
from penstock.ports.sender import Sender


class FleetFactory:
    def __init__(
        self,
        *,
        own: LoadSource,
        registry: FleetRegistry,
        sender: Sender,
        clock: Clock,
        dice: Dice,
        folder: Path,
        store_url: str,
        wanted_before: Callable[[str], int],
        keeps: bool = False,
    ) -> None:
        """`own`: the load of our own queues.  `folder`: for the ledgers of started processes.

        `keeps`: processes outlive the autoscaler, whatever the file says.
        """
        self._own = own
        self._registry = registry
        self._sender = sender
        self._clock = clock
        self._dice = dice
        self._folder = folder
        self._store_url = store_url
        self._wanted_before = wanted_before
        self._keeps = keeps

    def source(self, name: str, spec: SourceSpec) -> LoadSource:
        """Raises FleetsRefused."""
        match spec:
            case OwnSource():
                return self._own
            case RabbitSource():
                from penstock.outbound.rabbitmq_source import RabbitLoad

                return RabbitLoad(name, spec)
            case SqsSource():
                from penstock.outbound.sqs_source import SqsLoad

                return SqsLoad(name, spec, wall=WallClock())
            case RedisSource():
                from penstock.outbound.redis_source import RedisLoad

                return RedisLoad(name, spec)
            case PrometheusSource():
                from penstock.outbound.prometheus_source import PrometheusLoad

                return PrometheusLoad(name, spec)

    def manager(self, fleet: Fleet) -> ReplicaManager:
        """Raises FleetsRefused."""
        match fleet.replicas:
            case Processes() as spec:
                return self._processes(fleet, spec)
            case CommandSpec() as spec:
                from penstock.outbound.replicas.command import CommandReplicas

                return CommandReplicas(fleet.name, spec)
            case Kubernetes() as spec:
                from penstock.outbound.replicas.kubernetes import KubernetesReplicas

                return KubernetesReplicas(fleet.name, spec, registry=self._registry)
            case External() as spec:
                from penstock.outbound.replicas.registered import ExternalReplicas

                return ExternalReplicas(
                    fleet.name, spec, registry=self._registry, before=self._wanted_before
                )

    def alerts(self, fleets: Fleets) -> Alerts:
        url = fleets.alerts.url
        return LoggedAlerts() if url is None else EndpointAlerts(url, self._sender)

    def _processes(self, fleet: Fleet, spec: Processes) -> ReplicaManager:
        from penstock.outbound.replicas.launch import Launch
        from penstock.outbound.replicas.processes import ProcessReplicas

        if self._keeps:
            spec = msgspec.structs.replace(spec, keep=True)
        launch = Launch(fleet.name, spec, queues=fleet.all_queues, store_url=self._store_url)
        return ProcessReplicas(
            fleet.name,
            spec,
            launch,
            folder=self._folder,
            registry=self._registry,
            clock=self._clock,
            dice=self._dice,
        )
