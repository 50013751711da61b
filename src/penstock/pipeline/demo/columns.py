"""The demo's messages as columns of the lake's tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.pipeline.demo.scenario import (
    CANCELLED,
    DEAD,
    DONE,
    ERRORS,
    KINDS,
    QUEUES,
    WORKERS,
    DemoMessages,
    Ints,
    words,
)

WORKER_IDS = tuple(f"{number:032x}" for number in range(1, WORKERS + 1))
_OUTCOMES = ("done", "dead", "cancelled")
_HEX = np.frombuffer(bytes(range(256)).hex().encode(), dtype=np.uint8).reshape(256, 2)
_DASHES = (8, 13, 18, 23)


def history(messages: DemoMessages, *, first_no: int) -> dict[str, pa.Array]:
    """`messages` is sorted by end; numbers start at `first_no`."""
    rows = len(messages.message_no)
    is_claimed = messages.outcome != CANCELLED
    return {
        "history_no": pa.array(np.arange(first_no, first_no + rows)),
        "message_no": pa.array(messages.message_no),
        "id": ids(messages.message_no, messages.sent_at),
        "queue_no": pa.array(messages.queue + 1),
        "queue": texts([queue.name for queue in QUEUES], messages.queue),
        "outcome": texts(_OUTCOMES, messages.outcome),
        "reason": texts(("attempts_exhausted",), np.where(messages.outcome == DEAD, 0, -1)),
        "kind": texts(KINDS, messages.kind),
        "priority": _zeros(rows, np.int32),
        "sent_at": pa.array(messages.sent_at),
        "due_at": pa.array(np.where(is_claimed, messages.leased_at + 60_000, messages.sent_at)),
        "first_leased_at": pa.array(messages.first_leased_at, mask=~is_claimed),
        "leased_at": pa.array(messages.leased_at, mask=~is_claimed),
        "finished_at": pa.array(messages.finished_at),
        "attempts": pa.array((messages.failures + (messages.outcome == DONE)).astype(np.int32)),
        "failures": pa.array(messages.failures.astype(np.int32)),
        "crashes": pa.array(messages.crashes.astype(np.int32)),
        "lease_no": pa.array((messages.failures + (messages.outcome == DONE)).astype(np.int32)),
        "leased_by": texts(WORKER_IDS, np.where(is_claimed, messages.worker, -1)),
        "last_error": texts(ERRORS, np.where(messages.error > 0, messages.error, -1)),
        "size": pa.array(messages.size),
        "route": texts([queue.route or "" for queue in QUEUES], _route_index(messages.queue)),
    }


class Attempts:
    """The failed attempts of each message, in order."""

    def __init__(self, messages: DemoMessages) -> None:
        times = messages.failures
        of = np.repeat(np.arange(len(times)), times)
        nth = np.arange(len(of)) - np.repeat(np.cumsum(times) - times, times)
        last = np.where(messages.outcome == DEAD, messages.finished_at, messages.leased_at)
        span = ((last - messages.first_leased_at) // np.maximum(times, 1))[of]
        self.messages = messages.take(of)
        self.nth = nth
        self.leased_at = self.messages.first_leased_at + nth * span
        self.ended_at = self.leased_at + np.maximum(span // 2, 1)

    def take(self, which: npt.NDArray[np.bool_] | Ints) -> Attempts:
        taken = object.__new__(Attempts)
        taken.messages = self.messages.take(which)
        taken.nth = self.nth[which]
        taken.leased_at, taken.ended_at = self.leased_at[which], self.ended_at[which]
        return taken

    def columns(self, *, first_no: int) -> dict[str, pa.Array]:
        messages = self.messages
        is_crash = self.nth < messages.crashes
        return {
            "attempt_no": pa.array(np.arange(first_no, first_no + len(self.nth))),
            "message_no": pa.array(messages.message_no),
            "id": ids(messages.message_no, messages.sent_at),
            "queue_no": pa.array(messages.queue + 1),
            "queue": texts([queue.name for queue in QUEUES], messages.queue),
            "lease_no": pa.array((self.nth + 1).astype(np.int32)),
            "outcome": texts(("failed", "crashed"), is_crash.astype(np.int64)),
            "leased_at": pa.array(self.leased_at),
            "ended_at": pa.array(self.ended_at),
            "leased_by": texts(WORKER_IDS, messages.worker),
            "error": texts(ERRORS, messages.error),
        }


def texts(names: Sequence[str], which: Ints) -> pa.Array:
    """Names by index; null where the index is -1."""
    codes = pa.array(which.astype(np.int32), mask=which < 0)
    return pa.DictionaryArray.from_arrays(codes, pa.array(names, pa.string())).cast(pa.string())


def ids(numbers: Ints, sent_at: Ints) -> pa.Array:
    """UUIDv7: the instant of sending, the version, and pseudo-random bits."""
    raw = np.empty((len(numbers), 16), dtype=np.uint8)
    raw[:, :6] = sent_at.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 2:]
    raw[:, 6:14] = words(numbers, 20).view(np.uint8).reshape(-1, 8)
    raw[:, 14:] = words(numbers, 21).view(np.uint8).reshape(-1, 8)[:, :2]
    raw[:, 6] = raw[:, 6] & 0x0F | 0x70
    raw[:, 8] = raw[:, 8] & 0x3F | 0x80
    text = np.full((len(numbers), 36), ord("-"), dtype=np.uint8)
    text[:, [place for place in range(36) if place not in _DASHES]] = _HEX[raw].reshape(-1, 32)
    starts = np.arange(0, 36 * (len(numbers) + 1), 36, dtype=np.int32)
    return pa.StringArray.from_buffers(
        len(numbers), pa.py_buffer(starts), pa.py_buffer(np.ascontiguousarray(text))
    )


def _route_index(queue: Ints) -> Ints:
    has_route = np.array([bool(one.route) for one in QUEUES])
    return np.where(has_route[queue], queue, -1)


def _zeros(rows: int, kind: type[np.generic]) -> pa.Array:
    return pa.array(np.zeros(rows, dtype=kind))
