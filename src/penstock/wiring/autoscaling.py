"""Composes the autoscaler: the store, the fleets file, and the sources and managers it names.

Used by `penstock autoscale`, and by a server whose settings name a fleets file.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from penstock.domain.circuit.circuit import CircuitState, circuit_hash
from penstock.domain.errors import (
    FleetNotFound,
    FleetsRefused,
    QueueUnknown,
    SourceUnavailable,
    StoreUnavailable,
    WorkerGone,
    WorkerNotFound,
)
from penstock.domain.queue.queue import Counts, Queue
from penstock.domain.scaling.counter_rates import CounterReading, measure
from penstock.domain.scaling.fleet_run import CircuitsState
from penstock.domain.scaling.fleet_status import FleetStatus
from penstock.domain.scaling.pressure import Pressure
from penstock.domain.scaling.recommendation import Sample, Staged
from penstock.domain.worker import Worker, is_alive
from penstock.outbound.fleet_factory import FleetFactory
from penstock.ports.clock import Clock
from penstock.ports.scaling import FLEET, REPLICA, FleetMember
from penstock.ports.store import Session, Store
from penstock.ports.ticket import Ticket
from penstock.runtime.autoscaler.autoscaler import Autoscaler
from penstock.runtime.autoscaler.fleet_access import BackgroundThreads
from penstock.runtime.autoscaler.fleet_list import FleetList
from penstock.runtime.loop import DutyLoop
from penstock.services.circuits.circuits import CircuitService
from penstock.services.workers import WorkerService
from penstock.settings.fleets import FleetsFile
from penstock.wiring.broker import Broker
from penstock.wiring.pushing import own_sender

T = TypeVar("T")

TIMEOUT_S = 10.0
_ENOUGH = 50  # a worker with this many leases counts as busy as one with more
_PAGE = 1_000
FOLDER = "fleets"  # in the data folder: the ledgers of started processes


class StoreFleetRegistry:
    """The workers of a fleet, read from the store's registry of workers."""

    def __init__(self, workers: WorkerService, store: Store, clock: Clock) -> None:
        self._workers = workers
        self._store = store
        self._clock = clock

    def members(self, fleet: str) -> list[FleetMember]:
        now = self._clock.now()
        return [
            _member(worker)
            for worker in _answer(self._workers.all())
            if worker.labels.get(FLEET) == fleet and is_alive(worker, now=now)
        ]

    def lease_counts(self, worker_ids: Sequence[str]) -> dict[str, int]:
        def do(session: Session) -> dict[str, int]:
            leases = session.workers.leases
            return {one: len(leases([one], queues=None, limit=_ENOUGH)) for one in worker_ids}

        return _answer(self._store.read(do))

    def drain(self, worker_id: str) -> None:
        with suppress(WorkerGone, WorkerNotFound):
            _answer(self._workers.drain(worker_id))


def _member(worker: Worker) -> FleetMember:
    return FleetMember(
        id=worker.id,
        replica=worker.labels.get(REPLICA),
        host=worker.host,
        is_draining=worker.is_draining,
        registered_at=worker.registered_at,
    )


def _answer(ticket: Ticket[T]) -> T:
    try:
        return ticket.result(TIMEOUT_S)
    except TimeoutError as error:
        raise StoreUnavailable(f"the store has not answered within {TIMEOUT_S:g} s") from error


class OwnLoad:
    """The load of the store's own queues, for the autoscaler: from counters and one index lookup.

    A rate is how much a counter has grown since the last reading, per second.  Done and dead
    messages count as consumed; an attempt that failed and will be retried has not made the backlog
    shorter.

    Safe to share between threads; fleets of the same queue share its rates.
    """

    def __init__(self, store: Store, *, timeout_s: float = TIMEOUT_S) -> None:
        self._store = store
        self._timeout_s = timeout_s
        self._last: dict[str, CounterReading] = {}
        self._lock = threading.Lock()

    def read(self, queue: str, staging_indicator: str | None, *, now: int) -> Sample:
        prefix = None if staging_indicator is None else queue + staging_indicator
        found, oldest_at = self._counts(queue, prefix)
        with self._lock:
            rates = {one.name: self._rates(one, counts, now) for one, counts in found}
        (_, mine), *staged = found
        return Sample(
            ready=mine.ready,
            leased=mine.leased,
            consume_rate=rates[queue].consume_rate,
            publish_rate=rates[queue].publish_rate,
            oldest_ms=None if oldest_at is None else max(now - oldest_at, 0),
            staged=tuple(
                Staged(one.name, counts.ready, rates[one.name].publish_rate)
                for one, counts in staged
            ),
        )

    def pressure(self, *, now: int) -> Pressure | None:
        """None: a store has no limit of its own."""
        return None

    def close(self) -> None:
        """Does nothing: the caller owns the store."""

    def _counts(
        self, queue: str, prefix: str | None
    ) -> tuple[list[tuple[Queue, Counts]], int | None]:
        """The counts, the queue itself first, and since when its oldest message has been ready."""

        def do(session: Session) -> tuple[list[tuple[Queue, Counts]], int | None]:
            found = session.queues.find(queue)
            if found is None:
                raise QueueUnknown(f"queue {queue!r} does not exist")
            queues = [found, *(() if prefix is None else _beginning(session, prefix))]
            counts = session.queues.counts([one.queue_no for one in queues])
            oldest_at = session.queues.oldest_ready_at(found.queue_no)
            return [(one, counts[one.queue_no]) for one in queues], oldest_at

        try:
            return self._store.read(do).result(self._timeout_s)
        except (StoreUnavailable, TimeoutError) as error:
            # Not the error's own text, which may contain the database's address.
            is_late = isinstance(error, TimeoutError)
            why = f": no answer within {self._timeout_s:g} s" if is_late else ""
            raise SourceUnavailable(f"the store cannot be read{why}") from error

    def _rates(self, queue: Queue, counts: Counts, now: int) -> CounterReading:
        consumed = counts.done_total + counts.dead_total
        found = measure(
            self._last.get(queue.name),
            queue.queue_no,
            consumed=consumed,
            sent=counts.sent_total,
            now=now,
        )
        self._last[queue.name] = found
        return found


