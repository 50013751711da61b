"""Protocols of a store.

The three hot verbs (send, claim, act) are separate methods, so that a store can merge concurrent
calls into a few set-based statements and one commit.  Everything else is a small function that runs
inside a transaction (`write`) or on a read-only view (`read`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import msgspec

from penstock.domain.errors import PenstockError
from penstock.domain.limits import DEFAULT_LIMITS
from penstock.domain.message.attempt_log import LogPart
from penstock.domain.message.draft import NewMessage
from penstock.domain.message.history import Attempt, Ending, HistoryFilter
from penstock.domain.message.lease import LeaseAct
from penstock.domain.message.lifecycle import Content, Message, State
from penstock.domain.message.result import MessageResult
from penstock.domain.message.selection import Selection
from penstock.domain.queue.queue import Counts, Queue, QueueSettings
from penstock.domain.schedule.schedule import Schedule
from penstock.domain.store.damage import Damage
from penstock.ports.archive import ArchiveStore, RestoreStore
from penstock.ports.circuits import CircuitStore, DeliveryStore, DocumentStore, DutyStore
from penstock.ports.flows import FlowStore
from penstock.ports.moves import MoveStore
from penstock.ports.overview import MinuteCounterStore, OverviewStore
from penstock.ports.registry import FactStore, KeyStore, LoginStore, WorkerStore
from penstock.ports.steps import SignalStore, StepStore
from penstock.ports.ticket import Ticket
from penstock.ports.topics import TaggedMessages, TopicStore

T = TypeVar("T")

OUTAGES = "penstock.outages"  # logger for an unreachable store; workers log outages themselves


class Sent(msgspec.Struct, frozen=True, gc=False):
    id: str
    is_duplicate: bool = False
    message_no: int | None = None  # of a duplicate: that of the first message; grows within a group


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    queue_no: int
    now: int
    limit: int = 1
    lease_ms: int | None = None  # None: the queue's
    claimed_by: str | None = None
    in_a_row: bool = False  # all ready messages of a group, not only the first
    claim_key: str | None = None  # repeating the key returns the same messages
    finishing: Sequence[LeaseAct] = ()  # acts that are applied first, in the same transaction
    kinds: tuple[str, ...] | None = None  # only these; not together with in_a_row
    max_bytes: int = DEFAULT_LIMITS.max_answer_bytes  # of all bodies, but at least one message


class Acted(msgspec.Struct, frozen=True, gc=False):
    """A message after an act: enough to answer the caller."""

    id: str
    state: State
    due_at: int


class Claimed(msgspec.Struct, frozen=True):
    messages: list[tuple[Message, Content]]
    next_due_at: int | None = None  # when the next message falls due, if none was ready
    finished: list[Acted | PenstockError] = []  # the results of the acts that came first


class Claimable(msgspec.Struct, frozen=True):
    """A queue with something to claim, now or later."""

    queue_no: int
    is_ready: bool
    next_due_at: int | None


class Browse(msgspec.Struct, frozen=True, kw_only=True):
    """Live and dead messages of a queue in one state, in that state's natural order."""

    queue_no: int
    state: State
    limit: int = 100
    after: tuple[int, int, int, int] | None = None


class ScannedPage(msgspec.Struct, frozen=True):
    """The matching messages of a part of a queue, and where that ends; None: at its end."""

    messages: list[Message]
    end: tuple[int, int, int, int] | None


