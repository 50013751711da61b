"""What the clients of a run do: how many, how fast, how long their leases are."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.faults.history import History
from tests.faults.wire import Answer, Wire

STANDARD = "faults-standard"
FIFO = "faults-fifo"
DAY_MS = 86_400_000
PAUSE_AFTER_TROUBLE_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    producers: int = 3
    senders: int = 2  # of the FIFO queue: they retry under one dedup key until it is acknowledged
    consumers: int = 3
    groups: int = 4  # per sender
    batch: int = 5
    lease_ms: int = 1500
    max_backlog: int = 1000  # producers pause above it, so that the drain stays short
    pause_s: float = 0.002  # between sends of one producer: the machine is shared
    timeout_s: float = 6.0
    extends: float = 0.05
    gives_back: float = 0.05
    abandons: float = 0.02
    dawdles: float = 0.02  # complete only after the lease has ended


@dataclass(slots=True)
class ClientContext:
    """What all client threads of one run share."""

    ports: Sequence[int]
    workload: Workload
    history: History
    stopped: threading.Event = field(default_factory=threading.Event)

    def wire(self, number: int) -> Wire:
        return Wire(self.ports[number % len(self.ports)], timeout=self.workload.timeout_s)

    def breathe(self, answer: Answer) -> None:
        """Pause after a failure, so that a broker that is down is not flooded."""
        if answer.status == 0 or answer.status >= 500:
            self.stopped.wait(PAUSE_AFTER_TROUBLE_S)


def settings_of(queue: str, workload: Workload) -> dict[str, Any]:
    """Unlimited attempts and no back-off, so that only a fault can delay a message."""
    return {
        "lease_ms": workload.lease_ms,
        "max_attempts": None,
        "ordering": "group" if queue == FIFO else "standard",
        "redelivery": "front",
        "backoff": {"type": "fixed", "delay_ms": 0},
        "dedup_window_ms": DAY_MS,  # outlasts a clock that is set forward by an hour
    }


def a_body(uid: str, dice: random.Random, *, group: str = "", seq: int = 0) -> dict[str, Any]:
    """Mostly small; some fill several pages, so that a torn write has something to tear."""
    size = dice.choice((0, 40, 200, 200, 900, 9000 if dice.random() < 0.3 else 60))
    text = "".join(dice.choices("abcdefghij ÄßΩ界", k=24)) * (size // 24 + 1)
    return {"uid": uid, "group": group, "seq": seq, "text": text}


def now() -> float:
    return time.monotonic()
