"""How much of each fault a run tries: the CI column, or the Full one with PENSTOCK_FAULTS=full."""

from __future__ import annotations

import os

FULL = os.environ.get("PENSTOCK_FAULTS", "") == "full"


def figure(ci: int, full: int) -> int:
    return full if FULL else ci