def _beginning(session: Session, prefix: str) -> Iterator[Queue]:
    """All queues whose names start with the prefix and are longer."""
    after = prefix  # leaves out a queue with exactly this name
    while page := session.queues.page(prefix=prefix, after=after, limit=_PAGE):
        yield from page
        after = page[-1].name


class Autoscaling:
    def __init__(
        self,
        broker: Broker,
        path: Path | None = None,
        *,
        is_dry: bool = False,
        is_once: bool = False,
    ) -> None:
        """Raises FleetsRefused.  `is_once`: started processes outlive this process."""
        self._clock = broker.clock
        self._sender = own_sender(broker)
        holder = f"{platform.node()}-{os.getpid()}-{broker.dice.digits(6)}"
        factory = FleetFactory(
            own=OwnLoad(broker.store),
            registry=StoreFleetRegistry(broker.workers, broker.store, broker.clock),
            sender=self._sender,
            clock=broker.clock,
            dice=broker.dice,
            folder=Path(broker.settings.data) / FOLDER,
            store_url=broker.settings.store_url,
            wanted_before=_WantedBefore(broker),
            keeps=is_once or is_dry,
        )
        self._fleet_list = FleetList(
            FleetsFile(_file(broker)), factory, seen_by=holder, is_dry=is_dry
        )
        self._autoscaler = Autoscaler(
            self._fleet_list,
            broker.scaling,
            BackgroundThreads(),
            circuits_of_routes=_RouteStates(broker.circuits),
            holder=holder,
            is_dry=is_dry,
        )
        self._loop = DutyLoop(
            [self._autoscaler],
            broker.clock,
            name="penstock-autoscaler",
            health=broker.health,
            stuck_ms=broker.stuck_ms,
        )

    @property
    def names(self) -> list[str]:
        return [watch.name for watch in self._fleet_list]

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()
        self._close()

    def once(self, *, timeout_ms: int) -> list[FleetStatus] | None:
        """Run every fleet once and return the statuses; None if another autoscaler leads."""
        until = self._clock.now() + timeout_ms
        try:
            while (now := self._clock.now()) < until:
                next_at = self._autoscaler.tick(now)
                if not self._autoscaler.is_leading:
                    return None
                if all(self._autoscaler.runs.values()):
                    break
                threading.Event().wait(min(next_at - now, 100) / 1000)
        finally:
            self._close()
        return [watch.status for watch in self._fleet_list]

    def _close(self) -> None:
        try:
            self._autoscaler.close()
        finally:
            self._sender.close()


class _WantedBefore:
    def __init__(self, broker: Broker) -> None:
        self._scaling = broker.scaling

    def __call__(self, fleet: str) -> int:
        with suppress(FleetNotFound):
            return self._scaling.get(fleet).result().wanted or 0
        return 0


class _RouteStates:
    """The worst circuit state on a fleet's routes; FREE where circuits are not checked."""

    def __init__(self, circuits: CircuitService) -> None:
        self._circuits = circuits

    def __call__(self, routes: Sequence[str]) -> CircuitsState:
        hashes = map(circuit_hash, routes)
        checked = [one for one in hashes if self._circuits.settings_of(one).circuit_check_enabled]
        states = {self._circuits.status(one).result() for one in checked}
        if CircuitState.OPEN in states:
            return CircuitsState.OPEN
        return CircuitsState.HALF_OPEN if CircuitState.HALF_OPEN in states else CircuitsState.FREE


def _file(broker: Broker) -> Path:
    named = broker.settings.scaling.fleets_file
    if not named:
        raise FleetsRefused("no fleets file is set: name one with --fleets or scaling.fleets_file")
    return Path(named)
