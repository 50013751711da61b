"""Routes of Izenda's tasks for external workers."""

from __future__ import annotations

from penstock.domain.queue.queue import QueueSettings
from penstock.edge.izenda.api import TaskApi
from penstock.edge.server.router import HttpRoute
from penstock.runtime.waiting_claims import WaitingClaims
from penstock.services.queues import ProtocolQueue
from penstock.wiring.broker import Broker


def work_routes(broker: Broker, waiting: WaitingClaims) -> list[HttpRoute]:
    workers, tasks = broker.settings.workers, broker.settings.tasks
    grace_ms, limits = workers.grace_ms, broker.settings.limits
    queue = ProtocolQueue(
        broker.queues,
        broker.messages,
        name=tasks.queue,
        # A task whose worker crashes is retried in its old place; a failure is final.
        settings=QueueSettings(lease_ms=workers.valid_ms + grace_ms, max_attempts=None),
    )
    task_api = TaskApi(
        broker.messages,
        broker.workers,
        waiting,
        queue,
        broker.task_leases,
        broker.clock,
        limits,
        timeout_ms=tasks.timeout_ms,
    )
    return task_api.routes()
