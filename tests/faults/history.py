"""What the clients saw: every operation with its outcome and the interval it happened in.

An operation took effect at one unknown instant between `start` and `end` (monotonic seconds).
OK and FAIL are certain; UNKNOWN may or may not have happened: no answer came, or a 5xx.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    OK = "ok"
    FAIL = "fail"
    UNKNOWN = "unknown"


class Kind(StrEnum):
    SEND = "send"
    CLAIM = "claim"
    COMPLETE = "complete"
    EXTEND = "extend"
    GIVE_BACK = "give back"  # fail and release: the lease ends, the message stays
    STATS = "stats"


@dataclass(slots=True, kw_only=True)
class Op:
    kind: Kind
    outcome: Outcome
    start: float
    end: float
    queue: str
    worker: str = ""
    uid: str = ""  # ours, from the body
    message_id: str = ""  # the broker's
    receipt: str = ""
    lease_no: int = 0
    lease_s: float = 0.0  # of a claim or an extension
    group: str = ""
    seq: int = 0  # place in the group, as sent
    place: int = 0  # place in the answer of a claim of several
    answer: int = 0  # which answer of the broker it came in
    attempts: int = 1  # of a send that is retried under its dedup key
    body: Any = None
    totals: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something we did to the broker; a fault that forgets may undo unsynced leases."""

    what: str
    start: float
    end: float
    forgets_leases: bool = False


class History:
    """Append-only and shared by all client threads."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.faults: list[Fault] = []
        self.problems: list[str] = []
        self._answers = itertools.count(1)
        self._lock = threading.Lock()
        self._acked: dict[Kind, int] = {}

    def add(self, *ops: Op) -> None:
        with self._lock:
            self.ops.extend(ops)
            for op in ops:
                if op.outcome is Outcome.OK:
                    self._acked[op.kind] = self._acked.get(op.kind, 0) + 1

    def next_answer(self) -> int:
        return next(self._answers)

    def acked(self, kind: Kind = Kind.SEND) -> int:
        return self._acked.get(kind, 0)

    def of(self, kind: Kind, *outcomes: Outcome) -> Iterator[Op]:
        wanted = outcomes or tuple(Outcome)
        return (op for op in self.ops if op.kind is kind and op.outcome in wanted)
