"""Finds queues that may have a delivery to push: by wake-ups, and by a periodic scan.

A wake-up is only a hint.  Messages it missed (sent through another node, or before the start) are
found by scanning the counters of all queues, whose cost does not depend on their contents.  Expired
leases and delays of other nodes are handled by the reaper, which every node runs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping

import msgspec

from penstock.domain.delivery.delivery import is_for_deliveries
from penstock.domain.limits import MINUTE
from penstock.ports.store import Session, Store


class FoundQueues(msgspec.Struct, frozen=True):
    woken: list[int]  # a wake-up came: a message has just become ready
    scanned: list[int]  # the scan saw a ready message, maybe behind one that is not


class QueueFinder:
    def __init__(self, store: Store, *, scan_ms: int, wake: Callable[[], None]) -> None:
        self._store = store
        self._scan_ms = scan_ms
        self._wake = wake
        self._woken: deque[list[int]] = deque()
        self._ours: set[int] = set()
        self._others: set[int] = set()  # cleared now and then: a queue's purpose may change
        self._forget_at = 0
        self.scan_at = 0

    def on_wakeup(self, woken: Mapping[int, int]) -> None:
        """Called from any thread after every commit: queues without deliveries must cost little.

        A count of 0 announces a due date, which the pusher knows for the messages it sent.
        """
        news = [no for no, count in woken.items() if count and no not in self._others]
        if news:
            self._woken.append(news)
            self._wake()

    def find(self, *, now: int) -> FoundQueues:
        """Queues found since the last call; raises PenstockError without losing a wake-up."""
        woken: set[int] = set()
        for _ in range(len(self._woken)):
            woken.update(self._woken.popleft())
        try:
            scanned = self._scan(now)
            self._find_delivery_queues(woken.union(scanned))
        except BaseException:
            self._woken.append(list(woken))
            raise
        return FoundQueues(sorted(woken & self._ours), [no for no in scanned if no in self._ours])

    def forget(self, queue_no: int) -> None:
        """The queue was removed."""
        self._ours.discard(queue_no)

    def _scan(self, now: int) -> list[int]:
        if now < self.scan_at:
            return []
        scanned = self._store.read(lambda s: s.deliveries.queues_with_ready()).result()
        self.scan_at = now + self._scan_ms
        if now >= self._forget_at:
            self._others.clear()
            self._forget_at = now + MINUTE
        return scanned

    def _find_delivery_queues(self, queue_nos: Iterable[int]) -> None:
        unknown = [no for no in queue_nos if no not in self._ours and no not in self._others]
        if not unknown:
            return

        def do(session: Session) -> list[int]:
            found = session.queues.by_numbers(unknown)
            return [queue.queue_no for queue in found if is_for_deliveries(queue)]

        ours = self._store.read(do).result()
        self._ours.update(ours)
        self._others.update(set(unknown).difference(ours))
