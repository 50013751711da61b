"""Which queues may have a delivery to push: by wake-ups, and by a look once in a while.

A wake-up is only a hint.  What it missed (another node's, or from before the start) is found by a
look at the counters of all queues, which costs the same whatever they hold.  Leases that ran out
and delays that are over, of other nodes, are brought back by the reaper, which every node has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping

import msgspec

from penstock.domain.delivery.delivery import is_for_deliveries
from penstock.domain.limits import MINUTE
from penstock.ports.store import Session, Store


class Found(msgspec.Struct, frozen=True):
    heard: list[int]  # something has become ready just now
    seen: list[int]  # something is ready, maybe behind one that is not


class Finder:
    def __init__(self, store: Store, *, scan_ms: int, ring: Callable[[], None]) -> None:
        self._store = store
        self._scan_ms = scan_ms
        self._ring = ring
        self._heard: deque[list[int]] = deque()
        self._ours: set[int] = set()
        self._others: set[int] = set()  # with an end: somebody may change what a queue is for
        self._forget_at = 0
        self.scan_at = 0

    def heard(self, woken: Mapping[int, int]) -> None:
        """From any thread, after every commit: others' queues must cost next to nothing.

        A count of nothing tells of a due date, which is known here for what was sent from here.
        """
        news = [no for no, count in woken.items() if count and no not in self._others]
        if news:
            self._heard.append(news)
            self._ring()

    def look(self, *, now: int) -> Found:
        """Since the last time; raises PenstockError, and then nothing is lost."""
        heard: set[int] = set()
        for _ in range(len(self._heard)):
            heard.update(self._heard.popleft())
        try:
            seen = self._scan(now)
            self._learn(heard.union(seen))
        except BaseException:
            self._heard.append(list(heard))
            raise
        return Found(sorted(heard & self._ours), [no for no in seen if no in self._ours])

    def forget(self, queue_no: int) -> None:
        """It is no more."""
        self._ours.discard(queue_no)

    def _scan(self, now: int) -> list[int]:
        if now < self.scan_at:
            return []
        seen = self._store.read(lambda s: s.deliveries.queues_with_ready()).result()
        self.scan_at = now + self._scan_ms
        if now >= self._forget_at:
            self._others.clear()
            self._forget_at = now + MINUTE
        return seen

    def _learn(self, queue_nos: Iterable[int]) -> None:
        unknown = [no for no in queue_nos if no not in self._ours and no not in self._others]
        if not unknown:
            return

        def look(session: Session) -> list[int]:
            found = session.deliveries.queues(unknown)
            return [queue.queue_no for queue in found if is_for_deliveries(queue)]

        ours = self._store.read(look).result()
        self._ours.update(ours)
        self._others.update(set(unknown).difference(ours))
