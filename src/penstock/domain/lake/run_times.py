"""When a repeated run is due: at an interval that is counted from the first run."""

from __future__ import annotations


def next_run_at(first_at: int, every_ms: int, *, now: int) -> int:
    """The first run after `now`; those that were due before are skipped."""
    return first_at + ((now - first_at) // every_ms + 1) * every_ms


def skipped_runs(due_at: int, every_ms: int, *, now: int) -> int:
    """How many runs were due since the one that was due at `due_at` began."""
    return (now - due_at) // every_ms
