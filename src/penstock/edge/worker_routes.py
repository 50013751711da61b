"""Everything about workers that is served: they themselves, their tasks, and what is remembered."""

from __future__ import annotations

from penstock.domain.queue.queue import QueueSettings
from penstock.edge.izenda.api import TaskApi
from penstock.edge.native.bind import routes_of
from penstock.edge.protocol_queue import ProtocolQueue
from penstock.edge.server.router import HttpRoute
from penstock.edge.waiting_claims import WaitingRoom
from penstock.operations.facts import FactOperations
from penstock.operations.workers import WorkerOperations
from penstock.services.task_leases import TaskLeases
from penstock.wiring.broker import Broker


def work_routes(broker: Broker, room: WaitingRoom) -> list[HttpRoute]:
    workers, tasks = broker.settings.workers, broker.settings.tasks
    grace_ms, limits = workers.grace_ms, broker.settings.limits
    queue = ProtocolQueue(
        broker.queues,
        broker.messages,
        name=tasks.queue,
        # Whoever dies with a task has it run again, in its old place; a failure ends it.
        settings=QueueSettings(lease_ms=workers.valid_ms + grace_ms, max_attempts=None),
    )
    task_leases = TaskLeases(
        broker.workers,
        broker.directory,
        queue=tasks.queue,
        grace_ms=grace_ms,
        most_ms=limits.max_lease_ms,
    )
    task_api = TaskApi(
        broker.messages,
        broker.workers,
        room,
        queue,
        task_leases,
        broker.clock,
        limits,
        timeout_ms=tasks.timeout_ms,
    )
    return [
        *routes_of(
            WorkerOperations(broker.workers, task_leases, beat_ms=workers.beat_ms).handlers()
        ),
        *task_api.routes(),
        *routes_of(FactOperations(broker.facts).handlers()),
    ]
