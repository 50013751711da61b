"""Queues by name, cached briefly so that a send need not read from the store first.

Transactions read what they decide on (whether the queue exists or is paused) themselves.  Values
from here (delay, limits, lease time) may be outdated for about `FRESH_MS` if another process has
changed them.
"""

from __future__ import annotations

from penstock.domain.errors import QueueExists, QueueNotFound
from penstock.domain.queue.queue import Queue, QueueSettings, check_name
from penstock.ports.clock import Clock
from penstock.ports.store import Session, Store
from penstock.ports.ticket import Ticket
from penstock.ports.unit_of_work import Work, read

FRESH_MS = 1_000
RELOAD_MS = 100


class Directory:
    def __init__(self, store: Store, clock: Clock, *, auto_create: bool = False) -> None:
        self._store = store
        self._clock = clock
        self._auto_create = auto_create
        self._by_name: dict[str, tuple[Queue, int]] = {}
        self._names: dict[int, str] = {}

    def cached(self, name: str) -> Queue | None:
        """The queue, if it was loaded recently."""
        found = self._by_name.get(name)
        if found is None:
            return None
        queue, until = found
        now = self._clock.now()
        if until < now:
            # One caller reloads it; the others use the cached value meanwhile.
            self._by_name[name] = (queue, now + RELOAD_MS)
            return None
        return queue

    def load(self, name: str) -> Work[Queue]:
        """Read the queue from the store; raises QueueNotFound."""

        def find(session: Session) -> Queue:
            found = session.queues.find(name)
            if found is None:
                self.forget(name)
                raise QueueNotFound(name)
            return self.cache(found)

        return read(self._store, find)

    def load_to_send(self, name: str) -> Ticket[Queue]:
        """The same, but creates the queue if `auto_create` is set."""
        if not self._auto_create:
            return self.load(name)
        now = self._clock.now()

        def find_or_make(session: Session) -> Queue:
            found = session.queues.find(check_name(name))
            if found is None:
                try:
                    # Not cached yet: no other caller may send to it before this is committed.
                    return session.queues.add(name, QueueSettings(), now=now)
                except QueueExists:  # another caller created it just now
                    found = session.queues.find(name)
            if found is None:
                raise QueueNotFound(name)  # and removed it
            return self.cache(found)

        return self._store.write(find_or_make)

    def name_of(self, queue_no: int) -> Ticket[str]:
        """Read the name of a queue number from the store; raises QueueNotFound."""
        return self._store.read(lambda session: self.cache(session.queues.get(queue_no)).name)

    def known_name(self, queue_no: int) -> str | None:
        return self._names.get(queue_no)

    def cache(self, queue: Queue) -> Queue:
        before = self._by_name.get(queue.name)
        if before is not None and before[0].queue_no != queue.queue_no:
            self.forget(queue.name)  # another node has created it again
        self._by_name[queue.name] = (queue, self._clock.now() + FRESH_MS)
        self._names[queue.queue_no] = queue.name
        return queue

    def forget(self, name: str) -> None:
        found = self._by_name.pop(name, None)
        if found is not None:
            self._names.pop(found[0].queue_no, None)
