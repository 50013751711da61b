"""History: finished messages, facts, statistics of all queues, readiness of the store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from penstock.domain import fact as facts
from penstock.domain.errors import MessageNotFound, QueueNotFound
from penstock.domain.fact import Fact, FactFilter
from penstock.domain.limits import Limits
from penstock.domain.message.history import Attempt, Ending, HistoryFilter, check_filter
from penstock.domain.message.lifecycle import Content
from penstock.domain.queue.queue import Counts
from penstock.domain.store.damage import Damage
from penstock.ports.clock import Clock
from penstock.ports.store import Session, Store
from penstock.ports.unit_of_work import Work, read, write
from penstock.services.queues import QueueView


class Stats(msgspec.Struct, frozen=True):
    backend: str
    queues: int
    counts: Counts
    now: int


class MessageHistory(msgspec.Struct, frozen=True):
    """Everything that is stored about one message."""

    endings: list[Ending]
    attempts: list[Attempt]
    content: Content | None
    queues: frozenset[str]  # all it has been in; a removed queue may no longer have a name


class HistoryService:
    def __init__(self, store: Store, clock: Clock, limits: Limits) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits
        self.backend = store.backend

    def stats(self) -> Work[Stats]:
        """Totals of all queues."""

        def do(session: Session) -> Stats:
            number = session.queues.count()
            return Stats(self.backend, number, session.queues.total(), self._clock.now())

        return read(self._store, do)

    def stats_of(self, views: Sequence[QueueView]) -> Stats:
        """Totals of these queues."""
        total = Counts()
        for view in views:
            total.add(view.counts)
        return Stats(self.backend, len(views), total, self._clock.now())

    def all_queues(self) -> Work[list[QueueView]]:
        """Every queue with its counters, for metrics."""

        def do(session: Session) -> list[QueueView]:
            views: list[QueueView] = []
            after = ""
            while page := session.queues.page(prefix="", after=after, limit=1_000):
                counts = session.queues.counts([queue.queue_no for queue in page])
                views += [QueueView(queue, counts[queue.queue_no]) for queue in page]
                after = page[-1].name
            return views

        return read(self._store, do)

    def history(self, wanted: HistoryFilter) -> Work[list[Ending]]:
        check_filter(wanted, max_limit=self._limits.max_claim)
        return read(self._store, lambda session: session.history.search(wanted))

    def past(self, message_id: str) -> Work[MessageHistory]:
        """Raises MessageNotFound if nothing is stored."""

        def do(session: Session) -> MessageHistory:
            endings = session.history.search(HistoryFilter(id=message_id, limit=100))
            attempts = session.history.attempts(message_id)
            live = session.messages.find(message_id)
            unsent = None
            if not endings and not attempts and live is None:
                unsent = session.flows.unsent(message_id)
                if unsent is None:
                    raise MessageNotFound(message_id)
            content = session.history.content(endings[0]) if endings else None
            queue_nos = {attempt.queue_no for attempt in attempts}
            if live is not None:
                queue_nos.add(live.queue_no)
            if unsent is not None:  # a member of a flow that waits for others, or was not needed
                queue_nos.add(unsent.message.queue_no)
            names = {ending.queue for ending in endings} | _names(session, queue_nos)
            return MessageHistory(endings, attempts, content, frozenset(names))

        return read(self._store, do)

    def ready(self) -> Work[None]:
        """Succeeds only while the store is writable: reads would succeed on a full disk."""
        now = self._clock.now()
        return write(self._store, lambda session: session.maintenance.probe_write(now=now))

    def damage(self) -> Damage | None:
        """Damage that requests have run into so far."""
        return self._store.damage()


def _names(session: Session, queue_nos: Iterable[int]) -> set[str]:
    names = set()
    for queue_no in queue_nos:
        try:
            names.add(session.queues.get(queue_no).name)
        except QueueNotFound:
            names.add("")
    return names


class FactService:
    """Searches facts: the history of everything but messages."""

    def __init__(self, store: Store, limits: Limits) -> None:
        self._store = store
        self._limits = limits

    def search(self, wanted: FactFilter) -> Work[list[Fact]]:
        facts.check_filter(wanted, max_limit=self._limits.max_claim)
        return read(self._store, lambda session: session.facts.search(wanted))
