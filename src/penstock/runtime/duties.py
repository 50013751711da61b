"""The broker's background duties.  They only clean up and wake; claims do not need them."""

from __future__ import annotations

import logging
from collections.abc import Callable

from penstock.domain.errors import PenstockError, StoreUnavailable
from penstock.domain.lake.progress import EVERYTHING, PrunableRows, prunable_rows
from penstock.domain.limits import DAY, MINUTE
from penstock.domain.message import move_task as move
from penstock.domain.store.store_time import MAX_CARRY_MS, difference_text, instant_text
from penstock.ports.clock import Clock
from penstock.ports.store import Session, Store
from penstock.services.bulk.moves import MoveService
from penstock.services.recurring import RecurringService

_recurring_log = logging.getLogger("penstock.recurring")
_clock_log = logging.getLogger("penstock.clock")

_AT_ONCE = 100  # schedules
_CHECK_MS = 1_000  # longest interval: other processes declare and change schedules too
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
            left |= _repeat(self._store, _return_due(queue_no, now))
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
    """Deletes old rows: history, flows, facts, steps, moves, workers, dedup keys, claims, signals.

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
        _repeat(self._store, lambda s: s.maintenance.forget_signals(now=now, limit=_CHUNK))
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
        _repeat(self._store, lambda s: s.flows.forget(before_at=before_at, limit=_CHUNK))
        in_lake = read_prunable_rows(self._store, is_archived=self._is_archived)
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


def read_prunable_rows(store: Store, *, is_archived: bool) -> PrunableRows:
    if not is_archived:
        return EVERYTHING
    return prunable_rows(store.read(lambda s: s.archive.marks()).result())


def _repeat(store: Store, what: Callable[[Session], int]) -> bool:
    """Repeat until nothing is left, within limits; returns whether something is left."""
    return all(store.write(what).result() >= _CHUNK for _ in range(_CHUNKS_PER_TICK))


def _return_due(queue_no: int, now: int) -> Callable[[Session], int]:
    return lambda session: session.maintenance.return_due(queue_no, now=now, limit=_CHUNK)


def _expire(queue_no: int, now: int) -> Callable[[Session], int]:
    return lambda session: session.maintenance.expire(queue_no, now=now, limit=_CHUNK)


def _drop_day(day: int, now: int) -> Callable[[Session], None]:
    return lambda session: session.maintenance.drop_day(day, now=now)


class ScheduleDuty:
    """Fires schedules.  Every node runs it; the store lets one node fire each."""

    name = "recurring"

    def __init__(self, recurring: RecurringService) -> None:
        self._recurring = recurring

    def tick(self, now: int) -> int:
        # A schedule stays due while its previous message has not ended: page past it.
        last = (-1, "")
        while due := self._recurring.due(now=now, limit=_AT_ONCE, after=last).result():
            for _, name in due:
                self._fire(name, now)
            last = due[-1]
        next_at = self._recurring.next_at(now=now).result()
        soon = now + _CHECK_MS
        return soon if next_at is None else min(soon, next_at)

    def _fire(self, name: str, now: int) -> None:
        """A schedule that cannot fire stays due and must not block those after it."""
        try:
            self._recurring.fire(name, now=now).result()
        except StoreUnavailable:
            raise  # no other schedule can fire either
        except PenstockError as error:
            _recurring_log.error("recurring work %s could not be sent: %s", name, error)


class ClockWatch:
    """Warns once when the wall clock has been set, and logs when both agree again.

    The store's time follows the wall clock only at the next start, so that leases and delays stay
    exact.  Until then due dates are early or late by the difference.
    """

    name = "clock"

    def __init__(self, wall: Clock, *, every_ms: int) -> None:
        self._wall = wall
        self._every_ms = every_ms
        self._is_apart = False

    def tick(self, now: int) -> int:
        ahead_ms = now - self._wall.now()
        was_apart, self._is_apart = self._is_apart, abs(ahead_ms) > MAX_CARRY_MS
        if self._is_apart and not was_apart:
            _clock_log.warning(
                "the store's time is %s, %s %s the wall clock (%s): due dates are judged by the"
                " store's time until all processes that use the store are stopped and started",
                instant_text(now),
                difference_text(ahead_ms),
                "ahead of" if ahead_ms > 0 else "behind",
                instant_text(now - ahead_ms),
            )
        elif was_apart and not self._is_apart:
            _clock_log.info("the wall clock and the store's time agree again")
        return now + self._every_ms
