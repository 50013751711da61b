"""The loads: what each connection repeats, the same for every peer.

Closed loop: a connection waits for its answer before it asks again, so the rate shows how well a
peer shares one disk sync among the connections that wait for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["send", "consume", "cycle"]


@dataclass(frozen=True)
class Load:
    name: str
    kind: Kind
    batch: int
    says: str


LOADS = (
    Load("send", "send", 1, "one message per request"),
    Load("send10", "send", 10, "ten messages per request"),
    Load("consume", "consume", 1, "claim one, complete one"),
    Load("consume10", "consume", 10, "claim ten, complete ten"),
    Load("cycle", "cycle", 1, "send one, claim one, complete one, on each connection"),
)

BY_NAME = {load.name: load for load in LOADS}
