"""What answers the operations of the contract in one process."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.operations.bulk import BulkOperations
from penstock.operations.call import Handlers
from penstock.operations.circuit_settings import CircuitSettingsOperations
from penstock.operations.history import HistoryOperations
from penstock.operations.messages import MessageOperations
from penstock.operations.moves import MoveOperations
from penstock.operations.notifications import NotificationOperations
from penstock.operations.overview import OverviewOperations
from penstock.operations.queues import QueueOperations
from penstock.operations.recurring import RecurringOperations
from penstock.operations.topics import TopicOperations
from penstock.operations.workers import WorkerOperations
from penstock.services.task_leases import TaskLeases
from penstock.wiring.broker import Broker


def handlers_of(broker: Broker, *, version: str) -> Handlers:
    return {
        **MoveOperations(broker.moves).handlers(),
        **BulkOperations(broker.messages, broker.picking).handlers(),
        **MessageOperations(broker.messages, broker.picking).handlers(),
        **QueueOperations(broker.queues).handlers(),
        **NotificationOperations(broker.notifications, broker.messages).handlers(),
        **RecurringOperations(broker.recurring).handlers(),
        **topic_operations(broker).handlers(),
        **HistoryOperations(broker.insight).handlers(),
        **CircuitSettingsOperations(
            broker.circuits.breaker, broker.circuits.own_settings
        ).handlers(),
        **WorkerOperations(
            broker.workers, task_leases_of(broker), beat_ms=broker.settings.workers.beat_ms
        ).handlers(),
        **OverviewOperations(
            broker.insight,
            broker.watch,
            broker.graphs,
            broker.routes,
            _NoWaitingClaims(),
            version=version,
        ).handlers(),
    }


class _NoWaitingClaims:
    """In a process that serves no claims, none wait."""

    waiting = 0

    def waiting_for(self, queue_nos: Iterable[int]) -> int:
        return 0


def task_leases_of(broker: Broker) -> TaskLeases:
    settings = broker.settings
    return TaskLeases(
        broker.workers,
        broker.directory,
        queue=settings.tasks.queue,
        grace_ms=settings.workers.grace_ms,
        most_ms=settings.limits.max_lease_ms,
    )


def topic_operations(broker: Broker) -> TopicOperations:
    settings = broker.settings
    return TopicOperations(
        broker.bus, broker.queues, settings.limits, auto_create=settings.queues.auto_create
    )
