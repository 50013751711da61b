"""Names of rows in the table `meta` that several modules read or write."""

from __future__ import annotations

CLOCK_MARK = "clock_high_water"  # the latest instant that the store has seen
PRUNING = "pruning"  # when data was pruned last, and until when pruning is suspended