class QueueStore(Protocol):
    def add(self, name: str, settings: QueueSettings, *, now: int) -> Queue: ...
    def change(
        self,
        queue_no: int,
        *,
        settings: QueueSettings | None = None,
        is_paused: bool | None = None,
        now: int,
    ) -> Queue: ...
    def lock_holds(self, queue_nos: Sequence[int]) -> None:
        """Lock them against being held or unheld until the end of this transaction."""
        ...

    def hold(self, queue_nos: Sequence[int], *, by: str) -> None:
        """Stop claims until they are unheld, independently of pause and resume."""
        ...

    def unhold(self, queue_nos: Sequence[int]) -> list[int]:
        """Unhold them and wake waiting claims; returns those that were held."""
        ...

    def remove(self, queue_no: int, *, now: int) -> None: ...
    def removed_at(self, name: str) -> int | None:
        """When a queue of this name was last removed."""
        ...

    def get(self, queue_no: int) -> Queue: ...
    def find(self, name: str) -> Queue | None: ...
    def named(self, name: str) -> Queue:
        """Raises QueueNotFound."""
        ...

    def lock(self, name: str) -> Queue | None:
        """The queue, locked until the end of this transaction."""
        ...

    def find_to_remove(self, name: str) -> Queue | None:
        """The same, locked against sends and changes, with everything sent so far visible."""
        ...

    def page(
        self,
        *,
        prefix: str,
        after: str,
        limit: int,
        dead_letter_queue: str | None = None,
        contains: str = "",
    ) -> list[Queue]:
        """Queues by name; with `dead_letter_queue` only those whose dead messages go there.

        `contains`: a part of the name, ignoring case.
        """
        ...

    def by_numbers(self, queue_nos: Sequence[int]) -> list[Queue]:
        """The queues of these numbers, without removed ones."""
        ...

    def counts(self, queue_nos: Sequence[int]) -> dict[int, Counts]: ...
    def total(self) -> Counts: ...
    def count(self) -> int: ...
    def oldest_ready_at(self, queue_no: int) -> int | None: ...
    def claimable(self, queue_nos: Sequence[int]) -> list[Claimable]:
        """The queues with something to claim, now or later, without held ones."""
        ...


class MessageStore(Protocol):
    def find(self, message_id: str) -> Message | None: ...
    def by_numbers(self, message_nos: Sequence[int]) -> list[Message]: ...
    def content(self, message: Message) -> Content | None: ...
    def browse(self, wanted: Browse) -> list[Message]: ...
    def scan_page(self, wanted: Browse, selection: Selection, *, length: int) -> ScannedPage:
        """Search this many messages for matches; the cost does not depend on how many match."""
        ...

    def change(
        self, message_id: str, change: Callable[[Message, Queue], Message], *, now: int
    ) -> Message:
        """Apply an operator's change; raises MessageNotFound, and what `change` raises."""
        ...

    def redrive(self, queue_no: int, *, to: int | None, limit: int, now: int) -> int: ...
    def purge(self, queue_no: int, *, limit: int, now: int) -> int: ...
    def forget_keys(self, queue_no: int, *, limit: int) -> int:
        """Remove dedup keys, whether their windows are over or not."""
        ...


class Maintenance(Protocol):
    """Maintenance by duties.  Correctness never depends on it."""

    def queues_with_due(self, *, now: int) -> list[int]: ...
    def queues_with_expired(self, *, now: int) -> list[int]: ...
    def return_due(self, queue_no: int, *, now: int, limit: int) -> int: ...
    def expire(self, queue_no: int, *, now: int, limit: int) -> int: ...
    def forget_dedup(self, *, now: int, limit: int) -> int: ...
    def forget_claims(self, *, now: int, limit: int) -> int: ...
    def forget_signals(self, *, now: int, limit: int) -> int: ...
    def forget_shares(self, *, limit: int) -> int:
        """Remove fair positions of groups that claims have passed."""
        ...

    def forget_rates(self, *, now: int, limit: int) -> int:
        """Remove rate buckets that are full."""
        ...

    def prepare_days(self, *, now: int) -> None:
        """Create the tables of today and tomorrow, and record the latest instant."""
        ...

    def old_days(self, *, before_day: int) -> list[int]: ...
    def drop_day(self, day: int, *, now: int) -> None: ...
    def may_prune(self, *, now: int) -> bool:
        """False for a day after a gap in time: the clock may have jumped ahead."""
        ...

    def probe_write(self, *, now: int) -> None:
        """Write something without effect, to prove that the store is writable."""
        ...


class HistoryStore(Protocol):
    def search(self, wanted: HistoryFilter) -> list[Ending]: ...
    def attempts(self, message_id: str) -> list[Attempt]: ...
    def content(self, ending: Ending) -> Content | None: ...


class AttemptLogStore(Protocol):
    def add(self, part: LogPart, *, now: int, most: int) -> bool:
        """Add a part; False if the log of the attempt would become larger than `most`."""
        ...

    def of_message(self, no: int, *, after: tuple[int, int], limit: int) -> list[LogPart]: ...


