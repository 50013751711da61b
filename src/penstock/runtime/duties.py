"""The broker's background duties.  They only clean up and wake; claims do not need them."""

from __future__ import annotations

from collections.abc import Callable

from penstock.domain.lake.progress import EVERYTHING, Forgettable, forgettable
from penstock.domain.limits import DAY, MINUTE
from penstock.domain.message import move_task as move
from penstock.ports.store import Session, Store
from penstock.services.moves import MoveService

_CHUNK = 500
_CHUNKS_PER_TICK = 20  # then other duties run; the next tick does the rest


class Reaper:
    """Makes due messages ready, so that counts are right and waiting claims are woken."""

    name = "reaper"

    def __init__(self, store: Store, *, every_ms: int) -> None:
        self._store = store
        self._every_ms = every_ms

    def tick(self, now: int) -> int:
        due = self._store.read(lambda s: s.maintenance.queues_with_due(now=now)).result()
        left = False
        for queue_no in due:
            left |= _repeat(self._store, _bring_back(queue_no, now))
        return now + (1 if left else self._every_ms)


class Expirer:
    """Cancels waiting messages that have expired."""

    name = "expirer"

    def __init__(self, store: Store, *, every_ms: int) -> None:
        self._store = store
        self._every_ms = every_ms

    def tick(self, now: int) -> int:
        found = self._store.read(lambda s: s.maintenance.queues_with_expired(now=now)).result()
        left = False
        for queue_no in found:
            left |= _repeat(self._store, _expire(queue_no, now))
        return now + (1 if left else self._every_ms)


class Pruner:
    """Deletes old rows: history, facts, move tasks, workers, dedup keys, repeated claims.

    It also drops state that limits and fair share do not need any more.  With `is_archived`, rows
    that belong in the lake are kept until they are in it.
    """

    name = "pruner"

    def __init__(self, store: Store, *, retention_days: int, is_archived: bool = False) -> None:
        self._store = store
        self._retention_days = retention_days
        self._is_archived = is_archived

    def tick(self, now: int) -> int:
        self._store.write(lambda s: s.maintenance.prepare_days(now=now)).result()
        _repeat(self._store, lambda s: s.maintenance.forget_dedup(now=now, limit=_CHUNK))
        _repeat(self._store, lambda s: s.maintenance.forget_claims(now=now, limit=_CHUNK))
        _repeat(self._store, lambda s: s.maintenance.forget_shares(limit=_CHUNK))
        _repeat(self._store, lambda s: s.maintenance.forget_rates(now=now, limit=_CHUNK))
        if self._store.write(lambda s: s.maintenance.may_prune(now=now)).result():
            self._forget_by_age(now)
        return now + MINUTE

    def _forget_by_age(self, now: int) -> None:
        before_day = now // DAY - self._retention_days
        before_at = before_day * DAY
        self._store.write(lambda s: s.moves.forget(before_at=before_at)).result()
        self._store.write(lambda s: s.workers.forget(before_at=before_at)).result()
        in_lake = read_forgettable(self._store, is_archived=self._is_archived)
        _repeat(
            self._store,
            lambda s: s.facts.forget(before_at=before_at, upto_no=in_lake.facts_no, limit=_CHUNK),
        )
        for day in self._store.read(
            lambda s: s.maintenance.old_days(before_day=before_day)
        ).result():
            if in_lake.days is None or day in in_lake.days:
                self._store.write(_drop_day(day, now)).result()


class Mover:
    """Advances move tasks.  One node takes each step; the rate is stored in the task."""

    name = "mover"

    def __init__(self, moves: MoveService, *, every_ms: int) -> None:
        self._moves = moves
        self._every_ms = every_ms

    def tick(self, now: int) -> int:
        next_at = now + self._every_ms
        for task_id in self._moves.active().result():
            next_at = min(next_at, self._advance(task_id, now))
        return next_at

    def _advance(self, task_id: str, now: int) -> int:
        """Returns when the next step can be taken."""
        moved = -1
        for _ in range(_CHUNKS_PER_TICK):
            task = self._moves.step(task_id, now=now).result()
            if task is None or not task.is_active:
                return now + self._every_ms
            if not move.allowance(task, now=now):
                return move.next_at(task, now=now)
            if task.moved == moved:
                return now + self._every_ms  # what is left is leased
            moved = task.moved
        return now + 1


class PeriodicDuty:
    """Calls a function at a fixed interval."""

    def __init__(self, name: str, every_ms: int, do: Callable[[], None]) -> None:
        self.name = name
        self._every_ms = every_ms
        self._do = do

    def tick(self, now: int) -> int:
        self._do()
        return now + self._every_ms


def read_forgettable(store: Store, *, is_archived: bool) -> Forgettable:
    if not is_archived:
        return EVERYTHING
    return forgettable(store.read(lambda s: s.archive.marks()).result())


def _repeat(store: Store, what: Callable[[Session], int]) -> bool:
    """Repeat until nothing is left, within limits; returns whether something is left."""
    return all(store.write(what).result() >= _CHUNK for _ in range(_CHUNKS_PER_TICK))


def _bring_back(queue_no: int, now: int) -> Callable[[Session], int]:
    return lambda session: session.maintenance.bring_back(queue_no, now=now, limit=_CHUNK)


def _expire(queue_no: int, now: int) -> Callable[[Session], int]:
    return lambda session: session.maintenance.expire(queue_no, now=now, limit=_CHUNK)


def _drop_day(day: int, now: int) -> Callable[[Session], None]:
    return lambda session: session.maintenance.drop_day(day, now=now)
