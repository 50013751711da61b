"""The clock of our own tests is the one that users get."""

from penstock.testing.clock import NOON, ManualClock

__all__ = ["NOON", "ManualClock"]
