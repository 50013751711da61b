"""Counters of a queue.  At every commit: sent = waiting + ready + leased + totals of endings."""

from __future__ import annotations

import msgspec


class Counts(msgspec.Struct):
    """Also used as a delta while a transaction runs, hence not frozen."""

    waiting: int = 0
    ready: int = 0
    leased: int = 0
    dead: int = 0  # waiting for a redrive
    sent_total: int = 0  # every arrival: sends, redrives, dead letters moved in
    done_total: int = 0
    dead_total: int = 0
    cancelled_total: int = 0
    failed_total: int = 0
    expired_total: int = 0  # leases that expired
    claimed_total: int = 0

    @property
    def live(self) -> int:
        return self.waiting + self.ready + self.leased

    @property
    def is_balanced(self) -> bool:
        ended = self.done_total + self.dead_total + self.cancelled_total
        return self.sent_total == self.live + ended

    def add(self, other: Counts) -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
