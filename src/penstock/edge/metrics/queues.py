"""Metrics of the store and its queues, with OpenTelemetry's messaging names where they exist."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.domain.store.finding import Damage
from penstock.edge.metrics.text import family
from penstock.services.queues import QueueView

_STATES = ("waiting", "ready", "leased", "dead")
# messaging.client.sent.messages and …consumed.messages are OpenTelemetry's names.
_COUNTERS = {
    "sent_total": ("messaging_client_sent_messages_total", "Messages sent to the queue."),
    "claimed_total": ("messaging_client_consumed_messages_total", "Messages claimed."),
    "done_total": ("penstock_messages_done_total", "Messages completed."),
    "dead_total": ("penstock_messages_dead_total", "Messages that died."),
    "cancelled_total": ("penstock_messages_cancelled_total", "Messages cancelled."),
    "failed_total": ("penstock_attempts_failed_total", "Attempts that failed."),
    "expired_total": ("penstock_leases_expired_total", "Leases that expired."),
}


def render(
    views: Sequence[QueueView], *, waiting_claims: int, backend: str, damage: Damage | None = None
) -> str:
    return "".join([*_store(waiting_claims, backend, damage), *_queues(views)])


def _store(waiting_claims: int, backend: str, damage: Damage | None) -> Iterator[str]:
    # Damage whose page is not located yet counts as one page.
    damaged_pages = 0 if damage is None else max(1, len(damage.pages))
    yield from family(
        "penstock_claims_waiting", "Claims that wait for messages.", [({}, waiting_claims)]
    )
    yield from family("penstock_info", "The store of this node.", [({"backend": backend}, 1)])
    yield from family(
        "penstock_store_damaged_pages",
        "Pages of the store that requests failed to read.",
        [({}, damaged_pages)],
    )


def _queues(views: Sequence[QueueView]) -> Iterator[str]:
    yield from family(
        "penstock_queue_messages",
        "Messages in a queue by state.",
        (
            (
                {"messaging_destination_name": view.queue.name, "state": state},
                getattr(view.counts, state),
            )
            for view in views
            for state in _STATES
        ),
    )
    for field, (name, help_text) in _COUNTERS.items():
        samples = (
            (
                {"messaging_system": "penstock", "messaging_destination_name": view.queue.name},
                getattr(view.counts, field),
            )
            for view in views
        )
        yield from family(name, help_text, samples, kind="counter")
