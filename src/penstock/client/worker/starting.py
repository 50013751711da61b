"""Start workers: in a thread of this process, or as processes under a supervisor."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypedDict, Unpack

import msgspec

from penstock.client.worker.connecting import unknown_queues
from penstock.client.worker.process import WORK, command
from penstock.client.worker.settling import settled
from penstock.domain.duration import Duration, as_ms
from penstock.wiring.broker import own_dice, steady_clock
from penstock.worker.assignment import Order
from penstock.worker.frames import Errand
from penstock.worker.registration import describe_worker
from penstock.worker.supervisor import Supervisor
from penstock.worker.worker import Worker

if TYPE_CHECKING:
    from penstock.client.app import Penstock

_log = logging.getLogger("penstock.worker")


class WorkerOptions(TypedDict, total=False):
    queues: Sequence[str]  # default: those of the application's jobs
    slots: int
    prefetch: int | None
    lease: Duration
    drain_for: Duration
    name: str | None  # in the registry
    is_registered: bool
    burst: bool  # end when there is nothing to do


def in_process(app: Penstock, **options: Unpack[WorkerOptions]) -> Worker:
    """`run()` it in any thread; `drain()` ends it.  See `Penstock.worker`."""
    order = settled(app, _order(options))
    is_registered = options.get("is_registered", True)
    for text in unknown_queues(app, order.queues):
        _log.warning("%s", text)
    told = describe_worker(order, app.handlers.kinds, options.get("name"))
    return Worker(
        order,
        app.work_source(),
        app.handlers,
        app.clock,
        own_dice(),
        registry=app.registry(told) if is_registered else None,
        hooks=app.handlers.worker_hooks,
    )


def supervised(
    errand: Errand, *, processes: int = 1, on_ready: Callable[[], None] = lambda: None
) -> Supervisor:
    """`run()` it in any thread; `drain()` ends it."""
    return Supervisor(command(WORK), errand, steady_clock(), processes=processes, on_ready=on_ready)


def _order(options: WorkerOptions) -> Order:
    order = Order(queues=tuple(options.get("queues", ())), prefetch=options.get("prefetch"))
    return msgspec.structs.replace(
        order,
        slots=options.get("slots", order.slots),
        lease_ms=as_ms("lease", options.get("lease", "30s")),
        drain_ms=as_ms("drain_for", options.get("drain_for", "30s")),
        is_burst=options.get("burst", False),
    )
