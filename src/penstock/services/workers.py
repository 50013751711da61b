"""Use cases of workers: register, beat, drain, leave; list workers and their leases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from penstock.domain import worker as workers
from penstock.domain.bus.topic import node_queue_names
from penstock.domain.errors import (
    InvalidRequest,
    PenstockError,
    QueueNotFound,
    WorkerGone,
    WorkerNotFound,
)
from penstock.domain.limits import MINUTE, Limits
from penstock.domain.message.draft import ID_DIGITS, uuid7
from penstock.domain.message.lease import Lease, LeaseAct, Verb
from penstock.domain.message.lifecycle import Message
from penstock.domain.worker import VALID_MS, NewWorker, Worker, WorkerState, check_about
from penstock.ports.clock import Clock, Dice
from penstock.ports.store import Acted, Session, Store
from penstock.ports.ticket import Ticket
from penstock.ports.unit_of_work import Steps, Work, read, write
from penstock.services.directory import Directory

MAX_LEASES = 1_000  # leases per answer, and released per transaction
_MAX_LOST = 100  # workers in one step
_LATE_CLAIM_MS = MINUTE  # a claim may have been under way when its worker was lost


class WorkerView(msgspec.Struct, frozen=True):
    worker: Worker
    holding: int  # its current leases; of all workers together at most MAX_LEASES are counted


class WorkerLease(msgspec.Struct, frozen=True):
    queue: str
    message: Message


class WorkerService:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        dice: Dice,
        limits: Limits,
        *,
        valid_ms: int = VALID_MS,
        shared_queues: tuple[str, ...] = (),
    ) -> None:
        """`shared_queues`: queues that a worker may claim from without naming them."""
        self._store = store
        self._clock = clock
        self._dice = dice
        self._limits = limits
        self._shared_queues = shared_queues
        self.valid_ms = valid_ms

    def register(self, about: NewWorker) -> Work[Worker]:
        """Raises InvalidRequest.  The worker passes its id to claims as `claimed_by`."""
        check_about(about, self._limits)
        now = self._clock.now()
        worker_id = uuid7(now, self._dice.digits(ID_DIGITS))
        worker = workers.register(about, worker_id=worker_id, now=now, valid_ms=self.valid_ms)

        def do(session: Session) -> Worker:
            session.workers.add(worker)
            _note(session, workers.REGISTERED, worker, at=now)
            return worker

        return write(self._store, do)

    def beat(self, worker_id: str) -> Work[Worker | None]:
        """The worker, or None: it is unknown, has left or was lost, and must register again."""
        now, valid_ms = self._clock.now(), self.valid_ms

        def do(session: Session) -> Worker | None:
            found = session.workers.lock(worker_id)
            if found is None:
                return None
            try:
                after = workers.beat(found, now=now, valid_ms=valid_ms)
            except WorkerGone:
                return None
            session.workers.save(after)
            return after

        return write(self._store, do)

    def drain(self, worker_id: str) -> Work[Worker]:
        """The worker is notified by its next beat.  Raises WorkerNotFound or WorkerGone."""
        now = self._clock.now()
        return self._change(
            worker_id, lambda worker: workers.drain(worker, now=now), workers.DRAINED, now
        )

    def leave(self, worker_id: str) -> Work[Worker]:
        """Raises WorkerNotFound.  The caller releases the leases that it still has."""
        now = self._clock.now()
        return self._change(
            worker_id, lambda worker: workers.leave(worker, now=now), workers.LEFT, now
        )

    def find(self, worker_id: str) -> Work[Worker | None]:
        return read(self._store, lambda session: session.workers.find(worker_id))

    def get(self, worker_id: str) -> Work[Worker]:
        """Raises WorkerNotFound."""
        return read(self._store, lambda s: _existing(s.workers.find(worker_id), worker_id))

    def alive(self, worker_id: str) -> Work[Worker]:
        """The same, but raises WorkerGone if it is not alive."""
        now = self._clock.now()

        def do(session: Session) -> Worker:
            found = session.workers.find(worker_id)
            if found is None or not workers.is_alive(found, now=now):
                raise WorkerGone(worker_id[:80])
            return found

        return read(self._store, do)

    def all(self) -> Work[list[Worker]]:
        """All workers that are alive."""

        def do(session: Session) -> list[Worker]:
            found: list[Worker] = []
            after = ""
            while page := session.workers.page(after=after, limit=MAX_LEASES, with_gone=False):
                found += page
                after = page[-1].id
            return found

        return read(self._store, do)

    def is_silent(self, worker: Worker, *, beat_ms: int) -> bool:
        return workers.is_silent(worker, now=self._clock.now(), beat_ms=beat_ms)

    def page(
        self, *, after: str = "", limit: int = 100, with_gone: bool = False
    ) -> Work[list[WorkerView]]:
        """Workers in order of registration, with the number of their leases."""
        if not 1 <= limit <= self._limits.max_claim:
            raise InvalidRequest(f"limit must be from 1 to {self._limits.max_claim}")

        def do(session: Session) -> list[WorkerView]:
            found = session.workers.page(after=after, limit=limit, with_gone=with_gone)
            present = [worker.id for worker in found if worker.state in workers.PRESENT]
            leases = session.workers.leases(present, queues=None, limit=MAX_LEASES)
            counts = Counter(message.leased_by for message in leases)
            return [WorkerView(worker, counts[worker.id]) for worker in found]

        return read(self._store, do)

    def leases_of(self, worker: Worker) -> Work[list[WorkerLease]]:
        """Its leases in the queues that it has named, or in all queues if it has named none."""

        def do(session: Session) -> list[WorkerLease]:
            leases = session.workers.leases(
                [worker.id], queues=self._queues_of(worker), limit=MAX_LEASES
            )
            names = {m.queue_no: session.queues.get(m.queue_no).name for m in leases}
            return [WorkerLease(names[m.queue_no], m) for m in leases]

        return read(self._store, do)

    def leases_in(self, worker: Worker, queue: str) -> Work[list[Message]]:
        """Its leases in one queue."""
        return read(
            self._store, lambda s: s.workers.leases([worker.id], queues=[queue], limit=MAX_LEASES)
        )

    def act_on(
        self,
        leases: Sequence[Message],
        verb: Verb,
        *,
        delay_ms: int | None = None,
        text: str | None = None,
    ) -> Ticket[list[Acted | PenstockError]]:
        """On behalf of the holder.  Messages that were claimed again since are not touched."""
        now = self._clock.now()
        return self._store.act(
            [
                LeaseAct(
                    lease=Lease.of(m),
                    verb=verb,
                    now=now,
                    delay_ms=delay_ms,
                    text=text,
                    dice=self._dice.share(),
                )
                for m in leases
            ]
        )

    def lose_overdue(self, *, now: int) -> Work[int]:
        """Mark workers that missed their beats as lost; only one of several nodes does it."""

        def do(session: Session) -> int:
            lost = 0
            for worker in session.workers.overdue(now=now, limit=_MAX_LOST):
                mine = session.workers.lock_overdue(worker.id, now=now)
                if mine is None:
                    continue
                after = workers.lose(mine, now=now)
                session.workers.save(after)
                _note(session, workers.LOST, after, at=now)
                lost += 1
            return lost

        return write(self._store, do)

    def has_overdue(self, *, now: int) -> Work[bool]:
        return read(self._store, lambda s: bool(s.workers.overdue(now=now, limit=1)))

    def recently_lost(self, *, now: int) -> Work[list[Worker]]:
        """Lost workers that may still hold leases."""
        since = now - _LATE_CLAIM_MS

        def do(session: Session) -> list[Worker]:
            found: list[Worker] = []
            after = (since, "")
            while page := session.workers.lost_since(after, limit=_MAX_LOST):
                found += page
                after = (page[-1].ended_at or since, page[-1].id)
            return found

        return read(self._store, do)

    def _queues_of(self, worker: Worker) -> tuple[str, ...] | None:
        if not worker.queues:
            return None
        return (*worker.queues, *node_queue_names(worker.queues, worker.id), *self._shared_queues)

    def _change(
        self, worker_id: str, change: Callable[[Worker], Worker], kind: str, now: int
    ) -> Work[Worker]:
        def do(session: Session) -> Worker:
            before = _existing(session.workers.lock(worker_id), worker_id)
            after = change(before)
            if after != before:
                session.workers.save(after)
                _note(session, kind, after, at=now)
            return after

        return write(self._store, do)


def _existing(worker: Worker | None, worker_id: str) -> Worker:
    if worker is None:
        raise WorkerNotFound(worker_id[:80])
    return worker


def _note(session: Session, kind: str, worker: Worker, *, at: int) -> None:
    data: dict[str, object] = {"name": worker.name, "host": worker.host, "pid": worker.pid}
    if worker.state is not WorkerState.ACTIVE:
        data["beat_at"] = worker.beat_at
    else:
        data |= {"queues": worker.queues, "kinds": worker.kinds, "slots": worker.slots}
        data["labels"] = worker.labels
    session.facts.add(kind, worker.id, at=at, data=data)


class TaskLeases:
    """Each beat of a worker extends the leases that it holds."""

    def __init__(
        self,
        workers: WorkerService,
        directory: Directory,
        *,
        queue: str,
        grace_ms: int,
        most_ms: int,
    ) -> None:
        """`queue`: the queue of tasks, which need not exist yet."""
        self._workers = workers
        self._directory = directory
        self._grace_ms = grace_ms
        self._most_ms = most_ms
        self.queue = queue

    def lease_ms(self, worker: Worker, *, now: int) -> int:
        """A little longer than the worker counts as alive, so that its loss is noticed first."""
        return min(max(0, worker.alive_until - now) + self._grace_ms, self._most_ms)

    def beat(self, worker_id: str) -> Steps[Worker | None]:
        """Extend the leases; None: the worker must register again."""
        worker = yield from self._workers.beat(worker_id)
        if worker is None or not (yield from self._has_queue()):
            return worker
        leases = yield from self._workers.leases_in(worker, self.queue)
        if leases:
            delay_ms = self.lease_ms(worker, now=worker.beat_at)
            yield self._workers.act_on(leases, Verb.EXTEND, delay_ms=delay_ms)
        return worker

    def _has_queue(self) -> Steps[bool]:
        if self._directory.cached(self.queue) is not None:
            return True
        try:
            yield from self._directory.load(self.queue)
        except QueueNotFound:
            return False
        return True
