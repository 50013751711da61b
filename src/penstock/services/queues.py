"""Queues: creates, changes, looks up, purges and removes them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec

from penstock.domain.errors import InvalidRequest, QueueExists, QueueNotEmpty, QueueNotFound
from penstock.domain.message.draft import Draft
from penstock.domain.queue.queue import Counts, Queue, QueueSettings, check_name, check_settings
from penstock.ports.clock import Clock
from penstock.ports.store import Sent, Session, Store
from penstock.ports.unit_of_work import Steps, Work, await_steps, read, write
from penstock.services.circuits import transitions
from penstock.services.directory import Directory
from penstock.services.messages import MessageService

CHUNK = 1_000  # messages per transaction when a queue is emptied or redriven


class QueueView(msgspec.Struct, frozen=True):
    queue: Queue
    counts: Counts
    oldest_ready_at: int | msgspec.UnsetType | None = msgspec.UNSET  # read only for single queues


class PutQueue(msgspec.Struct, frozen=True):
    view: QueueView
    is_new: bool


class PurgeResult(msgspec.Struct, frozen=True):
    cancelled: int
    is_done: bool


class QueueService:
    def __init__(self, store: Store, clock: Clock, directory: Directory) -> None:
        self._store = store
        self._clock = clock
        self._directory = directory

    def put(self, name: str, settings: QueueSettings, *, only_new: bool = False) -> Work[PutQueue]:
        """Create the queue, or give it these settings."""
        check_settings(settings, name=check_name(name))
        now = self._clock.now()

        def do(session: Session) -> PutQueue:
            found = session.queues.lock(name)
            if found is not None and only_new:
                raise QueueExists(f"queue {name!r} already exists")
            if found is None:
                made = session.queues.add(name, settings, now=now)
                return PutQueue(QueueView(self._directory.cache(made), Counts(), None), is_new=True)
            return PutQueue(self._change(session, found, settings), is_new=False)

        return write(self._store, do)

    def get_or_create(self, name: str, settings: QueueSettings) -> Steps[Queue]:
        """The queue of this name; created with these settings if it does not exist yet."""
        cached = self._directory.cached(name)
        return cached or (yield from self.load_or_create(name, settings))

    def load_or_create(self, name: str, settings: QueueSettings) -> Steps[Queue]:
        """The same, but reads from the store instead of the directory."""
        try:
            return (yield from self._directory.load(name))
        except QueueNotFound:
            pass
        try:
            put = yield from self.put(name, settings, only_new=True)
        except QueueExists:  # another caller has just created it
            return (yield from self._directory.load(name))
        return put.view.queue

    def change(self, name: str, change: Callable[[Queue], QueueSettings]) -> Work[QueueView]:
        """Derive new settings from the current ones, safe from concurrent changes.

        `change` runs inside the transaction, possibly more than once; the ticket raises its errors.
        """

        def do(session: Session) -> QueueView:
            found = session.queues.lock(name)
            if found is None:
                raise QueueNotFound(name)
            return self._change(session, found, check_settings(change(found), name=name))

        return write(self._store, do)

    def share_fairly(self, name: str) -> Work[QueueView]:
        """Switch fair sharing between groups on."""
        return self.change(
            name, lambda queue: msgspec.structs.replace(queue.settings, is_fair=True)
        )

    def patch(self, name: str, changes: Mapping[str, Any]) -> Work[QueueView]:
        """Change some settings and keep the others."""

        def merged(queue: Queue) -> QueueSettings:
            wanted = msgspec.to_builtins(queue.settings) | dict(changes)
            try:
                return msgspec.convert(wanted, QueueSettings)
            except msgspec.ValidationError as error:
                raise InvalidRequest(str(error)) from None

        return self.change(name, merged)

    def pause(self, name: str, *, is_paused: bool) -> Work[QueueView]:
        now = self._clock.now()

        def do(session: Session) -> QueueView:
            found = session.queues.named(name)
            changed = session.queues.change(found.queue_no, is_paused=is_paused, now=now)
            return _view(session, self._directory.cache(changed))

        return write(self._store, do)

    def unhold(self, name: str) -> Work[QueueView]:
        """Unhold it from any circuit.  An open circuit holds it again at the next request."""
        now = self._clock.now()

        def do(session: Session) -> QueueView:
            found = session.queues.named(name)
            unheld = transitions.unhold(session, [found.queue_no], now=now)
            if unheld and found.held_by is not None:
                data = {"queues": 1, "queue": name}
                transitions.add_unheld_fact(session, found.held_by, data, now=now)
            return _view(session, self._directory.cache(session.queues.named(name)))

        return write(self._store, do)

    def get(self, name: str) -> Work[QueueView]:
        return read(self._store, lambda session: _view(session, session.queues.named(name)))

    def exists(self, name: str) -> Work[bool]:
        return read(self._store, lambda session: session.queues.find(name) is not None)

    def page(
        self,
        *,
        prefix: str = "",
        after: str = "",
        limit: int = 100,
        dead_letter_queue: str | None = None,
        contains: str = "",
    ) -> Work[list[QueueView]]:
        """Queues by name; with `dead_letter_queue` only those whose dead messages go there."""

        def do(session: Session) -> list[QueueView]:
            queues = session.queues.page(
                prefix=prefix,
                after=after,
                limit=limit,
                dead_letter_queue=dead_letter_queue,
                contains=contains,
            )
            counts = session.queues.counts([queue.queue_no for queue in queues])
            return [QueueView(queue, counts[queue.queue_no]) for queue in queues]

        return read(self._store, do)

    def remove(self, name: str, *, force: bool) -> Work[None]:
        """With force, purge it first (see `purge`); messages sent in between are removed, too."""
        now = self._clock.now()

        def do(session: Session) -> None:
            found = session.queues.find_to_remove(name)
            if found is None:
                raise QueueNotFound(name)
            counts = session.queues.counts([found.queue_no])[found.queue_no]
            if not force and counts.live + counts.dead:
                raise QueueNotEmpty(f"queue {name!r} holds messages; purge it or use force")
            while session.messages.purge(found.queue_no, limit=CHUNK, now=now):
                pass
            session.queues.remove(found.queue_no, now=now)
            self._directory.forget(name)

        return write(self._store, do)

    def removed_at(self, name: str) -> Work[int | None]:
        """When a queue of this name was last removed."""
        return read(self._store, lambda session: session.queues.removed_at(name))

    def purge(self, name: str) -> Steps[int]:
        """Cancel all messages, a chunk per transaction; returns how many there were.

        Dedup keys are forgotten, so the same messages can be sent again.
        """
        total = 0
        while True:
            purged = yield from self.purge_some(name)
            if purged.is_done:
                return total
            total += purged.cancelled

    def purge_some(self, name: str) -> Work[PurgeResult]:
        """Cancel a chunk; repeat until it is done."""
        now = self._clock.now()

        def do(session: Session) -> PurgeResult:
            queue_no = session.queues.named(name).queue_no
            # Messages first: like senders, lock groups before waiting for dedup keys.
            cancelled = session.messages.purge(queue_no, limit=CHUNK, now=now)
            forgotten = session.messages.forget_keys(queue_no, limit=CHUNK)
            # Messages sent in between that lost their key are cancelled by the next call.
            return PurgeResult(cancelled, is_done=not cancelled and not forgotten)

        return write(self._store, do)

    def make_all_due_ready(self, name: str) -> Steps[None]:
        """Make all due messages claimable now, without waiting for the reaper.

        A chunk per transaction, so that other requests can run in between.
        """
        while (yield from self.make_due_ready_some(name)) == CHUNK:
            pass

    def make_due_ready_some(self, name: str) -> Work[int]:
        """Make due messages claimable and cancel expired ones; repeat while it returns CHUNK."""
        now = self._clock.now()

        def do(session: Session) -> int:
            queue_no = session.queues.named(name).queue_no
            expired = session.maintenance.expire(queue_no, now=now, limit=CHUNK)
            return max(expired, session.maintenance.return_due(queue_no, now=now, limit=CHUNK))

        return write(self._store, do)

    def redrive(self, name: str, *, to: str | None = None, limit: int | None = None) -> Steps[int]:
        """Send dead messages back, a chunk per transaction; returns how many there were.

        At most as many as are there now: messages that die again stay for the next redrive.
        """
        counts = (yield from self.get(name)).counts
        left = counts.dead + counts.ready + counts.waiting
        if limit is not None:
            left = min(left, limit)
        total = 0
        while left > 0:
            redriven = yield from self._redrive_some(name, to=to, limit=min(left, CHUNK))
            if not redriven:
                break
            total, left = total + redriven, left - redriven
        return total

    def _redrive_some(self, name: str, *, to: str | None, limit: int) -> Work[int]:
        now = self._clock.now()

        def do(session: Session) -> int:
            found = session.queues.named(name)
            target = None if to is None else session.queues.named(to).queue_no
            return session.messages.redrive(found.queue_no, to=target, limit=limit, now=now)

        return write(self._store, do)

    def _change(self, session: Session, queue: Queue, settings: QueueSettings) -> QueueView:
        if settings.ordering is not queue.settings.ordering:
            raise InvalidRequest("the ordering of a queue cannot be changed; create another queue")
        changed = session.queues.change(queue.queue_no, settings=settings, now=self._clock.now())
        return _view(session, self._directory.cache(changed))


def _view(session: Session, queue: Queue) -> QueueView:
    counts = session.queues.counts([queue.queue_no])[queue.queue_no]
    return QueueView(queue, counts, session.queues.oldest_ready_at(queue.queue_no))


T = TypeVar("T")


class ProtocolQueue:
    """The queue behind a protocol that has only one queue; created on first use."""

    def __init__(
        self, queues: QueueService, messages: MessageService, *, name: str, settings: QueueSettings
    ) -> None:
        self._queues = queues
        self._messages = messages
        self._settings = settings
        self.name = name

    async def send(self, draft: Draft) -> Sent:
        async def do(queue: Queue) -> Sent:
            return await await_steps(self._messages.send_one(queue.name, draft))

        return await self.use(do)

    async def use(self, do: Callable[[Queue], Awaitable[T]]) -> T:
        """Run `do` with the queue; if the queue was just removed, run it again with a new one."""
        queues, name, settings = self._queues, self.name, self._settings
        try:
            return await do(await await_steps(queues.get_or_create(name, settings)))
        except QueueNotFound:
            return await do(await await_steps(queues.load_or_create(name, settings)))
