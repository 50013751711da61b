"""The beats of a run that is repeated: every so often, counted from the first one."""

from __future__ import annotations


def next_beat(first_at: int, every_ms: int, *, now: int) -> int:
    """The first beat after `now`; those in between are skipped."""
    return first_at + ((now - first_at) // every_ms + 1) * every_ms


def skipped_beats(beat_at: int, every_ms: int, *, now: int) -> int:
    """How many beats have passed since the one at which a run began."""
    return (now - beat_at) // every_ms
