"""Which queues a list shows, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import msgspec

from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Counts, Queue

LABEL_SIGN = "="


class QueueSort(StrEnum):
    NAME = "name"
    READY = "ready"
    WAITING = "waiting"
    LEASED = "leased"
    DEAD = "dead"
    SENT = "sent"
    DONE = "done"
    FAILED = "failed"


_NUMBERS: dict[QueueSort, Callable[[Counts], int]] = {
    QueueSort.READY: lambda counts: counts.ready,
    QueueSort.WAITING: lambda counts: counts.waiting,
    QueueSort.LEASED: lambda counts: counts.leased,
    QueueSort.DEAD: lambda counts: counts.dead,
    QueueSort.SENT: lambda counts: counts.sent_total,
    QueueSort.DONE: lambda counts: counts.done_total,
    QueueSort.FAILED: lambda counts: counts.failed_total,
}


class QueueSelection(msgspec.Struct, frozen=True, kw_only=True):
    """All given fields must match."""

    prefix: str = ""
    contains: str = ""
    dead_letter_queue: str | None = None
    label: str | None = None  # NAME, or NAME=VALUE
    state: State | None = None  # the queue has messages in it
    names: frozenset[str] | None = None

    def matches(self, queue: Queue, counts: Counts) -> bool:
        return (
            queue.name.startswith(self.prefix)
            and self.contains.lower() in queue.name.lower()
            and self.dead_letter_queue in (None, queue.settings.dead_letter_queue)
            and (self.label is None or _has_label(queue, self.label))
            and (self.state is None or _NUMBERS[QueueSort(self.state)](counts) > 0)
            and (self.names is None or queue.name in self.names)
        )


def sort_key(sort: QueueSort, queue: Queue, counts: Counts) -> tuple[int, str]:
    """By name, or the largest number first and then by name."""
    number = 0 if sort is QueueSort.NAME else -_NUMBERS[sort](counts)
    return number, queue.name


def _has_label(queue: Queue, label: str) -> bool:
    name, sign, value = label.partition(LABEL_SIGN)
    known = queue.settings.labels.get(name)
    return known is not None and (not sign or known == value)
