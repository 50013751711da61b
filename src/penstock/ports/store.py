"""What every store can do.

The three hot verbs (send, claim, act) are methods of their own, so that a store may merge all that
wait into a few set-based statements and one commit.  Everything else is a small function that runs
inside a transaction (`write`) or on a read-only view (`read`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import msgspec

from penstock.domain.access.api_key import ApiKey
from penstock.domain.errors import PenstockError
from penstock.domain.limits import DEFAULT_LIMITS
from penstock.domain.message.draft import NewMessage
from penstock.domain.message.history import Attempt, Ending, HistoryFilter
from penstock.domain.message.lease import LeaseAct
from penstock.domain.message.lifecycle import Content, Message, State
from penstock.domain.message.move_task import MoveTask
from penstock.domain.message.selection import Pick
from penstock.domain.queue.counts import Counts
from penstock.domain.queue.queue import Queue, QueueSettings
from penstock.domain.schedule.schedule import Schedule
from penstock.domain.store.damage import Damage
from penstock.ports.archive import Archive, Restoring
from penstock.ports.circuits import Circuits, Documents, Duties
from penstock.ports.deliveries import Deliveries
from penstock.ports.logins import Logins
from penstock.ports.minute_counters import Samples
from penstock.ports.overview import Watching
from penstock.ports.registry import Facts, Workers
from penstock.ports.tags import TaggedMessages
from penstock.ports.ticket import Ticket
from penstock.ports.topics import Topics

T = TypeVar("T")

OUTAGES = "penstock.outages"  # the logger for a store out of reach; workers report that themselves


class Sent(msgspec.Struct, frozen=True, gc=False):
    id: str
    is_duplicate: bool = False
    message_no: int | None = None  # of a duplicate: that of the first; it grows within a group


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    queue_no: int
    now: int
    limit: int = 1
    lease_ms: int | None = None  # None: the queue's
    claimed_by: str | None = None
    in_a_row: bool = False  # of a group as many as are ready, and not only the first
    claim_key: str | None = None  # the same key again gives the same messages
    finishing: Sequence[LeaseAct] = ()  # acts that come first, in the same transaction
    kinds: tuple[str, ...] | None = None  # only these; not together with in_a_row
    max_bytes: int = DEFAULT_LIMITS.max_answer_bytes  # of all bodies; one message in any case


class Acted(msgspec.Struct, frozen=True):
    """A message after an act: enough to answer the one who acted."""

    id: str
    state: State
    due_at: int


class Claimed(msgspec.Struct, frozen=True):
    messages: list[tuple[Message, Content]]
    next_due_at: int | None = None  # when something falls due, if nothing was there now
    finished: list[Acted | PenstockError] = []  # what became of the acts that came first


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


class Stretch(msgspec.Struct, frozen=True):
    """What fits of a part of a queue, and where that part ends; None: with the queue."""

    messages: list[Message]
    end: tuple[int, int, int, int] | None


class Queues(Protocol):
    def add(self, name: str, settings: QueueSettings, *, now: int) -> Queue: ...
    def change(
        self,
        queue_no: int,
        *,
        settings: QueueSettings | None = None,
        is_paused: bool | None = None,
        now: int,
    ) -> Queue: ...
    def keep_from_change(self, queue_nos: Sequence[int]) -> None:
        """Until the end of this transaction nobody else holds them or lets them go."""
        ...

    def hold(self, queue_nos: Sequence[int], *, by: str) -> None:
        """Nothing is claimed there until they are let go; pausing and resuming change nothing."""
        ...

    def unhold(self, queue_nos: Sequence[int]) -> list[int]:
        """Those of them that were held; whoever waits there is woken."""
        ...

    def remove(self, queue_no: int, *, now: int) -> None: ...
    def removed_at(self, name: str) -> int | None:
        """When a queue of this name was removed last."""
        ...

    def get(self, queue_no: int) -> Queue: ...
    def find(self, name: str) -> Queue | None: ...
    def find_to_change(self, name: str) -> Queue | None:
        """The same; until the end of this transaction nobody else changes it."""
        ...

    def find_to_remove(self, name: str) -> Queue | None:
        """The same; nobody else sends or changes messages, and all that was sent is seen."""
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
        """By name; with a `dead_letter_queue` those whose dead messages go there.

        `contains`: a part of the name, whether in small letters or in capitals.
        """
        ...

    def some(self, queue_nos: Sequence[int]) -> list[Queue]:
        """Those of them that were not removed."""
        ...

    def counts(self, queue_nos: Sequence[int]) -> dict[int, Counts]: ...
    def total(self) -> Counts: ...
    def number_of(self) -> int: ...
    def oldest_ready_at(self, queue_no: int) -> int | None: ...
    def claimable(self, queue_nos: Sequence[int]) -> list[Claimable]:
        """Those of them that a claim should look at, or will have to; not those on hold."""
        ...


class Messages(Protocol):
    def find(self, message_id: str) -> Message | None: ...
    def numbered(self, message_nos: Sequence[int]) -> list[Message]: ...
    def content(self, message: Message) -> Content | None: ...
    def browse(self, wanted: Browse) -> list[Message]: ...
    def stretch(self, wanted: Browse, pick: Pick, *, length: int) -> Stretch:
        """Look through so many messages for those that fit; it costs the same if none does."""
        ...

    def change(
        self, message_id: str, how: Callable[[Message, Queue], Message], *, now: int
    ) -> Message:
        """Apply a pure change by hand; raises MessageNotFound, and what `how` raises."""
        ...

    def redrive(self, queue_no: int, *, to: int | None, limit: int, now: int) -> int: ...
    def purge(self, queue_no: int, *, limit: int, now: int) -> int: ...
    def forget_keys(self, queue_no: int, *, limit: int) -> int:
        """Dedup keys, whether their windows are over or not."""
        ...


class Tidying(Protocol):
    """What duties ask for.  Correctness never waits for them."""

    def queues_with_due(self, *, now: int) -> list[int]: ...
    def queues_with_expired(self, *, now: int) -> list[int]: ...
    def bring_back(self, queue_no: int, *, now: int, limit: int) -> int: ...
    def expire(self, queue_no: int, *, now: int, limit: int) -> int: ...
    def forget_dedup(self, *, now: int, limit: int) -> int: ...
    def forget_claims(self, *, now: int, limit: int) -> int: ...
    def forget_shares(self, *, limit: int) -> int:
        """Of fair queues: groups to which the line has caught up."""
        ...

    def forget_rates(self, *, now: int, limit: int) -> int:
        """Of rates: those that are not used up in the least."""
        ...

    def prepare_days(self, *, now: int) -> None:
        """Today and tomorrow; and the latest instant that the store has seen."""
        ...

    def old_days(self, *, before_day: int) -> list[int]: ...
    def drop_day(self, day: int, *, now: int) -> None: ...
    def may_prune(self, *, now: int) -> bool:
        """False for a day after a gap in time: the clock may have jumped ahead."""
        ...

    def leave_mark(self, *, now: int) -> None:
        """Write something that changes nothing: proof that the store can be written."""
        ...


class History(Protocol):
    def search(self, wanted: HistoryFilter) -> list[Ending]: ...
    def attempts(self, message_id: str) -> list[Attempt]: ...
    def content(self, ending: Ending) -> Content | None: ...


class Moves(Protocol):
    """Move tasks, and the messages that they move."""

    def place(self) -> int:
        """A place behind all that is in line now."""
        ...

    def add(self, task: MoveTask) -> None:
        """Raises MoveRunning while another one of the same source is active."""
        ...

    def find(self, task_id: str) -> MoveTask | None: ...
    def to_change(self, task_id: str) -> MoveTask | None:
        """Until the end of this transaction nobody else changes it."""
        ...

    def to_advance(self, task_id: str) -> MoveTask | None:
        """The same, but None if it has ended or somebody else is at it just now."""
        ...

    def of_source(self, queue_no: int, *, limit: int) -> list[MoveTask]:
        """Newest first."""
        ...

    def active(self) -> list[str]: ...
    def save(self, task: MoveTask) -> None:
        """When it has ended, the oldest ended ones of its source are forgotten."""
        ...

    def forget(self, *, before_at: int) -> int: ...
    def move_some(self, task: MoveTask, *, limit: int, now: int) -> int: ...
    def is_done(self, task: MoveTask, *, now: int) -> bool:
        """Nothing is there any more that the task could move."""
        ...

    def stranded(self, task: MoveTask, *, now: int) -> str | None:
        """Why messages were left that should have gone home; None: there are none."""
        ...


class Schedules(Protocol):
    """When recurring work is sent."""

    def add(self, schedule: Schedule) -> bool:
        """False: there is one of this name."""
        ...

    def save(self, schedule: Schedule) -> None: ...
    def remove(self, name: str) -> bool: ...
    def find(self, name: str) -> Schedule | None: ...
    def to_change(self, name: str) -> Schedule | None:
        """Until the end of this transaction nobody else changes it."""
        ...

    def to_fire(self, name: str, *, now: int) -> Schedule | None:
        """The same, but None if it is not due or somebody else is at it just now."""
        ...

    def page(self, *, after: str, limit: int) -> list[Schedule]: ...
    def of_owner(self, owner: str) -> list[Schedule]:
        """Those that this application has declared, by name."""
        ...

    def due(self, *, now: int, limit: int, after: tuple[int, str]) -> list[tuple[int, str]]:
        """Since when, and names; the longest due first."""
        ...

    def next_at(self, *, now: int) -> int | None:
        """When the next one falls due that is not due yet."""
        ...


class Keys(Protocol):
    def add(self, key: ApiKey) -> None: ...
    def all(self) -> list[ApiKey]: ...
    def revoke(self, key_id: str, *, now: int) -> bool: ...


class Session(Protocol):
    """The nouns inside one transaction or one read-only view."""

    @property
    def queues(self) -> Queues: ...
    @property
    def messages(self) -> Messages: ...
    @property
    def history(self) -> History: ...
    @property
    def keys(self) -> Keys: ...
    @property
    def logins(self) -> Logins: ...
    @property
    def moves(self) -> Moves: ...
    @property
    def workers(self) -> Workers: ...
    @property
    def facts(self) -> Facts: ...
    @property
    def schedules(self) -> Schedules: ...
    @property
    def circuits(self) -> Circuits: ...
    @property
    def duties(self) -> Duties: ...
    @property
    def documents(self) -> Documents: ...
    @property
    def deliveries(self) -> Deliveries: ...
    @property
    def archive(self) -> Archive: ...
    @property
    def restoring(self) -> Restoring: ...
    @property
    def tidying(self) -> Tidying: ...
    def send(
        self, new: Sequence[NewMessage], *, before: str | None = None
    ) -> list[Sent | PenstockError]:
        """As part of a write: sent exactly if the rest of it is kept.

        `before`: a message that the same write changes next (`messages.change`).
        """
        ...

    @property
    def tagged(self) -> TaggedMessages: ...
    @property
    def topics(self) -> Topics: ...
    @property
    def samples(self) -> Samples: ...
    @property
    def watching(self) -> Watching: ...


class Store(Protocol):
    @property
    def backend(self) -> str: ...
    @property
    def secret(self) -> bytes:
        """Signs receipts; the same for all nodes of this store."""
        ...

    def send(self, new: Sequence[NewMessage]) -> Ticket[list[Sent | PenstockError]]: ...
    def claim(self, wanted: Claim) -> Ticket[Claimed]: ...
    def claim_all(self, wanted: Sequence[Claim]) -> list[Ticket[Claimed]]:
        """Many at once, as one transaction: for those who look into many queues from a thread."""
        ...

    def act(self, acts: Sequence[LeaseAct]) -> Ticket[list[Acted | PenstockError]]: ...
    def write(self, what: Callable[[Session], T]) -> Ticket[T]: ...

    # In the caller's own transaction, given as a connection or session of a database library: it
    # counts exactly if the caller commits.  The second form of each is for those of event loops.
    def refuse_deadlock(self) -> None:
        """Raises TransactionBusy if a write would wait for the calling thread's own transaction.

        That is as far as it can be told; see store/sqlite/deadlock.py.
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
        """What cannot be read any more, as far as requests have met it; None: nothing."""
        ...

    def close(self) -> None: ...