class ResultStore(Protocol):
    """What became of messages."""

    def of(self, ids: Sequence[str]) -> dict[str, MessageResult]:
        """By id, live or from history; those that are not stored are left out."""
        ...

    def of_ending(self, ending: Ending) -> str | None:
        """JSON text; None: it was not kept."""
        ...

    def running(self, ids: Sequence[str]) -> set[str]:
        """Those of these messages that have not ended."""
        ...


class ScheduleStore(Protocol):
    """Schedules of recurring work."""

    def add(self, schedule: Schedule) -> bool:
        """False: the name is taken."""
        ...

    def save(self, schedule: Schedule) -> None: ...
    def remove(self, name: str) -> bool: ...
    def find(self, name: str) -> Schedule | None: ...
    def lock(self, name: str) -> Schedule | None:
        """Locked until the end of this transaction."""
        ...

    def lock_due(self, name: str, *, now: int) -> Schedule | None:
        """The same, but None if it is not due or another node has it locked."""
        ...

    def page(self, *, after: str, limit: int) -> list[Schedule]: ...
    def of_owner(self, owner: str) -> list[Schedule]:
        """The schedules that this application has declared, by name."""
        ...

    def due(self, *, now: int, limit: int, after: tuple[int, str]) -> list[tuple[int, str]]:
        """Due instants and names, the longest due first."""
        ...

    def next_at(self, *, now: int) -> int | None:
        """When the next schedule that is not due yet falls due."""
        ...


class Session(Protocol):
    """The entities of a store within one transaction or one read-only view."""

    queues: QueueStore
    messages: MessageStore
    history: HistoryStore
    attempt_logs: AttemptLogStore
    results: ResultStore
    flows: FlowStore
    keys: KeyStore
    logins: LoginStore
    moves: MoveStore
    workers: WorkerStore
    facts: FactStore
    schedules: ScheduleStore
    circuits: CircuitStore
    duties: DutyStore
    documents: DocumentStore
    deliveries: DeliveryStore
    archive: ArchiveStore
    restoring: RestoreStore
    maintenance: Maintenance
    tagged: TaggedMessages
    topics: TopicStore
    minute_counters: MinuteCounterStore
    overview: OverviewStore
    steps: StepStore
    signals: SignalStore

    def send(
        self, new: Sequence[NewMessage], *, before: str | None = None
    ) -> list[Sent | PenstockError]:
        """Send as part of a write: if and only if the write commits.

        `before`: a message that the same write changes next (`messages.change`).
        """
        ...


class Store(Protocol):
    backend: str
    secret: bytes  # signs receipts; the same for all nodes of this store

    def send(self, new: Sequence[NewMessage]) -> Ticket[list[Sent | PenstockError]]: ...
    def claim(self, wanted: Claim) -> Ticket[Claimed]: ...
    def claim_all(self, wanted: Sequence[Claim]) -> list[Ticket[Claimed]]:
        """Many claims in one transaction, for a thread that serves many queues."""
        ...

    def act(self, acts: Sequence[LeaseAct]) -> Ticket[list[Acted | PenstockError]]: ...
    def write(self, what: Callable[[Session], T]) -> Ticket[T]: ...

    # In the caller's own transaction, given as a connection or session of a database library: it
    # takes effect if and only if the caller commits.  The async forms are for event loops.
    def refuse_deadlock(self) -> None:
        """Raises TransactionBusy if a write would wait for the calling thread's own transaction.

        Not every case can be detected; see store/sqlite/deadlock.py.
        """
        ...

    def send_in(self, tx: object, new: Sequence[NewMessage]) -> list[Sent | PenstockError]: ...
    def act_in(self, tx: object, acts: Sequence[LeaseAct]) -> list[Acted | PenstockError]: ...
    def write_in(self, tx: object, what: Callable[[Session], T]) -> T: ...
    async def send_in_async(
        self, tx: object, new: Sequence[NewMessage]
    ) -> list[Sent | PenstockError]: ...
    async def act_in_async(
        self, tx: object, acts: Sequence[LeaseAct]
    ) -> list[Acted | PenstockError]: ...
    async def write_in_async(self, tx: object, what: Callable[[Session], T]) -> T: ...

    def read(self, what: Callable[[Session], T]) -> Ticket[T]: ...
    def damage(self) -> Damage | None:
        """Damage that requests have run into so far, if any."""
        ...

    def close(self) -> None: ...
