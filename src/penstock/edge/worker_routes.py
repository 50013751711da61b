"""Routes of the tasks of external workers, as Izenda serves them."""

from __future__ import annotations

from penstock.domain.queue.queue import QueueSettings
from penstock.edge.izenda.api import TaskApi
from penstock.edge.protocol_queue import ProtocolQueue
from penstock.edge.server.router import HttpRoute
from penstock.edge.waiting_claims import WaitingRoom
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
    task_api = TaskApi(
        broker.messages,
        broker.workers,
        room,
        queue,
        broker.task_leases,
        broker.clock,
        limits,
        timeout_ms=tasks.timeout_ms,
    )
    return task_api.routes()
