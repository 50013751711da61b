"""Problems of queues that operators should see first."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from penstock.domain.delivery.bulkhead import SLOW_AFTER_MS
from penstock.domain.limits import MINUTE
from penstock.domain.queue.queue import Counts, Queue

HANGING_AFTER_MS = SLOW_AFTER_MS  # a delivery without an answer for this long hangs
STUCK_AFTER_MS = 5 * MINUTE  # the next message may wait this long before the queue counts as stuck
OLD_TRANSACTION_AFTER_MS = MINUTE
OLD_TRANSACTION_AFTER = 100_000  # transactions since, if no time is known


class Problem(StrEnum):
    """Worst first."""

    FULL = "full"  # sends are refused
    HELD = "held"  # by a circuit, with messages, due or not
    STUCK = "stuck"  # the next message has been claimable for too long
    DEAD = "dead"  # messages died here
    DEAD_LETTERS = "dead_letters"  # … or in other queues, and were moved here
    PAUSED = "paused"  # by an operator, with queued messages


class QueueSnapshot(msgspec.Struct, frozen=True):
    """A queue at one moment."""

    queue: Queue
    counts: Counts
    oldest_ready_at: int | None = None
    has_dead_letters: bool = False  # another queue uses it as its dead-letter queue


class HangingRoute(msgspec.Struct, frozen=True):
    """A route whose endpoint leaves deliveries without an answer."""

    pattern: str
    deliveries: int  # under way for too long
    since: int  # when the oldest of them began


class TransactionKind(StrEnum):
    SESSION = "session"
    STANDBY = "standby"  # one that reports its own queries
    PREPARED = "prepared"  # a prepared transaction, which needs no session
    SLOT = "slot"  # a replication slot


class OldTransaction(msgspec.Struct, frozen=True):
    """Keeps the database from removing deleted rows, which claims have to skip."""

    kind: TransactionKind
    transactions: int  # of the whole server since then
    pid: int | None = None
    name: str | None = None  # of a prepared transaction or a slot
    application: str | None = None
    user: str | None = None
    since: int | None = None  # None: unknown
    state: str | None = None  # of the session, such as "idle in transaction"
    query_since: int | None = None  # when its current or last statement began

    @property
    def label(self) -> str:
        details = (("application", self.application), ("user", self.user))
        known = ", ".join(f"{what} {value}" for what, value in details if value)
        name = self.name if self.pid is None else self.pid
        return f"{self.kind.value} {name}" + (f" ({known})" if known else "")

    def is_old(self, *, now: int) -> bool:
        if self.since is None:
            return self.transactions >= OLD_TRANSACTION_AFTER
        return self.since <= now - OLD_TRANSACTION_AFTER_MS


def problems_of(snapshot: QueueSnapshot, *, now: int) -> tuple[Problem, ...]:
    return tuple(_problems(snapshot, now))


def _problems(snapshot: QueueSnapshot, now: int) -> Iterable[Problem]:
    queue, counts, oldest_at = snapshot.queue, snapshot.counts, snapshot.oldest_ready_at
    most = queue.settings.max_messages
    if most is not None and counts.live >= most:
        yield Problem.FULL
    if queue.held_by is not None and counts.ready + counts.waiting:
        yield Problem.HELD
    is_late = oldest_at is not None and oldest_at <= now - STUCK_AFTER_MS
    if is_late and queue.is_claimable and not snapshot.has_dead_letters:
        yield Problem.STUCK
    if counts.dead:
        yield Problem.DEAD
    if snapshot.has_dead_letters and counts.ready:
        yield Problem.DEAD_LETTERS
    if queue.is_paused and counts.ready:
        yield Problem.PAUSED


def worst_first(found: Iterable[tuple[QueueSnapshot, tuple[Problem, ...]]]) -> list[QueueSnapshot]:
    """Among equals, queues with more messages first."""
    order = list(Problem)

    def rank(one: tuple[QueueSnapshot, tuple[Problem, ...]]) -> tuple[int, int, str]:
        snapshot, problems = one
        many = snapshot.counts.dead + snapshot.counts.ready
        return order.index(problems[0]), -many, snapshot.queue.name

    return [snapshot for snapshot, problems in sorted((f for f in found if f[1]), key=rank)]
