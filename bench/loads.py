"""The loads: what each connection repeats, the same for every peer.

Closed loop: a connection waits for its answer before it asks again, so the rate shows how well a
peer shares one disk sync among the connections that wait for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["send", "consume", "cycle", "handoff"]


@dataclass(frozen=True)
class Load:
    name: str
    kind: Kind
    batch: int
    says: str
    connections: int | None = None  # instead of the run's number
    pace: float | None = None  # sends per second, instead of as many as possible


LOADS = (
    Load("send", "send", 1, "one message per request"),
    Load("send10", "send", 10, "ten messages per request"),
    Load("consume", "consume", 1, "claim one, complete one"),
    Load("consume10", "consume", 10, "claim ten, complete ten"),
    Load("send1", "send", 1, "one message per request, on one connection", connections=1),
    Load("cycle", "cycle", 1, "send one, claim one, complete one, on each connection"),
    Load(
        "handoff",
        "handoff",
        1,
        "500 sends a second on one connection; 8 wait for them: time from send to handler",
        connections=9,
        pace=500,
    ),
)

BY_NAME = {load.name: load for load in LOADS}
