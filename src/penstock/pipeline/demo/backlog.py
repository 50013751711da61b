"""The counters of the demo's broker, minute by minute, counted from its messages."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.domain.limits import DAY, MINUTE
from penstock.pipeline.demo.columns import texts
from penstock.pipeline.demo.scenario import CANCELLED, DEAD, DONE, QUEUES, DemoMessages, Ints

_A_DAY = DAY // MINUTE


class Counters:
    """Counters of all queues, for all days and one more for late endings."""

    def __init__(self, first_midnight: int, days: int) -> None:
        self._start = first_midnight
        self._minutes = (days + 1) * _A_DAY
        names = ("sent", "claimed", "done", "dead", "cancelled", "failed", "attempts")
        self._in = {n: np.zeros((len(QUEUES), self._minutes), dtype=np.int64) for n in names}

    def add(self, messages: DemoMessages) -> None:
        claimed = messages.outcome != CANCELLED
        self._count("sent", messages.queue, messages.sent_at)
        self._count("claimed", messages.queue[claimed], messages.leased_at[claimed])
        for name, outcome in (("done", DONE), ("dead", DEAD), ("cancelled", CANCELLED)):
            which = messages.outcome == outcome
            self._count(name, messages.queue[which], messages.finished_at[which])
        self._count("failed", messages.queue, messages.finished_at, messages.failures)
        self._count("attempts", messages.queue, messages.finished_at, messages.failures + claimed)

    def samples(self, day: int) -> dict[str, pa.Array]:
        """The counters at the end of each minute of a day, by minute and queue."""
        minutes = slice(day * _A_DAY, (day + 1) * _A_DAY)
        total = {name: np.cumsum(found, axis=1)[:, minutes] for name, found in self._in.items()}
        ended = total["done"] + total["dead"] + total["cancelled"]
        leased = total["claimed"] - total["done"] - total["dead"]
        columns = {
            "waiting": np.zeros_like(ended),
            "ready": total["sent"] - ended - leased,
            "leased": leased,
            "dead": total["dead"],
            "sent_total": total["sent"],
            "done_total": total["done"],
            "dead_total": total["dead"],
            "cancelled_total": total["cancelled"],
            "failed_total": total["failed"],
            "expired_total": np.zeros_like(ended),
            "claimed_total": total["attempts"],
        }
        queue = np.tile(np.arange(len(QUEUES)), _A_DAY)
        # The last instant of each minute.
        at = np.repeat(np.arange(1, _A_DAY + 1), len(QUEUES)) * MINUTE - 1
        first_no = day * _A_DAY * len(QUEUES) + 1
        return {
            "sample_no": pa.array(np.arange(first_no, first_no + len(queue))),
            "at": pa.array(self._start + day * DAY + at),
            "queue_no": pa.array(queue + 1),
            "queue": texts([one.name for one in QUEUES], queue),
            **{name: pa.array(found.T.reshape(-1)) for name, found in columns.items()},
        }

    def _count(self, name: str, queue: Ints, at: Ints, weights: Ints | None = None) -> None:
        minute = (at - self._start) // MINUTE
        is_within = minute < self._minutes
        cells = (queue * self._minutes + minute)[is_within]
        weights = None if weights is None else weights[is_within]
        found = np.bincount(cells, weights=weights, minlength=self._in[name].size)
        self._in[name] += found.astype(np.int64).reshape(self._in[name].shape)
