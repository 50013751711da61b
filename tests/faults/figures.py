"""How often a run tries each fault: the CI number, or the full one with PENSTOCK_FAULTS=full."""

from __future__ import annotations

import os

FULL = os.environ.get("PENSTOCK_FAULTS", "") == "full"


def figure(ci: int, full: int) -> int:
    return full if FULL else ci
