"""The rules of circuits in their plainest form: outcome by outcome, queue by queue.

The outcome windows and the store, which work in batches, must come to the same result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from penstock.domain.circuit.circuit import HeldQueue, OutcomeCounts, RequestOutcome
from penstock.domain.circuit.settings import BreakerSettings

Entries = Mapping[str, int]  # by request id: the instant of the latest attempt


class CircuitOutcomes(msgspec.Struct, frozen=True):
    """The outcomes in the window.  An id that failed and then succeeded is in both."""

    success: Entries = {}
    failure: Entries = {}


def note(
    outcomes: CircuitOutcomes, request_id: str, outcome: RequestOutcome, *, now: int
) -> CircuitOutcomes:
    """A new attempt replaces an older one of the same request with the same outcome."""
    if outcome is RequestOutcome.SUCCESS:
        return CircuitOutcomes({**outcomes.success, request_id: now}, outcomes.failure)
    return CircuitOutcomes(outcomes.success, {**outcomes.failure, request_id: now})


def tally(outcomes: CircuitOutcomes, settings: BreakerSettings, *, now: int) -> OutcomeCounts:
    """Count the outcomes in the window, its older edge included."""
    since = now - settings.entries_max_age_ms
    return OutcomeCounts(_within(outcomes.success, since), _within(outcomes.failure, since))


def trim(outcomes: CircuitOutcomes, settings: BreakerSettings) -> CircuitOutcomes:
    """Keep only the latest successes and failures."""
    most = settings.max_queue_sample_count
    return CircuitOutcomes(_latest(outcomes.success, most), _latest(outcomes.failure, most))


def next_probe(held: Iterable[HeldQueue], *, now: int) -> tuple[HeldQueue | None, list[HeldQueue]]:
    """Pick the queue that has waited longest for a probe, and move it to the end."""
    queued = sorted(held, key=lambda one: (one.at, one.queue))
    if not queued:
        return None, []
    first, *others = queued
    return first, [*others, HeldQueue(first.queue, now)]


def in_order(held: Iterable[HeldQueue]) -> list[str]:
    """The order in which the queues are released after their circuit closes."""
    return [one.queue for one in sorted(held, key=lambda one: (one.at, one.queue))]


def _within(entries: Entries, since: int) -> int:
    return sum(at >= since for at in entries.values())


def _latest(entries: Entries, most: int) -> Entries:
    if len(entries) <= most:
        return entries
    ordered = sorted(entries.items(), key=lambda entry: (entry[1], entry[0]))
    return dict(ordered[len(ordered) - most :])
